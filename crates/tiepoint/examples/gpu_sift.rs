//! Times SIFT on a GPU with a photograph that is mirrored to the size asked for, as for the tables of
//! `docs/benchmarks.md`.
//!
//! ```text
//! cargo run --release -p tiepoint --example gpu_sift -- left.pgm 1920x1080 cuda -1 --check
//! ```
//!
//! `-1` is the first octave, doubled (the default), or `0`; `--contrast C` and `--sigma S`, the scale of the
//! finest level, change the number of features; `--memory M` allows so many MiB of the device's memory, with
//! less than needed the image is searched in parts; `--check` compares with the CPU.

#![expect(clippy::print_stdout, reason = "a program's answer")]

mod timing;

use tiepoint::device::Processor;
use tiepoint::device::gpu::Gpu;
use tiepoint::feature::sift::{self, GpuSift, SiftOptions};
use tiepoint::image::Image;
use tiepoint::image::gpu::{AnyGpuImage, GpuImage};
use timing::{
    Arguments, Outcome, all_threads, compare, device_seconds, median, milliseconds, mirrored, open_gpu,
    parse_size, photograph, stages,
};

const BATCH: usize = 16;

fn main() -> Outcome<()> {
    let mut arguments = Arguments::of_the_program();
    let check = arguments.flag("--check");
    let default = SiftOptions::default();
    let contrast = arguments.value("--contrast")?.unwrap_or(default.contrast);
    let sigma = arguments.value("--sigma")?.unwrap_or(default.sigma);
    let memory = arguments.value::<u64>("--memory")?.map_or(u64::MAX, |m| m << 20);
    let [path, size, rest @ ..] = arguments.words() else {
        return Err(
            "usage: gpu_sift IMAGE WIDTHxHEIGHT [cuda|opencl] [FIRST_OCTAVE] [--contrast C] [--sigma S] [--memory M] \
             [--check]"
                .into(),
        );
    };
    let first_octave = rest.get(1).map_or(Ok(-1), |s| s.parse())?;
    let options = default.with_first_octave(first_octave).with_contrast(contrast).with_sigma(sigma);
    let cpu = all_threads()?;
    let image = mirrored(&photograph(path, &cpu)?, parse_size(size)?);
    let gpu = open_gpu(rest.first())?;
    let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
    let sift = || Ok::<_, tiepoint::Error>(GpuSift::new(&processor, options)?.with_memory(memory));
    measure(&sift()?, &gpu, &image)?;
    if check {
        let found = sift()?.detect(&image, None)?;
        compare(&found, &sift::detect(image.view(), &options, None, &cpu)?);
    }
    Ok(())
}

fn measure(sift: &GpuSift, gpu: &Gpu, image: &Image<u8>) -> Outcome<()> {
    let on_device = GpuImage::upload(gpu, image.view())?;
    let features = sift.detect(&on_device, None)?;
    let launches = sift.launches();
    println!("{}: {} features, {launches} launches", image.size(), features.len());

    let of_device = median(|| sift.detect(&on_device, None).map(|f| sift.recycle([f])))?;
    println!("image on the device to features on the host  {}", milliseconds(of_device));
    let stays = median(|| sift.detect_on_device(&on_device, None).map(drop))?;
    println!("image on the device to features on the device {}", milliseconds(stays));
    if sift.parts() > 1 {
        let of_host = median(|| sift.detect(image, None).map(drop))?;
        println!("host image to features on the host           {}", milliseconds(of_host));
        println!("in {} parts", sift.parts());
        return Ok(());
    }
    let images = [AnyGpuImage::from(&on_device)];
    let seconds = device_seconds(gpu, || sift.enqueue(&images, None))?;
    println!("device's own time                            {:.3} ms", seconds * 1e3);
    let of_host = median(|| sift.detect(image, None).map(|f| sift.recycle([f])))?;
    println!("host image to features on the host           {}", milliseconds(of_host));

    stages(gpu, || sift.detect(&on_device, None).map(drop))?;

    let batch = vec![AnyGpuImage::from(&on_device); BATCH];
    let found = sift.detect_batch(&batch)?;
    sift.recycle(found);
    let of_device = device_seconds(gpu, || sift.enqueue(&batch, None))? / BATCH as f64;
    println!("batch of {BATCH}, each image, device's own time   {:.3} ms", of_device * 1e3);
    stages(gpu, || sift.enqueue(&batch, None))?;
    let of_batch = median(|| sift.detect_batch(&batch).map(|f| sift.recycle(f)))? / BATCH as u32;
    println!("batch of {BATCH}, each image                      {}", milliseconds(of_batch));
    let views = vec![image.view(); BATCH];
    let found = sift.detect_batch(&views)?;
    sift.recycle(found);
    let of_batch = median(|| sift.detect_batch(&views).map(|f| sift.recycle(f)))? / BATCH as u32;
    println!("batch of {BATCH} from the host, each image        {}", milliseconds(of_batch));
    Ok(())
}
