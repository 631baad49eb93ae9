//! The removal of small regions on a device: regions are found in tiles and joined along the tiles' borders.

use super::SpeckleOptions;
use crate::device::gpu::{Buffer, Commands};
use crate::image::gpu::{GpuStack, Plane};
use crate::stereo::gpu::lanes::{GROUP, covering, for_maps, launch};
use crate::{Error, Result};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    unsafe kernel label(groups) = Label {
        write labels: u32 [plane.pixels(groups[2])],
        write parents: u32 [plane.pixels(groups[2])],
        write counts: u32 [plane.pixels(groups[2])],
        read map (plane: Plane): f32 [plane.numbers(groups[2])],
    } {
        difference: f32,
        across: i32,
    }

    unsafe kernel join_tiles(groups) = JoinTiles {
        write parents: u32 [plane.pixels(groups[2])],
        read labels: u32 [plane.pixels(groups[2])],
        read map (plane: Plane): f32 [plane.numbers(groups[2])],
    } {
        difference: f32,
        across: i32,
    }

    unsafe kernel count(groups) = Count {
        write counts: u32 [plane.pixels(groups[2])],
        read parents: u32 [plane.pixels(groups[2])],
        read labels: u32 [plane.pixels(groups[2])],
    } {
        plane: Plane,
        across: i32,
    }

    unsafe kernel remove_small(groups) = RemoveSmall {
        write map (plane: Plane): f32 [plane.numbers(groups[2])],
        read counts: u32 [plane.pixels(groups[2])],
        read parents: u32 [plane.pixels(groups[2])],
        read labels: u32 [plane.pixels(groups[2])],
    } {
        size: u32,
        across: i32,
    }
}

/// Width and height of a tile.
const TILE: [usize; 2] = [64, 16];
/// Lanes that label it.
const LANES: u32 = 256;

pub(crate) fn source() -> KernelSource {
    for_maps("speckle")
        .define("TILE_WIDTH", TILE[0])
        .define("TILE_HEIGHT", TILE[1])
        .define("LANES", LANES)
        .kernel::<Label<'_>>([LANES, 1])
        .kernel::<JoinTiles<'_>>([LANES, 1])
        .kernel::<Count<'_>>(GROUP)
        .kernel::<RemoveSmall<'_>>(GROUP)
        .text(include_str!("speckle.cl"))
}

/// Records [`speckle`](super::speckle()) of some maps in place; the same bits.
pub(in crate::stereo) fn speckle(
    commands: &mut Commands,
    map: &GpuStack<f32>,
    options: &SpeckleOptions,
) -> Result<()> {
    if options.size < 2 {
        return Ok(());
    }
    let (size, gpu) = (map.size(), map.gpu());
    if size.area() >= u32::MAX as usize {
        let feature = format!("numbers for the pixels of {size}");
        return Err(Error::Unsupported { device: gpu.info().name.clone(), feature });
    }
    let program = &gpu.program(&source())?;
    let numbers = || -> Result<Buffer<u32>> { Ok(gpu.buffer(size.area() * map.count())?) };
    let (labels, parents, counts) = (&numbers()?, &numbers()?, &numbers()?);
    let (difference, values) = (options.difference, map.laid());
    let [columns, rows] = [size.width.div_ceil(TILE[0]), size.height.div_ceil(TILE[1])];
    let tiles = [columns * rows, 1, map.count()];
    commands.stage("speckle");
    let across = columns as i32;
    let label = Label { labels, parents, counts, map: values, difference, across };
    launch(commands, program, tiles, label)?;
    let join = JoinTiles { parents, labels, map: values, difference, across };
    launch(commands, program, tiles, join)?;
    let (across, groups) = covering(size, map.count());
    launch(commands, program, groups, Count { counts, parents, labels, plane: map.plane(), across })?;
    let least = u32::try_from(options.size).unwrap_or(u32::MAX);
    let remove = RemoveSmall { map: values, counts, parents, labels, size: least, across };
    launch(commands, program, groups, remove)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::stereo::speckle;
    use crate::stereo::testing::{after, gpu_maps};

    #[test]
    fn regions_are_those_of_the_cpu() {
        for (size, difference) in [(1, 0.0), (2, 0.0), (5, 0.75), (30, 1.0), (400, 2.0), (usize::MAX, 1.0)] {
            let options = SpeckleOptions { size, difference };
            gpu_maps(
                |commands, map| {
                    speckle(commands, map, &options).unwrap();
                    map.clone()
                },
                |map| after(map, |out| speckle::speckle(out, &options, &Cpu::sequential())),
                &format!("{options:?}"),
            );
        }
    }
}
