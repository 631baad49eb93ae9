"""The library, the command and the package have the same names, defaults and results."""

import importlib.util
import inspect
import json
import operator
import os
import pathlib
import pickle
import re
import shutil
import subprocess

import numpy as np
import pytest
import tiepoint as tp
from tiepoint import _core


def command():
    named = os.environ.get("TIEPOINT") or shutil.which("tiepoint")
    if named is None:
        if os.environ.get("TIEPOINT_REQUIRE_COMMAND"):
            raise AssertionError("TIEPOINT names no command")
        pytest.skip("no command to compare with: TIEPOINT names it")
    return named


@pytest.fixture(scope="module")
def run():
    program = command()

    def run(*arguments):
        words = [program, *map(str, arguments), "--json", "--device", "cpu"]
        told = subprocess.run(words, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in told.stdout.splitlines()]

    return run


def help_of(*names):
    told = subprocess.run([command(), *names, "--help"], capture_output=True, text=True, check=True)
    flags = {}
    for part in re.split(r"\n\s+(?=(?:-\w, )?--)", told.stdout)[1:]:
        flags[re.match(r"(?:-\w, )?--([\w-]+)", part)[1]] = " ".join(part.split())
    return flags


def library(table):
    """Names and defaults of a table of the library's options."""
    return {field["name"]: field["default"] for field in _core.tables()[table][1]}


def test_a_ratio_of_one_drops_what_has_two_equal_neighbours_and_none_keeps_it(tmp_path, run):
    one = tp.synth.texture((120, 90))
    files = [tmp_path / "one.png", tmp_path / "twice.png"]
    for file, picture in zip(files, [one, np.hstack([one, one])], strict=True):
        tp.write(file, picture)
    a, b = (tp.Sift().detect(tp.read(file)) for file in files)
    counts = []
    for word, ratio in [("1", 1.0), ("none", None)]:
        told = run("match", *files, "--ratio", word, "--one-way", "--model", "none")[0]
        counts.append(told["matches"])
        assert counts[-1] == len(tp.match(a, b, ratio=ratio, mutual=False)), told
    assert counts[0] < counts[1] // 2, counts


def test_the_range_of_a_pair_is_that_of_the_command(tmp_path, run):
    made = tp.synth.stereo((320, 240), disparities=(20, 44), seed=4)
    files = [tmp_path / "left.png", tmp_path / "right.png"]
    for file, picture in zip(files, [made.left, made.right], strict=True):
        tp.write(file, picture)
    told = run("stereo", *files, "--output", tmp_path / "d.tif")[0]
    stereo = tp.Stereo.for_pair(made.left, made.right, device="cpu")
    assert (stereo.min_disparity, stereo.disparities) == (told["min_disparity"], told["disparities"])
    assert 44 < stereo.min_disparity + stereo.disparities < 100
    found = stereo.compute(made.left, made.right)
    assert np.array_equal(found.disparity, tp.io.read_disparity(tmp_path / "d.tif"), equal_nan=True)
    assert [(reason["measure"], reason["text"]) for reason in found.assess().reasons] == [
        (reason["measure"], reason["text"]) for reason in told["reasons"]
    ]
    assert tp.Stereo.for_pair(made.left, made.right, right=True).options["right"]
    wide = tp.Stereo.for_pair(made.left, made.right, disparities=160, paths=4)
    assert (wide.disparities, wide.paths) == (160, 4)
    late = tp.Stereo.for_pair(made.left, made.right, device="cpu", min_disparity=30)
    told = run("stereo", *files, "--min-disparity", 30, "--output", tmp_path / "d.tif")[0]
    assert (late.min_disparity, late.disparities) == (30, told["disparities"])
    known = tp.Calibration(focal=1, principal=(0, 0), baseline=1, disparities=(3, 50))
    assert tp.Stereo.for_calibration(known, min_disparity=30).disparities == 21
    flat = np.zeros((240, 320), np.uint8)
    assert tp.Stereo.for_pair(flat, flat).disparities == tp.Stereo().disparities
    nothing = np.zeros((240, 320), bool)
    assert tp.Stereo.for_pair(made.left, made.right, mask_left=nothing).disparities == tp.Stereo().disparities


