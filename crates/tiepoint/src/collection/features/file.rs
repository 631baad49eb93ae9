//! The file of a photograph's features: what they were made from, and either the features or why the photograph cannot
//! be read.
//!
//! ```text
//! head:
//!   of the photograph and of its mask: length, times of change, hash of the content, u64 each; whether there is a mask, u8
//!   0 and why the photograph cannot be read, or 1 and width, height, number of features, u32, and hash of the body, u64
//! body:
//!   of each keypoint x, y, scale, angle, response, f32, sign, octave, i8, layer, u8; then 128 bytes of each descriptor
//! ```

use super::content_hash;
use crate::collection::record::Fields;
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
    pub(crate) mask: Option<FileVersion>,
}

/// The content of a file of features: of its head alone, or of all of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FeatureFile<T> {
    pub(crate) origin: Origin,
    pub(crate) outcome: Readable<T>,
}

/// What the head of the file says about a photograph's features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) size: Size,
    pub(crate) count: usize,
    /// Hash of keypoints and descriptors.
    pub(crate) hash: u64,
}

/// Bytes of a keypoint.
const KEYPOINT: usize = 23;

/// Encodes the head and the body of a file of features.
pub(super) fn encode(origin: &Origin, outcome: &Readable<Features>) -> (Vec<u8>, Vec<u8>) {
    let mut head = Vec::new();
    let mut version = |v: &FileVersion| {
        [v.bytes, v.modified, v.changed, v.content.unwrap_or(0)]
            .iter()
            .for_each(|n| head.extend_from_slice(&n.to_le_bytes()));
    };
    version(&origin.photograph);
    version(&origin.mask.unwrap_or_default());
    head.push(u8::from(origin.mask.is_some()));
    let features = match outcome {
        Ok(features) => features,
        Err(reason) => {
            head.push(0);
            head.extend_from_slice(reason.as_bytes());
            return (head, Vec::new());
        }
    };
    let descriptors: &[u8] = match &features.descriptors {
        Descriptors::U8(values) => values,
        Descriptors::F32(_) => &[],
    };
    let mut body = Vec::with_capacity(features.len() * KEYPOINT + descriptors.len());
    for k in &features.keypoints {
        for v in [k.x, k.y, k.scale, k.angle, k.response] {
            body.extend_from_slice(&v.to_le_bytes());
        }
        body.extend_from_slice(&[k.sign as u8, k.octave as u8, k.layer]);
    }
    body.extend_from_slice(descriptors);
    head.push(1);
    for n in [features.image.width, features.image.height, features.len()] {
        head.extend_from_slice(&(n as u32).to_le_bytes());
    }
    head.extend_from_slice(&content_hash(&body).to_le_bytes());
    (head, body)
}

pub(crate) fn decode_head(head: &[u8]) -> Option<FeatureFile<Known>> {
    let mut fields = Fields(head);
    let mut version = || {
        let [bytes, modified, changed] = [fields.u64()?, fields.u64()?, fields.u64()?];
        Some(FileVersion { bytes, modified, changed, content: Some(fields.u64()?) })
    };
    let (photograph, mask) = (version()?, version()?);
    let mask = (fields.u8()? == 1).then_some(mask);
    let origin = Origin { photograph, mask };
    if fields.u8()? == 0 {
        return Some(FeatureFile { origin, outcome: Err(String::from_utf8_lossy(fields.0).into_owned()) });
    }
    let size = Size::new(fields.u32()? as usize, fields.u32()? as usize);
    let known = Known { size, count: fields.u32()? as usize, hash: fields.u64()? };
    fields.0.is_empty().then_some(FeatureFile { origin, outcome: Ok(known) })
}

pub(crate) fn decode_body(known: &Known, body: &[u8]) -> Option<Features> {
    let mut fields = Fields(body);
    let mut keypoints = Fields(fields.take(known.count.checked_mul(KEYPOINT)?)?);
    let keypoints = (0..known.count).map(|_| keypoint(&mut keypoints)).collect::<Option<Vec<_>>>()?;
    if fields.0.len() != known.count.checked_mul(DIMENSION)? {
        return None;
    }
    let descriptors = Descriptors::U8(fields.0.to_vec());
    Some(Features { keypoints, descriptors, dimension: DIMENSION, image: known.size })
}

fn keypoint(fields: &mut Fields<'_>) -> Option<Keypoint> {
    Some(Keypoint {
        x: fields.f32()?,
        y: fields.f32()?,
        scale: fields.f32()?,
        angle: fields.f32()?,
        response: fields.f32()?,
        sign: fields.u8()? as i8,
        octave: fields.u8()? as i8,
        layer: fields.u8()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_back_unchanged() {
        let keypoints = crate::feature::order::gpu::tests::keypoints(5, 1);
        let descriptors = Descriptors::U8((0..5 * 128).map(|i| i as u8).collect());
        let features = Features { keypoints, descriptors, dimension: 128, image: Size::new(70, 50) };
        let photograph = FileVersion { bytes: 1, modified: 2, changed: 3, content: Some(4) };
        for mask in [None, Some(FileVersion { bytes: 5, ..photograph })] {
            let origin = Origin { photograph, mask };
            let (head, body) = encode(&origin, &Ok(features.clone()));
            let file = decode_head(&head).unwrap();
            assert_eq!(file.origin, origin, "what they were made from");
            let known = file.outcome.unwrap();
            assert_eq!((known.size, known.count), (features.image, 5));
            assert_eq!(decode_body(&known, &body), Some(features.clone()), "as written");
            assert!((0..head.len()).all(|end| decode_head(&head[..end]).is_none()), "cut off");
            assert!((0..body.len()).all(|end| decode_body(&known, &body[..end]).is_none()), "cut off");
            let (head, body) = encode(&origin, &Err("damaged".to_owned()));
            assert_eq!(decode_head(&head).unwrap().outcome, Err("damaged".to_owned()));
            assert!(body.is_empty());
        }
    }
}
