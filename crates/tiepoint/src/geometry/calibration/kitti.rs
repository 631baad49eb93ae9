//! `calib.txt` of KITTI: lines of `P0: ` and twelve numbers, the projections of the rectified grey cameras 0 and 1 and of
//! the colour cameras 2 and 3, all in the frame of camera 0; in `calib_cam_to_cam.txt` they are `P_rect_00` to
//! `P_rect_03`. The pair is that of the colour cameras where the file has them.
//!
//! The projections become `P1` and `P2` of OpenCV. Vertical and forward offsets from camera 0 (millimetres) are left
//! out: the rows of the pictures correspond. `S_rect_02` is the size of the pictures. Other keys are stepped over.

use super::document::{Entry, Parsed, no_key_twice, numbers};

/// Whether a file is one of KITTI's: OpenCV's have no number behind `P2:`.
pub(super) fn is_kitti(text: &str) -> bool {
    let keys = ["P0:", "P2:", "P_rect_00:", "P_rect_02:"];
    let mut behind = text.lines().filter_map(|line| keys.iter().find_map(|key| line.strip_prefix(key)));
    behind.any(|rest| rest.split_whitespace().next().is_some_and(|word| word.parse::<f64>().is_ok()))
}

pub(super) fn parse(text: &str) -> Parsed<Vec<Entry>> {
    no_key_twice((1..).zip(text.lines()).filter_map(|(i, line)| Some((line.split_once(':')?.0.trim(), i))))?;
    let projection = |camera: usize| {
        let lines = text.lines().enumerate();
        let found = lines.filter_map(|(i, line)| Some((i + 1, line.split_once(':')?)));
        let keys = [format!("P{camera}"), format!("P_rect_0{camera}")];
        let mut found = found.filter(|(_, (key, _))| keys.iter().any(|known| key.trim() == known));
        found.next().map(|(line, (key, values))| -> Parsed<(usize, [f64; 12])> {
            Ok((line, numbers(values.split_whitespace(), key, line)?))
        })
    };
    for [camera, other] in [[2, 3], [0, 1]] {
        if let (Some(left), Some(right)) = (projection(camera), projection(other)) {
            let ((line, mut left), (second, mut right)) = (left?, right?);
            right[3] -= left[3];
            left[3] = 0.0;
            for projection in [&mut left, &mut right] {
                (projection[7], projection[11]) = (0.0, 0.0);
            }
            let mut entries =
                vec![Entry::matrix("P1", line, 3, &left), Entry::matrix("P2", second, 3, &right)];
            let [of_left, of_right] = [size(text, camera)?, size(text, other)?];
            if let (Some((_, one)), Some((line, size))) = (of_left, of_right)
                && one != size
            {
                return Err(format!(
                    "line {line}: S_rect_0{other} has other numbers than S_rect_0{camera}: expected pictures of one size"
                ));
            }
            if let Some((line, size)) = of_left {
                entries.push(Entry::matrix("image_size", line, 1, &size));
            }
            return Ok(entries);
        }
    }
    Err("a calibration of KITTI without P2 and P3, and without P0 and P1".into())
}

/// The size of a camera's rectified pictures, with its line, where the file has it.
fn size(text: &str, camera: usize) -> Parsed<Option<(usize, [f64; 2])>> {
    let key = format!("S_rect_0{camera}");
    let behind =
        |(i, line): (usize, &str)| Some((i + 1, line.strip_prefix(&key)?.strip_prefix(':')?.to_owned()));
    let found = text.lines().enumerate().find_map(behind);
    found.map(|(line, values)| Ok((line, numbers(values.split_whitespace(), &key, line)?))).transpose()
}
