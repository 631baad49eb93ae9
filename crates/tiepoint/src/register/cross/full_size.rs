//! Refines a map at sizes beyond the one at which pictures are searched.
//!
//! At sizes that grow by powers of two up to that of the coarser picture, patches spread over the coarser picture are
//! aligned with the other one as whole pictures are (`align`). All patches of a size give one map. Every size takes the
//! same work and memory, because the number of patches and their side are always the same.

use super::align::{self, Passes, Patch, Place};
use super::{Picture, Structure, onto};
use crate::device::Cpu;
use crate::feature::structure::{Intensity, StructureFinder};
use crate::filter::shrink::shrink_as;
use crate::geometry::{Homography, ModelKind};
use crate::image::{AnyView, Image, ImageView, Pixel, Rect, Size};
use crate::{Result, by_pixel};

/// Side of a patch in pixels.
const SIDE: usize = 192;
/// The most patches along each axis.
const PATCHES: usize = 5;
/// The passes for patches that a map found at another size aligns to a pixel or two.
const PASSES: Passes = Passes { at: [(4.0, 1), (3.0, 1), (2.0, 3)], evident: 2, judged: false };
/// The greatest ratio of two sizes at which the alignment at one can start from the map found at the other.
const REACHED: f64 = 2.5;
/// A larger size is used only if it exceeds the last by more than this factor.
const WORTH: f64 = 1.1;
/// The farthest that the alignment at a size may move a corner of the grid, in the grid's pixels. An alignment that
/// moves it farther has converged to a wrong map and is dropped.
const FARTHEST: f64 = 8.0;

/// A map from A to B with places that correspond, all in pixels of the full pictures.
pub(super) type Tied = (Homography, Vec<Place>);