def advice():
    """What the library's texts name as the command has it: what is between backticks and begins with a flag or a command."""
    source = pathlib.Path(__file__).parents[2] / "tiepoint/src"
    for path in sorted(source.rglob("*.rs")):
        code = "" if path.name.endswith("tests.rs") else path.read_text().partition("#[cfg(test)]\nmod tests {")[0]
        code = re.sub(r"(?m)^\s*//.*$", "", code)
        for text in re.findall(r'"((?:[^"\\]|\\.|\\\n)*)"', code):
            for named in re.findall(r"`([^`]*)`", re.sub(r"\\\n\s*", "", text)):
                if "--" in named or named.startswith("tiepoint "):
                    yield re.sub(r"\{[^}]*\}", "4", named)


def test_advice_of_the_library_names_what_there_is_in_python():
    doors = [tp.register, tp.rectify, tp.tie_points, tp.match, tp.estimate, tp.collect, tp.read, tp.draw, tp.Sift, tp.Stereo]
    doors += [tp.CollectionOptions, tp.Stereo.compute, tp.Collection.status, tp.io.read_disparity]
    known = {name for door in doors for name in inspect.signature(door).parameters}
    here = {**vars(tp.io), **vars(tp)}
    of_the_command = {"tiepoint match --matches", "tiepoint register --matches"}
    found = set(advice())
    assert len(found) > 30 and of_the_command < found
    for named in found - of_the_command:
        spelled = tp.errors._spelled(f"`{named}`")
        assert "--" not in spelled and "tiepoint" not in spelled, spelled
        for part in re.findall(r"`([^`]*)`", spelled):
            if not re.fullmatch(r"(\w+(=[^ ]+)?(, )?)+", part) or part in here:
                found_here = tp
                for name in part.partition("(")[0].split("."):
                    found_here = getattr(found_here, name, None) or here[name]
                assert callable(found_here), part
            else:
                assert set(re.findall(r"(?:^|, )(\w+)", part)) <= known, part
            assert set(re.findall(r"(\w+)=", part)) <= known, part


@pytest.mark.parametrize("options", [{"views": 1, "modality": "same"}, {"modality": "cross"}, {"views": 2, "model": "affine"}])
def test_no_model_is_explained_in_the_same_words_but_for_flags(tmp_path, options):
    files = [tmp_path / "a.png", tmp_path / "b.png"]
    pictures = [tp.synth.scene((200, 150), np.eye(3), seed=seed).reference for seed in (3, 4)]
    for file, picture in zip(files, pictures, strict=True):
        tp.write(file, picture)
    words = [f"--{name}={value}" for name, value in options.items()]
    told = subprocess.run([command(), "register", *files, *words], capture_output=True, text=True, check=False)
    with pytest.raises(tp.ModelError) as raised:
        tp.register(*pictures, **options)
    said = told.stderr.removeprefix("tiepoint: ").removesuffix(" --report PAGE.html shows the matches\n")
    spelled = tp.errors._spelled(said)  # flags are arguments here
    assert told.returncode == 1 and spelled == f"{raised.value}." != said, told.stderr
    assert re.search(r"\(\d+ matches of \d+ and \d+ features|\(matched by structure", said) and "Try `--" in said, said


@pytest.mark.parametrize(
    ("table", "given"),
    [
        ("MatchOptions", tp.match),
        ("RobustOptions", tp.estimate),
        ("WarpOptions", tp.warp),
        ("RepeatabilityOptions", tp.evaluate.repeatability),
    ],
)
def test_defaults_of_functions_are_those_of_the_library(table, given):
    parameters = inspect.signature(given).parameters
    for name, value in library(table).items():
        expected = value if value is None or isinstance(value, str) else pytest.approx(value)
        assert parameters[name].default == expected, name


def test_the_classes_of_options_are_what_the_library_s_tables_give():
    writer = pathlib.Path(__file__).parents[1] / "write_options.py"
    if not writer.exists():
        pytest.skip("the program that writes them is not part of the package")
    given = importlib.util.spec_from_file_location("write_options", writer)
    module = importlib.util.module_from_spec(given)
    given.loader.exec_module(module)
    own = pathlib.Path(tp.__file__).with_name("_options.py").read_text(encoding="utf-8")
    assert own == module.written(_core.tables()), "`cargo xtask options` writes it anew"


