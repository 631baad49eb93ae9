//! Times SURF and the integral image on a GPU with a photograph that is mirrored to the size asked for, as
//! for the tables of `docs/benchmarks.md`.
//!
//! ```text
//! cargo run --release -p tiepoint --example gpu_surf -- left.pgm 1920x1080 cuda --threshold 0.001 --check
//! ```
//!
//! `--check` compares with the CPU; `--extended`, `--upright`, `--opencv` and `--opensurf` change the
//! options.

#![expect(clippy::print_stdout, reason = "an example talks to people")]

mod timing;

use tiepoint::device::gpu::{Api, Commands, Gpu};
use tiepoint::device::{Cpu, Processor};
use tiepoint::feature::surf::{self, GpuSurf, SurfOptions, SurfPreset};
use tiepoint::filter::integral::{GpuIntegral, GpuIntegrator, GpuSum, Integral};
use tiepoint::image::gpu::{AnyGpuImage, GpuImage, GpuPixel};
use tiepoint::image::{self, AnyImage, Image, Size};
use timing::{compare, device_seconds, median, milliseconds, mirrored, stages};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const BATCH: usize = 16;

fn main() -> Outcome<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut flag = |name: &str| {
        let before = words.len();
        words.retain(|w| w != name);
        words.len() < before
    };
    let check = flag("--check");
    let mut options = SurfOptions::default();
    if flag("--opencv") {
        options = SurfOptions::preset(SurfPreset::OpenCv);
    }
    if flag("--opensurf") {
        options = SurfOptions::preset(SurfPreset::OpenSurf);
    }
    (options.extended, options.upright) = (flag("--extended"), flag("--upright"));
    if let Some(at) = words.iter().position(|w| w == "--threshold") {
        options.threshold = words.get(at + 1).ok_or("--threshold needs a number")?.parse()?;
        words.drain(at..at + 2);
    }
    let [path, size, rest @ ..] = &words[..] else {
        return Err("usage: gpu_surf IMAGE WIDTHxHEIGHT [cuda|opencl] [--threshold T] [--check]".into());
    };
    let (width, height) = size.split_once('x').ok_or("the size is not WIDTHxHEIGHT")?;
    let size = Size::new(width.parse()?, height.parse()?);
    let api = match rest.first().map_or("cuda", String::as_str) {
        "cuda" => Api::Cuda,
        "opencl" => Api::OpenCl,
        other => return Err(format!("{other} is neither cuda nor opencl").into()),
    };
    let cpu = Cpu::with_threads(std::thread::available_parallelism()?.get())?;
    let AnyImage::U8(photograph) = image::read_grey(path, &Default::default(), &cpu)? else {
        return Err("the photograph must have 8 bits".into());
    };
    let image = mirrored(&photograph, size);
    let gpu = Gpu::open(api, 0)?;
    println!("{}", gpu.info());
    let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
    measure(&processor, &gpu, &image, options)?;
    if check {
        let found = GpuSurf::new(&processor, options)?.detect(&image, None)?;
        compare(&found, &surf::detect(image.view(), &options, None, &cpu)?);
    }

    // The CPU of PoCL has neither the memory nor the time.
    let (size, images) =
        if gpu.info().is_cpu { (Size::new(640, 480), 2) } else { (Size::new(3840, 2160), 32) };
    let large = mirrored(&photograph, size);
    println!("integral images of {size}, {images} at a time; the device copies {:.0} GB/s", copy(&gpu)?);
    let floats = large.data().iter().map(|&v| f32::from(v) / 255.0).collect();
    let floats = Image::from_vec(floats, size, 1)?;
    integrals::<f32, u64>(&gpu, &floats, images, &cpu)?;
    integrals::<f32, u32>(&gpu, &floats, images, &cpu)?;
    integrals::<u8, u32>(&gpu, &large, images, &cpu)?;
    Ok(())
}

