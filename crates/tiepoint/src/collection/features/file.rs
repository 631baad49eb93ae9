//! The file of a photograph's features: what they were made from, and they themselves or why there are none.
//!
//! ```text
//! head:
//!   of the photograph and of the file beside it (its mask, or its given features): length, times of change, hash of the
//!     content, u64 each; whether there is such a file (1) and whether the features were imported (2), u8
//!   0 and why the photograph cannot be read, or 1 and width, height, number of features, u32, and hash of the body, u64
//!   if descriptors are not 128 bytes each: whether they are floats, u8, and how many values, u32
//! body:
//!   of each keypoint x, y, scale, angle, response, f32, sign, octave, i8, layer, u8; then the values of each descriptor
//! ```

use crate::collection::record::{Fields, fingerprint};
use crate::collection::scan::FileVersion;
use crate::feature::sift::DIMENSION;
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::Size;

/// What was read from a photograph, or why it cannot be read.
pub(crate) type Readable<T> = Result<T, String>;

/// The files that features were made from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Origin {
    pub(crate) photograph: FileVersion,
    /// The mask, or the given features.
    pub(crate) beside: Option<FileVersion>,
    /// Whether the features were imported, and not found here.
    pub(crate) imported: bool,
}

/// What the head of the file says about a photograph's features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) size: Size,
    pub(crate) count: usize,
    pub(crate) form: Form,
    /// Hash of keypoints and descriptors.
    pub(crate) hash: u64,
}

/// The form of descriptors: those of one form can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) floats: bool,
    pub(crate) dimension: usize,
}

impl Form {
    pub(crate) const SIFT: Self = Self { floats: false, dimension: DIMENSION };

    pub(crate) fn of(features: &Features) -> Self {
        let floats = matches!(features.descriptors, Descriptors::F32(_));
        Self { floats, dimension: features.dimension }
    }
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.dimension, if self.floats { "floats" } else { "bytes" })
    }
}

/// Bytes of a keypoint.
const KEYPOINT: usize = 23;

/// Encodes the head and the body of a file of features.
pub(crate) fn encode(origin: &Origin, outcome: &Readable<Features>) -> (Vec<u8>, Vec<u8>) {
    let mut head = Vec::new();
    let mut version = |v: &FileVersion| {
        let numbers = [v.bytes, v.modified, v.changed, v.content.unwrap_or(0)];
        numbers.iter().for_each(|n| head.extend_from_slice(&n.to_le_bytes()));
    };
    version(&origin.photograph);
    version(&origin.beside.unwrap_or_default());
    head.push(u8::from(origin.beside.is_some()) | u8::from(origin.imported) << 1);
    let features = match outcome {
        Ok(features) => features,
        Err(reason) => {
            head.push(0);
            head.extend_from_slice(reason.as_bytes());
            return (head, Vec::new());
        }
    };
    let form = Form::of(features);
    let mut body = Vec::with_capacity(features.len() * (KEYPOINT + 4 * form.dimension));
    for k in &features.keypoints {
        for v in [k.x, k.y, k.scale, k.angle, k.response] {
            body.extend_from_slice(&v.to_le_bytes());
        }
        body.extend_from_slice(&[k.sign as u8, k.octave as u8, k.layer]);
    }
    match &features.descriptors {
        Descriptors::U8(values) => body.extend_from_slice(values),
        Descriptors::F32(values) => values.iter().for_each(|v| body.extend_from_slice(&v.to_le_bytes())),
    }
    head.push(1);
    for n in [features.image.width, features.image.height, features.len()] {
        head.extend_from_slice(&(n as u32).to_le_bytes());
    }
    head.extend_from_slice(&fingerprint([&body[..]]).to_le_bytes());
    if form != Form::SIFT {
        head.push(u8::from(form.floats));
        head.extend_from_slice(&(form.dimension as u32).to_le_bytes());
    }
    (head, body)
}