#: For each command the library's tables of its options, and the package's functions that do the same.
DOES = {
    "detect": (["SiftOptions", "SurfOptions"], [tp.Sift, tp.Surf, tp.Sift.detect]),
    "match": (
        ["SiftOptions", "SurfOptions", "MatchOptions", "RobustOptions"],
        [tp.Sift, tp.Surf, tp.Sift.detect, tp.match, tp.tie_points],
    ),
    "register": (
        ["SiftOptions", "SurfOptions", "MatchOptions", "RobustOptions", "WarpOptions"],
        [tp.Sift, tp.Surf, tp.register],
    ),
    "rectify": (
        ["SiftOptions", "SurfOptions", "MatchOptions", "RobustOptions", "WarpOptions"],
        [tp.Sift, tp.Surf, tp.rectify],
    ),
    "stereo": (["StereoOptions"], [tp.Stereo, tp.Stereo.compute, tp.Stereo.compute_many]),
    "collect": (["CollectionOptions"], [tp.CollectionOptions, tp.collect, tp.Collection.export]),
    "filter gauss": ([], [tp.filter.gauss]),
    "filter sobel": ([], [tp.filter.sobel]),
    "filter hessian": ([], [tp.filter.hessian, tp.filter.blobs]),
    "filter convolve": ([], [tp.filter.convolve]),
}

#: Options whose flag has another name than the package's parameter: flags that switch something off, and names that must
#: be longer because a command has all options in one list.
FLAGS = {
    "root": {"rootsift", "no-rootsift"},
    "mutual": {"one-way"},
    "same_sign": {"any-sign"},
    "threshold": {"inlier-distance", "threshold"},
    "rematch": {"no-rematch"},
    "frame": {"crop"},
    "closure": {"no-closure"},
    "detect_watermark": {"no-detect-watermark"},
    "descriptors": {"descriptors", "no-descriptors"},
    "sync": {"no-sync"},
    "list": {"pair-list"},
    "mask_fixed": {"mask-b"},
    "mask_moving": {"mask"},
    "mask_left": {"mask"},
    "mask_right": {"mask-b", "mask-right"},
}

#: Flags without a parameter, and why.
COMMAND_ALONE = {
    "help verbose quiet json profile": "how a program talks; Python has results and logging",
    "threads": "of Device",
    "no-sync": "of tp.collect; other files are written by tp.io",
    "output output-right output-left valid-left valid-right output-calibration output-model": "results are fields, which tp.io writes",
    "alpha compress format offsets": "how a file is written; tp.io.write_matches has the format",
    "draw overlay blend preview preview-range": "tp.draw",
    "report report-limit truth truth-scale truth-signed": "tp.report",
    "list": "an iterable of images or pairs",
    "max-bytes max-pixels no-orient": "of tp.read; of collect its own",
    "band": "an index into the array",
    "canvas": "tp.warp takes any size",
    "rectify focal baseline halve": "tp.rectify before tp.Stereo; depth for another baseline is proportional to it",
    "detector": "Sift or Surf",
    "views modality scale-range": "of tp.register; tp.tie_points has features, which have no views",
    "mask-b": "of Sift.detect; tp.tie_points has features",
    "matches": "tp.io.read_matches, then tp.estimate and tp.warp",
    "depth depth-scale cloud ascii max-depth": "Disparities.depth, Disparities.points, tp.io.write_points",
    "blobs": "tp.filter.blobs",
}

#: Parameters without a flag, and why.
PACKAGE_ALONE = {
    "progress image images pairs left right fixed moving a b self options": "what the command's words are",
    "guide radius": "of match: a model that is known; the command searches again near the one that it finds",
    "fill": "the command's pictures are transparent or 0 where they show nothing",
    "right": "--output-right asks for it",
    "reasons": "for reports, which the command makes itself",
    "in_flight batch": "the command chooses by the size of pairs",
    "path": "a file's name",
}


#: The package's counterpart of each command, or why it has none.
COMMANDS = {
    "detect": "Sift.detect",
    "match": "tie_points",
    "register": "register",
    "rectify": "rectify",
    "stereo": "Stereo.compute",
    "filter gauss": "filter.gauss",
    "filter sobel": "filter.sobel",
    "filter hessian": "filter.hessian",
    "filter convolve": "filter.convolve",
    "evaluate homography": "evaluate.corner_error",
    "evaluate disparity": "evaluate.disparity",
    "collect": "collect",
    "collect scan": "Collection.scan",
    "collect features": "Collection.extract",
    "collect pairs": "Collection.choose_pairs",
    "collect match": "Collection.match_pairs",
    "collect export": "Collection.export",
    "collect status": "Collection.status",
    "devices": "devices",
    "report": "compares pages, which the package writes",
    "bench": "times the command",
    "demo": "shows the command; docs/examples shows the package",
    "completions": "of a shell",
}