/// The map at full size; `None` if pictures were searched at about their size, or no larger size gives a map near this.
pub(super) fn tied(
    pictures: [Picture<'_>; 2],
    searched: [&Structure; 2],
    b_from_a: &Homography,
    kind: ModelKind,
    finder: &StructureFinder<'_>,
) -> Result<Option<Tied>> {
    let _stage = finder.processor.cpu.stage("full size");
    let sizes = searched.map(|of| of.full);
    let scale = spread(b_from_a, sizes[0]);
    let grid = usize::from(scale < 1.0);
    let shrunk = searched.map(|of| of.full.width as f64 / of.size().width as f64);
    // The width of a pixel of the search, in pixels of the picture whose grid is used: the greater of both pictures.
    let coarsest =
        if grid == 0 { shrunk[0].max(shrunk[1] / scale) } else { shrunk[1].max(shrunk[0] * scale) };
    let mut found: Option<Tied> = None;
    let mut factor = 1;
    while factor as f64 * REACHED <= coarsest {
        factor *= 2;
    }
    while coarsest > WORTH && factor > 0 {
        let b_from_a = found.as_ref().map_or(b_from_a, |(map, _)| map);
        let Some(finer) = aligned(pictures, searched, b_from_a, (grid, factor), kind, finder)? else { break };
        found = Some(finer);
        factor /= 2;
    }
    Ok(found)
}

/// The factor by which a map enlarges lengths in the middle of a picture: the root of the factor of areas.
pub(super) fn spread(map: &Homography, size: Size) -> f64 {
    let middle = [0.5 * size.width as f64, 0.5 * size.height as f64];
    let at = |by: [f64; 2]| map.apply([middle[0] + by[0], middle[1] + by[1]]).unwrap_or_default();
    let [o, x, y] = [at([0.0, 0.0]), at([1.0, 0.0]), at([0.0, 1.0])];
    ((x[0] - o[0]) * (y[1] - o[1]) - (x[1] - o[1]) * (y[0] - o[0])).abs().sqrt()
}

/// The map and the places by patches of both pictures on a grid whose pixels are `factor` pixels of picture `grid` wide;
/// `None` where no patch shows both, or where the patches determine no map, or one far from that which led here.
fn aligned(
    pictures: [Picture<'_>; 2],
    searched: [&Structure; 2],
    b_from_a: &Homography,
    (grid, factor): (usize, usize),
    kind: ModelKind,
    finder: &StructureFinder<'_>,
) -> Result<Option<Tied>> {
    let cpu = &finder.processor.cpu;
    let f = factor as f64;
    let own = Homography::new([[f, 0.0, 0.5 * f - 0.5], [0.0, f, 0.5 * f - 0.5], [0.0, 0.0, 1.0]])?;
    let Some(a_from_b) = b_from_a.inverse() else { return Ok(None) };
    // The maps from pixels of the grid to those of the full pictures.
    let full = if grid == 0 { [own, b_from_a.compose(&own)] } else { [a_from_b.compose(&own), own] };
    let Size { width, height } = searched[grid].full;
    let size = Size::new(width / factor, height / factor);
    let along = |n: usize| {
        let count = (n / SIDE).clamp(1, PATCHES);
        (0..count).map(move |i| (n.saturating_sub(SIDE) * (2 * i + 1)) as f64 / (2 * count) as f64)
    };
    let places: Vec<[f64; 2]> =
        along(size.height).flat_map(|y| along(size.width).map(move |x| [x.floor(), y.floor()])).collect();
    let shown = cpu.try_map(places.len(), |i| {
        let [x, y] = places[i];
        let shift = Homography::new([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])?;
        let seen = |side: usize| seen(pictures[side].0, searched[side], &full[side].compose(&shift), cpu);
        Ok(seen(0)?.zip(seen(1)?))
    })?;
    let (mut shown_at, mut intensities) = (vec![], vec![]);
    for (at, (a, b)) in places.into_iter().zip(shown).filter_map(|(at, both)| Some((at, both?))) {
        shown_at.push(at);
        intensities.extend([a, b]);
    }
    if shown_at.is_empty() {
        return Ok(None);
    }
    let lanes = finder.halved_lanes(&intensities)?;
    let lanes = lanes.as_chunks().0.iter().cloned();
    let patches: Vec<Patch> =
        shown_at.into_iter().zip(lanes).map(|(at, lanes)| Patch { at, lanes }).collect();
    let start = Homography::default();
    let settled = align::settled(&patches, size, start, &PASSES, kind, finder.processor)?;
    let Some(settled) = settled.filter(|settled| settled.map.moves(size) <= FARTHEST) else {
        return Ok(None);
    };
    let Some(back) = full[0].inverse() else { return Ok(None) };
    let b_from_a = full[1].compose(&settled.map.compose(&back));
    let places = settled.places([&full[0], &full[1]], spread(&full[1], size));
    Ok(Some((b_from_a, places)))
}

/// The patch whose pixels `full_from_patch` maps to pixels of a picture; `None` where these lie outside of the picture.
fn seen(
    picture: AnyView<'_>,
    searched: &Structure,
    full_from_patch: &Homography,
    cpu: &Cpu,
) -> Result<Option<Intensity>> {
    let side = Size::new(SIDE, SIDE);
    let end = (SIDE - 1) as f64;
    let corners = [[0.0, 0.0], [end, 0.0], [0.0, end], [end, end]].map(|p| full_from_patch.apply(p));
    let [Some(p), Some(q), Some(r), Some(s)] = corners else { return Ok(None) };
    let shrinks = spread(full_from_patch, side);
    if !(shrinks > 0.0 && shrinks.is_finite()) {
        return Ok(None);
    }
    let step = (shrinks as usize).max(1);
    // Whole steps, with a margin for the interpolation and the blur before it.
    let room = 4.0 * shrinks + 2.0;
    let range = |c: usize, n: usize| {
        let values = [p[c], q[c], r[c], s[c]];
        let [low, high] =
            [values.into_iter().fold(f64::MAX, f64::min), values.into_iter().fold(f64::MIN, f64::max)];
        let (from, to) = ((low - room).max(0.0) as usize, ((high + room).max(0.0) as usize).min(n));
        (from, to.saturating_sub(from) / step * step)
    };
    let full = picture.size();
    let ((x, width), (y, height)) = (range(0, full.width), range(1, full.height));
    let size = Size::new(width / step, height / step);
    if size.is_empty() || width > 8 * SIDE * step || height > 8 * SIDE * step {
        return Ok(None);
    }
    let rect = Rect { x, y, size: Size::new(width, height) };
    let grey = by_pixel!(picture, view => cut(view, rect, size, cpu)?);
    let step = step as f64;
    let part_from_full = Homography::new([
        [1.0 / step, 0.0, (0.5 - x as f64) / step - 0.5],
        [0.0, 1.0 / step, (0.5 - y as f64) / step - 0.5],
        [0.0, 0.0, 1.0],
    ])?;
    let Some(full_from_part) = part_from_full.inverse() else { return Ok(None) };
    let counts = searched.counts(&onto(full, searched.size())?.compose(&full_from_part), size);
    let part = Intensity { grey, counts };
    part.resampled(&part_from_full.compose(full_from_patch), side, cpu).map(Some)
}

/// Part of a picture at `size`, with values from 0 to 1.
fn cut<T: Pixel>(view: ImageView<'_, T>, rect: Rect, size: Size, cpu: &Cpu) -> Result<Image<f32>> {
    let mut grey: Image<f32> = shrink_as(view.crop(rect)?, size, cpu)?;
    grey.data_mut().iter_mut().for_each(|v| *v *= 1.0 / T::WHITE);
    Ok(grey)
}
