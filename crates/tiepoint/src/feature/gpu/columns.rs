//! Features as arrays in a device's memory, one for each property, in the form that other programs take.

use super::{GpuDescriptors, GpuFeatures};
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::features::check_values;
use crate::feature::{DescriptorKind, Keypoint, WORDS, by_value, for_kernels, to_words};
use crate::image::Size;
use tiepoint_gpu::KernelSource;

const LANES: u32 = 256;

tiepoint_gpu::kernel! {
    unsafe kernel columns(groups) = Columns {
        write xy: f32 [n * 2],
        write scale: f32 [n],
        write angle: f32 [n],
        write response: f32 [n],
        write sign: i8 [n],
        write octave: i8 [n],
        write layer: u8 [n],
        read keypoints: u32 as Keypoint [n * WORDS as i128],
    } {
        n: i32,
    }
}

pub(crate) fn source() -> KernelSource {
    for_kernels(KernelSource::new("columns").define("LANES", LANES))
        .kernel::<Columns<'_>>([LANES, 1])
        .text(include_str!("columns.cl"))
}

/// The properties of features in the order of their descriptors; see [`Keypoint`] for their meaning. A clone is the
/// same memory.
#[derive(Clone, Debug)]
pub struct GpuColumns {
    /// x and y of each.
    pub xy: Buffer<f32>,
    /// Standard deviations.
    pub scale: Buffer<f32>,
    /// Directions.
    pub angle: Buffer<f32>,
    /// Strengths.
    pub response: Buffer<f32>,
    /// +1 and −1.
    pub sign: Buffer<i8>,
    /// Octaves.
    pub octave: Buffer<i8>,
    /// Layers.
    pub layer: Buffer<u8>,
}

impl GpuFeatures {
    /// The properties of the keypoints, each in its own memory. The host does not wait.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) when the device's memory is too small.
    pub fn columns(&self) -> Result<GpuColumns> {
        let (gpu, n) = (self.gpu(), self.capacity());
        let [xy, scale, angle, response] = [2 * n, n, n, n].map(|len| gpu.buffer::<f32>(len));
        let columns = GpuColumns {
            xy: xy?,
            scale: scale?,
            angle: angle?,
            response: response?,
            sign: gpu.buffer(n)?,
            octave: gpu.buffer(n)?,
            layer: gpu.buffer(n)?,
        };
        let kernel = gpu.program(&source())?.kernel::<Columns<'_>>()?;
        let mut commands = Commands::new();
        commands.stage("columns");
        let GpuColumns { xy, scale, angle, response, sign, octave, layer } = &columns;
        let keypoints = &self.keypoints;
        let arguments = Columns { xy, scale, angle, response, sign, octave, layer, keypoints, n: n as i32 };
        commands.launch(&kernel, [n.div_ceil(LANES as usize), 1, 1], arguments)?;
        gpu.run(&commands)?;
        Ok(columns)
    }

    /// Features of an image whose descriptors, of `dimension` numbers each, are already on a device. Descriptors of
    /// another program are copied on the device if their address does not allow kernels to read several numbers at a
    /// time.
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) when there are more or fewer descriptors than keypoints,
    /// [`Error::Memory`](crate::Error::Memory) when the device's memory is too small.
    pub fn with_descriptors(
        keypoints: &[Keypoint],
        (descriptors, dimension): (GpuDescriptors, usize),
        image: Size,
    ) -> Result<Self> {
        check_values(keypoints.len(), descriptors.values(), dimension)?;
        let descriptors: GpuDescriptors =
            by_value!(map descriptors, values => values.aligned_to(GpuDescriptors::ALIGNMENT)?);
        let gpu = descriptors.gpu().clone();
        let (signed, words) = (Keypoint::have_signs(keypoints), keypoints.iter().flat_map(to_words));
        let words: Vec<u32> = words.collect();
        let (count, keypoints) = (gpu.upload(&[keypoints.len() as u32])?, gpu.upload(&words)?);
        Ok(Self { count, keypoints, descriptors, dimension, image, signed })
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        self.keypoints.gpu()
    }

    /// The descriptors, in the order of the keypoints.
    pub fn descriptors(&self) -> &GpuDescriptors {
        &self.descriptors
    }

    /// The number of values of a descriptor; 0 if there are none.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The size of the image.
    pub fn image_size(&self) -> Size {
        self.image
    }

    /// The same features for another opened device that is the same card, without a copy; see
    /// [`Buffer::on`].
    ///
    /// # Errors
    /// As [`Buffer::on`].
    pub fn on(&self, gpu: &Gpu) -> Result<Self> {
        Ok(Self {
            count: self.count.on(gpu)?,
            keypoints: self.keypoints.on(gpu)?,
            descriptors: by_value!(map &self.descriptors, values => values.on(gpu)?),
            ..*self
        })
    }
}