#: Public functions of the library that the package does not call, and why.
LIBRARY_ALONE = {
    "gauss_into response_into sobel_into convolve_into resample_into warp_into median_into": "write into an image that exists",
    "read_file read_shape read_grey read_grey_alpha decode_file decode_grey_alpha": "tp.read, and indices",
    "read_georeference other_place place_not_read world_file new_world_file": "rasterio reads it",
    "parse_matches read_matches_of parse_homography parse_ply read_text read_within": "tp.io reads files",
    "alpha_mask with_alpha": "detectors leave out transparent pixels; an image with alpha is an array of four channels",
    "locate features_to_tie tie_pictures tie_given": "parts of tp.register and tp.tie_points",
    "self_calibrate": "part of tp.rectify",
    "refine": "part of tp.estimate",
    "wait_for_disk sync_folder_of remove_unfinished remove_unfinished_beside": "of files that are being written",
    "halved suitable_halvings shrink": "tp.filter.resample",
    "to_search bound_of_depth": "advice that the command prints or takes",
    "speckle occluded": "parts of tp.Stereo.compute",
    "write_depth": "tp.write",
    "viewpoint": "the command's demo",
}


def words(listed):
    return {word for text in listed for word in text.split()}


def differences(name):
    """Options of the library without a parameter, options without a flag, and flags without either."""
    tables, functions = DOES[name]
    flags = set(help_of(*name.split()))
    parameters = {p for function in functions for p in inspect.signature(function).parameters}
    of_library = {field for table in tables for field in library(table)}

    def named(option):
        return FLAGS.get(option, set()) | {option.replace("_", "-")}

    without_flag = {option for option in of_library | parameters if not named(option) & flags}
    strange = {flag for flag in flags if not any(flag in named(option) for option in of_library | parameters)}
    return of_library - parameters, without_flag, strange


def test_command_library_and_package_have_the_same_options():
    """A difference that is on no list is an option that one of the three lacks or names differently."""
    used = set(), set()
    for name in DOES:
        without_parameter, without_flag, strange = differences(name)
        assert without_parameter <= words(PACKAGE_ALONE), f"{name}: options of the library that the package lacks"
        assert without_flag <= words(PACKAGE_ALONE), f"{name}: options without a flag"
        assert strange <= words(COMMAND_ALONE), f"{name}: flags of the command alone"
        used[0].update(without_parameter | without_flag)
        used[1].update(strange)
    assert used == (words(PACKAGE_ALONE), words(COMMAND_ALONE)), "the lists name options that are no difference"


def commands(*names):
    """The command's words, and those of its parts."""
    told = subprocess.run([command(), *names, "--help"], capture_output=True, text=True, check=True)
    part = re.search(r"Commands:\n(.*?)\n\n", told.stdout, re.DOTALL)
    found = re.findall(r"^  (\w+)", part[1], re.MULTILINE) if part else []
    inner = [word for name in found if name != "help" for word in commands(*names, name)]
    # A command with parts is one itself if it has more to give than help.
    itself = bool(names) and (part is None or "--output" in told.stdout)
    return [" ".join(names)] * itself + inner


def test_every_command_has_a_counterpart():
    assert set(commands()) == set(COMMANDS)
    for name, ours in COMMANDS.items():
        if " " not in ours:
            assert callable(operator.attrgetter(ours)(tp)), name


def test_every_public_function_of_the_library_is_called():
    """And every function that the compiled half exports is used by the modules."""
    ours = pathlib.Path(__file__).parents[1] / "src"
    library = ours.parents[1] / "tiepoint" / "src"
    if not library.exists():
        pytest.skip("the library's sources are not part of the package")
    called = set(re.findall(r"\w+", "".join(path.read_text() for path in ours.glob("*.rs"))))
    missing = {
        name
        for stage in ["evaluate", "feature", "files", "filter", "geometry", "image", "matching", "register", "stereo", "synth"]
        for path in (library / stage).rglob("*.rs")
        if path.name != "gpu.rs"
        for name in re.findall(r"^pub fn (\w+)", path.read_text(), re.MULTILINE)
        if name not in called
    }
    assert missing == words(LIBRARY_ALONE)
    modules = pathlib.Path(tp.__file__).parent.rglob("*.py")
    used = set(re.findall(r"\w+", "".join(path.read_text() for path in modules)))
    # The first looks at capsules for tests; the others are called at exit and when a process is forked.
    itself = {"described", "finish_background", "pause_opening", "resume_opening"}
    exported = {name for name in dir(_core) if name[0] != "_"}
    assert exported - used <= itself <= exported


