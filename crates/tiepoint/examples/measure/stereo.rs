//! First from images to disparities in the host's memory; then every stage by the device's clock; then from images to
//! maps on the device, by the device's clock; then many pairs, several computed together, from host to host by a
//! `StereoStream`. `--cost C` and `--paths N` are those of `tiepoint stereo`, `--bare` leaves the median and the speckle
//! filter out, `--mixed` gives the left picture colour, `--device-memory N` allows N bytes, `--once` ends after the first
//! pair. `--volume` times `Stereo::optimize_on_device` in place of all this: a volume of floats on the device, of
//! absolute differences, to maps there.

use crate::timing::{
    Arguments, Outcome, RUNS, all_threads, checked, device_seconds, median, milliseconds, open_gpu,
    parse_size, stages,
};
use std::sync::mpsc::sync_channel;
use std::time::Instant;
use tiepoint::device::Processor;
use tiepoint::image::gpu::GpuImage;
use tiepoint::image::{Image, Pixels};
use tiepoint::stereo::{Cost, Masks, PendingStereo, Stereo, StereoOptions, StereoStream};
use tiepoint::synth::{StereoScene, StereoSceneOptions};

pub(crate) fn run(mut arguments: Arguments) -> Outcome<()> {
    let [check, bare, once, mixed, volume] =
        ["--check", "--bare", "--once", "--mixed", "--volume"].map(|flag| arguments.flag(flag));
    let cost: Cost = arguments.value("--cost")?.unwrap_or_default();
    let paths = arguments.value::<String>("--paths")?;
    let memory = arguments.value("--device-memory")?;
    let [size, disparities, api] = arguments.words() else {
        return Err(
            "usage: measure stereo WIDTHxHEIGHT DISPARITIES cuda|opencl [--cost C] [--paths N] [--check] [--bare] \
             [--mixed] [--once] [--volume] [--device-memory N]"
                .into(),
        );
    };
    let size = parse_size(size)?;
    let disparities: usize = disparities.parse()?;
    let mut options = StereoOptions::default().with_disparities(disparities).with_cost(cost);
    if let Some(paths) = paths {
        options = options.with_paths(tiepoint::options::Named::from_name(&paths)?);
    }
    if bare {
        options = options.with_median(0).with_speckle_size(0);
    }
    if let Some(bytes) = memory {
        // Limits the device's memory alone.
        options = options.with_device_memory(Some(bytes)).with_memory(None);
    }
    let gpu = open_gpu(Some(api))?;
    let cpu = all_threads()?;
    let scene =
        StereoSceneOptions::default().with_size(size).with_disparities([1.0, disparities as f64 - 2.0]);
    let rendered = StereoScene::new(&scene)?.render::<u8>(&cpu);
    let left = if mixed { coloured(&rendered.left)? } else { rendered.left };
    let pair = [left, rendered.right];
    let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
    if volume {
        return by_volume(&processor, options, &pair, check);
    }
    let stereo = Stereo::new(options)?;
    let run = |processor: &Processor| {
        stereo.compute((&pair[0]).into(), (&pair[1]).into(), Masks::default(), processor)
    };
    let start = Instant::now();
    let found = run(&processor)?;
    println!("the first pair: {:.3} s", start.elapsed().as_secs_f64());
    processor.take_notes().iter().for_each(|note| println!("{note}"));
    if check {
        checked(|| Ok(run(&cpu.into())? == found))?;
    }
    if once {
        return Ok(());
    }
    let one = milliseconds(median(|| run(&processor).map(drop))?);
    println!("{size}, {disparities} disparities, {cost}: {one} from host to host");
    stages(&gpu, || run(&processor).map(drop))?;
    let [on_device, queue] = on_device(&stereo, &processor, &pair)?.map(|s| s * 1e3);
    println!("a pair: {on_device:.3} ms on the device, {queue:.3} ms in a full queue");
    for together in [1, 2, 4, 8] {
        let from_host = from_host(&processor, options, &pair, together)? * 1e3;
        println!("{together} together, a pair: {from_host:.3} ms from host to host");
    }
    Ok(())
}

