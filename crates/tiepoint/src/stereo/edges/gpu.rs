//! The vote on a device, with one lane for each pixel.

use super::{COLUMNS, JUMP, NEARNESS, ROWS};
use crate::Result;
use crate::device::gpu::Commands;
use crate::image::gpu::{GpuStack, Plane};
use crate::stereo::gpu::lanes::{GROUP, covering, for_maps, launch};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    unsafe kernel vote(groups) = Vote {
        write to (plane: Plane): f32 [plane.numbers(groups[2])],
        read from: f32 [plane.numbers(groups[2])],
        read picture (picture_plane: Plane): u8 [picture_plane.numbers(groups[2])],
    } {
        /// The channels of the picture: 1 or 3.
        channels: i32,
        limit: i32,
        across: i32,
    }
}

pub(crate) fn source() -> KernelSource {
    for_maps("edges")
        .define("COLUMNS", COLUMNS)
        .define("ROWS", ROWS)
        .define("NEARNESS", NEARNESS)
        .define_f32("JUMP", JUMP)
        .kernel::<Vote<'_>>(GROUP)
        .text(include_str!("edges.cl"))
}

/// Records [`vote_into`](super::vote_into) of some maps; the same bits.
pub(in crate::stereo) fn vote(
    commands: &mut Commands,
    from: &GpuStack<f32>,
    picture: &GpuStack<u8>,
    limit: u16,
) -> Result<GpuStack<f32>> {
    let program = from.gpu().program(&source())?;
    let to = GpuStack::new(from.gpu(), from.size(), 1, from.count())?;
    let (across, groups) = covering(from.size(), from.count());
    commands.stage("edges");
    let vote = Vote {
        to: to.laid(),
        from: from.buffer(),
        picture: picture.laid(),
        channels: picture.channels() as i32,
        limit: limit.into(),
        across,
    };
    launch(commands, &program, groups, vote)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{picture, voted};
    use super::*;
    use crate::device::Cpu;
    use crate::stereo::testing::gpu_maps;

    #[test]
    fn votes_are_those_of_the_cpu() {
        for channels in [1, 3] {
            gpu_maps(
                |commands, map| {
                    let image = picture(map.size(), channels);
                    let stack = GpuStack::upload(map.gpu(), &[image.view(), image.view()]).unwrap();
                    vote(commands, map, &stack, 90).unwrap()
                },
                |map| voted(map, &picture(map.size(), channels), 90, &Cpu::sequential()),
                &format!("{channels} channels"),
            );
        }
    }
}
