//! `tiepoint filter`.

use super::compress::CompressArguments;
use super::limits::LimitArguments;
use super::streams;
use super::table::{Given, flags};
use super::values::named;
use crate::failure::{Failure, Outcome};
use crate::output::{Files, check_image, keep_stdout_for_data};
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use tiepoint::filter::any::Gradient;
use tiepoint::filter::convolve::Kernel;
use tiepoint::filter::hessian::HessianOptions;
use tiepoint::image::{Border, OutputFormat, Size};

// The files and options that all filters have.
#[derive(Debug, Args)]
pub(crate) struct FilterFiles {
    /// The image
    pub(crate) input: PathBuf,
    /// Where to write: .png .tif .pfm .exr .npy, of which all but .png keep signs and fractions
    #[arg(value_parser = PathBufValueParser::new().map(streams::written))]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) tiff: CompressArguments,
    /// The pixels beyond the edge
    #[arg(long, value_parser = named::<Border>(), default_value_t)]
    pub(crate) border: Border,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FilterArguments {
    /// Gaussian smoothing
    Gauss {
        #[command(flatten)]
        files: FilterFiles,
        /// Standard deviation in pixels [default: 1.6, or what follows from --size]
        #[arg(long, value_name = "S", allow_negative_numbers = true)]
        sigma: Option<f64>,
        /// An odd number of taps
        #[arg(long, value_name = "N")]
        size: Option<usize>,
        /// Taps that are powers of two: 1, 2, 4, … and back; --size is 31 at most
        #[arg(long, requires = "size", conflicts_with = "sigma")]
        power_of_two: bool,
    },
    /// Gradients. Those along x and y are signed and need .tif, .pfm, .exr or .npy
    Sobel {
        #[command(flatten)]
        files: FilterFiles,
        /// Which gradient
        #[arg(long, value_parser = named::<Gradient>(), default_value_t)]
        part: Gradient,
    },
    /// The determinant of the Hessian by 9×9 boxes: blobs of σ = 1.2. A .png shows its magnitude, with the greatest
    /// white
    Hessian {
        #[command(flatten)]
        files: FilterFiles,
        /// Write the local maxima as a table: x,y,response,sign
        #[arg(long, value_name = "CSV")]
        blobs: Option<PathBuf>,
        #[command(flatten)]
        options: Given<HessianFlags>,
    },
    /// Any small kernel, applied as it is written (not flipped)
    Convolve {
        #[command(flatten)]
        files: FilterFiles,
        /// Rows separated by semicolons, values by commas: "0,-1,0;-1,5,-1;0,-1,0"; or a text file of such rows
        #[arg(long, value_name = "ROWS", allow_hyphen_values = true)]
        kernel: String,
        /// Divide the kernel by its sum
        #[arg(long)]
        normalise: bool,
        /// Write floats, which keep signs and fractions: .tif .pfm .exr .npy
        #[arg(long)]
        float: bool,
    },
}

flags! {
    /// How blobs are found.
    HessianFlags: HessianOptions, "Filter", HessianOptions::default(), {
        const WITHOUT: &'static [&'static str] = &["border"];
    }
}

impl FilterArguments {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Gauss { .. } => "gauss",
            Self::Sobel { .. } => "sobel",
            Self::Hessian { .. } => "hessian",
            Self::Convolve { .. } => "convolve",
        }
    }

    pub(crate) fn files(&self) -> &FilterFiles {
        match self {
            Self::Gauss { files, .. }
            | Self::Sobel { files, .. }
            | Self::Hessian { files, .. }
            | Self::Convolve { files, .. } => files,
        }
    }

    /// Fails if a result cannot be written, replaces an input, or loses its sign, which most formats do not hold.
    pub(crate) fn check(&self) -> Outcome {
        let FilterFiles { input, output, .. } = self.files();
        keep_stdout_for_data(streams::is_stdout(output.as_os_str()));
        let (table, kernel) = match self {
            Self::Hessian { blobs, .. } => (blobs.as_deref(), None),
            Self::Convolve { kernel, .. } => (None, Some(Path::new(kernel))),
            Self::Gauss { .. } | Self::Sobel { .. } => (None, None),
        };
        let files = Files::default().reads([input]).reads(kernel.filter(|k| k.is_file()));
        files.writes([output]).writes(table).check()?;
        check_image(output)?;
        let signed = match self {
            Self::Gauss { .. } | Self::Hessian { .. } => false,
            Self::Sobel { part, .. } => *part != Gradient::Magnitude,
            Self::Convolve { float, .. } => *float,
        };
        if signed && !holds_floats(output) {
            let path = output.display();
            return Err(Failure::usage(format!(
                "{path}: cannot hold signs and fractions (expected .tif, .pfm, .exr or .npy)"
            )));
        }
        if let Self::Convolve { kernel, normalise, .. } = self {
            parse_kernel(kernel, *normalise)?;
        }
        Ok(())
    }
}

/// Whether the format of `output` holds signs and fractions.
pub(crate) fn holds_floats(output: &Path) -> bool {
    OutputFormat::of(output).is_ok_and(OutputFormat::holds_floats)
}

/// Rows separated by semicolons or line breaks, of values separated by commas or white space; or those in this file.
pub(crate) fn parse_kernel(text: &str, normalise: bool) -> Outcome<Kernel> {
    let file = Path::new(text).is_file().then(|| std::fs::read_to_string(text));
    let text = match file {
        Some(read) => read.map_err(|e| Failure::work(format!("{text}: {e}")))?,
        None => text.to_owned(),
    };
    let wrong = |what: String| {
        Failure::usage(format!("--kernel: {what} (expected rows such as \"0,1,0;1,4,1;0,1,0\")"))
    };
    let mut rows = Vec::new();
    // A semicolon may end a line, too.
    let lines = text.lines().map(|line| line.trim().trim_end_matches(';')).filter(|line| !line.is_empty());
    for row in lines.flat_map(|line| line.split(';')) {
        // An empty field has one word, which is no number.
        let words = row.split(',').flat_map(|field| match field.trim() {
            "" => vec![""],
            field => field.split_whitespace().collect(),
        });
        let values: Result<Vec<f32>, _> = words.map(|w| w.parse().map_err(|_| w.to_owned())).collect();
        rows.push(values.map_err(|w| wrong(format!("{w:?} is no number")))?);
    }
    let width = rows.first().map_or(0, Vec::len);
    if rows.iter().any(|r| r.len() != width) {
        return Err(wrong("its rows are of different length".to_owned()));
    }
    let size = Size::new(width, rows.len());
    let mut weights = rows.concat();
    if normalise {
        let sum: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        if sum.abs() < 1e-9 {
            return Err(wrong("a sum of 0 cannot be normalised".to_owned()));
        }
        weights.iter_mut().for_each(|w| *w = (f64::from(*w) / sum) as f32);
    }
    Ok(Kernel::new(weights, size)?)
}
