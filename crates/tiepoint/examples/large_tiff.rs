//! Writes an 8-bit grey TIFF of any size, drawn from the synthetic texture a strip at a time, so that an
//! image far larger than the memory can be made for tests of scale:
//!
//! ```text
//! cargo run --release -p tiepoint --example large_tiff -- 20000x20000 large.tif
//! ```

use std::io::Write;
use tiepoint::{device::Cpu, image::Size, synth::Texture};
use tiff::encoder::{TiffEncoder, colortype::Gray8};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(size), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: large_tiff WIDTHxHEIGHT FILE [SEED]".into());
    };
    let (width, height) = size.split_once('x').ok_or("the size is not WIDTHxHEIGHT")?;
    let size = Size::new(width.parse()?, height.parse()?);
    let seed = arguments.next().map_or(Ok(1), |s| s.parse())?;
    write(&path, size, &Texture::new(seed))
}

fn write(path: &str, size: Size, texture: &Texture) -> Result<(), Failure> {
    let cpu = Cpu::with_threads(std::thread::available_parallelism()?.get())?;
    let file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let mut encoder = TiffEncoder::new(file)?;
    let mut image = encoder.new_image::<Gray8>(size.width.try_into()?, size.height.try_into()?)?;
    image.rows_per_strip(64)?;
    let mut y = 0;
    while y < size.height {
        let rows = 64.min(size.height - y);
        let strip = texture.strip::<u8>(y, Size::new(size.width, rows), &cpu);
        image.write_strip(strip.data())?;
        y += rows;
        write!(std::io::stderr(), "\r{y} of {} rows", size.height)?;
    }
    image.finish()?;
    writeln!(std::io::stderr())?;
    Ok(())
}
