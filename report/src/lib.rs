//! Reports: one HTML file that shows why two pictures match, where they do not, and how deep the scene is.
//!
//! A [`Report`] is a title and [`Section`]s; a section is text, figures and [`View`]s: [`FeaturesView`] shows a picture
//! and its features, [`MatchesView`] two pictures and their matches, [`RegistrationView`] one picture on the pixels of
//! another, [`DisparityView`] disparities, why some are missing, and their points in space, [`CollectionView`] many
//! photographs and which of them match; [`CollectionPage`] is the whole page of a work folder, and [`Comparison`] that
//! of two pages. The file stands alone: script, style, pictures and data are inside, a content security policy forbids
//! every request, and a reader without JavaScript sees still pictures and the figures.
//!
//! **The file.** Pictures are JPEG in the still pictures, which are SVG; the script takes them from there. Columns of
//! numbers and maps are little-endian, deflated and written in base 64 (`block`). [`Report::html`] reduces pictures,
//! maps and the number of matches until the file is no larger than [`Report::limit`]; the page says what was reduced.
//!
//! The script and the style are in `page/`; `README.md` says how they are written and tested.

mod block;
mod collection;
mod colour;
mod compare;
mod disparity;
mod features;
mod matches;
mod page;
mod part;
mod picture;
mod registration;
mod still;
mod work_folder;

pub use collection::{CollectionImage, CollectionPair, CollectionView, Tried};
pub use colour::{Rgb, VIRIDIS, at as colour_at};
pub use compare::{Comparison, SavedView};
pub use disparity::{DisparityView, usual_range};
pub use features::{FeaturesView, support};
pub use matches::{KeypointMatch, MatchesView};
pub use page::{Report, Section, View, lasted};
pub use part::PicturePart;
pub use picture::Picture;
pub use registration::{Arrow, RegistrationView};
pub use tiepoint::error::counted;
pub use work_folder::CollectionPage;

/// The limit of the file's size if none is set: 20 MB.
pub const DEFAULT_LIMIT: usize = 20_000_000;

#[derive(Clone, Copy, Debug)]
struct Detail {
    /// Pictures and maps are reduced by whole numbers until they are no longer than this.
    longest: usize,
    /// The most matches.
    matches: usize,
}

impl Detail {
    /// The most that browsers hold in one texture and go through without a pause.
    const MOST: Self = Self { longest: 4096, matches: 100_000 };

    /// Less of everything; `None` where nothing would be left.
    fn less(self) -> Option<Self> {
        let less = Self { longest: self.longest * 3 / 4, matches: self.matches * 3 / 4 };
        (less.longest >= 16).then_some(less)
    }

    /// The whole number by which an image of this size is reduced.
    fn step(self, size: tiepoint::image::Size) -> usize {
        size.width.max(size.height).div_ceil(self.longest).max(1)
    }
}
