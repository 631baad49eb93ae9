//! [Levels](super::StructureFinder::levels) on a GPU: the CPU's bits.
//!
//! Everything up to the peaks is queued for all pictures and sizes; then the host reads the peaks once, spreads the corners
//! over each picture ([`corners::spread`], as on the CPU), and the device describes them. Images of several values are
//! stacks of images of one.

use super::channels::{self, SIGMAS};
use super::intensity::{Intensity, WHOLE};
use super::lanes::{BINS, COUNTS, LANES, Lanes};
use super::{Level, MOST, Own, corners, means, polar};
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, compile};
use crate::feature::gpu::{GpuDescriptors, GpuFeatures};
use crate::feature::{Features, Keypoint, WORDS, to_words};
use crate::filter::gauss::GaussOptions;
use crate::filter::gpu::GpuFilter;
use crate::filter::resample::Scaling;
use crate::filter::resample::gpu::source as halving;
use crate::filter::shrink::gpu::{shrink, source as shrink_source};
use crate::geometry::Homography;
use crate::geometry::warp::gpu::source as warping;
use crate::geometry::warp::{GpuWarp, Interpolation};
use crate::image::Size;
use crate::image::gpu::{GpuImage, GpuStack, Plane};
use crate::numeric;
use polar::{COSINES, LENGTH, RADII, TURNS};
use tiepoint_gpu::{KernelArguments, KernelSource, Program};

/// Lanes of a work group that makes pixels, in x and y, and of one that makes other things.
const GROUP: [u32; 2] = [32, 8];
const ROW_LANES: u32 = 64;
/// Words of a peak: x, y, response, number of the picture.
const PEAK: usize = 4;

tiepoint_gpu::kernel! {
    /// This kernel and the next four work on several pictures of one size, each by a layer of work groups of its own.
    unsafe kernel weigh(groups) = Weigh {
        write weighted (plane: Plane): f32 [plane.numbers(3 * groups[2])],
        read picture: f32 [plane.numbers(2 * groups[2])],
    } {}

    unsafe kernel normalise(groups) = Normalise {
        write even (plane: Plane): f32 [plane.numbers(groups[2])],
        read picture: f32 [plane.numbers(2 * groups[2])],
        read weighted: f32 [plane.numbers(3 * groups[2])],
        read grids (grid: Plane): f32 [grid.numbers(3 * groups[2])],
    } {}

    unsafe kernel magnitudes(groups) = Magnitudes {
        write lengths (plane: Plane): f32 [plane.numbers(3 * groups[2])],
        read first: f32 [plane.numbers(groups[2])],
        read second: f32 [plane.numbers(groups[2])],
        read weighted: f32 [plane.numbers(3 * groups[2])],
    } {}

    unsafe kernel fill(groups) = Fill {
        write bins (plane: Plane): f32 [plane.numbers(BINS as i128 * groups[2])],
        write strength: f32 [plane.numbers(groups[2])],
        read first: f32 [plane.numbers(groups[2])],
        read second: f32 [plane.numbers(groups[2])],
        read lengths: f32 [plane.numbers(3 * groups[2])],
        read grids (grid: Plane): f32 [grid.numbers(3 * groups[2])],
    } {}

    unsafe kernel side_by_side(groups) = SideBySide {
        write lanes (out: Plane): f32 [out.numbers(groups[2])],
        read halves (half_plane: Plane): f32 [half_plane.numbers(BINS as i128 * groups[2])],
        read lengths (plane: Plane): f32 [plane.numbers(3 * groups[2])],
    } {}

    unsafe kernel products(groups) = Products {
        write tensor (plane: Plane): f32 [plane.numbers(3)],
        read smooth: f32 [plane.numbers(1)],
    } {}

    unsafe kernel respond(groups) = Respond {
        write response (plane: Plane): f32 [plane.numbers(1)],
        read tensor: f32 [plane.numbers(3)],
    } {}

    unsafe kernel find_peaks(groups) = FindPeaks {
        write peaks: u32 as u32x4 [capacity * PEAK as i128],
        write counts: u32 [picture + 2],
        read response (plane: Plane): f32 [plane.numbers(1)],
        read lengths: f32 [plane.numbers(3)],
    } {
        capacity: u32,
        /// The number of the picture.
        picture: u32,
    }

    unsafe kernel sample(groups) = Sample {
        write cells: f32 [corners * LENGTH as i128],
        read keypoints: u32 [corners * WORDS as i128],
        read first (plane: Plane): f32 [plane.numbers(BINS as i128)],
        read second: f32 [plane.numbers(BINS as i128)],
        read third: f32 [plane.numbers(BINS as i128)],
    } {
        corners: i32,
    }

    unsafe kernel average(groups) = Average {
        write mean: f32 [LENGTH as i128],
        read cells: f32 [corners * LENGTH as i128],
    } {
        corners: i32,
    }

    /// A group for each corner.
    unsafe kernel quantise(groups) = Quantise {
        write bytes: u8 [groups[0] * LENGTH as i128],
        read cells: f32 [groups[0] * LENGTH as i128],
        read mean: f32 [LENGTH as i128],
    } {}

    unsafe kernel turn(groups) = Turn {
        write to: u8 [groups[1] * corners * LENGTH as i128],
        read from: u8 [corners * LENGTH as i128],
    } {
        corners: i32,
        back: u32,
    }
}

