"""OpenCV's own samples and tests, and OpenStitching, with tiepoint imported instead, compared with the same under OpenCV.

Their sources are not part of this repository: each run of `cargo xtask python` fetches the source distributions, 95 MB, from
the index that pip uses. Where it cannot be reached, a warning says that nothing was tested.
"""

import hashlib
import http.client
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
import warnings

import numpy as np
import pytest
import tiepoint as tp

if not os.environ.get("TIEPOINT_REQUIRE_COMMAND"):
    pytest.skip("only cargo xtask python fetches OpenCV's sources", allow_module_level=True)

OPENCV = "opencv-python-headless", "4.12.0.88"
STITCHING = "stitching", "0.7.0"
MODULES = "cv2", "tiepoint.cv2compat"

#: Tracks a picture that moves over another, as a plane, and prints the least overlap with the truth.
TRACK = """
import cv2 as cv
import numpy as np
from plane_tracker import PlaneTracker
from tests_common import intersectionRate
from tst_scene_render import TestSceneRender

render = TestSceneRender(cv.imread("data/graf1.png"), cv.imread("data/box.png"), noise=0.5, speed=0.5)
tracker = PlaneTracker()
tracker.detector = cv.SIFT_create(nfeatures=0, nOctaveLayers=3, contrastThreshold=0.04, edgeThreshold=10, sigma=1.6, descriptorType=cv.CV_8U)
tracker.matcher = cv.BFMatcher()
tracker.add_target(render.getNextFrame(), render.getCurrentRect())
least = 1.0
for _ in range(8):
    frame = render.getNextFrame()
    x0, y0, x1, y1 = render.getCurrentRect()
    quad = tracker.track(frame)[0].quad
    a, b = (np.float32(q) for q in ([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], quad))
    shared, _ = cv.intersectConvexConvex(a, b)
    least = min(least, 2 * shared / (cv.contourArea(a) + cv.contourArea(b)))
print(least)
"""

STITCH = """
import cv2 as cv
from stitching import Stitcher

print(Stitcher(detector="sift", crop=False).stitch(["data/leuvenA.jpg", "data/leuvenB.jpg"]).shape)
"""