/// Times the maps of a cost volume on the device.
fn by_volume(
    processor: &Processor,
    options: StereoOptions,
    [left, right]: &[Image<u8>; 2],
    check: bool,
) -> Outcome<()> {
    let (size, count) = (left.size(), options.disparities);
    let mut costs = Image::filled(size, count, f32::NAN);
    for (y, row) in costs.data_mut().chunks_exact_mut(size.width * count).enumerate() {
        for (x, costs) in row.chunks_exact_mut(count).enumerate() {
            for (d, cost) in costs.iter_mut().enumerate().take(x + 1) {
                *cost = f32::from(left.row(y)[x].abs_diff(right.row(y)[x - d])) / 255.0;
            }
        }
    }
    let stereo = Stereo::new(options)?;
    let gpu = processor.gpu().ok_or("no GPU")?;
    let there = GpuImage::upload(gpu, costs.view())?;
    let pair = [GpuImage::upload(gpu, left.view())?, GpuImage::upload(gpu, right.view())?];
    let run = || -> tiepoint::Result<_> {
        let views = pair.each_ref().map(Pixels::from);
        let found = stereo.optimize_on_device((&there, None), views, Masks::default(), processor)?;
        gpu.finish()?;
        Ok(found)
    };
    let found = run()?;
    if check {
        let (views, cpu) = ([left.into(), right.into()], &processor.cpu.clone().into());
        let expected = || stereo.optimize(((&costs).into(), None), views, Masks::default(), cpu);
        checked(|| Ok(expected()? == found.download()?))?;
    }
    let one = milliseconds(median(|| run().map(drop))?);
    println!("{size}, a volume of {count} disparities in f32: {one} from the device to the device");
    Ok(stages(gpu, || run().map(drop))?)
}

/// A colour picture from a grey one, so that one view has colour and the other is grey.
fn coloured(grey: &Image<u8>) -> Outcome<Image<u8>> {
    let colours = grey.data().iter().zip([0, 40, 20, 60].into_iter().cycle());
    let colours = colours.flat_map(|(&v, other)| [v.saturating_add(other), v, v.saturating_sub(other)]);
    Ok(Image::from_vec(colours.collect(), grey.size(), 3)?)
}

/// Seconds for a pair from images to maps on the device: the median of single calls by the device's clock, and the mean
/// of many calls in its queue.
fn on_device(stereo: &Stereo, processor: &Processor, pair: &[Image<u8>; 2]) -> Outcome<[f64; 2]> {
    let gpu = processor.gpu().ok_or("no GPU")?;
    let [left, right] = [GpuImage::upload(gpu, pair[0].view())?, GpuImage::upload(gpu, pair[1].view())?];
    let run = || stereo.compute_on_device(&left, &right, Masks::default(), processor).map(drop);
    run()?;
    gpu.finish()?;
    let start = Instant::now();
    for _ in 0..2 * RUNS {
        run()?;
    }
    gpu.finish()?;
    let queue = start.elapsed().as_secs_f64() / (2 * RUNS) as f64;
    Ok([device_seconds(gpu, run)?, queue])
}

/// Seconds for a pair from images to maps in the host's memory, with several in flight. Another thread takes the maps,
/// as in a program that uses them.
fn from_host(
    processor: &Processor,
    options: StereoOptions,
    pair: &[Image<u8>; 2],
    together: usize,
) -> Outcome<f64> {
    let mut stream = StereoStream::new(options, processor)?.with_batch(together)?;
    let cpu = &processor.cpu;
    let mut run = |pairs: usize| -> Outcome<f64> {
        let start = Instant::now();
        std::thread::scope(|scope| -> Outcome<()> {
            let (send, receive) = sync_channel::<PendingStereo>(2 * together);
            let taking =
                scope.spawn(move || receive.into_iter().try_for_each(|found| found.wait(cpu).map(drop)));
            for _ in 0..pairs {
                stream.push((&pair[0]).into(), (&pair[1]).into(), Masks::default())?;
                while stream.len() > stream.in_flight() {
                    if let Some(found) = stream.pop_pending()? {
                        send.send(found)?;
                    }
                }
            }
            while let Some(found) = stream.pop_pending()? {
                send.send(found)?;
            }
            drop(send);
            Ok(taking.join().map_err(|_| "the thread that takes the maps fell")??)
        })?;
        Ok(start.elapsed().as_secs_f64() / pairs as f64)
    };
    // A first run reserves memory.
    run(4 * together)?;
    run(2 * RUNS * together)
}
