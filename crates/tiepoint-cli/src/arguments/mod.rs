//! The command line.

use crate::commands::StereoCommand;
use crate::detector::DetectorArguments;
use crate::draw::Blend;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use tiepoint::device::Device;
use tiepoint::geometry::warp::Interpolation;
use tiepoint::image::{Border, Range, Size};

/// Finds what two pictures of the same thing have in common.
#[derive(Debug, Parser)]
#[command(
    name = "tiepoint",
    version,
    arg_required_else_help = true,
    infer_long_args = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage. Results go to files and stdout, messages to stderr."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Common {
    /// Where to compute: auto, cpu, cuda[:N] or opencl[:N]
    #[arg(long, global = true, default_value = "auto", value_parser = device)]
    pub(crate) device: Device,
    /// CPU threads [default: one for every core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Print the time of every stage on stderr
    #[arg(long, global = true)]
    pub(crate) profile: bool,
    /// Print one JSON object a line on stdout, for each image or pair
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say more on stderr
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Say nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Keypoints and descriptors of images
    Detect(Detect),
    /// Verified tie points of two images
    Match(Match),
    /// MOVING warped onto REFERENCE
    Register(Register),
    /// LEFT and RIGHT turned so that what corresponds lies in the same row
    Rectify(Rectify),
    /// Disparities of rectified pairs
    Stereo(StereoCommand),
    /// One filter on one image
    #[command(subcommand)]
    Filter(Filter),
    /// Scores against ground truth
    #[command(subcommand)]
    Evaluate(Evaluate),
    /// Time of every stage, on images or on a synthetic scene
    Bench(Bench),
    /// What can run here
    Devices,
    /// Synthetic scenes through all of it: pictures and an HTML page
    Demo(Demo),
}

