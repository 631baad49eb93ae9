//! Warnings about what a stage leaves out without failing, for the command and the Python package.

use super::{CollectionOptions, Extracted, Metric, PairChoice, PairSet, Scanned};

impl Scanned {
    /// What a scan changed or left out without a request, and what the results will lack because of it.
    pub fn warnings(&self, options: &CollectionOptions) -> Vec<String> {
        let (mut warnings, all) = (Vec::new(), self.photographs);
        if !self.changed_options.is_empty() {
            let made = if self.rematches { "all pairs are matched" } else { "what depends on them is made" };
            let changed = self.changed_options.join(", ");
            warnings.push(format!("options changed since the last scan: {changed}; {made} again"));
        }
        if let Some(first) = self.hidden.first() {
            let (count, first) = (self.hidden.len(), first.display());
            warnings.push(format!("{count} hidden files or folders are left out, such as {first}"));
        }
        if options.pairs.choice == PairChoice::Gps && self.positions < all {
            let none = all - self.positions;
            warnings.push(format!("{none} of {all} photographs record no position: gps gives them no pair"));
        }
        if let Some((count, first)) = &self.left_out_pairs {
            warnings.push(format!(
                "{count} pairs of given matches are left out, as they are not of two photographs of the collection: {first}"
            ));
        }
        warnings.extend(options.without_effect());
        warnings
    }
}

impl Extracted {
    /// What the search for features left out without a request.
    pub fn warnings(&self, options: &CollectionOptions) -> Vec<String> {
        let (there, left_out) = (self.searched + self.present, self.unreadable.len());
        let (mut warnings, all) = (Vec::new(), there + left_out);
        if let (Some(first), Some(folder)) = (self.without_mask.first(), &options.features.masks) {
            let (count, folder) = (self.without_mask.len(), folder.display());
            warnings.push(format!(
                "{count} of {all} photographs have no mask in {folder} and count whole: {first}, …"
            ));
        }
        if let Some(first) = self.turned.first() {
            warnings.push(format!(
                "{} photographs are not stored upright, such as {first}: features given for them must be of their stored pixels, as \
                 COLMAP and `detect --no-orient` find them",
                self.turned.len()
            ));
        }
        if self.by_sift && options.features.metric != Metric::L2 {
            warnings.push("no effect without given features: metric".into());
        }
        if left_out > there {
            warnings.push(format!("{left_out} of {all} photographs are left out"));
        }
        warnings
    }
}

impl PairSet {
    /// A warning if no pair is chosen among this many photographs.
    pub fn warning(&self, photographs: usize) -> Option<String> {
        let none = photographs > 1 && self.count(photographs) == 0;
        none.then(|| "no pair is chosen, so nothing will be matched".into())
    }
}
