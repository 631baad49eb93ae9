//! The Rust half of the documentation's quick start: features, tie points, registration, stereo.
//!
//! ```text
//! cargo run --release -p tiepoint --example quick_start -- left.jpg right.jpg pair_left.png pair_right.png FOLDER
//! ```

#![expect(clippy::print_stdout, reason = "a program's answer")]

use tiepoint::device::Device;
use tiepoint::feature::sift::SiftOptions;
use tiepoint::feature::{self, Detector};
use tiepoint::image::{self, Mask, Range};
use tiepoint::register::{RegisterOptions, TieOptions, register, tie_points};
use tiepoint::stereo::{self, Masks, Stereo, StereoOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [left, right, pair_left, pair_right, folder] = &arguments[..] else {
        return Err("usage: quick_start LEFT RIGHT PAIR_LEFT PAIR_RIGHT FOLDER".into());
    };
    let out = std::path::Path::new(folder);

    // [features]
    let processor = Device::Auto.open(4)?; // a GPU if there is one, and four threads
    let sift = Detector::Sift(SiftOptions::default().with_root(true)).open(&processor)?;
    let find = |path| {
        // Grey, black to white; transparent pixels, and those that the file marks as without data, are left out.
        let file = image::read_file(path, &Default::default())?;
        let picture = file.prepare(Mask::All, Range::Auto, &processor.cpu)?;
        sift.detect(picture.image.view(), picture.mask.view())
    };
    let (a, b) = (find(left)?, find(right)?);
    println!("{} and {} features", a.len(), b.len());
    feature::files::write(out.join("left.csv"), &a)?;
    // [tie points]
    let tie = tie_points(&a, &b, &TieOptions::default(), &processor)?;
    println!("{:?}: {} inliers, {:.2} px", tie.b_from_a, tie.inliers.len(), tie.rms_px);
    // [registration]
    let fixed = image::read(left, &Default::default())?;
    let moving = image::read(right, &Default::default())?;
    let registered = register(&fixed, &moving, &RegisterOptions::default(), &processor)?;
    image::write(out.join("right_on_left.png"), &registered.warped.image)?;
    // [stereo]
    let pair_left = image::read(pair_left, &Default::default())?;
    let pair_right = image::read(pair_right, &Default::default())?;
    let stereo = Stereo::new(StereoOptions::default().with_disparities(64))?;
    let found = stereo.compute((&pair_left).into(), (&pair_right).into(), Masks::default(), &processor)?;
    stereo::files::write(out.join("disparity.pfm"), found.disparity.view(), image::Compression::None)?;
    // [end]
    Ok(())
}
