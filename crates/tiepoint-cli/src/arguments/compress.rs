//! How TIFFs are compressed, for every command that writes them.

use super::values::named;
use clap::Args;
use tiepoint::image::{Compression, Known};

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CompressArguments {
    /// How every .tif is compressed, without loss
    #[arg(long, value_parser = named::<Compression>(), default_value_t)]
    pub(crate) compress: Compression,
}

impl CompressArguments {
    /// Metadata for the writer of an image that holds only the compression.
    pub(crate) fn known(self) -> Known<'static> {
        Known { compression: self.compress, ..Known::default() }
    }
}
