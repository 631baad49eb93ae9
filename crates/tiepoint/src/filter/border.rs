//! What the filters share about bands of rows and the edge of the image.

/// Rows handled by one task. A constant: how an image is cut does not depend on the threads.
pub(crate) const BAND: usize = 32;

/// For [`Border::Skip`]: gives the `radius` pixels at either end of a filtered row their input values again.
pub(crate) fn keep_ends<T: Copy>(row: &mut [T], source: &[T], radius: usize, channels: usize) {
    let n = (radius * channels).min(row.len());
    row[..n].copy_from_slice(&source[..n]);
    let from = row.len() - n;
    row[from..].copy_from_slice(&source[from..]);
}

/// True when the window of `radius` around row `y` leaves an image of `height` rows.
pub(crate) fn leaves(y: usize, radius: usize, height: usize) -> bool {
    y < radius || y + radius >= height
}