pub(crate) fn decode_head(head: &[u8]) -> Option<(Origin, Readable<Known>)> {
    let mut fields = Fields(head);
    let mut version = || {
        let [bytes, modified, changed] = [fields.u64()?, fields.u64()?, fields.u64()?];
        Some(FileVersion { bytes, modified, changed, content: Some(fields.u64()?) })
    };
    let (photograph, beside) = (version()?, version()?);
    let flags = fields.u8()?;
    let beside = (flags & 1 != 0).then_some(beside);
    let origin = Origin { photograph, beside, imported: flags & 2 != 0 };
    if fields.u8()? == 0 {
        return Some((origin, Err(String::from_utf8_lossy(fields.0).into_owned())));
    }
    let size = Size::new(fields.u32()? as usize, fields.u32()? as usize);
    let (count, hash) = (fields.u32()? as usize, fields.u64()?);
    let form = match fields.0.is_empty() {
        true => Form::SIFT,
        false => Form { floats: fields.u8()? == 1, dimension: fields.u32()? as usize },
    };
    let known = Known { size, count, form, hash };
    fields.0.is_empty().then_some((origin, Ok(known)))
}

pub(crate) fn decode_body(known: &Known, body: &[u8]) -> Option<Features> {
    let mut fields = Fields(body);
    let mut keypoints = Fields(fields.take(known.count.checked_mul(KEYPOINT)?)?);
    let keypoints = (0..known.count).map(|_| keypoint(&mut keypoints)).collect::<Option<Vec<_>>>()?;
    let Form { floats, dimension } = known.form;
    let width = if floats { 4 } else { 1 };
    if fields.0.len() != known.count.checked_mul(dimension)?.checked_mul(width)? {
        return None;
    }
    let descriptors = match floats {
        true => Descriptors::F32(fields.0.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()),
        false => Descriptors::U8(fields.0.to_vec()),
    };
    Some(Features { keypoints, descriptors, dimension, image: known.size })
}

fn keypoint(fields: &mut Fields<'_>) -> Option<Keypoint> {
    let [x, y, scale] = [fields.f32()?, fields.f32()?, fields.f32()?];
    let [angle, response] = [fields.f32()?, fields.f32()?];
    let [sign, octave] = [fields.u8()? as i8, fields.u8()? as i8];
    Some(Keypoint { x, y, scale, angle, response, sign, octave, layer: fields.u8()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_back_unchanged() {
        let keypoints = crate::feature::order::gpu::tests::keypoints(5, 1);
        let bytes = Descriptors::U8((0..5 * 128).map(|i| i as u8).collect());
        let floats = Descriptors::F32((0..5 * 64).map(|i| i as f32).collect());
        let photograph = FileVersion { bytes: 1, modified: 2, changed: 3, content: Some(4) };
        for (imported, beside, descriptors, dimension) in
            [(true, None, bytes, 128), (false, Some(FileVersion { bytes: 5, ..photograph }), floats, 64)]
        {
            let keypoints = keypoints.clone();
            let features = Features { keypoints, descriptors, dimension, image: Size::new(70, 50) };
            let origin = Origin { photograph, beside, imported };
            let (head, body) = encode(&origin, &Ok(features.clone()));
            let (made_from, known) = decode_head(&head).unwrap();
            assert_eq!(made_from, origin, "what they were made from");
            let known = known.unwrap();
            assert_eq!((known.size, known.count, known.form), (features.image, 5, Form::of(&features)));
            assert_eq!(decode_body(&known, &body), Some(features.clone()), "as written");
            let cut = |end: &usize| known.form == Form::SIFT || *end != head.len() - 5;
            assert!((0..head.len()).filter(cut).all(|end| decode_head(&head[..end]).is_none()), "cut off");
            assert!((0..body.len()).all(|end| decode_body(&known, &body[..end]).is_none()), "cut off");
            let (head, body) = encode(&origin, &Err("damaged".to_owned()));
            assert_eq!(decode_head(&head).unwrap().1, Err("damaged".to_owned()));
            assert!(body.is_empty());
        }
    }
}
