//! Integral images and f32 images, `--images` (32) of `--size` (3840x2160); medians of the device's own clock over a batch
//! that exceeds its caches. GB/s count one read and one write of every pixel. `--check` compares one image of each filter
//! and measures nothing.

use crate::timing::{Arguments, Outcome, RUNS, device_seconds, open_gpu, parse_size};
use tiepoint::device::Cpu;
use tiepoint::device::gpu::{Commands, Gpu};
use tiepoint::filter::convolve::{Kernel, convolve};
use tiepoint::filter::gauss::{GaussOptions, Taps, gauss};
use tiepoint::filter::gpu::GpuFilter;
use tiepoint::filter::hessian::{HessianOptions, response};
use tiepoint::filter::integral::{GpuIntegral, GpuIntegrator, GpuSum, Integral};
use tiepoint::filter::resample::{Scaling, resample};
use tiepoint::filter::sobel::{Magnitude, X, Y, sobel};
use tiepoint::geometry::Homography;
use tiepoint::geometry::warp::{GpuWarp, Interpolation, WarpOptions, warp};
use tiepoint::image::gpu::{GpuImage, GpuPixel, GpuStack};
use tiepoint::image::{Border, Image, ImageView, Size};
use tiepoint::options::Named;

struct Bench {
    gpu: Gpu,
    batch: GpuStack<f32>,
    image: Image<f32>,
    check: bool,
    /// Bytes a second of the device's copy.
    copy: f64,
}

impl Bench {
    fn seconds(&self, commands: Commands) -> Outcome<f64> {
        let graph = self.gpu.graph(commands)?;
        Ok(device_seconds(&self.gpu, || Ok(graph.run()?))?)
    }

    /// One line of the table; `bytes` are read and written.
    fn line(&self, name: &str, seconds: f64, bytes: usize) {
        let rate = bytes as f64 / seconds;
        let each = seconds * 1e6 / self.batch.count() as f64;
        let share = 100.0 * rate / self.copy;
        println!("{name:<22} {each:>9.1} us an image {:>8.1} GB/s {share:>6.1} % of the copy", rate * 1e-9);
    }

    fn compare(&self, name: &str, found: &Image<f32>, expected: &Image<f32>) {
        let pairs = found.data().iter().zip(expected.data());
        let wrong = pairs.filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        let verdict = if wrong == 0 && found.size() == expected.size() { "same bits" } else { "DIFFERS" };
        println!("{name:<22} {verdict} ({wrong} of {} values differ)", expected.data().len());
    }