fn measure(processor: &Processor, gpu: &Gpu, image: &Image<u8>, options: SurfOptions) -> Outcome<()> {
    let surf = GpuSurf::new(processor, options)?;
    let on_device = GpuImage::upload(gpu, image.view())?;
    let features = surf.detect(&on_device, None)?;
    let launches = surf.launches();
    println!("{}: {} features, {launches} launches", image.size(), features.len());

    let of_device = median(|| surf.detect(&on_device, None).map(|f| surf.recycle([f])))?;
    println!("image on the device to features on the host  {}", milliseconds(of_device));
    let images = [AnyGpuImage::from(&on_device)];
    let seconds = device_seconds(gpu, || surf.enqueue(&images, None))?;
    println!("of these the device's own time               {:.3} ms", seconds * 1e3);
    let of_host = median(|| surf.detect(image, None).map(|f| surf.recycle([f])))?;
    println!("host image to features on the host           {}", milliseconds(of_host));

    stages(gpu, || surf.detect(&on_device, None).map(|f| surf.recycle([f])))?;

    let batch = vec![on_device; BATCH];
    let found = surf.detect_batch(&batch)?;
    surf.recycle(found);
    let of_batch = median(|| surf.detect_batch(&batch).map(|f| surf.recycle(f)))? / BATCH as u32;
    println!("batch of {BATCH}, each image                      {}", milliseconds(of_batch));
    Ok(())
}

/// GB/s of a copy beyond the cache, every byte counted twice.
fn copy(gpu: &Gpu) -> Outcome<f64> {
    let len = if gpu.info().is_cpu { 1 << 24 } else { 1 << 28 };
    let (from, to) = (gpu.buffer::<f32>(len)?, gpu.buffer::<f32>(len)?);
    let mut commands = Commands::new();
    commands.zero(&from)?;
    gpu.run(&commands)?;
    let mut commands = Commands::new();
    commands.copy((&from, 0), (&to, 0), len)?;
    let seconds = device_seconds(gpu, || Ok(gpu.run(&commands)?))?;
    Ok(8.0 * len as f64 / seconds / 1e9)
}

/// GB/s of integral images, every pixel counted once as it is read and once as it is written.
fn integrals<T: GpuPixel, A: GpuSum>(gpu: &Gpu, image: &Image<T>, images: usize, cpu: &Cpu) -> Outcome<()> {
    let one = GpuImage::upload(gpu, image.view())?;
    let (len, size) = (one.pitch() * image.size().height, image.size());
    let all = gpu.buffer(images * len)?;
    let mut commands = Commands::new();
    for i in 0..images {
        commands.copy((one.buffer(), 0), (&all, i * len), len)?;
    }
    gpu.run(&commands)?;
    let integral = GpuIntegral::<A>::new(gpu, size, images)?;
    let mut commands = Commands::new();
    GpuIntegrator::<T, A>::new(gpu)?.record(&mut commands, &all, one.pitch(), &integral)?;
    let seconds = device_seconds(gpu, || Ok(gpu.run(&commands)?))?;
    let bytes = size.area() * images * (size_of::<T>() + size_of::<A>());
    let expected = Integral::<A>::new(image.view(), cpu)?;
    let is_equal = integral.download(0)? == expected && integral.download(images - 1)? == expected;
    println!(
        "    {} in {}: {:.3} ms, {:.0} GB/s, {}",
        T::NAME,
        A::NAME,
        seconds * 1e3,
        bytes as f64 / seconds / 1e9,
        if is_equal { "equal to the CPU's" } else { "DIFFERENT from the CPU's" }
    );
    let one_integral = GpuIntegral::<A>::new(gpu, size, 1)?;
    let mut commands = Commands::new();
    GpuIntegrator::<T, A>::new(gpu)?.record(&mut commands, one.buffer(), one.pitch(), &one_integral)?;
    let graph = gpu.graph(commands)?;
    let seconds = device_seconds(gpu, || Ok(graph.run()?))?;
    println!("        one alone: {:.1} µs", seconds * 1e6);
    Ok(())
}
