//! Sending features from the host to a device without waiting for the work in its queue.

use super::super::{Descriptors, Features, Keypoint, WORDS, to_words};
use super::{GpuDescriptors, GpuFeatures};
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Element, Gpu, Pinned};
use tiepoint_gpu::Mark;

/// Host memory to which features are copied, and from which the device reads them when its queue reaches that point. It
/// grows as needed.
#[derive(Debug)]
pub(crate) struct Sending {
    gpu: Gpu,
    count: Pinned<u32>,
    keypoints: Pinned<u32>,
    descriptors: Pinned<u8>,
    /// After the last features that were read from here.
    sent: Mark,
}

impl Sending {
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        let (count, keypoints, descriptors) = (gpu.pinned(1)?, gpu.pinned(0)?, gpu.pinned(0)?);
        Ok(Self { gpu: gpu.clone(), count, keypoints, descriptors, sent: gpu.mark()? })
    }

    /// The same features on the device, once its queue has reached that point. For descriptors of floats the host
    /// waits.
    pub(crate) fn send(&mut self, features: &Features) -> Result<GpuFeatures> {
        let Descriptors::U8(bytes) = &features.descriptors else {
            return GpuFeatures::upload(&self.gpu, features);
        };
        let (gpu, sent) = (&self.gpu, &self.sent);
        let words = features.len() * WORDS;
        self.keypoints.reserve(words)?;
        self.descriptors.reserve(bytes.len())?;
        #[expect(unsafe_code, reason = "memory that the device reads")]
        // SAFETY: commands that read this memory are made and run by this method alone, before `sent`.
        let (count, keypoints, descriptors) = unsafe {
            let keypoints = self.keypoints.numbers_mut_after(sent)?;
            (self.count.numbers_mut_after(sent)?, keypoints, self.descriptors.numbers_mut_after(sent)?)
        };
        count[0] = features.len() as u32;
        for (to, keypoint) in keypoints.chunks_exact_mut(WORDS).zip(&features.keypoints) {
            to.copy_from_slice(&to_words(keypoint));
        }
        descriptors[..bytes.len()].copy_from_slice(bytes);
        let mut commands = Commands::new();
        let found = GpuFeatures {
            count: uploaded(gpu, &mut commands, &self.count, 1)?,
            keypoints: uploaded(gpu, &mut commands, &self.keypoints, words)?,
            descriptors: GpuDescriptors::U8(uploaded(gpu, &mut commands, &self.descriptors, bytes.len())?),
            dimension: features.dimension,
            image: features.image,
            signed: Keypoint::have_signs(&features.keypoints),
        };
        gpu.run(&commands)?;
        self.sent = gpu.mark()?;
        Ok(found)
    }
}

fn uploaded<T: Element>(
    gpu: &Gpu,
    commands: &mut Commands,
    host: &Pinned<T>,
    len: usize,
) -> Result<Buffer<T>> {
    let buffer = gpu.buffer(len)?;
    commands.upload_first(host, &buffer, len)?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::all;
    use crate::feature::order::gpu::tests::keypoints;
    use crate::image::Size;

    #[test]
    fn features_arrive_as_they_were_sent() {
        for gpu in all() {
            let mut sending = Sending::new(gpu).unwrap();
            let features = [90, 0, 7, 200].map(|n: usize| Features {
                keypoints: keypoints(n, 5),
                descriptors: Descriptors::U8((0..n * 128).map(|i| (i % 251) as u8).collect()),
                dimension: 128,
                image: Size::new(640, 480),
            });
            let sent = features.each_ref().map(|features| sending.send(features).unwrap());
            for (sent, features) in sent.iter().zip(&features) {
                assert_eq!(sent.download().unwrap(), *features, "{gpu:?}");
            }
        }
    }
}
