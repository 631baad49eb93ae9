//! A detector by name and options, on any device.

use super::Features;
use super::gpu::pipeline::is_of_memory;
use super::gpu::{FoundFeatures, GpuFeatures};
use super::sift::{GpuSift, Sift, SiftOptions};
use super::surf::{GpuSurf, Surf, SurfOptions};
use crate::device::gpu::Gpu;
use crate::device::{Computing, Cpu, Processor};
use crate::image::{AnyCow, AnyView, ImageView, PixelKind, Pixels, Size};
use crate::options::named;
use crate::{Error, Result, by_pixel};
use std::sync::OnceLock;

/// Which features to find, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detector {
    /// Lowe's SIFT.
    Sift(SiftOptions),
    /// Speeded-up robust features.
    Surf(SurfOptions),
}

named! {
    /// The kind of features, without options.
    pub enum DetectorKind as "detector" {
        /// Lowe's SIFT.
        #[default]
        "sift": Sift, "Differences of Gaussians and gradient histograms (Lowe 2004)";
        /// Speeded-up robust features.
        "surf": Surf, "Box-filter Hessians and Haar wavelets (Bay et al. 2008)";
    }
}

impl Default for Detector {
    fn default() -> Self {
        Self::Sift(SiftOptions::default())
    }
}

impl Detector {
    /// Which features these are.
    pub const fn kind(&self) -> DetectorKind {
        match self {
            Self::Sift(_) => DetectorKind::Sift,
            Self::Surf(_) => DetectorKind::Surf,
        }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`Error::Option`] names the first that is out of range.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Sift(options) => options.check(),
            Self::Surf(options) => options.check(),
        }
    }

    /// A finder of these features on the processor's GPU, or on its CPU if it has none.
    ///
    /// # Errors
    /// As [`check`](Self::check), and [`Error::Device`] when the GPU refuses the kernels.
    pub fn open(&self, processor: &Processor) -> Result<Finder> {
        let (name, on_cpu) = match self {
            Self::Sift(options) => ("SIFT", OnCpu::Sift(Sift::new(*options)?)),
            Self::Surf(options) => ("SURF", OnCpu::Surf(Box::new(Surf::new(*options)?))),
        };
        let finder = Finder { processor: processor.clone(), name, on_cpu, on_gpu: OnceLock::new() };
        finder.is_settled()?;
        Ok(finder)
    }

    /// The features of a grey image; none where `mask` is 0. For several images call [`open`](Self::open) once.
    ///
    /// # Errors
    /// As [`Finder::detect`].
    pub fn detect<'a>(
        &self,
        image: impl Into<AnyView<'a>>,
        mask: Option<ImageView<'_, u8>>,
        processor: &Processor,
    ) -> Result<Features> {
        self.open(processor)?.detect(image, mask)
    }
}

/// A detector on the device for which it was opened. It keeps its memory from image to image, and threads may share it.
/// The result is the same on every device: if a GPU lacks memory or a feature, the CPU searches, and a
/// [note](Processor::take_notes) says so.
#[derive(Debug)]
pub struct Finder {
    processor: Processor,
    name: &'static str,
    on_cpu: OnCpu,
    /// Empty while the GPU is being opened or its kernels are being compiled; `None` if the CPU searches.
    on_gpu: OnceLock<Option<OnGpu>>,
}

#[derive(Debug)]
enum OnCpu {
    Sift(Sift),
    Surf(Box<Surf>),
}

#[derive(Debug)]
enum OnGpu {
    Sift(Box<GpuSift>),
    Surf(Box<GpuSurf>),
}

/// Whether a GPU can search the two images together.
fn alike(a: &AnyView<'_>, b: &AnyView<'_>) -> bool {
    a.size() == b.size() && a.pixel() == b.pixel()
}

/// Whether the error is one of a GPU with too little memory or without a feature that the search needs, so that the
/// CPU can do the work.
fn is_for_cpu(error: &Error) -> bool {
    is_of_memory(error) || error.is_device_limit()
}

/// Evaluates one expression for either detector on a GPU.
macro_rules! on_gpu {
    ($gpu:expr, $detector:ident => $body:expr) => {
        match $gpu {
            OnGpu::Sift($detector) => $body,
            OnGpu::Surf($detector) => $body,
        }
    };
}