def test_features_are_the_command_s_in_every_bit(tmp_path, run, scene):
    colour = np.stack([scene.reference, scene.moving, scene.reference], axis=-1)
    sixteen = (scene.moving.astype(np.uint16) << 4) + 300
    clear = np.concatenate([colour, np.full((240, 320, 1), 255, np.uint8)], axis=-1)
    clear[50:120, 60:200, 3] = 0
    for i, image in enumerate([scene.reference, colour, sixteen, clear]):
        tp.write(tmp_path / f"{i}.png", image)
        for detector, flags in [
            (tp.Sift(device="cpu", root=True, max_features=300, even=True), ["--rootsift", "--max-features", 300, "--even"]),
            (tp.Surf(device="cpu", extended=True), ["--detector", "surf", "--extended"]),
        ]:
            run("detect", tmp_path / f"{i}.png", "--output", tmp_path / "found.npz", *flags)
            assert detector.detect(image) == tp.io.read_features(tmp_path / "found.npz"), (i, detector)


def test_matches_and_models_are_the_command_s(tmp_path, run, scene):
    tp.write(tmp_path / "a.png", scene.reference)
    tp.write(tmp_path / "b.png", scene.moving)
    [told] = run("match", tmp_path / "a.png", tmp_path / "b.png", "--output", tmp_path / "ties.csv")
    sift = tp.Sift(device="cpu")
    found = tp.tie_points(sift.detect(scene.reference), sift.detect(scene.moving), device="cpu")
    assert np.array_equal(found.model.matrix.ravel(), told["matrix"]) and found.rms == told["rms_px"]
    assert (len(found), int(found.inliers.sum())) == (told["matches"], told["inliers"])
    texts = [[reason["text"] for reason in reasons] for reasons in (found.reasons, told["reasons"])]
    assert (found.verdict, texts[0]) == (told["verdict"], texts[1])
    tp.io.write_matches(tmp_path / "ours.csv", found)
    assert (tmp_path / "ours.csv").read_bytes() == (tmp_path / "ties.csv").read_bytes()


def test_verdicts_know_what_masks_and_alpha_hide(tmp_path, run, scene):
    mask = np.zeros(scene.reference.shape, np.uint8)
    mask[110:, 140:] = 255
    clear = np.dstack([scene.reference] * 3 + [mask])
    for name, image in {"a": scene.reference, "b": scene.moving, "mask": mask, "clear": clear}.items():
        tp.write(tmp_path / f"{name}.png", image)
    sift = tp.Sift(device="cpu")
    b = sift.detect(scene.moving)
    for first, words, a in [
        ("a", ["--mask", tmp_path / "mask.png"], sift.detect(scene.reference, mask=mask)),
        ("clear", [], sift.detect(clear)),
    ]:
        [told] = run("match", tmp_path / f"{first}.png", tmp_path / "b.png", "--modality", "same", *words)
        for features in (a, pickle.loads(pickle.dumps(a)), a[:], a.to("cpu")):
            found = tp.tie_points(features, b, device="cpu")
            assert judged(found) == judged(told), first
    unknown = tp.Features.from_arrays(xy=a.xy, scale=a.scale, angle=a.angle, sign=a.sign, descriptors=a.descriptors, image_size=a.image_size)
    assert judged(tp.tie_points(unknown, b, device="cpu")) != judged(told), "the mask makes no difference"


def test_colours_under_transparent_pixels_are_not_mixed_in(tmp_path, run, scene):
    moving = np.dstack([scene.moving] * 3 + [np.full(scene.moving.shape, 255, np.uint8)])
    moving[100:140, 120:200] = (0, 255, 0, 0)
    tp.write(tmp_path / "a.png", scene.reference)
    tp.write(tmp_path / "b.png", moving)
    run("register", tmp_path / "a.png", tmp_path / "b.png", "--output", tmp_path / "warped.png")
    theirs, ours = tp.read(tmp_path / "warped.png"), tp.register(scene.reference, moving, device="cpu").warped
    seen = theirs[..., 3] > 0
    assert np.array_equal(ours[seen], theirs[seen]) and np.ptp(ours[seen][:, :3], axis=1).max() == 0, "grey stays grey"


