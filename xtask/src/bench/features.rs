//! SIFT and SURF of photographs, beside OpenCV's SIFT.

use super::{OpenCv, Row};
use crate::{Result, data_folder};
use tiepoint::device::Cpu;
use tiepoint::feature::DescriptorKind;
use tiepoint::feature::sift::{Sift, SiftOptions};
use tiepoint::feature::surf::{Surf, SurfOptions};
use tiepoint::image::{AnyImage, Image, ReadOptions, Size, read_grey};
use tiepoint::synth::Texture;

/// Files of the shared data, with the size of the synthetic texture that replaces each where the data are absent.
const PHOTOS: [(&str, &str, Size); 2] = [
    ("books", "objects/books/frame1.jpg", Size { width: 1920, height: 1148 }),
    ("sceaux", "pairs/sceaux/100_7101.JPG", Size { width: 2832, height: 2128 }),
];

pub(super) struct Photo {
    name: &'static str,
    image: Image<u8>,
}

/// The photographs, which are also loaded into OpenCV.
pub(super) fn photos(opencv: &mut OpenCv) -> Result<Vec<Photo>> {
    let cpu = Cpu::with_threads(1).map_err(|e| e.to_string())?;
    let photos = PHOTOS.iter().map(|&(name, path, size)| {
        let image = photo(path, size, &cpu)?;
        opencv.load(name, &image)?;
        Ok(Photo { name, image })
    });
    photos.collect()
}

fn photo(path: &str, size: Size, cpu: &Cpu) -> Result<Image<u8>> {
    let path = data_folder().join(path);
    if !path.exists() {
        println!("no photograph at {}: a synthetic texture of {size} instead", path.display());
        return Ok(Texture::new(1).image(size, cpu));
    }
    match read_grey(&path, &ReadOptions::default(), cpu).map_err(|e| e.to_string())? {
        AnyImage::U8(image) => Ok(image),
        _ => Err(format!("{}: expected 8 bits a pixel", path.display())),
    }
}

impl Photo {
    /// The rows; those of SURF only if the filter selects them, because finding their threshold takes time.
    pub(super) fn rows(&self, filter: &str, opencv: &mut OpenCv) -> Result<Vec<Row<'_>>> {
        let Self { name, image } = self;
        let size = image.size();
        let theirs = format!("sift {name}");
        let failed = |e: tiepoint::Error| e.to_string();
        let sift = Sift::new(SiftOptions::default()).map_err(failed)?;
        let surf = Surf::new(SurfOptions::default()).map_err(failed)?;
        let mut rows = vec![
            Row::new(format!("sift {name} {size}"), &theirs, move |cpu| {
                Ok(Some(sift.detect(image.view(), None, cpu)?.len()))
            }),
            Row::new(format!("surf {name}, default threshold, to OpenCV's SIFT"), &theirs, move |cpu| {
                Ok(Some(surf.detect(image.view(), None, cpu)?.len()))
            }),
        ];
        let as_many = format!("surf {name}, as many features, to OpenCV's SIFT");
        if as_many.contains(filter) {
            let answer = opencv.ask(&format!("count {name}"))?;
            let wanted = answer.parse().map_err(|_| format!("OpenCV counted `{answer}` features"))?;
            let threshold = threshold(image, wanted).map_err(failed)?;
            println!("surf {name}: threshold {threshold:.6} for about {wanted} features");
            let surf = Surf::new(SurfOptions::default().with_threshold(threshold)).map_err(failed)?;
            rows.push(Row::new(as_many, &theirs, move |cpu| {
                Ok(Some(surf.detect(image.view(), None, cpu)?.len()))
            }));
        }
        Ok(rows)
    }
}

/// The threshold at which SURF finds about as many features as `wanted`, by bisection of its logarithm.
fn threshold(image: &Image<u8>, wanted: usize) -> tiepoint::Result<f32> {
    let cpu = Cpu::with_threads(2)?;
    let (mut low, mut high) = (1e-6_f32, 1e-1_f32);
    for _ in 0..16 {
        let threshold = (low * high).sqrt();
        let options = SurfOptions::default().with_threshold(threshold).with_descriptors(DescriptorKind::None);
        match Surf::new(options)?.detect(image.view(), None, &cpu)?.len() > wanted {
            true => low = threshold,
            false => high = threshold,
        }
    }
    Ok(high)
}
