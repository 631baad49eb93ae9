//! Descriptors on a GPU, with the bits of [the CPU's](super).

use super::{CELLS, Square};
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::gpu::GpuKeypoints;
use crate::feature::surf::SurfOptions;
use crate::feature::surf::gpu::layers::groups;
use crate::feature::surf::integral::{self, Sums};
use crate::filter::integral::GpuSum;
use crate::image::Size;
use crate::{Result, feature};
use tiepoint_gpu::{Kernel, KernelSource, arguments};

/// Lanes that describe one keypoint: as many as it can have values.
const GROUP: u32 = 128;

/// Describes oriented keypoints.
#[derive(Debug)]
pub(in crate::feature::surf) struct GpuDescribe {
    kernel: Kernel,
    square: Buffer<f32>,
    /// Keypoints of an image that are wanted.
    limit: u32,
    dimension: usize,
}

impl GpuDescribe {
    pub(in crate::feature::surf) fn source<A: GpuSum>(options: &SurfOptions) -> KernelSource {
        let square = Square::new(options);
        let order: Vec<i32> = match options.extended {
            true => (0..8).collect(),
            false => square.order.map(|i| i as i32).to_vec(),
        };
        let source = feature::for_kernels(KernelSource::new("SURF, descriptors"));
        integral::for_kernels::<A>(source)
            .define("DESCRIBE_GROUP", GROUP)
            .define("CELLS", CELLS)
            .define("VALUES", order.len())
            .define("EXTENDED", u8::from(options.extended))
            .define("SAMPLES_OF_SQUARE", square.u.len())
            .define("SAMPLES_OF_CELL", square.weights.len() / CELLS)
            .define("CELLS_OVERLAP", u8::from(!square.members.is_empty()))
            .define("COLUMNS_OUTER", u8::from(square.columns_outer))
            .define_f32("TO_CORNER", square.to_corner)
            .table_i32("ORDER", &order)
            .text(include_str!("describe.cl"))
    }

    pub(in crate::feature::surf) fn new<A: GpuSum>(gpu: &Gpu, options: &SurfOptions) -> Result<Self> {
        let kernel = gpu.program(&Self::source::<A>(options))?.untyped_kernel("describe", [GROUP, 1])?;
        let Square { u, v, weights, members, .. } = Square::new(options);
        let members = members.into_iter().map(f32::from).collect();
        Ok(Self {
            kernel,
            square: gpu.upload(&[u, v, weights, members].concat())?,
            limit: options.selection.device_limit(),
            dimension: options.dimension(),
        })
    }

    /// Writes the descriptors of oriented keypoints.
    pub(in crate::feature::surf) fn record<A: GpuSum>(
        &self,
        commands: &mut Commands,
        sums: Sums<'_, A>,
        (oriented, directions): (&GpuKeypoints, &Buffer<f32>),
        descriptors: &Buffer<f32>,
    ) -> Result<()> {
        if self.dimension == 0 {
            return Ok(());
        }
        commands.stage("describe");
        let Size { width, height } = sums.size();
        let arguments = arguments![
            descriptors,
            &oriented.keypoints,
            directions,
            &oriented.counts,
            sums.buffer(),
            &self.square,
            oriented.capacity as u32,
            self.limit,
            sums.pitch(),
            width as i32,
            height as i32,
            sums.origin(),
            sums.stride()
        ];
        Ok(commands.launch_untyped(&self.kernel, groups(oriented), arguments)?)
    }
}