impl Finder {
    /// The detector on the GPU; `None` if there is none, or if it or its kernels are not ready.
    fn on_gpu(&self) -> Result<Option<&OnGpu>> {
        if let Some(known) = self.on_gpu.get() {
            return Ok(known.as_ref());
        }
        let (name, processor) = (self.name, &self.processor);
        let open = |gpu: Gpu| match &self.on_cpu {
            OnCpu::Sift(sift) => {
                GpuSift::on(&gpu, &processor.cpu, *sift.options()).map(|on| OnGpu::Sift(Box::new(on)))
            }
            OnCpu::Surf(surf) => {
                GpuSurf::on(&gpu, &processor.cpu, *surf.options()).map(|on| OnGpu::Surf(Box::new(on)))
            }
        };
        let known = match processor.joining_gpu().and_then(|gpu| gpu.map(open).transpose()) {
            Err(Error::NotReady { .. }) => return Ok(None),
            Err(error) if is_for_cpu(&error) => {
                processor.note(format!("{name} on the CPU: {error}"));
                None
            }
            opened => opened?,
        };
        Ok(self.on_gpu.get_or_init(|| known).as_ref())
    }

    /// Whether it is decided which device searches: not while a GPU is being opened or its kernels are being compiled.
    pub(crate) fn is_settled(&self) -> Result<bool> {
        self.on_gpu().map(|_| self.on_gpu.get().is_some())
    }