def fetched(name, version):
    """A source distribution as an open archive, fetched from pip's index and checked by the digest there."""
    from pip._internal.models.index import PyPI

    asked = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    page = f"{(os.environ.get('PIP_INDEX_URL') or asked.stdout.strip() or PyPI.simple_url).rstrip('/')}/{name}/"
    json_form = {"Accept": "application/vnd.pypi.simple.v1+json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(page, headers=json_form), timeout=30) as answer:
            files = {f["filename"].replace("_", "-"): f for f in json.load(answer)["files"]}
        file = files[f"{name}-{version}.tar.gz"]
        with urllib.request.urlopen(urllib.parse.urljoin(page, file["url"]), timeout=30) as answer:
            data = answer.read()
    except (OSError, http.client.HTTPException) as error:
        warnings.warn(f"OpenCV's own scripts were not tested: {name} {version} could not be fetched: {error}", stacklevel=2)
        pytest.skip(f"{name} {version} could not be fetched")
    assert hashlib.sha256(data).hexdigest() == file["hashes"]["sha256"]
    return tarfile.open(fileobj=io.BytesIO(data))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder for each module: the scripts that import it, and the pictures."""
    home = tmp_path_factory.mktemp("opencv")
    scripts = {"track.py": TRACK, "stitch.py": STITCH}
    for source in (OPENCV, STITCHING):
        with fetched(*source) as archive:
            for member in archive:
                path = pathlib.PurePosixPath(member.name)
                kind = re.search("samples/(python|data)|modules/python/test|/(stitching)/[a-z_]+.py", member.name)
                if not member.isfile() or kind is None:
                    continue
                content = archive.extractfile(member).read()
                if kind[1] == "data":
                    (home / "data").mkdir(exist_ok=True)
                    (home / "data" / path.name).write_bytes(content)
                elif path.suffix == ".py":
                    name = f"stitching/{path.name}" if kind[2] else path.name
                    scripts.setdefault(name, content.decode())
    for module in MODULES:
        (home / module / "stitching").mkdir(parents=True)
        (home / module / "data").symlink_to(home / "data")
        for name, text in scripts.items():
            changed = re.sub(r"^import cv2( as \w+)?$", lambda m: f"import {module}{m[1] or ' as cv2'}", text, flags=re.MULTILINE)
            (home / module / name).write_text(changed)
    return [home / module for module in MODULES]


def run(folder, *arguments, check=True):
    """The output of a script, and the homographies that it found."""
    driver = pathlib.Path(__file__).with_name("opencv_script.py")
    environment = {**os.environ, "OPENCV_SAMPLES_DATA_PATH": str(folder / "data")}
    command = [sys.executable, driver, folder.name, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if not check:
        return done
    assert done.returncode == 0, done.stderr
    printed, _, last = done.stdout.rstrip().rpartition("\n")
    return printed, json.loads(last)


@pytest.mark.parametrize("feature", ["sift-flann", "surf-flann"])
def test_homographies(folders, feature):
    """find_obj.py between graf 1 and 3, whose true homography OpenCV has. OpenCV's packages lack SURF to compare with."""
    import cv2

    stored = cv2.FileStorage(str(folders[0] / "data" / "H1to3p.xml"), cv2.FILE_STORAGE_READ)
    truth = stored.getFirstTopLevelNode().mat()
    errors, inliers = [], []
    for folder in folders[feature.startswith("surf") :]:
        _, [(matrix, agree, _)] = run(folder, "find_obj.py", f"--feature={feature}", "graf1.png", "graf3.png")
        errors.append(tp.evaluate.corner_error(np.array(matrix), truth, (800, 640)))
        inliers.append(agree)
    print(feature, errors, inliers)
    assert errors[-1] < 1.1 * errors[0] and errors[-1] < 6 and inliers[-1] > 0.9 * inliers[0] and inliers[-1] > 100


@pytest.mark.parametrize(("script", "feature"), [("find_obj.py", "sift"), ("find_obj.py", "orb-flann"), ("asift.py", "sift-flann")])
def test_an_object_in_a_scene(folders, script, feature):
    """ORB and its matches are OpenCV's, the model is ours. FLANN misses nearest neighbours, such as the same feature in other
    simulated views: so more of its matches pass the ratio test, and a smaller share of them is right."""
    pictures = ["box.png", "box_in_scene.png"]
    [(theirs, agree, of)], [(ours, found, among)] = (run(f, script, f"--feature={feature}", *pictures)[1] for f in folders)
    print(script, feature, (agree, of), (found, among))
    assert found > 0.75 * agree and found / among > agree / of - 0.02 and tp.evaluate.corner_error(np.array(ours), np.array(theirs), (324, 223)) < 12


def test_a_plane_is_tracked(folders):
    """plane_tracker.py with SIFT on frames by tst_scene_render.py."""
    theirs, ours = (float(run(folder, "track.py")[0].split()[-1]) for folder in folders)
    print("least overlap", theirs, ours)
    assert ours > theirs - 0.01


def test_disparities(folders):
    """stereo_match.py on its pair aloe: more pixels than OpenCV have a disparity, and fewer of these are wrong."""
    import cv2

    truth = cv2.imread(str(folders[0] / "data" / "aloeGT.png"), 0)[::2, ::2].astype(np.float32) / 2
    results = []
    for folder in folders:
        run(folder, "stereo_match.py")
        found = np.load(folder / "disparity.npy") * 96 + 16
        known = (truth > 16) & (found >= 16)
        results.append((known.sum() / (truth > 16).sum(), (np.abs(found - truth)[known] > 1).mean()))
    print("density, share off by more than a pixel", results)
    (density, bad), (our_density, our_bad) = results
    assert our_density > density and our_bad < 0.75 * bad


def test_panoramas(folders):
    """stitching_detailed.py and OpenStitching with SIFT; the first with SURF too, which OpenCV's packages lack."""
    arguments = ["stitching_detailed.py", "data/leuvenA.jpg", "data/leuvenB.jpg", "--save_graph", "graph.txt", "--features"]
    inliers, shapes = [], []
    for folder in folders:
        run(folder, *arguments, "sift")
        inliers.append(int(re.search(r"Ni=(\d+)", (folder / "graph.txt").read_text())[1]))
        shapes.append([int(v) for v in re.findall(r"\d+", run(folder, "stitch.py")[0].splitlines()[-1])[:2]])
    print("inliers", inliers, "pictures", shapes)
    assert inliers[1] > 0.9 * inliers[0] and np.allclose(*shapes, rtol=0.1)
    assert "Done" in run(folders[1], *arguments, "surf", "--conf_thresh", "0.3")[0]


@pytest.mark.parametrize("test", ["test_features2d.py", "test_umat.py"])
def test_opencv_s_own_tests(folders, test):
    """The same tests pass as with OpenCV, where one fails for lack of data. OpenCV 5 names the first test_features.py."""
    results = []
    for folder in folders:
        (folder / "samples").exists() or (folder / "samples").symlink_to(folder, target_is_directory=True)
        told = run(folder, test, "--repo", str(folder), "-v", check=False).stderr
        results.append(re.findall(r"^(test_\w+) .*?(ok|FAIL|ERROR)$", told, flags=re.MULTILINE))
    assert results[0] == results[1] and ("test_umat_merge_mertens", "ERROR") not in results[0][:-1]
    assert sum(result == "ok" for _, result in results[1]) >= (4 if "umat" in test else 1)
