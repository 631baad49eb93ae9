//! `tiepoint filter`.

use super::values::named;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;
use tiepoint::filter::hessian::HessianOptions;
use tiepoint::image::Border;

#[derive(Debug, Subcommand)]
pub(crate) enum FilterArguments {
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
        #[arg(long, value_parser = named::<Border>(), default_value_t)]
        border: Border,
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
        #[arg(long, value_parser = named::<Border>(), default_value_t)]
        border: Border,
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
        /// Least magnitude of a local maximum, for an image from 0 to 1
        #[arg(
            long,
            value_name = "T",
            default_value_t = HessianOptions::default().threshold,
            allow_negative_numbers = true
        )]
        threshold: f32,
        /// Weight of dxy²
        #[arg(
            long,
            value_name = "W",
            default_value_t = HessianOptions::default().weight,
            allow_negative_numbers = true
        )]
        weight: f32,
        /// What lies beyond the edge
        #[arg(long, value_parser = named::<Border>(), default_value_t)]
        border: Border,
    },
    /// Any small kernel, laid on the image as it is written
    Convolve {
        /// The image
        input: PathBuf,
        /// Where to write: .png .tif .pfm
        output: PathBuf,
        /// Rows separated by semicolons, values by commas: "0,-1,0;-1,5,-1;0,-1,0"; or a text file of such rows
        #[arg(long, value_name = "ROWS", allow_hyphen_values = true)]
        kernel: String,
        /// Divide the kernel by its sum
        #[arg(long)]
        normalise: bool,
        /// Write floats, which keep signs and fractions: .tif or .pfm
        #[arg(long)]
        float: bool,
        /// What lies beyond the edge
        #[arg(long, value_parser = named::<Border>(), default_value_t)]
        border: Border,
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