impl GpuDescriptors {
    /// Kernels read up to sixteen bytes at a time.
    pub(crate) const ALIGNMENT: usize = 16;

    /// Room for this many values of the kind that is asked for.
    pub(crate) fn new(gpu: &Gpu, kind: DescriptorKind, values: usize) -> Result<Self> {
        Ok(match kind {
            DescriptorKind::F32 => Self::F32(gpu.buffer(values)?),
            DescriptorKind::U8 | DescriptorKind::None => Self::U8(gpu.buffer(values)?),
        })
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        by_value!(self, values => values.gpu())
    }

    pub(crate) fn values(&self) -> usize {
        by_value!(self, values => values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::device::gpu::all;
    use crate::feature::order::gpu::tests::keypoints;
    use crate::feature::{Descriptors, Features};

    #[test]
    fn columns_are_those_of_the_keypoints() {
        for gpu in all() {
            for n in [0, 1, 255, 1000] {
                let mut keypoints = keypoints(n, 3);
                for (i, k) in keypoints.iter_mut().enumerate() {
                    (k.octave, k.layer) = ((i % 13) as i8 - 1, (i % 7) as u8);
                    k.sign = if i % 3 == 0 { -1 } else { 1 };
                }
                let bytes: Vec<u8> = (0..n * 4).map(|i| i as u8).collect();
                let descriptors = GpuDescriptors::U8(gpu.upload(&bytes).unwrap());
                let size = Size::new(640, 480);
                let there =
                    GpuFeatures::with_descriptors(&keypoints, (descriptors.clone(), 4), size).unwrap();
                let GpuColumns { xy, scale, angle, response, sign, octave, layer } = there.columns().unwrap();
                let float = |value: fn(&Keypoint) -> f32| keypoints.iter().map(value).collect::<Vec<_>>();
                let both: Vec<f32> = keypoints.iter().flat_map(|k| [k.x, k.y]).collect();
                assert_eq!(xy.to_vec().unwrap(), both, "{gpu:?}: {n}");
                assert_eq!(scale.to_vec().unwrap(), float(|k| k.scale), "{gpu:?}: {n}");
                assert_eq!(angle.to_vec().unwrap(), float(|k| k.angle), "{gpu:?}: {n}");
                assert_eq!(response.to_vec().unwrap(), float(|k| k.response), "{gpu:?}: {n}");
                let of = |value: fn(&Keypoint) -> i8| keypoints.iter().map(value).collect::<Vec<_>>();
                assert_eq!(sign.to_vec().unwrap(), of(|k| k.sign), "{gpu:?}: {n}");
                assert_eq!(octave.to_vec().unwrap(), of(|k| k.octave), "{gpu:?}: {n}");
                let layers: Vec<u8> = keypoints.iter().map(|k| k.layer).collect();
                assert_eq!(layer.to_vec().unwrap(), layers, "{gpu:?}: {n}");
                let descriptors_here = Descriptors::U8(bytes);
                let expected =
                    Features { keypoints, descriptors: descriptors_here, dimension: 4, image: size };
                assert_eq!(there.on(gpu).unwrap().download().unwrap(), expected, "{gpu:?}: {n}");
                let refused = GpuFeatures::with_descriptors(&expected.keypoints, (descriptors, 3), size);
                assert!(n == 0 || matches!(refused, Err(Error::Mismatch(_))), "three of four values");
            }
        }
    }
}
