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

use tiepoint::device::gpu::{Commands, Gpu};
use tiepoint::device::{Cpu, Processor};
use tiepoint::feature::surf::{self, GpuSurf, SurfOptions, SurfPreset};
use tiepoint::filter::integral::{GpuIntegral, GpuIntegrator, GpuSum, Integral};
use tiepoint::image::gpu::{AnyGpuImage, GpuImage, GpuPixel};
use tiepoint::image::{Image, Size};
use timing::{
    Arguments, Outcome, all_threads, compare, device_seconds, median, milliseconds, mirrored, open_gpu,
    parse_size, photograph, stages,
};

const BATCH: usize = 16;

fn main() -> Outcome<()> {
    let mut arguments = Arguments::of_the_program();
    let check = arguments.flag("--check");
    let mut options = SurfOptions::default();
    if arguments.flag("--opencv") {
        options = SurfOptions::preset(SurfPreset::OpenCv);
    }
    if arguments.flag("--opensurf") {
        options = SurfOptions::preset(SurfPreset::OpenSurf);
    }
    (options.extended, options.upright) = (arguments.flag("--extended"), arguments.flag("--upright"));
    options.threshold = arguments.value("--threshold")?.unwrap_or(options.threshold);
    let [path, size, rest @ ..] = arguments.words() else {
        return Err("usage: gpu_surf IMAGE WIDTHxHEIGHT [cuda|opencl] [--threshold T] [--check]".into());
    };
    let cpu = all_threads()?;
    let photograph = photograph(path, &cpu)?;
    let image = mirrored(&photograph, parse_size(size)?);
    let gpu = open_gpu(rest.first())?;
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
