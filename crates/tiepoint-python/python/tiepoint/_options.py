"""The options of the library, by its tables. Written by `cargo xtask options`: change the library's table instead."""

from __future__ import annotations

import dataclasses
import os
from typing import Literal

from ._base import Options


@dataclasses.dataclass(frozen=True, kw_only=True)
class SiftOptions(Options):
    """SIFT after Lowe (IJCV 2004), with every orientation and no positional bias.

    Parameters
    ----------
    preset : {"default", "opencv", "vlfeat"}
        Whose conventions are followed where the paper leaves them open.
    first_octave : int
        -1 doubles the image first, 0 does not (Lowe, section 3.3: doubled, about four times as many stable points).
        Allowed: -1 to 0.
    octaves : int, optional
        The most octaves; by default as many as the image has room for. Allowed: at least 1.
    levels : int
        Levels of an octave that are searched (Lowe, section 3.2: 3); more than 8 on the CPU alone. Allowed: 1 to 32.
    contrast : float
        Least contrast of a keypoint times the number of levels, for an image from 0 to 1. Allowed: 0 to 1.
    edge : float
        Greatest ratio of the principal curvatures (Lowe, section 4.1: 10). Allowed: above 1, at most 10000.
    sigma : float
        Blur of the first level, the σ of a Gaussian in pixels (Lowe, section 3.3: 1.6); outside of 0.8 to 4 on the CPU
        alone. Allowed: 0.5 to 8.
    input_sigma : float
        Blur that the image is assumed to have, a σ in pixels, at most that of the first level (Lowe, section 3.3: 0.5).
        Allowed: above 0.
    upright : bool
        No orientation: every angle is 0. For images that are not turned against each other.
    root : bool
        RootSIFT: descriptors compared by the Hellinger distance (Arandjelović and Zisserman, CVPR 2012). The command
        calls it ``--rootsift``.
    domain_size_pooling : bool
        Descriptors averaged over three sizes of their window (DSP-SIFT; Dong and Soatto, CVPR 2015): more matches;
        computing descriptors takes about five times as long, and always runs on the CPU.
    descriptors : {"u8", "float", "none"}
        Form of the descriptors: unit vectors times 512 as bytes, unit vectors, or none, which gives only keypoints.
    max_features : int, optional
        The most features to keep, each direction of a position counted as one; with keep levels, the number of
        positions that the kept levels must reach. Features come in the order of keep; without a limit all are kept, and
        the strongest come first.
    keep : {"scale", "response", "levels"}
        Which features are kept if there are more.
    even : bool
        Spread the kept features evenly over the image; not with whole levels.
    """

    preset: Literal["default", "opencv", "vlfeat"] = "default"
    first_octave: int = -1
    octaves: int | None = None
    levels: int = 3
    contrast: float = 0.04
    edge: float = 10.0
    sigma: float = 1.6
    input_sigma: float = 0.5
    upright: bool = False
    root: bool = False
    domain_size_pooling: bool = False
    descriptors: Literal["u8", "float", "none"] = "u8"
    max_features: int | None = None
    keep: Literal["scale", "response", "levels"] = "scale"
    even: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class SurfOptions(Options):
    """SURF after Bay et al. (CVIU 2008), and as OpenSURF and OpenCV have it.

    Parameters
    ----------
    preset : {"paper", "opensurf", "opencv"}
        Whose conventions are followed where implementations differ.
    threshold : float, optional
        Least determinant of the Hessian, for an image from 0 to 1. None: the preset's, 0.0004 without one. Allowed: at
        least 0.
    octaves : int, optional
        Octaves; by default 4 (Bay et al.), with OpenSURF's preset 5. Allowed: 1 to 6.
    intervals : int, optional
        Filter sizes in an octave; maxima are searched in all but the first and the last. None: the preset's, 4 without
        one. Allowed: 3 to 8.
    step : {1, 2, 4}, optional
        Pixels from one sample to the next in the first octave; doubled with every octave. None: the preset's, 1 without
        one.
    upright : bool
        No orientation. For images that are not turned against each other.
    extended : bool
        Descriptors of 128 values instead of 64: the sums split by the sign of the other derivative.
    descriptors : {"float", "none"}
        Form of the descriptors: unit vectors, or none, which gives only keypoints with their angles.
    max_features : int, optional
        The most features to keep, each direction of a position counted as one; with keep levels, the number of
        positions that the kept levels must reach. Features come in the order of keep; without a limit all are kept, and
        the strongest come first.
    keep : {"scale", "response", "levels"}
        Which features are kept if there are more.
    even : bool
        Spread the kept features evenly over the image; not with whole levels.
    """

    preset: Literal["paper", "opensurf", "opencv"] = "paper"
    threshold: float | None = None
    octaves: int | None = None
    intervals: int | None = None
    step: Literal[1, 2, 4] | None = None
    upright: bool = False
    extended: bool = False
    descriptors: Literal["float", "none"] = "float"
    max_features: int | None = None
    keep: Literal["scale", "response", "levels"] = "response"
    even: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchOptions(Options):
    """Which pairs count as matches.

    Parameters
    ----------
    ratio : float, optional
        Keep a match when its distance is below this share of the distance to the second nearest; none: keep all (Lowe,
        IJCV 2004, section 7.1: 0.8 loses 5 % of the correct matches and 90 % of the false). Allowed: above 0, at most
        1.
    mutual : bool
        Keep a match only when each feature is the other's nearest. The command's ``--one-way`` switches it off.
    same_sign : bool
        Compare only features of equal contrast sign: bright on dark with bright on dark (Bay et al., CVIU 2008, section
        4.3). Halves the work; not for pictures of different sensors. The command's ``--any-sign`` switches it off.
    max_distance : float, optional
        Keep a match only up to this distance of its descriptors; none: keep all. Allowed: at least 0.
    """

    ratio: float | None = 0.8
    mutual: bool = True
    same_sign: bool = True
    max_distance: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RobustOptions(Options):
    """How to estimate a model.

    Parameters
    ----------
    threshold : float
        Largest distance of an inlier from the model, in pixels. Allowed: above 0. The command calls it ``--inlier-
        distance``.
    confidence : float
        Stop when a better model would have been found with this probability. Allowed: 0 to below 1.
    max_iterations : int
        The most samples, rounded up to a multiple of 64. Allowed: 1 to 1000000000.
    false_alarms : float
        Refuse a model if wrong matches alone are expected to give more than this many models as good as it in one
        estimate: the number of false alarms (Moisan and Stival, IJCV 2004). Infinity accepts any. Allowed: above 0.
    seed : int
        Seed of the sampler; the same seed gives the same result everywhere.
    """

    threshold: float = 3.0
    confidence: float = 0.9999
    max_iterations: int = 50000
    false_alarms: float = 1e-06
    seed: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class RematchOptions(Options):
    """The search that is repeated near what the model predicts.

    Parameters
    ----------
    radius : float
        Search radius about the predicted point, or half width of the band along the epipolar line, as a multiple of the
        threshold of an inlier. Allowed: 1 to 100.
    ratio : float
        Ratio among the candidates there. Allowed: above 0, at most 1.
    rounds : int
        The most rounds of search and refinement. Allowed: at least 1.
    """

    radius: float = 2.0
    ratio: float = 0.9
    rounds: int = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class WarpOptions(Options):
    """How to warp.

    Parameters
    ----------
    interpolation : {"nearest", "bilinear", "bicubic", "lanczos"}
        How values between pixels are interpolated.
    fill : float
        The value of pixels without input, in all channels: a value of the image's pixel type.
    """

    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] = "bicubic"
    fill: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class RepeatabilityOptions(Options):
    """When two keypoints correspond.

    Parameters
    ----------
    distance : float
        Largest distance in pixels of B; 1, 2 and 3 are usual. Allowed: above 0, at most 1000.
    scale_ratio : float
        Largest ratio of the scales, either way; if infinite, scales are not compared. Allowed: at least 1.
    """

    distance: float = 3.0
    scale_ratio: float = float('inf')


