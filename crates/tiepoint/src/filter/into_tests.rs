//! The `_into` forms write into an image with gaps between rows and do not change the gaps.

use super::resample::{Scaling, resample, resample_into};
use super::sobel::{Magnitude, X, Y, sobel, sobel_into};
use super::testing::noise;
use super::{convolve, gauss, hessian};
use crate::device::Cpu;
use crate::geometry::Homography;
use crate::geometry::warp::{WarpOptions, warp, warp_into};
use crate::image::{Border, Image, ImageView, ImageViewMut, Size};
use crate::options::Named;
use crate::{Error, Result};

const GAP: usize = 7;

/// Runs `into` on memory with gaps and compares with `whole`; another shape must be refused.
fn check<T: Copy + Default + PartialEq + std::fmt::Debug>(
    what: &str,
    mark: T,
    whole: Result<Image<T>>,
    into: impl Fn(ImageViewMut<'_, T>) -> Result<()>,
) {
    let whole = whole.unwrap();
    let (size, channels) = (whole.size(), whole.channels());
    let stride = whole.row_len() + GAP;
    let mut memory = vec![mark; stride * size.height - GAP];
    into(ImageViewMut::new(&mut memory, size, channels, stride).unwrap()).unwrap();
    for (y, row) in memory.chunks(stride).enumerate() {
        assert_eq!(&row[..whole.row_len()], whole.row(y), "{what}, row {y}");
        assert!(row[whole.row_len()..].iter().all(|v| *v == mark), "{what}: the gap after row {y}");
    }
    let mut other = Image::filled(size, channels + 1, mark);
    assert!(matches!(into(other.view_mut()), Err(Error::Mismatch(_))), "{what} into another shape");
}

#[test]
fn foreign_memory_with_gaps_is_filled() {
    let (size, channels) = (Size::new(75, 70), 3);
    let stride = size.width * channels + 11;
    let (bytes, floats) = (noise::<u8>(stride * size.height, 1, 255.0), noise::<f32>(size.area(), 2, 1.0));
    let bytes = ImageView::new(&bytes, size, channels, stride).unwrap();
    let floats = ImageView::new(&floats, size, 1, size.width).unwrap();
    let kernels = [
        convolve::Kernel::separable(vec![0.25, 0.5, 0.25], vec![-1.0, 0.0, 1.0]).unwrap(),
        convolve::Kernel::new((0..9).map(|k| k as f32 * 0.1).collect(), Size::new(3, 3)).unwrap(),
    ];
    let map = Homography::new([[0.9, 0.1, 3.0], [-0.1, 1.1, -2.0], [1e-4, 0.0, 1.0]]).unwrap();
    for cpu in [Cpu::sequential(), Cpu::with_threads(3).unwrap()] {
        let o = gauss::GaussOptions::default();
        check("gauss", 9, gauss::gauss(bytes, &o, &cpu), |out| gauss::gauss_into(bytes, &o, &cpu, out));
        check("gauss", 9.0, gauss::gauss(floats, &o, &cpu), |out| gauss::gauss_into(floats, &o, &cpu, out));
        let o = Border::Clamp;
        check("sobel x", 9, sobel(bytes, X, o, &cpu), |out| sobel_into(bytes, X, o, &cpu, out));
        check("sobel y", 9, sobel(bytes, Y, o, &cpu), |out| sobel_into(bytes, Y, o, &cpu, out));
        let magnitude = sobel(bytes, Magnitude, o, &cpu);
        check("magnitude", 9, magnitude, |out| sobel_into(bytes, Magnitude, o, &cpu, out));
        let o = hessian::HessianOptions::default();
        let response = hessian::response(floats, &o, &cpu);
        check("hessian", 9.0, response, |out| hessian::response_into(floats, &o, &cpu, out));
        let o = Border::Clamp;
        for kernel in &kernels {
            let whole = convolve::convolve::<_, f32>(bytes, kernel, o, &cpu);
            check("convolve", 9.0, whole, |out| convolve::convolve_into(bytes, kernel, o, &cpu, out));
        }
        for scaling in Scaling::ALL.iter().map(|choice| choice.value) {
            let whole = resample(bytes, scaling, &cpu);
            check(scaling.name(), 9, whole, |out| resample_into(bytes, scaling, &cpu, out));
        }
        let options = WarpOptions::default().with_fill(4.0);
        let warped = warp(bytes, &map, size, &options, &cpu.clone().into());
        check("warp", 9, warped, |out| warp_into(bytes, &map, &options, &cpu, out));
    }
}
