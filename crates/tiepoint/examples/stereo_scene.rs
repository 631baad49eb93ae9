//! Writes a synthetic stereo pair of any size with its truth, a strip at a time, so that a pair far larger
//! than the memory can be made for tests of scale: `left.tif`, `right.tif`, the disparities `truth-left.tif`
//! and `truth-right.tif`, and `visible.tif`, which is 0 where the right image does not show what the left one
//! does.
//!
//! ```text
//! cargo run --release -p tiepoint --example stereo_scene -- 12000x9000 4:240 FOLDER
//! tiepoint stereo FOLDER/left.tif FOLDER/right.tif --disparities 256 --memory 2G -o FOLDER/found.tif
//! tiepoint evaluate disparity FOLDER/found.tif FOLDER/truth-left.tif --mask FOLDER/visible.tif
//! ```

use std::{fs::File, io::BufWriter, ops::Range, path::Path};
use tiepoint::{
    device::Cpu,
    image::{Image, Size},
    synth::stereo::{StereoScene, StereoSceneOptions, View},
};
use tiff::encoder::{
    TiffEncoder, TiffValue,
    colortype::{ColorType, Gray8, Gray32Float},
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const STRIP: usize = 64;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [size, range, folder, rest @ ..] = &arguments[..] else {
        return Err("usage: stereo_scene WIDTHxHEIGHT LEAST:GREATEST FOLDER [SEED] [SURFACES] [NOISE]".into());
    };
    let (width, height) = size.split_once('x').ok_or("the size is not WIDTHxHEIGHT")?;
    let (least, greatest) = range.split_once(':').ok_or("the disparities are not LEAST:GREATEST")?;
    let options = StereoSceneOptions::default()
        .with_size(Size::new(width.parse()?, height.parse()?))
        .with_disparities([least.parse()?, greatest.parse()?])
        .with_seed(rest.first().map_or(Ok(1), |s| s.parse())?)
        .with_surfaces(rest.get(1).map_or(Ok(40), |s| s.parse())?)
        .with_noise(rest.get(2).map_or(Ok(0.01), |s| s.parse())?);
    let scene = StereoScene::new(&options)?;
    let cpu = Cpu::with_threads(std::thread::available_parallelism()?.get())?;
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;
    for (view, side) in [(View::Left, "left"), (View::Right, "right")] {
        let image = |rows| scene.image(view, rows, &cpu);
        write::<Gray8>(&folder.join(format!("{side}.tif")), options.size, image)?;
        let truth = |rows| scene.truth(view, rows, &cpu);
        write::<Gray32Float>(&folder.join(format!("truth-{side}.tif")), options.size, truth)?;
    }
    let visible = |rows| scene.visible(View::Left, rows, &cpu);
    write::<Gray8>(&folder.join("visible.tif"), options.size, visible)
}

fn write<C: ColorType>(path: &Path, size: Size, strip: impl Fn(Range<usize>) -> Image<C::Inner>) -> Outcome
where
    C::Inner: Copy + Default,
    [C::Inner]: TiffValue,
{
    let mut encoder = TiffEncoder::new(BufWriter::new(File::create(path)?))?;
    let mut image = encoder.new_image::<C>(size.width.try_into()?, size.height.try_into()?)?;
    image.rows_per_strip(STRIP.try_into()?)?;
    for y in (0..size.height).step_by(STRIP) {
        image.write_strip(strip(y..size.height.min(y + STRIP)).data())?;
    }
    Ok(image.finish()?)
}
