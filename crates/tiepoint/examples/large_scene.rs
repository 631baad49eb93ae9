//! Writes synthetic pictures of any size in strips, so that they may be far larger than memory: a grey TIFF of the
//! texture, or a stereo pair `left.tif` and `right.tif` with the true disparities `truth-left.tif` and
//! `truth-right.tif`, and `visible.tif`, which is 0 where the right image does not show what the left one does.
//!
//! ```text
//! cargo run --release -p tiepoint --example large_scene -- texture 20000x20000 large.tif
//! cargo run --release -p tiepoint --example large_scene -- stereo 12000x9000 FOLDER 4:240
//! tiepoint stereo FOLDER/left.tif FOLDER/right.tif --disparities 256 --memory 2G -o FOLDER/found.tif
//! tiepoint evaluate disparity FOLDER/found.tif FOLDER/truth-left.tif --mask FOLDER/visible.tif
//! ```

use std::{fs::File, io::BufWriter, ops::Range, path::Path};
use tiepoint::device::Cpu;
use tiepoint::image::{Image, Size};
use tiepoint::synth::Texture;
use tiepoint::synth::stereo::{StereoScene, StereoSceneOptions, View};
use tiff::encoder::colortype::{ColorType, Gray8, Gray32Float};
use tiff::encoder::{TiffEncoder, TiffValue};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const STRIP: usize = 64;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let cpu = Cpu::with_threads(std::thread::available_parallelism()?.get())?;
    match arguments[..] {
        ["texture", size, file] => texture(parse(size)?, Path::new(file), 1, &cpu),
        ["texture", size, file, seed] => texture(parse(size)?, Path::new(file), seed.parse()?, &cpu),
        ["stereo", size, folder, range, ref rest @ ..] => {
            let (least, greatest) = range.split_once(':').ok_or("the disparities are not LEAST:GREATEST")?;
            let options = StereoSceneOptions::default()
                .with_size(parse(size)?)
                .with_disparities([least.parse()?, greatest.parse()?])
                .with_seed(rest.first().map_or(Ok(1), |s| s.parse())?)
                .with_surfaces(rest.get(1).map_or(Ok(40), |s| s.parse())?)
                .with_noise(rest.get(2).map_or(Ok(0.01), |s| s.parse())?);
            stereo(&options, Path::new(folder), &cpu)
        }
        _ => Err("usage: large_scene texture WIDTHxHEIGHT FILE [SEED]
       large_scene stereo WIDTHxHEIGHT FOLDER LEAST:GREATEST [SEED] [SURFACES] [NOISE]"
            .into()),
    }
}

fn parse(size: &str) -> Result<Size, Box<dyn std::error::Error>> {
    let (width, height) = size.split_once('x').ok_or("the size is not WIDTHxHEIGHT")?;
    Ok(Size::new(width.parse()?, height.parse()?))
}

fn texture(size: Size, file: &Path, seed: u64, cpu: &Cpu) -> Outcome {
    let texture = Texture::new(seed);
    let strip = |rows: Range<usize>| texture.strip(rows.start, Size::new(size.width, rows.len()), cpu);
    write::<Gray8>(file, size, strip)
}

fn stereo(options: &StereoSceneOptions, folder: &Path, cpu: &Cpu) -> Outcome {
    let scene = StereoScene::new(options)?;
    std::fs::create_dir_all(folder)?;
    for (view, side) in [(View::Left, "left"), (View::Right, "right")] {
        let image = |rows| scene.image(view, rows, cpu);
        write::<Gray8>(&folder.join(format!("{side}.tif")), options.size, image)?;
        let truth = |rows| scene.truth(view, rows, cpu);
        write::<Gray32Float>(&folder.join(format!("truth-{side}.tif")), options.size, truth)?;
    }
    let visible = |rows| scene.visible(View::Left, rows, cpu);
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
