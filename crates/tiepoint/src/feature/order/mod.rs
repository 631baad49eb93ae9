//! The total order of keypoints: [`Keypoint::order`](super::Keypoint::order), and its GPU form.

pub(crate) mod gpu;

pub(crate) use gpu::GpuOrder;
