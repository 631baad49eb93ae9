//! Nearest neighbours and matches as arrays in a device's memory, in the form that other libraries expect.

use super::regions::FOUND;
use super::rows::groups;
use super::rule::Rule;
use super::{GpuMatcher, Match, MatchOptions};
use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::feature::gpu::GpuFeatures;

tiepoint_gpu::kernel! {
    pub(super) unsafe kernel nearest_columns(groups) = NearestColumns {
        write index: i64 [capacity_a],
        write distance: f32 [capacity_a],
        write second: f32 [capacity_a],
        read nearest: u32 [capacity_a * FOUND as i128],
        read regions_a: u32 [2],
    } {
        capacity_a: u32,
    }

    pub(super) unsafe kernel match_flags(groups) = MatchFlags {
        write flags: u32 [capacity_a],
        read nearest: u32 [(capacity_a + capacity_b) * FOUND as i128],
        read regions_a: u32 [2],
    } {
        capacity_a: u32,
        capacity_b: u32,
        rule: Rule,
    }

    pub(super) unsafe kernel match_columns(groups) = MatchColumns {
        write pairs: i64 [capacity_a * 2],
        write distance: f32 [capacity_a],
        write ratio: f32 [capacity_a],
        write count: u32 [1],
        read flags: u32 [capacity_a],
        read nearest: u32 [capacity_a * FOUND as i128],
    } {
        capacity_a: u32,
    }
}

/// The two nearest neighbours in B of each feature of A, in a device's memory. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct GpuNeighbours {
    /// The index of the nearest; −1 if there is none.
    pub index: Buffer<i64>,
    /// The Euclidean distance of the nearest between unit descriptors; infinite if there is none.
    pub distance: Buffer<f32>,
    /// The distance of the second nearest; infinite if there is none.
    pub second: Buffer<f32>,
}

/// Matches in the order of A, in a device's memory. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct GpuMatches {
    /// The number of matches; the buffers may have room for more.
    pub len: usize,
    /// For each match the index of its feature in A, then of that in B.
    pub pairs: Buffer<i64>,
    /// Euclidean distances of the unit descriptors.
    pub distance: Buffer<f32>,
    /// Distance divided by that of the second nearest.
    pub ratio: Buffer<f32>,
}

impl GpuMatches {
    /// Waits for the device and copies the matches to the host.
    ///
    /// # Errors
    /// [`crate::Error::Device`] when it failed.
    pub fn download(&self) -> Result<Vec<Match>> {
        let n = self.len;
        let (pairs, distance, ratio) =
            (self.pairs.first(2 * n)?, self.distance.first(n)?, self.ratio.first(n)?);
        let measured = distance.into_iter().zip(ratio);
        let matches = pairs.as_chunks::<2>().0.iter().zip(measured);
        let one = |([a, b], (distance, ratio)): (&[i64; 2], (f32, f32))| Match {
            a: *a as u32,
            b: *b as u32,
            distance,
            ratio,
        };
        Ok(matches.map(one).collect())
    }
}

impl GpuMatcher {
    /// [`nearest_neighbours`](Self::nearest_neighbours) of A in B, which stay on the device, with an entry for each
    /// feature for which A has room. The host does not wait.
    ///
    /// # Errors
    /// As [`nearest_neighbours`](Self::nearest_neighbours).
    pub fn nearest_on_device(&self, a: &GpuFeatures, b: &GpuFeatures) -> Result<GpuNeighbours> {
        let Some(kind) = self.kind_unless_empty(a, b)? else {
            let n = a.capacity();
            return Ok(GpuNeighbours {
                index: self.gpu.upload(&vec![-1; n])?,
                distance: self.gpu.upload(&vec![f32::INFINITY; n])?,
                second: self.gpu.upload(&vec![f32::INFINITY; n])?,
            });
        };
        let mut commands = Commands::new();
        let found = self.record_forth(&mut commands, [a, b], false)?;
        let n = found.capacity_a;
        let columns = GpuNeighbours {
            index: self.gpu.buffer(n)?,
            distance: self.gpu.buffer(n)?,
            second: self.gpu.buffer(n)?,
        };
        commands.stage("match columns");
        let GpuNeighbours { index, distance, second } = &columns;
        let (nearest, regions_a) = (&found.nearest, &found.regions[0]);
        let arguments = NearestColumns { index, distance, second, nearest, regions_a, capacity_a: n as u32 };
        commands.launch(&self.rows(kind)?.kernel::<NearestColumns<'_>>()?, groups(n), arguments)?;
        self.gpu.run(&commands)?;
        Ok(columns)
    }

    /// [`match_features`](Self::match_features), whose matches stay on the device; only their number is read back.
    ///
    /// # Errors
    /// As [`match_features`](Self::match_features).
    pub fn match_on_device(
        &self,
        a: &GpuFeatures,
        b: &GpuFeatures,
        options: &MatchOptions,
    ) -> Result<GpuMatches> {
        options.check()?;
        let gpu = &self.gpu;
        let columns = |n| -> Result<_> {
            let (pairs, distance, ratio) = (gpu.buffer(2 * n)?, gpu.buffer(n)?, gpu.buffer(n)?);
            Ok(GpuMatches { len: 0, pairs, distance, ratio })
        };
        let Some(kind) = self.kind_unless_empty(a, b)? else {
            return columns(0);
        };
        let mut commands = Commands::new();
        let found = self.record(&mut commands, a, b, options)?;
        let (n, program) = (found.capacity_a, self.rows(kind)?);
        let (flags, count, columns) = (&gpu.buffer(n)?, gpu.buffer(1)?, columns(n)?);
        commands.stage("match columns");
        commands.zero(&count)?;
        let (nearest, regions_a, capacity_a) = (&found.nearest, &found.regions[0], n as u32);
        let (capacity_b, rule) = (b.capacity() as u32, Rule::new(options));
        let flagged = MatchFlags { flags, nearest, regions_a, capacity_a, capacity_b, rule };
        commands.launch(&program.kernel::<MatchFlags<'_>>()?, groups(n), flagged)?;
        let GpuMatches { pairs, distance, ratio, .. } = &columns;
        let written = MatchColumns { pairs, distance, ratio, count: &count, flags, nearest, capacity_a };
        commands.launch(&program.kernel::<MatchColumns<'_>>()?, groups(n), written)?;
        gpu.run(&commands)?;
        Ok(GpuMatches { len: count.first(1)?[0] as usize, ..columns })
    }
}
