//! Pictures computed by formulas, with exact truth.

use crate::device::run_on;
use crate::errors::{raised, wrong_option};
use crate::image::{matrix, output, rows};
use crate::options::named;
use crate::stereo::with_nan;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiepoint::by_pixel;
use tiepoint::geometry::Homography;
use tiepoint::image::{Image, PixelKind, Size};
use tiepoint::synth::{Photometry, Scene, SceneOptions, StereoScene, StereoSceneOptions, Texture};

/// The type of pixels of this name.
fn pixel(dtype: &str) -> PyResult<PixelKind> {
    match dtype {
        "uint8" => Ok(PixelKind::U8),
        "uint16" => Ok(PixelKind::U16),
        "float32" => Ok(PixelKind::F32),
        other => Err(wrong_option(&format!("option dtype is {other}: expected uint8, uint16 or float32"))),
    }
}

#[pyfunction]
pub(crate) fn texture<'py>(
    py: Python<'py>,
    size: (usize, usize),
    kind: &Bound<'py, PyAny>,
    seed: u64,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let texture = Texture::of_kind(named(kind)?, seed);
    let size = Size::new(size.0, size.1);
    by_pixel!(type pixel(dtype)?, P => {
        let made = run_on(py, None, |p| {
            Image::<P>::try_filled(size, 1, P::default())?;
            Ok(texture.image::<P>(size, &p.cpu))
        })?;
        output(py, made)
    })
}

fn photometry((gamma, gain, bias): (f64, f64, f64)) -> Photometry {
    Photometry::default().with_gamma(gamma).with_gain(gain).with_bias(bias)
}

/// Two images of a plane and the homography between them: reference, moving, and the homography from the first to the
/// second.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the options of a scene")]
pub(crate) fn scene<'py>(
    py: Python<'py>,
    size: (usize, usize),
    moving_from_reference: Option<&Bound<'py, PyAny>>,
    texture: &Bound<'py, PyAny>,
    seed: u64,
    blur_noise: (f64, f64),
    light: (f64, f64, f64),
    dtype: &str,
) -> PyResult<[Bound<'py, PyAny>; 3]> {
    let map =
        moving_from_reference.map(|m| Homography::new(matrix(m, "moving_from_reference")?).map_err(raised));
    let options = SceneOptions::default()
        .with_size(Size::new(size.0, size.1))
        .with_moving_from_reference(map.transpose()?.unwrap_or_default())
        .with_texture(named(texture)?)
        .with_seed(seed)
        .with_blur(blur_noise.0)
        .with_noise(blur_noise.1)
        .with_moving(photometry(light));
    by_pixel!(type pixel(dtype)?, P => {
        let found = run_on(py, None, |p| Scene::<P>::render(&options, &p.cpu))?;
        let map = rows(py, found.moving_from_reference.matrix().to_vec())?;
        Ok([output(py, found.reference)?, output(py, found.moving)?, map])
    })
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the options of a scene")]
pub(crate) fn stereo_scene<'py>(
    py: Python<'py>,
    size: (usize, usize),
    disparities: (f64, f64),
    surfaces: usize,
    scenery: &Bound<'py, PyAny>,
    texture: &Bound<'py, PyAny>,
    seed: u64,
    noise: f64,
    light: (f64, f64, f64),
    colour: bool,
    dtype: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let options = StereoSceneOptions::default()
        .with_size(Size::new(size.0, size.1))
        .with_disparities(disparities.into())
        .with_surfaces(surfaces)
        .with_scenery(named(scenery)?)
        .with_texture(named(texture)?)
        .with_seed(seed)
        .with_noise(noise)
        .with_right(photometry(light));
    by_pixel!(type pixel(dtype)?, P => {
        let found = run_on(py, None, |p| {
            let scene = StereoScene::new(&options)?;
            Image::<f32>::try_filled(options.size, 3, 0.0)?;
            Ok(if colour { scene.render_colour::<P>(&p.cpu) } else { scene.render::<P>(&p.cpu) })
        })?;
        Ok(dict!(py, {
            "left": output(py, found.left)?,
            "right": output(py, found.right)?,
            "truth_left": output(py, with_nan(found.truth_left))?,
            "truth_right": output(py, with_nan(found.truth_right))?,
            "visible": output(py, found.visible)?,
        }))
    })
}