def test_registration_is_the_command_s(tmp_path, run, scene):
    tp.write(tmp_path / "a.png", scene.reference)
    tp.write(tmp_path / "b.png", scene.moving)
    [told] = run("register", tmp_path / "a.png", tmp_path / "b.png", "--output", tmp_path / "warped.png")
    found = tp.register(scene.reference, scene.moving, device="cpu")
    assert np.array_equal(found.warped, tp.read(tmp_path / "warped.png"))
    assert np.array_equal(found.model.matrix.ravel(), told["matrix"])


def test_rectification_is_the_command_s(tmp_path, run, pair):
    tp.write(tmp_path / "a.png", pair.left)
    tp.write(tmp_path / "b.png", pair.right)
    outputs = ["--output-left", tmp_path / "l.png", "--output-calibration", tmp_path / "pair.txt"]
    [told] = run("rectify", tmp_path / "a.png", tmp_path / "b.png", *outputs)
    found = tp.rectify(pair.left, pair.right, device="cpu")
    assert np.array_equal(found.matrix_left.ravel(), told["left_matrix"]) and found.rms_vertical == told["rms_vertical_px"]
    assert found.calibration == tp.Calibration.read(tmp_path / "pair.txt") or told["geometry"] == "affine"
    left = tp.read(tmp_path / "l.png")
    assert np.array_equal(left[..., 0] if left.ndim == 3 else left, found.left)


@pytest.mark.parametrize("cost", ["ad-census", "mi"])
def test_disparities_are_the_command_s(tmp_path, run, pair, cost):
    tp.write(tmp_path / "a.png", pair.left)
    tp.write(tmp_path / "b.png", pair.right)
    [told] = run("stereo", tmp_path / "a.png", tmp_path / "b.png", "--disparities", 40, "--cost", cost, "--output", tmp_path / "d.pfm")
    found = tp.Stereo(disparities=40, cost=cost, device="cpu").compute(pair.left, pair.right)
    assert np.array_equal(found.disparity, tp.io.read_disparity(tmp_path / "d.pfm", signed=True), equal_nan=True)
    assert judged(found.assess()) == judged(told) and found.verdict == told["verdict"]


def test_the_verdict_on_disparities_is_the_command_s(tmp_path, run, pair):
    """Too few disparities, pixels without data, and a truth."""
    mask = np.full(pair.left.shape, 255, np.uint8)
    mask[:, :90] = 0
    for name, image in {"a": pair.left, "b": pair.right, "mask": mask}.items():
        tp.write(tmp_path / f"{name}.png", image)
    tp.io.write_disparity(tmp_path / "truth.pfm", pair.truth_left)
    words = ["--disparities", 12, "--mask", tmp_path / "mask.png", "--truth", tmp_path / "truth.pfm", "--report", tmp_path / "r.html"]
    [told] = run("stereo", tmp_path / "a.png", tmp_path / "b.png", *words)
    found = tp.Stereo(disparities=12, device="cpu").compute(pair.left, pair.right, mask_left=mask)
    assert judged(found.assess(pair.truth_left)) == judged(told) and told["verdict"] == "doubtful"
    advice = "".join(reason["next"] or "" for reason in found.assess(pair.truth_left).reasons)
    assert "disparities" in advice and "--" not in advice, "arguments, not flags"
    assert pickle.loads(pickle.dumps(found)).assess(pair.truth_left) == found.assess(pair.truth_left)


def judged(found):
    """A verdict with the measures, numbers and sentences of its reasons."""
    verdict, reasons = (found["verdict"], found["reasons"]) if isinstance(found, dict) else (found.verdict, found.reasons)
    return verdict, [(reason["measure"], pytest.approx(reason["value"]), reason["text"], tp.errors._spelled(reason.get("next") or "")) for reason in reasons]


def test_the_version_is_the_crate_s():
    manifest = pathlib.Path(__file__).parents[3] / "Cargo.toml"
    assert f'version = "{tp.__version__}"' in manifest.read_text()