    /// The features of a grey image; none where `mask` is 0. Values are taken as they are: black is 0, and white 255, 65535 or
    /// 1, by the type; [`FileImage::prepare`](crate::image::FileImage::prepare) stretches others to that range, as the
    /// command does, and its mask leaves out transparent pixels and those without data.
    ///
    /// # Errors
    /// As [`Sift::detect`] and [`Surf::detect`], and [`Error::Device`] when a GPU fails.
    pub fn detect<'a>(
        &self,
        image: impl Into<AnyView<'a>>,
        mask: Option<ImageView<'_, u8>>,
    ) -> Result<Features> {
        self.detect_view(image.into(), mask)
    }

    /// [`detect`](Self::detect), compiled once: not for each type of image.
    fn detect_view(&self, image: AnyView<'_>, mask: Option<ImageView<'_, u8>>) -> Result<Features> {
        let on_gpu = |gpu: &OnGpu| on_gpu!(gpu, detector => detector.detect(image, mask));
        self.search(on_gpu, |cpu| self.on_cpu(image, mask, cpu))
    }

    /// Searches on the GPU if there is one that supports the search, otherwise on the CPU.
    fn search<R: Send>(
        &self,
        on_gpu: impl FnOnce(&OnGpu) -> Result<R> + Send,
        on_cpu: impl FnOnce(&Cpu) -> Result<R>,
    ) -> Result<R> {
        let (name, processor) = (self.name, &self.processor);
        if processor.is_opening() {
            let when_open = |gpu: &Gpu| {
                let not_ready = || Error::NotReady { device: gpu.info().name.clone() };
                let found = on_gpu(self.on_gpu()?.ok_or_else(not_ready)?)?;
                self.note_parts();
                Ok(found)
            };
            return processor.race(name, when_open, on_cpu);
        }
        let found = match self.on_gpu()?.map(on_gpu) {
            None => {
                match self.on_gpu.get() {
                    None => processor.fall_back_not_ready(),
                    Some(_) => processor.count_computed(Computing::Cpu),
                }
                on_cpu(&processor.cpu)
            }
            Some(Err(error)) if is_for_cpu(&error) => {
                processor.fall_back(name, &error);
                on_cpu(&processor.cpu)
            }
            Some(found) => {
                processor.count_computed(Computing::Gpu);
                self.note_parts();
                found
            }
        };
        self.processor.collect_times();
        found
    }

    /// The features of a grey image, which stay in the memory of the processor's GPU; none where `mask` is 0. If image
    /// and mask are already there, they are not copied.
    ///
    /// # Errors
    /// As [`detect`](Self::detect), and [`Error::Device`] when the processor has no GPU.
    pub fn detect_on_device<'a>(
        &self,
        image: impl Into<Pixels<'a>>,
        mask: Option<Pixels<'_>>,
    ) -> Result<GpuFeatures> {
        self.detect_there(&(image.into(), mask))
    }

    /// [`detect_on_device`](Self::detect_on_device), compiled once: not for each type of image.
    fn detect_there(&self, (image, mask): &(Pixels<'_>, Option<Pixels<'_>>)) -> Result<GpuFeatures> {
        let gpu = self.processor.gpu().ok_or_else(|| Error::Device {
            device: "cpu".into(),
            reason: format!("features stay on a GPU only where {} was opened on one", self.name),
        })?;
        let on_gpu =
            |gpu: &OnGpu| on_gpu!(gpu, detector => detector.detect_on_device(image.clone(), mask.clone()));
        self.search(on_gpu, |cpu| {
            let image = image.clone().into_host()?;
            let mask = mask.clone().map(Pixels::into_host).transpose()?;
            let mask = match mask.as_ref().map(AnyCow::view) {
                None => None,
                Some(AnyView::U8(mask)) => Some(mask),
                Some(other) => {
                    let found = other.pixel();
                    return Err(Error::Mismatch(format!("a mask of {found:?}: one of 8 bits is needed")));
                }
            };
            GpuFeatures::upload(gpu, &self.on_cpu(image.view(), mask, cpu)?)
        })
    }

    /// Reserves memory of a GPU, and of the host for its results, for two images of this shape without masks, for
    /// instance while they are still being read. If there is too little memory, nothing is reserved, and the search
    /// reports it.
    pub fn reserve_for_two(&self, size: Size, pixel: PixelKind) {
        if let Ok(Some(gpu)) = self.on_gpu() {
            // The search meets the same error and reports it.
            let _ = on_gpu!(gpu, detector => detector.reserve_for_two(size, pixel));
        }
    }

    /// The features of two grey images, each as [`detect`](Self::detect) finds them, for
    /// [`tie_pictures`](crate::register::tie_pictures). If a GPU found them, they also stay in its memory.
    ///
    /// # Errors
    /// As [`detect`](Self::detect), for each image.
    pub fn detect_pair(
        &self,
        images: [AnyView<'_>; 2],
        masks: [Option<ImageView<'_, u8>>; 2],
    ) -> [Result<FoundFeatures>; 2] {
        let search = |gpu: &OnGpu| on_gpu!(gpu, detector => detector.detect_and_keep_batch(&images));
        if let [None, None] = masks
            && alike(&images[0], &images[1])
            && let Some(Ok(pair)) = self.together(search).map(<[FoundFeatures; 2]>::try_from)
        {
            return pair.map(Ok);
        }
        let one = |i: usize| {
            let (image, mask) = (images[i], masks[i]);
            let keep = |gpu: &OnGpu| on_gpu!(gpu, detector => detector.detect_and_keep(image, mask));
            self.search(keep, |cpu| self.on_cpu(image, mask, cpu).map(FoundFeatures::from))
        };
        [one(0), one(1)]
    }

    /// The features of several grey images, each as [`detect`](Self::detect) finds them. A GPU searches successive
    /// images of one size and one type of pixel together.
    pub fn detect_batch<'a, I>(&self, images: I) -> Vec<Result<Features>>
    where
        I: IntoIterator,
        I::Item: Into<AnyView<'a>>,
    {
        self.detect_views(&images.into_iter().map(Into::into).collect::<Vec<_>>())
    }

    /// [`detect_batch`](Self::detect_batch), compiled once: not for each type of image.
    fn detect_views(&self, images: &[AnyView<'_>]) -> Vec<Result<Features>> {
        self.processor.expect_pictures(images.len());
        let mut found = Vec::with_capacity(images.len());
        for images in images.chunk_by(alike) {
            let search = |gpu: &OnGpu| on_gpu!(gpu, detector => detector.detect_batch(images));
            let is_searched = |image: &AnyView<'_>| image.channels() == 1 && !image.size().is_empty();
            let several = images.len() > 1 && images.iter().all(is_searched);
            match several.then(|| self.together(search)).flatten() {
                Some(features) => found.extend(features.into_iter().map(Ok)),
                None => found.extend(images.iter().map(|image| self.detect(*image, None))),
            }
        }
        found
    }

    /// What `search` finds in several images on the GPU; `None` if each must be searched alone.
    fn together<R>(&self, search: impl FnOnce(&OnGpu) -> Result<R>) -> Option<R> {
        let found = search(self.on_gpu().ok().flatten()?);
        self.processor.collect_times();
        match found {
            Ok(found) => {
                self.processor.count_computed(Computing::Gpu);
                self.note_parts();
                Some(found)
            }
            // The single searches that follow are cancelled, too, or note that the kernels are not ready.
            Err(Error::Cancelled | Error::NotReady { .. }) => None,
            Err(error) => {
                self.processor.note(format!("{error}; the images are searched one by one"));
                None
            }
        }
    }

    fn on_cpu(&self, image: AnyView<'_>, mask: Option<ImageView<'_, u8>>, cpu: &Cpu) -> Result<Features> {
        match &self.on_cpu {
            OnCpu::Sift(sift) => by_pixel!(image, view => sift.detect(view, mask, cpu)),
            OnCpu::Surf(surf) => by_pixel!(image, view => surf.detect(view, mask, cpu)),
        }
    }

    fn note_parts(&self) {
        if let parts @ 2.. = self.parts() {
            self.processor.note(format!("too large for the GPU's memory: searched in {parts} parts"));
        }
    }

    /// Takes features that are no longer needed: see
    /// [`GpuDetector::recycle`](super::gpu::GpuDetector::recycle). On a CPU they are dropped.
    pub fn recycle(&self, features: impl IntoIterator<Item = Features>) {
        match self.on_gpu.get().and_then(Option::as_ref) {
            None => features.into_iter().for_each(drop),
            Some(gpu) => on_gpu!(gpu, detector => detector.recycle(features)),
        }
    }

    pub(super) fn cpu(&self) -> &Cpu {
        &self.processor.cpu
    }

    pub(super) fn limit(&self) -> Option<usize> {
        match &self.on_cpu {
            OnCpu::Sift(sift) => sift.options().selection.limit,
            OnCpu::Surf(surf) => surf.options().selection.limit,
        }
    }

    /// The number of parts in which the last image was searched: 1, or more if the GPU's memory was too small.
    pub fn parts(&self) -> usize {
        let on_gpu = self.on_gpu.get().and_then(Option::as_ref);
        on_gpu.map_or(1, |gpu| on_gpu!(gpu, detector => detector.parts()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::all;
    use crate::device::progress::tests::told;
    use crate::device::tests::processors;
    use crate::image::{AnyImage, Image, Size};
    use crate::synth::Texture;

    #[test]
    fn each_picture_of_a_pair_has_its_own_answer() {
        let cpu = Cpu::with_threads(2).unwrap();
        let good = AnyImage::from(Texture::new(1).image::<u8>(Size::new(120, 90), &cpu));
        let empty = AnyImage::from(Image::<u8>::new(Size::new(0, 0)));
        for processor in processors(&cpu) {
            let finder = Detector::default().open(&processor).unwrap();
            let wanted = finder.detect(&good, None).unwrap();
            for place in [0, 1] {
                let images = [0, 1].map(|i| if i == place { good.view() } else { empty.view() });
                let found = finder.detect_pair(images, [None; 2]);
                assert_eq!(found[place].as_ref().unwrap().features, wanted, "{processor:?}");
                assert!(matches!(found[1 - place], Err(Error::Image(_))), "{processor:?}");
            }
        }
    }

    #[test]
    fn a_batch_is_what_each_alone_is() {
        let cpu = Cpu::with_threads(2).unwrap();
        let texture = |seed| AnyImage::from(Texture::new(seed).image::<u8>(Size::new(120, 90), &cpu));
        let images: Vec<AnyImage> = (0..5).map(texture).collect();
        for processor in processors(&cpu) {
            for detector in [Detector::default(), Detector::Surf(SurfOptions::default())] {
                let finder = detector.open(&processor).unwrap();
                let none: [&AnyImage; 0] = [];
                assert!(finder.detect_batch(none).is_empty(), "no images give no features");
                let alone = |image: &AnyImage| detector.detect(image, None, &processor).unwrap();
                let wanted: Vec<Features> = images.iter().map(alone).collect();
                assert!(wanted.iter().all(|found| found.len() > 20), "features of a rich texture");
                for _ in 0..2 {
                    let found: Vec<Features> =
                        finder.detect_batch(&images).into_iter().map(Result::unwrap).collect();
                    assert_eq!(found, wanted, "{detector:?}");
                    finder.recycle(found);
                }
                if processor.gpu().is_some() {
                    told(&cpu, 2, |cpu| {
                        let observed = processor.clone().with_cpu(cpu.clone());
                        detector.open(&observed).unwrap().detect_batch(&images).remove(0).unwrap()
                    });
                }
                // Two types of pixel, and an image that cannot be searched, between the others.
                let float = AnyImage::from(Image::<f32>::new(Size::new(120, 90)));
                let colour = AnyImage::from(Image::<u8>::filled(Size::new(120, 90), 3, 9));
                let mixed = [&images[0], &images[1], &float, &images[2], &colour, &images[3]];
                let found = finder.detect_batch(mixed);
                for (at, i) in [(0, 0), (1, 1), (3, 2), (5, 3)] {
                    assert_eq!(found[at].as_ref().unwrap(), &wanted[i], "image {at}");
                }
                assert!(found[2].as_ref().unwrap().is_empty(), "a black image");
                assert!(matches!(found[4], Err(Error::Image(_))), "three channels");
                assert_eq!(processor.take_notes(), Vec::<String>::new(), "no work of the CPU");
            }
        }
    }

    #[test]
    fn what_no_gpu_does_runs_on_the_cpu_with_a_note() {
        let cpu = Cpu::with_threads(2).unwrap();
        let image = Texture::new(3).image::<u8>(Size::new(120, 90), &cpu);
        let options = SiftOptions::default().with_domain_size_pooling(true);
        let wanted = Detector::Sift(options).detect(&image, None, &cpu.clone().into()).unwrap();
        let plain = Detector::default().detect(&image, None, &cpu.clone().into()).unwrap();
        assert_eq!(wanted.keypoints, plain.keypoints, "the same keypoints");
        assert!(wanted.descriptors != plain.descriptors, "other descriptors");
        for gpu in all() {
            let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
            let many = SiftOptions::default().with_levels(9);
            let found = Detector::Sift(many).open(&processor).unwrap().detect(&image, None).unwrap();
            assert_eq!(found, Detector::Sift(many).detect(&image, None, &cpu.clone().into()).unwrap());
            let notes = processor.take_notes();
            assert!(notes.len() == 1 && notes[0].contains("more than 8 levels"), "{notes:?}");
            let finder = Detector::Sift(options).open(&processor).unwrap();
            let notes = processor.take_notes();
            assert!(notes.len() == 1 && notes[0].contains("domain-size pooling"), "{notes:?}");
            assert_eq!(finder.detect(&image, None).unwrap(), wanted, "{gpu:?}");
            let there = finder.detect_on_device(AnyView::from(&image), None).unwrap().download().unwrap();
            assert_eq!(there, wanted, "left on {gpu:?}");
        }
    }

    #[test]
    fn images_too_large_for_a_gpu_are_searched_by_the_cpu() {
        let cpu = Cpu::with_threads(2).unwrap();
        let image = Texture::new(3).image::<u8>(Size::new(120, 90), &cpu);
        for gpu in all() {
            for detector in [Detector::default(), Detector::Surf(SurfOptions::default())] {
                let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
                let mut finder = detector.open(&processor).unwrap();
                let on_gpu = finder.on_gpu.take().flatten().map(|gpu| match gpu {
                    OnGpu::Sift(sift) => OnGpu::Sift(Box::new(sift.with_memory(1 << 12))),
                    OnGpu::Surf(surf) => OnGpu::Surf(Box::new(surf.with_memory(1 << 12))),
                });
                finder.on_gpu = OnceLock::from(on_gpu);
                let wanted = detector.detect(&image, None, &cpu.clone().into()).unwrap();
                assert_eq!(finder.detect(&image, None).unwrap(), wanted, "{detector:?} on {gpu:?}");
                let notes = processor.take_notes();
                assert!(notes.len() == 1 && notes[0].contains(" on the CPU: "), "{notes:?}");
                for found in finder.detect_batch([&image, &image]) {
                    assert_eq!(found.unwrap(), wanted, "{detector:?} on {gpu:?}");
                }
                assert!(!processor.take_notes().is_empty(), "the batch, too");
            }
        }
    }
}
