//! For SIFT, `--octave` is the first octave, doubled (-1, the default) or 0; `--contrast C` and `--sigma S`, the scale of
//! the finest level, change the number of features. For SURF there are `--threshold`, `--extended`, `--upright`,
//! `--opencv` and `--opensurf`. `--memory M` limits the device's memory to M MiB; with less than needed SIFT searches the
//! image in parts.

use crate::timing::{
    Arguments, Outcome, all_threads, compare, device_seconds, median, milliseconds, mirrored, open_gpu,
    parse_size, photograph, stages,
};
use tiepoint::device::Processor;
use tiepoint::device::gpu::Gpu;
use tiepoint::feature::sift::{self, GpuSift, SiftOptions};
use tiepoint::feature::surf::{self, GpuSurf, SurfOptions, SurfPreset};
use tiepoint::image::Image;
use tiepoint::image::gpu::{AnyGpuImage, GpuImage};

const BATCH: usize = 16;

pub(crate) fn run(mut arguments: Arguments) -> Outcome<()> {
    let check = arguments.flag("--check");
    let memory = arguments.value::<u64>("--memory")?.map_or(u64::MAX, |m| m << 20);
    let sift_options = sift_options(&mut arguments)?;
    let surf_options = surf_options(&mut arguments)?;
    let [detector, path, size, rest @ ..] = arguments.words() else {
        return Err("usage: measure detect sift|surf IMAGE WIDTHxHEIGHT [cuda|opencl] [OPTIONS]".into());
    };
    let cpu = all_threads()?;
    let image = mirrored(&photograph(path, &cpu)?, parse_size(size)?);
    let gpu = open_gpu(rest.first())?;
    let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
    match detector.as_str() {
        "sift" => {
            let sift = || GpuSift::new(&processor, sift_options).map(|sift| sift.with_memory(memory));
            measure_sift(&sift()?, &gpu, &image)?;
            if check {
                let expected = sift::detect(image.view(), &sift_options, None, &cpu)?;
                compare(&sift()?.detect(&image, None)?, &expected);
            }
        }
        "surf" => {
            let surf = || GpuSurf::new(&processor, surf_options).map(|surf| surf.with_memory(memory));
            measure_surf(&surf()?, &gpu, &image)?;
            if check {
                let expected = surf::detect(image.view(), &surf_options, None, &cpu)?;
                compare(&surf()?.detect(&image, None)?, &expected);
            }
        }
        other => return Err(format!("{other} is neither sift nor surf").into()),
    }
    Ok(())
}

fn sift_options(arguments: &mut Arguments) -> Outcome<SiftOptions> {
    let default = SiftOptions::default();
    Ok(default
        .with_first_octave(arguments.value("--octave")?.unwrap_or(default.first_octave))
        .with_contrast(arguments.value("--contrast")?.unwrap_or(default.contrast))
        .with_sigma(arguments.value("--sigma")?.unwrap_or(default.sigma)))
}

fn surf_options(arguments: &mut Arguments) -> Outcome<SurfOptions> {
    let mut options = SurfOptions::default();
    for (flag, preset) in [("--opencv", SurfPreset::OpenCv), ("--opensurf", SurfPreset::OpenSurf)] {
        if arguments.flag(flag) {
            options = SurfOptions::preset(preset);
        }
    }
    (options.extended, options.upright) = (arguments.flag("--extended"), arguments.flag("--upright"));
    options.threshold = arguments.value("--threshold")?.unwrap_or(options.threshold);
    Ok(options)
}

/// The same code for both detectors, which share no public trait.
macro_rules! measures {
    ($($measure:ident: $Detector:ty;)*) => { $(
        fn $measure(detector: &$Detector, gpu: &Gpu, image: &Image<u8>) -> Outcome<()> {
            let on_device = GpuImage::upload(gpu, image.view())?;
            let features = detector.detect(&on_device, None)?;
            let launches = detector.launches();
            println!("{}: {} features, {launches} launches", image.size(), features.len());

            let of_device = median(|| detector.detect(&on_device, None).map(|f| detector.recycle([f])))?;
            println!("image on the device to features on the host  {}", milliseconds(of_device));
            let stays = median(|| detector.detect_on_device(&on_device, None).map(drop))?;
            println!("image on the device to features on the device {}", milliseconds(stays));
            if detector.parts() > 1 {
                let of_host = median(|| detector.detect(image, None).map(drop))?;
                println!("host image to features on the host           {}", milliseconds(of_host));
                println!("in {} parts", detector.parts());
                return Ok(());
            }
            let images = [AnyGpuImage::from(&on_device)];
            let seconds = device_seconds(gpu, || detector.enqueue(&images, None))?;
            println!("device's own time                            {:.3} ms", seconds * 1e3);
            let of_host = median(|| detector.detect(image, None).map(|f| detector.recycle([f])))?;
            println!("host image to features on the host           {}", milliseconds(of_host));

            stages(gpu, || detector.detect(&on_device, None).map(drop))?;

            let batch = vec![AnyGpuImage::from(&on_device); BATCH];
            detector.recycle(detector.detect_batch(&batch)?);
            let of_device = device_seconds(gpu, || detector.enqueue(&batch, None))? / BATCH as f64;
            println!("batch of {BATCH}, each image, device's own time   {:.3} ms", of_device * 1e3);
            stages(gpu, || detector.enqueue(&batch, None))?;
            let of_batch = median(|| detector.detect_batch(&batch).map(|f| detector.recycle(f)))? / BATCH as u32;
            println!("batch of {BATCH}, each image                      {}", milliseconds(of_batch));
            let views = vec![image.view(); BATCH];
            detector.recycle(detector.detect_batch(&views)?);
            let of_batch = median(|| detector.detect_batch(&views).map(|f| detector.recycle(f)))? / BATCH as u32;
            println!("batch of {BATCH} from the host, each image        {}", milliseconds(of_batch));
            Ok(())
        }
    )* };
}

measures! {
    measure_sift: GpuSift;
    measure_surf: GpuSurf;
}