#[derive(Debug, Args)]
pub(crate) struct Detect {
    /// Images; @FILE stands for the images listed in FILE
    #[arg(required_unless_present = "list", value_name = "IMAGE")]
    pub(crate) images: Vec<PathBuf>,
    /// A file with one image path a line; - reads stdin. Empty lines and those beginning with # are skipped
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,
    /// Features to FILE: .csv .json .npz .sift (Lowe, VLFeat) .txt (COLMAP). For several images a folder
    /// (IMAGE.csv in it), or a pattern in which {} stands for the image's name
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// A picture of the keypoints; a folder or a pattern as for --output
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<String>,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Match {
    /// The first image
    pub(crate) a: PathBuf,
    /// The second image
    pub(crate) b: PathBuf,
    /// Matches to FILE: .csv .json .npz .txt (COLMAP)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// A picture of both images and their matches: inliers green, outliers faint
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) matching: Matching,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Register {
    /// The image that stays
    pub(crate) reference: PathBuf,
    /// The image that is warped onto it
    pub(crate) moving: PathBuf,
    /// The warped image, of the reference's size: .png .tif .pfm
    #[arg(short, long, value_name = "IMAGE")]
    pub(crate) output: Option<PathBuf>,
    /// A picture of the warped image over the reference
    #[arg(long, value_name = "PNG")]
    pub(crate) overlay: Option<PathBuf>,
    /// How the two share the overlay
    #[arg(long, value_enum, default_value_t)]
    pub(crate) blend: Blend,
    /// A picture of both images and their matches
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<PathBuf>,
    /// How values between pixels are found
    #[arg(long, value_enum, default_value_t)]
    pub(crate) interpolation: InterpolationName,
    #[command(flatten)]
    pub(crate) matching: Matching,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Rectify {
    /// The picture taken from the left
    pub(crate) left: PathBuf,
    /// The picture taken from the right
    pub(crate) right: PathBuf,
    /// The cameras: OpenCV .yml or .xml (M1 D1 M2 D2 R T), or Middlebury calib.txt; give it again for a second
    /// file (extrinsics). Without, the cameras are found from tie points
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Vec<PathBuf>,
    /// Take the rectification of the calibration file (R1 R2 P1 P2) instead of computing one
    #[arg(long)]
    pub(crate) stored: bool,
    /// Focal length of LEFT in pixels, where no calibration is given [default: found from the tie points]
    #[arg(long, value_name = "PX", allow_negative_numbers = true)]
    pub(crate) focal: Option<f64>,
    /// The rectified left picture: .png .tif .pfm. It is made of RIGHT where that was taken from the left
    #[arg(long, value_name = "IMAGE")]
    pub(crate) output_left: Option<PathBuf>,
    /// The rectified right picture
    #[arg(long, value_name = "IMAGE")]
    pub(crate) output_right: Option<PathBuf>,
    /// Where the left output shows its input: 255, else 0
    #[arg(long, value_name = "IMAGE")]
    pub(crate) valid_left: Option<PathBuf>,
    /// Where the right output shows its input
    #[arg(long, value_name = "IMAGE")]
    pub(crate) valid_right: Option<PathBuf>,
    /// What the rectified pair is, for `stereo --calibration`: a Middlebury calib.txt. From tie points alone the
    /// baseline is 1
    #[arg(long, value_name = "FILE")]
    pub(crate) output_calibration: Option<PathBuf>,
    /// A picture of both outputs with lines along rows
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<PathBuf>,
    /// What of the input to show. Without a calibration all but `valid` may be wider than said here, so that
    /// disparities begin at 0 [default: input with a calibration, fit without]
    #[arg(long, value_enum)]
    pub(crate) crop: Option<CropName>,
    /// How values between pixels are found
    #[arg(long, value_enum, default_value_t)]
    pub(crate) interpolation: InterpolationName,
    /// Keep a match when its distance is below this share of the second nearest's; 1 keeps all
    #[arg(long, default_value_t = 0.8, value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) ratio: f32,
    /// Largest distance of a tie point from its epipolar line, in pixels; with a calibration, of its difference of
    /// rows from the median of all
    #[arg(long, default_value_t = 1.0, value_name = "PX", allow_negative_numbers = true)]
    pub(crate) inlier_distance: f64,
    /// As --mask, for the second image
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask_b: Option<String>,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CropName {
    /// Size and scale of the input, centred on what both see
    Input,
    /// Scale of the input, all columns, the rows that both see
    Fit,
    /// Only pixels that are valid in both. With a calibration the size of the input, scaled; without, the scale of the
    /// input and the largest rectangle
    Valid,
    /// Size of the input, scaled until nothing is cut off
    All,
}

/// How matches are found and verified.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct Matching {
    /// What relates the two images
    #[arg(long, value_enum, default_value_t)]
    pub(crate) model: ModelName,
    /// Keep a match when its distance is below this share of the second nearest's; 1 keeps all
    #[arg(long, default_value_t = 0.8, value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) ratio: f32,
    /// Also keep matches of which only one side is the other's nearest
    #[arg(long)]
    pub(crate) one_way: bool,
    /// Also compare bright-on-dark features with dark-on-bright ones
    #[arg(long)]
    pub(crate) any_sign: bool,
    /// Largest distance of an inlier from the model, in pixels [default: 3]
    #[arg(long, value_name = "PX", allow_negative_numbers = true)]
    pub(crate) inlier_distance: Option<f64>,
    /// Leave out the second search, near what the model predicts
    #[arg(long)]
    pub(crate) no_rematch: bool,
    /// As --mask, for the second image
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask_b: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelName {
    /// A plane, or a camera that only turns
    #[default]
    Homography,
    /// Six parameters: also shear and unequal scales
    Affine,
    /// Four parameters: turned, scaled, shifted
    Similarity,
    /// Two views of anything: epipolar geometry
    Fundamental,
    /// No verification
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InterpolationName {
    /// From 2×2 pixels
    Bilinear,
    /// From 4×4 pixels
    #[default]
    Bicubic,
    /// From 6×6 pixels
    Lanczos,
}

impl From<InterpolationName> for Interpolation {
    fn from(name: InterpolationName) -> Self {
        match name {
            InterpolationName::Bilinear => Self::Bilinear,
            InterpolationName::Bicubic => Self::Bicubic,
            InterpolationName::Lanczos => Self::Lanczos3,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Filter {
    /// Gaussian smoothing
    Gauss {
        /// The image
        input: PathBuf,
        /// Where to write: .png .tif .pfm
        output: PathBuf,
        /// Standard deviation in pixels [default: 1.6, or what follows from --size]
        #[arg(long, value_name = "S", allow_negative_numbers = true)]
        sigma: Option<f64>,
        /// An odd number of taps
        #[arg(long, value_name = "N")]
        size: Option<usize>,
        /// Taps that are powers of two: 1, 2, 4, … and back; --size is 31 at most
        #[arg(long, requires = "size", conflicts_with = "sigma")]
        power_of_two: bool,
        /// What lies beyond the edge
        #[arg(long, value_enum, default_value_t)]
        border: BorderName,
    },
    /// Gradients
    Sobel {
        /// The image
        input: PathBuf,
        /// Where to write: .png .tif .pfm (gradients have a sign: .tif or .pfm keep it)
        output: PathBuf,
        /// Which of them
        #[arg(long, value_enum, default_value_t)]
        part: Gradient,
        /// What lies beyond the edge
        #[arg(long, value_enum, default_value_t)]
        border: BorderName,
    },
    /// The determinant of the Hessian by 9×9 boxes: blobs of σ = 1.2
    Hessian {
        /// The image
        input: PathBuf,
        /// Where to write: .tif .pfm (the values) or .png (their magnitude, the greatest white)
        output: PathBuf,
        /// The local maxima as a table: x,y,response,sign
        #[arg(long, value_name = "CSV")]
        blobs: Option<PathBuf>,
        /// Least magnitude of a local maximum, for an image from 0 to 1 [default: 0.0004]
        #[arg(long, value_name = "T", allow_negative_numbers = true)]
        threshold: Option<f32>,
        /// Weight of dxy² [default: 1]
        #[arg(long, value_name = "W", allow_negative_numbers = true)]
        weight: Option<f32>,
        /// What lies beyond the edge
        #[arg(long, value_enum, default_value_t)]
        border: BorderName,
    },
    /// Any small kernel, laid on the image as it is written
    Convolve {
        /// The image
        input: PathBuf,
        /// Where to write: .png .tif .pfm
        output: PathBuf,
        /// Rows parted by semicolons, values by commas: "0,-1,0;-1,5,-1;0,-1,0"; or a text file of such rows
        #[arg(long, value_name = "ROWS", allow_hyphen_values = true)]
        kernel: String,
        /// Divide the kernel by its sum
        #[arg(long)]
        normalise: bool,
        /// Write floats, which keep signs and fractions: .tif or .pfm
        #[arg(long)]
        float: bool,
        /// What lies beyond the edge
        #[arg(long, value_enum, default_value_t)]
        border: BorderName,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gradient {
    /// √(gx² + gy²)
    #[default]
    Magnitude,
    /// Derivative along x
    Gx,
    /// Derivative along y
    Gy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BorderName {
    /// The edge pixel repeated
    #[default]
    Clamp,
    /// The image mirrored about its edge pixel
    Reflect,
    /// Black
    Zero,
    /// Pixels whose window leaves the image keep their value
    Skip,
}

impl From<BorderName> for Border {
    fn from(name: BorderName) -> Self {
        match name {
            BorderName::Clamp => Self::Clamp,
            BorderName::Reflect => Self::Reflect,
            BorderName::Zero => Self::Zero,
            BorderName::Skip => Self::Skip,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Evaluate {
    /// Images A B and the true homography: repeatability, matching accuracy, corner error.
    /// Or a FOUND homography and the true one with --size: the corner error
    Homography(EvaluateHomography),
    /// A FOUND disparity map and the true one: bad pixels, mean error, density
    Disparity(EvaluateDisparity),
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateDisparity {
    /// The disparity map to score: .pfm .tif, or .png of 16 bits
    pub(crate) found: PathBuf,
    /// The true one of the left image: floats (unknown: not finite or not above 0), 8 or 16 bits (unknown: 0)
    pub(crate) truth: PathBuf,
    /// The true one of the right image: pixels that it does not confirm within 1 px are occluded and not scored
    #[arg(long, value_name = "FILE")]
    pub(crate) truth_right: Option<PathBuf>,
    /// What is stored in the truth is S times the disparity [default: 256 for 16 bits, else 1]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) scale: Option<f32>,
    /// What is stored in FOUND is S times the disparity [default: 256 for 16 bits, else 1]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) found_scale: Option<f32>,
    /// Floats of 0 and below in the truth are disparities too
    #[arg(long)]
    pub(crate) signed: bool,
    /// Score only where this image is not 0
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask: Option<PathBuf>,
    /// A pixel is bad when it is off by more than this many pixels; several parted by commas
    #[arg(long, value_name = "T", default_value = "1", value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) threshold: Vec<f32>,
    /// Fill invalid pixels with the smaller of their nearest valid neighbours in the row first; otherwise they
    /// are bad
    #[arg(long)]
    pub(crate) fill: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateHomography {
    /// A B TRUTH, or FOUND TRUTH. Homographies are nine numbers in a text file, an OpenCV .xml or .yml, or the
    /// output of `match --json`
    #[arg(required = true, num_args = 2..=3, value_names = ["A", "B", "TRUTH"])]
    pub(crate) files: Vec<PathBuf>,
    /// Size of image A, for FOUND TRUTH
    #[arg(long, value_name = "WxH", value_parser = size)]
    pub(crate) size: Option<Size>,
    #[command(flatten)]
    pub(crate) matching: Matching,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Images [default: a synthetic scene]
    pub(crate) images: Vec<PathBuf>,
    /// Size of the synthetic scene
    #[arg(long, value_name = "WxH", value_parser = size, default_value = "1920x1080")]
    pub(crate) size: Size,
    /// Runs of each; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) repeat: u16,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The folder to fill
    #[arg(default_value = "tiepoint-demo")]
    pub(crate) folder: PathBuf,
    /// Seed of the scenes
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

fn device(text: &str) -> Result<Device, String> {
    text.parse().map_err(|_| "expected auto, cpu, cuda, cuda:N, opencl or opencl:N".to_owned())
}

fn size(text: &str) -> Result<Size, String> {
    let parsed = text.split_once('x').and_then(|(w, h)| Some(Size::new(w.parse().ok()?, h.parse().ok()?)));
    let sound = parsed.filter(|s| !s.is_empty() && s.area() <= 1 << 32);
    sound.ok_or_else(|| "expected WIDTHxHEIGHT such as 1920x1080, at most 2^32 pixels".to_owned())
}

/// `auto` or `LOW:HIGH`.
pub(crate) fn range(text: &str) -> Result<Range, String> {
    if text == "auto" {
        return Ok(Range::Auto);
    }
    let bounds = text.split_once(':').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    let range = bounds.map(|(low, high)| Range::Between(low, high)).filter(|r| r.check().is_ok());
    range.ok_or_else(|| "expected auto or LOW:HIGH with LOW below HIGH".to_owned())
}