@dataclasses.dataclass(frozen=True, kw_only=True)
class StereoOptions(Options):
    """Semi-Global Matching of rectified pairs (Hirschmüller, PAMI 2008).

    Parameters
    ----------
    disparities : int
        The number of whole disparities that are searched. Allowed: 1 to 4096.
    min_disparity : int
        The least disparity searched: left (x, y) shows what right (x - d, y) shows. Allowed: -32768 to 32767.
    cost : {"ad-census", "census", "ad", "mi"}
        The cost by which pixels are compared.
    census_window : {"5x5", "7x7", "9x7", "symmetric"}, optional
        Cost census: the window of pixels that are compared with its centre; by default 5x5.
    iterations : int, optional
        Cost mi: learn mutual information only at full size, this many times, first from disparity 0; by default from
        coarse to fine. Allowed: 1 to 100.
    paths : {4, 5, 8, 16}
        The number of directions along which costs are aggregated.
    p1 : int, optional
        Penalty of a change of disparity by one along a path, in units of the cost; by default 14 for ad-census, 10 for
        census 5x5 and ad, 12 for mi. The defaults of P2 and least P2 are adjusted if they would contradict it. Allowed:
        0 to 4000.
    p2 : int, optional
        Penalty of a larger change, where the image is smooth; by default 39, and more with larger census windows; not
        below P1. Allowed: 0 to 4000.
    p2_least : int, optional
        P2 falls at edges of the image, but not below this; if equal to P2, it does not fall; by default 18 for ad-
        census, 14 for census 5x5, ad and mi. Between P1 and P2. Allowed: 0 to 4000.
    gradient : int, optional
        Difference of 8-bit grey, from pixel to pixel, beyond which P2 falls; by default 4. Allowed: 1 to 255.
    uniqueness : int
        By how many percent the best sum must be below all others except its neighbours'; otherwise the pixel is
        invalid. Allowed: 0 to 100.
    subpixel : {"off", "parabola", "equiangular"}
        How fractions of disparities are found.
    right_view : {"off", "diagonal", "aggregated"}
        The right view against which the left one is checked.
    max_difference : float
        The most pixels by which the two views' disparities may differ. Allowed: at least 0.
    speckle_size : int
        Remove regions of fewer pixels; 0 removes none.
    speckle_difference : float
        The most by which neighbours in one region may differ. Allowed: at least 0.
    median : {0, 3, 5}
        Side of the last median filter; 0: no median filter at all, and edges are not moved.
    edges : int
        Move disparity edges to colour edges: near a jump of disparities each pixel takes the side that neighbours of
        similar colour vote for. Neighbours whose red, green and blue differ by this much or more in total do not vote;
        0 leaves edges where they are. Allowed: 0 to 765.
    fill : bool
        Fill invalid pixels that hold data: occlusions from the background, mismatches from all around (Hirschmüller
        2008, section 2.5.3). Their confidence is 0.
    memory : int or str, optional
        The most memory to use besides images and results; none: no limit. The result does not depend on it. Allowed: at
        least 1.
    device_memory : int or str, optional
        About the most GPU memory to use; by default all that is free. A larger pair is computed there in bands of rows,
        with the same result. Allowed: at least 1.
    right : bool
        Also give the disparities of the right view.
    confidence : bool
        Also give a confidence from 0 to 1.
    reasons : bool
        Also give the reason why each pixel was made invalid.
    """

    disparities: int = 128
    min_disparity: int = 0
    cost: Literal["ad-census", "census", "ad", "mi"] = "ad-census"
    census_window: Literal["5x5", "7x7", "9x7", "symmetric"] | None = None
    iterations: int | None = None
    paths: Literal[4, 5, 8, 16] = 8
    p1: int | None = None
    p2: int | None = None
    p2_least: int | None = None
    gradient: int | None = None
    uniqueness: int = 0
    subpixel: Literal["off", "parabola", "equiangular"] = "equiangular"
    right_view: Literal["off", "diagonal", "aggregated"] = "diagonal"
    max_difference: float = 1.0
    speckle_size: int = 50
    speckle_difference: float = 2.0
    median: Literal[0, 3, 5] = 5
    edges: int = 90
    fill: bool = False
    memory: int | str | None = 1073741824
    device_memory: int | str | None = None
    right: bool = False
    confidence: bool = False
    reasons: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class CollectionOptions(Options):
    """A collection of photographs: how they are searched, which pairs are matched, and when a pair counts.

    Parameters
    ----------
    block : int, optional
        Photographs in a block. All pairs of one block with another are a tile, which is matched and written as one
        piece; by default 64 photographs, and 256 from 20 001 photographs on. Allowed: 1 to 4096.
    modality : {"same", "cross"}
        Whether one sensor took all photographs. cross is for two sensors, such as a thermal and a colour camera: chosen
        pairs that features do not verify are then tried by structure.
    longest_side : int
        Longest side of the image that is searched; a larger photograph is shrunk to it, and its features have the
        coordinates of the full photograph. Allowed: at least 16.
    masks : path, optional
        A folder of masks: NAME.png for the photograph NAME, or NAME with its extension replaced by .png; features are
        kept where the mask is not 0.
    features : path, optional
        Use the features that another program found instead of SIFT: a folder with a file for each photograph, NAME.npz,
        .txt (COLMAP's), .csv, .json or .sift, or NAME with its extension replaced by one of these; or hloc's
        features.h5.
    metric : {"l2", "cosine"}
        The distance between two descriptors of given features.
    preset : {"default", "opencv", "vlfeat"}
        Whose conventions are followed where the paper leaves them open.
    first_octave : int
        -1 doubles the image first, 0 does not (Lowe, section 3.3: doubled, about four times as many stable points).
        Allowed: -1 to 0.
    octaves : int, optional
        The most octaves; by default as many as the image has room for. Allowed: at least 1.
    levels : int
        Levels of an octave that are searched (Lowe, section 3.2: 3); more than 8 on the CPU alone. Allowed: 1 to 32.
    contrast : float
        Least contrast of a keypoint times the number of levels, for an image from 0 to 1. Allowed: 0 to 1.
    edge : float
        Greatest ratio of the principal curvatures (Lowe, section 4.1: 10). Allowed: above 1, at most 10000.
    sigma : float
        Blur of the first level, the σ of a Gaussian in pixels (Lowe, section 3.3: 1.6); outside of 0.8 to 4 on the CPU
        alone. Allowed: 0.5 to 8.
    input_sigma : float
        Blur that the image is assumed to have, a σ in pixels, at most that of the first level (Lowe, section 3.3: 0.5).
        Allowed: above 0.
    upright : bool
        No orientation: every angle is 0. For images that are not turned against each other.
    root : bool
        RootSIFT: descriptors compared by the Hellinger distance (Arandjelović and Zisserman, CVPR 2012). The command
        calls it ``--rootsift``.
    domain_size_pooling : bool
        Descriptors averaged over three sizes of their window (DSP-SIFT; Dong and Soatto, CVPR 2015): more matches;
        computing descriptors takes about five times as long, and always runs on the CPU.
    descriptors : {"u8", "float", "none"}
        Form of the descriptors: unit vectors times 512 as bytes, unit vectors, or none, which gives only keypoints.
    max_features : int, optional
        The most features to keep, each direction of a position counted as one; with keep levels, the number of
        positions that the kept levels must reach. Features come in the order of keep; without a limit all are kept, and
        the strongest come first.
    keep : {"scale", "response", "levels"}
        Which features are kept if there are more.
    even : bool
        Spread the kept features evenly over the image; not with whole levels.
    pairs : {"auto", "exhaustive", "sequence", "gps", "top-scale", "list", "matches"}
        How pairs are chosen.
    exhaustive_up_to : int
        Pairs auto: match all pairs if there are at most this many photographs. The choice does not depend on the
        device, so that the database is the same on every device.
    overlap : int
        Pairs sequence: match each photograph with this many that follow it, and with as many at distances that double:
        1, 2, 4, 8, … places after it. Allowed: 1 to 10000.
    neighbours : int
        Pairs gps: match each photograph with at most this many of the nearest ones. Allowed: 1 to 10000.
    max_metres : float
        Pairs gps: the greatest distance of a neighbour, in metres. Allowed: above 0.
    top_features : int
        Pairs top-scale: compare this many of the largest features of each photograph. Allowed: 1 to 10000.
    top_matches : int
        Pairs top-scale: the fewest mutual matches of these features for which a pair is chosen. Allowed: 1 to 10000.
    top_partners : int
        Pairs top-scale: keep at most this many partners of each photograph, the best ones. Allowed: 1 to 10000.
    list : path, optional
        Pairs list: the file, with one pair of names in each line, separated by a space, or by a tab if names contain
        spaces. Pairs matches: the file of matches, unless they are imported.
    closure : bool
        After the chosen pairs, also match photographs that have a verified partner in common, in one round; not if all
        pairs were chosen, or a file says which.
    ratio : float, optional
        Keep a match when its distance is below this share of the distance to the second nearest; none: keep all (Lowe,
        IJCV 2004, section 7.1: 0.8 loses 5 % of the correct matches and 90 % of the false). Allowed: above 0, at most
        1.
    mutual : bool
        Keep a match only when each feature is the other's nearest. The command's ``--one-way`` switches it off.
    same_sign : bool
        Compare only features of equal contrast sign: bright on dark with bright on dark (Bay et al., CVIU 2008, section
        4.3). Halves the work; not for pictures of different sensors. The command's ``--any-sign`` switches it off.
    max_distance : float, optional
        Keep a match only up to this distance of its descriptors; none: keep all. Allowed: at least 0.
    threshold : float
        Largest distance of an inlier from the model, in pixels. Allowed: above 0. The command calls it ``--inlier-
        distance``.
    confidence : float
        Stop when a better model would have been found with this probability. Allowed: 0 to below 1.
    min_iterations : int
        The fewest samples for each model.
    max_iterations : int
        The most samples for each model, rounded up to a multiple of 64. Allowed: 1 to 1000000000.
    min_inlier_ratio : float
        Draw enough samples to find, with the probability confidence, a model with this share of inliers, or with the
        fewest inliers if that is more. Allowed: above 0, at most 1.
    min_inliers : int
        The fewest inliers of a model. Allowed: at least 8.
    min_essential_ratio : float
        An essential matrix needs this share of a fundamental matrix's inliers. Allowed: above 0, at most 1.
    max_homography_ratio : float
        If a homography has more than this share of the epipolar geometry's inliers, the pair is planar or panoramic.
        Allowed: above 0, at most 1.
    detect_watermark : bool
        Recognise watermarks: matches at the borders that all have the same shift.
    watermark_border : float
        Width of the border where watermarks are, as a share of the diagonal. Allowed: 0 to 0.5.
    watermark_ratio : float
        A pair is a watermark if this share of its inliers lies in the borders of both images and this share has the
        same shift. Allowed: above 0, at most 1.
    false_alarms : float
        Refuse a model if wrong matches alone are expected to give more than this many models as good as it for one
        pair. Allowed: above 0.
    seed : int
        Seed of the samples, which otherwise depend only on the pair's key and the number of the sample.
    """

    block: int | None = None
    modality: Literal["same", "cross"] = "same"
    longest_side: int = 3200
    masks: str | os.PathLike[str] | None = None
    features: str | os.PathLike[str] | None = None
    metric: Literal["l2", "cosine"] = "l2"
    preset: Literal["default", "opencv", "vlfeat"] = "default"
    first_octave: int = -1
    octaves: int | None = None
    levels: int = 3
    contrast: float = 0.02
    edge: float = 10.0
    sigma: float = 1.6
    input_sigma: float = 0.5
    upright: bool = False
    root: bool = True
    domain_size_pooling: bool = False
    descriptors: Literal["u8", "float", "none"] = "u8"
    max_features: int | None = 8192
    keep: Literal["scale", "response", "levels"] = "levels"
    even: bool = False
    pairs: Literal["auto", "exhaustive", "sequence", "gps", "top-scale", "list", "matches"] = "auto"
    exhaustive_up_to: int = 5000
    overlap: int = 10
    neighbours: int = 50
    max_metres: float = 100.0
    top_features: int = 512
    top_matches: int = 4
    top_partners: int = 100
    list: str | os.PathLike[str] | None = None
    closure: bool = True
    ratio: float | None = 0.77
    mutual: bool = True
    same_sign: bool = True
    max_distance: float | None = 0.7
    threshold: float = 3.0
    confidence: float = 0.999
    min_iterations: int = 100
    max_iterations: int = 10000
    min_inlier_ratio: float = 0.25
    min_inliers: int = 15
    min_essential_ratio: float = 0.95
    max_homography_ratio: float = 0.8
    detect_watermark: bool = True
    watermark_border: float = 0.1
    watermark_ratio: float = 0.7
    false_alarms: float = 1e-06
    seed: int = 0
