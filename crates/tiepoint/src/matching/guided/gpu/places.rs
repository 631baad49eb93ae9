//! The guided search on a GPU for models that predict a place: `places.cl`.

use crate::Result;
use crate::device::gpu::{Buffer, Commands, Element};
use crate::feature::WORDS;
use crate::feature::gpu::{GpuDescriptors, GpuFeatures};
use crate::geometry::ModelKind;
use crate::matching::Guide;
use crate::matching::gpu::regions::{FOUND, SearchKind};
use tiepoint_gpu::{Kernel, KernelSource};

const LANES: u32 = 128;
/// The number of coordinates of a place.
const NUMBERS: usize = 2;

tiepoint_gpu::kernel! {
    /// Adds the features of a side to the linked lists of their cells, and writes their number.
    unsafe kernel fill_cells(groups) = FillCells {
        write places: u64 as Place [capacity * NUMBERS as i128],
        write next: u32 [capacity],
        write regions: u32 [2],
        write heads: u32 [slots],
        read keypoints: u32 as Keypoint [capacity * WORDS as i128],
        read count: u32 [1],
    } {
        /// Row by row.
        model: [f64; 9],
        cells_a_pixel: f64,
        capacity: u32,
        slots: u32,
        /// 1: the side is A, whose places the model predicts.
        predicted: u32,
    }

    /// Finds the two nearest features of the other side for every feature of one.
    unsafe kernel search_near(groups) = SearchNear<V: Element> {
        write nearest: u32 [(first + capacity) * FOUND as i128],
        read places: u64 as Place [capacity * NUMBERS as i128],
        read keypoints: u32 as Keypoint [capacity * WORDS as i128],
        read own_values: V [capacity * dimension] aligned GpuDescriptors::ALIGNMENT,
        read count: u32 [1],
        read heads: u32 [slots],
        read next: u32 [other_capacity],
        read other_places: u64 as Place [other_capacity * NUMBERS as i128],
        read other_keypoints: u32 as Keypoint [other_capacity * WORDS as i128],
        read other_values: V [other_capacity * dimension] aligned GpuDescriptors::ALIGNMENT,
    } {
        radius: f64,
        cells_a_pixel: f64,
        /// The number of features for which there is room.
        capacity: u32,
        other_capacity: u32,
        dimension: u32,
        slots: u32,
        /// Where the results of this side begin.
        first: u32,
        /// 1: only features of equal sign are compared.
        by_sign: u32,
    }
}

pub(crate) fn source<V: Element>(kind: SearchKind, model: ModelKind) -> KernelSource {
    kind.descriptors("guided places")
        .define("LANES", LANES)
        .define("PROJECTIVE", u8::from(model == ModelKind::Homography))
        .kernel::<FillCells<'_>>([LANES, 1])
        .kernel::<SearchNear<'_, V>>([LANES, 1])
        .text(include_str!("../guided.h"))
        .text(include_str!("../places.cl"))
}

struct Cells {
    places: Buffer<u64>,
    next: Buffer<u32>,
    heads: Buffer<u32>,
    /// The number of features, then 0.
    regions: Buffer<u32>,
}

/// Adds the search to the commands. It writes the results of A, then of B, into `nearest`, and compares only features
/// of equal sign if `by_sign`. Returns the counts of features of A and of B in the form of
/// [`Rows`](crate::matching::gpu::regions::Rows).
pub(crate) fn record<V: Element>(
    commands: &mut Commands,
    kind: SearchKind,
    features: [&GpuFeatures; 2],
    values: [&Buffer<V>; 2],
    guide: &Guide,
    by_sign: bool,
    nearest: &Buffer<u32>,
) -> Result<[Buffer<u32>; 2]> {
    let gpu = nearest.gpu();
    gpu.require_f64()?;
    let program = gpu.program(&source::<V>(kind, guide.b_from_a.kind()))?;
    let kernel: Kernel<SearchNear<'static, V>> = program.kernel::<SearchNear<'_, V>>()?;
    // Cells are large enough that a search circle seldom intersects more than four.
    let cells_a_pixel = 1.0 / f64::max(2.0 * guide.radius, 1.0);
    commands.stage("match cells");
    let fill_kernel = program.kernel::<FillCells<'_>>()?;
    let fill = |commands: &mut Commands, of: usize| -> Result<Cells> {
        let GpuFeatures { keypoints, count, .. } = features[of];
        let capacity = features[of].capacity();
        let slots = (2 * capacity).next_power_of_two().max(64);
        let cells = Cells {
            places: gpu.buffer(capacity * NUMBERS)?,
            next: gpu.buffer(capacity)?,
            heads: gpu.buffer(slots)?,
            regions: gpu.buffer(2)?,
        };
        commands.zero(&cells.heads)?;
        let model = &guide.b_from_a;
        let sided = model.homography().map_or_else(|| model.matrix(), |homography| homography.sided());
        let arguments = FillCells {
            places: &cells.places,
            next: &cells.next,
            regions: &cells.regions,
            heads: &cells.heads,
            keypoints,
            count,
            model: sided.as_flattened().try_into().unwrap_or([0.0; 9]),
            cells_a_pixel,
            capacity: capacity as u32,
            slots: slots as u32,
            predicted: u32::from(of == 0),
        };
        commands.launch(&fill_kernel, groups(capacity), arguments)?;
        Ok(cells)
    };
    let cells = [fill(commands, 0)?, fill(commands, 1)?];
    commands.stage("match search");
    for of in 0..2 {
        let [own, other] = [features[of], features[1 - of]];
        let arguments = SearchNear {
            nearest,
            places: &cells[of].places,
            keypoints: &own.keypoints,
            own_values: values[of],
            count: &own.count,
            heads: &cells[1 - of].heads,
            next: &cells[1 - of].next,
            other_places: &cells[1 - of].places,
            other_keypoints: &other.keypoints,
            other_values: values[1 - of],
            radius: guide.radius,
            cells_a_pixel,
            capacity: own.capacity() as u32,
            other_capacity: other.capacity() as u32,
            dimension: kind.dimension as u32,
            slots: cells[1 - of].heads.len() as u32,
            first: if of == 0 { 0 } else { other.capacity() as u32 },
            by_sign: u32::from(by_sign),
        };
        commands.launch(&kernel, groups(own.capacity()), arguments)?;
    }
    Ok(cells.map(|side| side.regions))
}

/// The number of groups with a lane for each of `n` features, at least one.
fn groups(n: usize) -> [usize; 3] {
    [n.div_ceil(LANES as usize).max(1), 1, 1]
}