    fn filter(
        &self,
        name: &str,
        plan: &GpuFilter<f32, f32>,
        cpu: impl Fn(ImageView<'_, f32>) -> tiepoint::Result<Image<f32>>,
    ) -> Outcome<()> {
        if self.check {
            let image = GpuImage::upload(&self.gpu, self.image.view())?;
            self.compare(name, &plan.filter(&image)?.download()?, &cpu(self.image.view())?);
            return Ok(());
        }
        let out = GpuStack::new(&self.gpu, plan.output_size(self.batch.size()), 1, self.batch.count())?;
        let mut commands = Commands::new();
        plan.record_batch(&mut commands, &self.batch, &out)?;
        let pixels = (self.batch.size().area() + out.size().area()) * self.batch.count();
        self.line(name, self.seconds(commands)?, 4 * pixels);
        Ok(())
    }

    fn warp(&self, name: &str, kind: Interpolation, map: Homography, cpu: &Cpu) -> Outcome<()> {
        let plan = GpuWarp::new(&self.gpu, kind, 1)?;
        let size = self.batch.size();
        if self.check {
            let image = GpuImage::upload(&self.gpu, self.image.view())?;
            let found = plan.warp(&image, &map, size, 0.0)?.download()?;
            let options = WarpOptions::default().with_interpolation(kind);
            self.compare(name, &found, &warp(self.image.view(), &map, size, &options, &cpu.clone().into())?);
            return Ok(());
        }
        let out = GpuStack::new(&self.gpu, size, 1, self.batch.count())?;
        let mut commands = Commands::new();
        plan.record_batch(&mut commands, &self.batch, &map, 0.0, &out)?;
        self.line(name, self.seconds(commands)?, 8 * size.area() * self.batch.count());
        Ok(())
    }

    fn integral<T: GpuPixel, A: GpuSum>(&self, image: &Image<T>, cpu: &Cpu) -> Outcome<()> {
        let name = format!("integral {} in {}", T::NAME, A::NAME);
        let integrator = GpuIntegrator::<T, A>::new(&self.gpu)?;
        if self.check {
            let found = integrator.integral(&GpuImage::upload(&self.gpu, image.view())?)?.download(0)?;
            let is_same = found == Integral::<A>::new(image.view(), cpu)?;
            println!("{name:<22} {}", if is_same { "same bits" } else { "DIFFERS" });
            return Ok(());
        }
        let (size, count) = (self.batch.size(), self.batch.count());
        let batch = GpuStack::upload(&self.gpu, &vec![image.view(); count])?;
        let out = GpuIntegral::<A>::new(&self.gpu, size, count)?;
        let mut commands = Commands::new();
        integrator.record(&mut commands, batch.buffer(), batch.pitch(), &out)?;
        let bytes = size.area() * count * (size_of::<T>() + size_of::<A>());
        self.line(&name, self.seconds(commands)?, bytes);
        Ok(())
    }

    fn all(&self) -> Outcome<()> {
        let (gpu, cpu) = (&self.gpu, &Cpu::default());
        for (name, taps) in [
            ("gauss 15x15", Taps::Size(15)),
            ("gauss sigma 1.6", Taps::Sigma(1.6)),
            ("gauss 3x3", Taps::Size(3)),
            ("gauss sigma 5", Taps::Sigma(5.0)),
            ("gauss sigma 20", Taps::Sigma(20.0)),
        ] {
            let options = GaussOptions::default().with_taps(taps);
            self.filter(name, &GpuFilter::gauss(gpu, &options, 1)?, |v| gauss(v, &options, cpu))?;
        }
        let border = Border::Clamp;
        self.filter("sobel x", &GpuFilter::sobel(gpu, X, border, 1)?, |v| sobel(v, X, border, cpu))?;
        self.filter("sobel y", &GpuFilter::sobel(gpu, Y, border, 1)?, |v| sobel(v, Y, border, cpu))?;
        let magnitude = GpuFilter::sobel(gpu, Magnitude, border, 1)?;
        self.filter("sobel magnitude", &magnitude, |v| sobel(v, Magnitude, border, cpu))?;
        let ramp = |n: usize| (0..n).map(|i| ((i * 7 % 5) as f32 - 1.5) / n as f32).collect::<Vec<_>>();
        for (name, kernel) in [
            ("convolve 7x7 product", Kernel::separable(ramp(7), ramp(7))?),
            ("convolve 3x3", Kernel::new(ramp(9), Size::new(3, 3))?),
            ("convolve 7x7", Kernel::new(ramp(49), Size::new(7, 7))?),
        ] {
            let plan = GpuFilter::convolve(gpu, &kernel, border, 1)?;
            self.filter(name, &plan, |v| convolve(v, &kernel, border, cpu))?;
        }
        let options = HessianOptions::default();
        self.filter("hessian", &GpuFilter::hessian(gpu, &options)?, |v| response(v, &options, cpu))?;
        for scaling in Scaling::ALL.iter().map(|choice| choice.value) {
            let plan = GpuFilter::resample(gpu, scaling, 1)?;
            self.filter(scaling.name(), &plan, |v| resample(v, scaling, cpu))?;
        }
        let bytes = self.image.data().iter().map(|v| (v * 255.0) as u8).collect();
        let bytes = Image::from_vec(bytes, self.image.size(), 1)?;
        self.integral::<u8, u32>(&bytes, cpu)?;
        self.integral::<f32, u32>(&self.image, cpu)?;
        self.integral::<f32, u64>(&self.image, cpu)?;
        let map = Homography::new([[0.98, 0.05, 3.5], [-0.04, 1.02, 7.25], [1e-6, -2e-6, 1.0]])?;
        self.warp("warp bilinear", Interpolation::Bilinear, map, cpu)?;
        self.warp("warp bicubic", Interpolation::Bicubic, map, cpu)?;
        self.warp("warp lanczos", Interpolation::Lanczos3, map, cpu)
    }
}

pub(crate) fn run(mut arguments: Arguments) -> Outcome<()> {
    let check = arguments.flag("--check");
    let images = arguments.value("--images")?.unwrap_or(32);
    let size = arguments.value::<String>("--size")?;
    let size = parse_size(size.as_deref().unwrap_or("3840x2160"))?;
    let gpu = open_gpu(arguments.words().first())?;
    let noise = |x: usize, y: usize| {
        let mixed = (x as u32).wrapping_mul(0x9e37_79b9) ^ (y as u32).wrapping_mul(0x85eb_ca6b);
        (mixed.wrapping_mul(0xc2b2_ae35) >> 8) as f32 / (1 << 24) as f32
    };
    let image = Image::from_fn(size, noise);
    let count = if check { 1 } else { images };
    let views = vec![image.view(); count];
    let batch = GpuStack::upload(&gpu, &views)?;
    let mut bench = Bench { gpu, batch, image, check, copy: 0.0 };
    if !check {
        let to = bench.gpu.buffer::<f32>(bench.batch.buffer().len())?;
        let mut commands = Commands::new();
        commands.copy((bench.batch.buffer(), 0), (&to, 0), to.len())?;
        let bytes = 8 * to.len();
        let seconds = bench.seconds(commands)?;
        bench.copy = bytes as f64 / seconds;
        println!("{count} images of {size}, f32; median of {RUNS}");
        bench.line("copy", seconds, bytes);
    }
    bench.all()
}