pub(crate) fn source() -> KernelSource {
    let row = [ROW_LANES, 1];
    numeric::for_kernels(KernelSource::new("structure"))
        .define("GROUP_WIDTH", GROUP[0])
        .define("GROUP_HEIGHT", GROUP[1])
        .define("ROW_LANES", ROW_LANES)
        .define("BINS", BINS)
        .define("LANES", LANES)
        .define("COUNTS", COUNTS)
        .define("MARGIN", channels::MARGIN)
        .define("BORDER", corners::MARGIN)
        .define("TURNS", TURNS)
        .define("RINGS", RADII.len())
        .define("LENGTH", LENGTH)
        .define("WORDS", WORDS)
        .define_f32("WHOLE", WHOLE)
        .define_f32("LEAST_WEIGHT", means::LEAST)
        .define_f32("NOISE", channels::NOISE)
        .define_f32("FLAT", channels::FLAT)
        .define_f32("CAP", channels::CAP)
        .define_f32("BINS_A_RADIAN", channels::BINS_A_RADIAN)
        .define_f32("LEAST_RESPONSE", corners::LEAST)
        .define_f32("WEAK", polar::WEAK)
        .define_f32("UNIT", polar::UNIT)
        .table_f32("RADII", &RADII)
        .table_f32("COSINES", &COSINES)
        .structure::<Plane>()
        .kernel::<Weigh<'_>>(GROUP)
        .kernel::<Normalise<'_>>(GROUP)
        .kernel::<Magnitudes<'_>>(GROUP)
        .kernel::<Fill<'_>>(GROUP)
        .kernel::<SideBySide<'_>>(GROUP)
        .kernel::<Products<'_>>(GROUP)
        .kernel::<Respond<'_>>(GROUP)
        .kernel::<FindPeaks<'_>>(GROUP)
        .kernel::<Sample<'_>>(row)
        .kernel::<Average<'_>>(row)
        .kernel::<Quantise<'_>>(row)
        .kernel::<Turn<'_>>(row)
        .text(include_str!("structure.cl"))
}

type Blur = GpuFilter<f32, f32>;

/// The stages of structure, compiled for a device.
#[derive(Debug)]
pub(crate) struct GpuStructure {
    gpu: Gpu,
    program: Program,
    /// Smooth brightness to the first scale and on to the second, local means, strength, tensor, and the three rings.
    scales: [Blur; 2],
    means: Blur,
    strength: Blur,
    tensor: Blur,
    rings: [Blur; 3],
    halve: Blur,
    halve_lanes: Blur,
    warp: GpuWarp<f32>,
}

/// Channels in a device's memory.
#[derive(Debug)]
struct GpuChannels {
    bins: GpuStack<f32>,
    strength: GpuStack<f32>,
    /// The lengths of the gradients of both scales, and whether they count.
    lengths: GpuStack<f32>,
}

/// What the corners of a picture are found and described from: the bins for the three rings, and the response.
struct Prepared {
    rings: Vec<GpuStack<f32>>,
    response: GpuStack<f32>,
    lengths: GpuStack<f32>,
    lanes: Option<GpuStack<f32>>,
}

impl GpuStructure {
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) by a device without f64,
    /// [`Error::NotReady`](crate::Error::NotReady) while the kernels are being compiled.
    pub(crate) fn new(gpu: &Gpu, cpu: &Cpu) -> Result<Self> {
        gpu.require_f64()?;
        let sigmas = [&SIGMAS[..], &[means::SIGMA], &corners::SIGMAS, &polar::SIGMAS].concat();
        let warp = warping::<f32, Homography>(Interpolation::Bilinear, 1);
        let halvings = [1, LANES].map(|channels| halving::<f32>(channels, Scaling::HalveMean));
        let mut sources = vec![source(), shrink_source(), warp];
        sources.extend(halvings);
        sources.extend(sigmas.iter().map(|&sigma| Blur::gauss_source(gpu, &GaussOptions::sigma(sigma), 1)));
        compile(gpu, cpu, sources)?;
        let blur = |sigma: f64| Blur::gauss(gpu, &GaussOptions::sigma(sigma), 1);
        let ([first, second], [strength, tensor], [a, b, c]) = (SIGMAS, corners::SIGMAS, polar::SIGMAS);
        Ok(Self {
            gpu: gpu.clone(),
            program: gpu.program(&source())?,
            scales: [blur(first)?, blur(second)?],
            means: blur(means::SIGMA)?,
            strength: blur(strength)?,
            tensor: blur(tensor)?,
            rings: [blur(a)?, blur(b)?, blur(c)?],
            halve: Blur::resample(gpu, Scaling::HalveMean, 1)?,
            halve_lanes: Blur::resample(gpu, Scaling::HalveMean, LANES)?,
            warp: GpuWarp::new(gpu, Interpolation::Bilinear, 1)?,
        })
    }

    fn stack(&self, size: Size, count: usize) -> Result<GpuStack<f32>> {
        GpuStack::new(&self.gpu, size, 1, count)
    }

    /// Records, as a stage, a kernel whose lanes make the pixels of `count` images of this size.
    fn pixels<A: KernelArguments>(
        &self,
        commands: &mut Commands,
        (size, count): (Size, usize),
        arguments: A,
    ) -> Result<()> {
        let kernel = self.program.kernel::<A>()?;
        commands.stage("structure");
        let [across, down, _] = kernel.covering(size.width, size.height);
        Ok(commands.launch(&kernel, [across, down, count], arguments)?)
    }

    /// Records a kernel with `lanes` lanes.
    fn row<A: KernelArguments>(&self, commands: &mut Commands, lanes: usize, arguments: A) -> Result<()> {
        let kernel = self.program.kernel::<A>()?;
        Ok(commands.launch(&kernel, kernel.covering(lanes, 1), arguments)?)
    }

    fn filtered(
        &self,
        commands: &mut Commands,
        filter: &Blur,
        from: &GpuStack<f32>,
    ) -> Result<GpuStack<f32>> {
        let to = self.stack(filter.output_size(from.size()), from.count())?;
        filter.record_batch(commands, from, &to)?;
        Ok(to)
    }

    /// The grey and the counts of pictures of one size on the device.
    pub(super) fn upload<'a>(
        &self,
        pictures: impl IntoIterator<Item = &'a Intensity>,
        cpu: &Cpu,
    ) -> Result<GpuStack<f32>> {
        let images = pictures.into_iter().flat_map(|of| [of.grey.view(), of.counts.view()]);
        GpuStack::upload_by(&self.gpu, &images.collect::<Vec<_>>(), cpu)
    }

    /// Local means, not yet divided by the weight, which is the last of the three images of each picture.
    fn grids(&self, commands: &mut Commands, weighted: &GpuStack<f32>) -> Result<GpuStack<f32>> {
        let small = self.stack(means::grid(weighted.size()), weighted.count())?;
        shrink(commands, weighted, &small)?;
        self.filtered(commands, &self.means, &small)
    }

    /// Records [`Channels::of`](super::Channels::of) of pictures' grey and of what counts in them, perhaps shrunk.
    fn channels(&self, commands: &mut Commands, picture: &GpuStack<f32>) -> Result<GpuChannels> {
        let (size, of, count) = (picture.size(), picture.buffer(), picture.count() / 2);
        let weighted = self.stack(size, 3 * count)?;
        self.pixels(commands, (size, count), Weigh { weighted: weighted.laid(), picture: of })?;
        let grids = self.grids(commands, &weighted)?;
        let even = self.stack(size, count)?;
        let normalise =
            Normalise { even: even.laid(), picture: of, weighted: weighted.buffer(), grids: grids.laid() };
        self.pixels(commands, (size, count), normalise)?;
        let first = self.filtered(commands, &self.scales[0], &even)?;
        let second = self.filtered(commands, &self.scales[1], &first)?;
        let (first, second) = (first.buffer(), second.buffer());
        let lengths = self.stack(size, 3 * count)?;
        let magnitudes = Magnitudes { lengths: lengths.laid(), first, second, weighted: weighted.buffer() };
        self.pixels(commands, (size, count), magnitudes)?;
        let grids = self.grids(commands, &lengths)?;
        let (bins, strength) = (self.stack(size, BINS * count)?, self.stack(size, count)?);
        let fill = Fill {
            bins: bins.laid(),
            strength: strength.buffer(),
            first,
            second,
            lengths: lengths.buffer(),
            grids: grids.laid(),
        };
        self.pixels(commands, (size, count), fill)?;
        Ok(GpuChannels { bins, strength, lengths })
    }

    /// Records the interleaving of the bins at half the size, and of what counts there, into one image each.
    fn side_by_side(
        &self,
        commands: &mut Commands,
        halves: &GpuStack<f32>,
        lengths: &GpuStack<f32>,
    ) -> Result<GpuStack<f32>> {
        let count = halves.count() / BINS;
        let lanes = GpuStack::new(&self.gpu, halves.size(), LANES, count)?;
        let arguments = SideBySide { lanes: lanes.laid(), halves: halves.laid(), lengths: lengths.laid() };
        self.pixels(commands, (halves.size(), count), arguments)?;
        Ok(lanes)
    }

    /// Queues the stages up to the response of a picture at a size; with `wants_lanes` its channels at half that size, too.
    fn prepare(&self, picture: &GpuStack<f32>, size: Size, wants_lanes: bool) -> Result<Prepared> {
        let mut commands = Commands::new();
        let shrunk = match size == picture.size() {
            true => picture.clone(),
            false => {
                let shrunk = self.stack(size, picture.count())?;
                shrink(&mut commands, picture, &shrunk)?;
                shrunk
            }
        };
        let GpuChannels { bins, strength, lengths } = self.channels(&mut commands, &shrunk)?;
        let halves = self.filtered(&mut commands, &self.halve, &bins)?;
        let lanes = wants_lanes.then(|| self.side_by_side(&mut commands, &halves, &lengths)).transpose()?;
        let mut rings: Vec<GpuStack<f32>> = Vec::with_capacity(self.rings.len());
        for blur in &self.rings {
            let ring = self.filtered(&mut commands, blur, rings.last().unwrap_or(&halves))?;
            rings.push(ring);
        }
        let smooth = self.filtered(&mut commands, &self.strength, &strength)?;
        let tensor = self.stack(size, 3)?;
        let products = Products { tensor: tensor.laid(), smooth: smooth.buffer() };
        self.pixels(&mut commands, (size, 1), products)?;
        let tensor = self.filtered(&mut commands, &self.tensor, &tensor)?;
        let response = self.stack(size, 1)?;
        let respond = Respond { response: response.laid(), tensor: tensor.buffer() };
        self.pixels(&mut commands, (size, 1), respond)?;
        self.gpu.run(&commands)?;
        Ok(Prepared { rings, response, lengths, lanes })
    }

    /// The corners of every picture, at most `most` each.
    fn corners(&self, pictures: &[Prepared], most: usize, cpu: &Cpu) -> Result<Vec<Vec<Keypoint>>> {
        // Peaks lie at least three pixels apart along one axis.
        let room = |size: Size| size.width.div_ceil(3) * size.height.div_ceil(3);
        let capacity: usize = pictures.iter().map(|picture| room(picture.response.size())).sum();
        let peaks: Buffer<u32> = self.gpu.buffer(capacity * PEAK)?;
        let counts: Buffer<u32> = self.gpu.buffer(1 + pictures.len())?;
        let mut commands = Commands::new();
        commands.stage("structure");
        commands.zero(&counts)?;
        for (i, picture) in pictures.iter().enumerate() {
            let find = FindPeaks {
                peaks: &peaks,
                counts: &counts,
                response: picture.response.laid(),
                lengths: picture.lengths.buffer(),
                capacity: capacity as u32,
                picture: i as u32,
            };
            self.pixels(&mut commands, (picture.response.size(), 1), find)?;
        }
        self.gpu.run(&commands)?;
        let counts = counts.to_vec()?;
        let words = peaks.first(counts[0] as usize * PEAK)?;
        let mut found: Vec<Vec<Keypoint>> = vec![vec![]; pictures.len()];
        for peak in words.as_chunks::<PEAK>().0 {
            let [x, y, response] = [peak[0], peak[1], peak[2]].map(f32::from_bits);
            found[peak[3] as usize].push(corners::keypoint([x, y], response));
        }
        cpu.try_map(pictures.len(), |i| {
            let (size, area) = (pictures[i].response.size(), counts[1 + i] as usize);
            Ok(corners::spread(found[i].clone(), size, area, most))
        })
    }

    /// The corners of a picture with their descriptors, which the device computes while the host goes on.
    fn describe(&self, picture: &Prepared, corners: &[Keypoint]) -> Result<GpuFeatures> {
        let (gpu, n) = (&self.gpu, corners.len());
        let words: Vec<u32> = corners.iter().flat_map(to_words).collect();
        let (keypoints, bytes) = (gpu.upload(&words)?, gpu.buffer(n * LENGTH)?);
        if n > 0 {
            let (first, [second, third]) =
                (picture.rings[0].laid(), [1, 2].map(|i| picture.rings[i].buffer()));
            let (cells, mean) = (gpu.buffer(n * LENGTH)?, gpu.buffer(LENGTH)?);
            let corners = n as i32;
            let mut commands = Commands::new();
            commands.stage("structure");
            let sample = Sample { cells: &cells, keypoints: &keypoints, first, second, third, corners };
            self.row(&mut commands, n * RADII.len() * TURNS, sample)?;
            self.row(&mut commands, LENGTH, Average { mean: &mean, cells: &cells, corners })?;
            let kernel = self.program.kernel::<Quantise<'_>>()?;
            commands.launch(&kernel, [n, 1, 1], Quantise { bytes: &bytes, cells: &cells, mean: &mean })?;
            gpu.run(&commands)?;
        }
        let (count, descriptors) = (gpu.upload(&[n as u32])?, GpuDescriptors::U8(bytes));
        let (dimension, image, signed) = (LENGTH, picture.response.size(), Keypoint::have_signs(corners));
        Ok(GpuFeatures { count, keypoints, descriptors, dimension, image, signed })
    }

    /// Levels at scales and sizes of pictures, whose corners are still in their own pixels.
    pub(super) fn levels(&self, wanted: &[(&Intensity, f64, Size)], cpu: &Cpu) -> Result<Vec<Level>> {
        let mut uploaded: Vec<(&Intensity, GpuStack<f32>)> = Vec::new();
        let (mut prepared, mut pictures) =
            (Vec::with_capacity(wanted.len()), Vec::with_capacity(wanted.len()));
        for &(intensity, _, size) in wanted {
            if uploaded.last().is_none_or(|(of, _)| !std::ptr::eq(*of, intensity)) {
                uploaded.push((intensity, self.upload([intensity], cpu)?));
            }
            let (_, picture) = &uploaded[uploaded.len() - 1];
            prepared.push(self.prepare(picture, size, size == intensity.size())?);
            pictures.push(picture.clone());
        }
        let corners = self.corners(&prepared, MOST, cpu)?;
        let described =
            prepared.iter().zip(&corners).map(|(picture, corners)| self.describe(picture, corners));
        let described: Vec<GpuFeatures> = described.collect::<Result<_>>()?;
        let found = prepared.into_iter().zip(pictures).zip(corners.into_iter().zip(described));
        let found = found.zip(wanted).map(|(((picture, intensity), (keypoints, on_device)), wanted)| {
            let &(_, scale, size) = wanted;
            let features = Features::without_descriptors(keypoints, size);
            let own = picture.lanes.map(|lanes| Own {
                lanes: Lanes::Device(GpuImage::clone(&lanes)),
                on_device: Some(intensity),
            });
            Level { scale, features, own: own.unwrap_or_default(), on_device: Some(on_device) }
        });
        Ok(found.collect())
    }

    /// A picture's grey and counts on the device, resampled on a grid of `size`; the counts are not yet 0 or 1.
    pub(super) fn resampled(
        &self,
        picture: &GpuStack<f32>,
        picture_from_grid: &Homography,
        size: Size,
    ) -> Result<GpuStack<f32>> {
        let (to, mut commands) = (self.stack(size, picture.count())?, Commands::new());
        self.warp.record_batch(&mut commands, picture, picture_from_grid, 0.0, &to)?;
        self.gpu.run(&commands)?;
        Ok(to)
    }

    /// [`halved_lanes`](super::halved_lanes) of the channels of pictures of one size.
    pub(super) fn halved_lanes(&self, pictures: &GpuStack<f32>) -> Result<Vec<Lanes>> {
        let mut commands = Commands::new();
        let GpuChannels { bins, lengths, .. } = self.channels(&mut commands, pictures)?;
        let halves = self.filtered(&mut commands, &self.halve, &bins)?;
        let lanes = self.side_by_side(&mut commands, &halves, &lengths)?;
        let images = match lanes.count() {
            1 => vec![Lanes::Device(GpuImage::clone(&lanes))],
            count => (0..count)
                .map(|i| lanes.copy_of(i, &mut commands).map(Lanes::Device))
                .collect::<Result<_>>()?,
        };
        self.gpu.run(&commands)?;
        Ok(images)
    }

    /// Channels at half their size.
    pub(super) fn halved(&self, lanes: &GpuImage<f32>) -> Result<GpuImage<f32>> {
        let mut commands = Commands::new();
        let from = GpuStack::of(lanes, &mut commands)?;
        let to = GpuStack::new(&self.gpu, self.halve_lanes.output_size(lanes.size()), LANES, 1)?;
        self.halve_lanes.record_batch(&mut commands, &from, &to)?;
        self.gpu.run(&commands)?;
        Ok(GpuImage::clone(&to))
    }

    /// [`turned`](super::turned) of features in the device's memory by every number below `turns`, or by minus that number
    /// (`back`), one after the other. Their keypoints are not set.
    pub(crate) fn turned(
        &self,
        commands: &mut Commands,
        features: &GpuFeatures,
        turns: usize,
        back: bool,
    ) -> Result<GpuFeatures> {
        let GpuDescriptors::U8(from) = &features.descriptors else { return Ok(features.clone()) };
        let gpu = &self.gpu;
        let n = from.len() / LENGTH;
        let (to, keypoints) = (gpu.buffer(turns * from.len())?, gpu.buffer(turns * n * WORDS)?);
        commands.stage("structure");
        let kernel = self.program.kernel::<Turn<'_>>()?;
        let [groups, ..] = kernel.covering(from.len(), 1);
        let turn = Turn { to: &to, from, corners: n as i32, back: u32::from(back) };
        commands.launch(&kernel, [groups, turns, 1], turn)?;
        let (count, descriptors) = (gpu.upload(&[(turns * n) as u32])?, GpuDescriptors::U8(to));
        Ok(GpuFeatures { count, keypoints, descriptors, ..features.clone() })
    }
}
