"""Every snippet of the documentation runs, page by page, and prints what it shows; every example of its gallery; every flag in
a command, every message and every key exists; every public name is documented."""

import dataclasses
import functools
import inspect
import json
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tiepoint as tp
from test_command import command

ROOT = pathlib.Path(__file__).parents[3]
SITE = ROOT / "docs"
PAGES = [
    *(page for page in sorted(SITE.glob("**/*.md")) if page.parent != SITE / "notebook"),
    ROOT / "README.md",
    ROOT / "crates/tiepoint-python/README.md",
]
#: Pages whose commands are run, each followed by what it prints.
SHOWN = [page for page in PAGES if "```console\n" in page.read_text()]


def blocks(page):
    """The blocks of code of a page in order, each with its language."""
    return re.findall(r"^```(python|sh)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch, truth):
    """A folder with the pictures that the pages read."""
    monkeypatch.chdir(tmp_path)
    scene = tp.synth.scene((320, 240), truth, seed=3)
    for name, image in [("left", scene.reference), ("right", scene.moving)]:
        tp.write(f"{name}.png", image)
        # Readers go by content, not by the name.
        pathlib.Path(f"{name}.png").rename(f"{name}.jpg")
    return tmp_path


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if "```python\n" in p.read_text() and p not in SHOWN], ids=name_of)
def test_snippets_run(page, folder):
    names: dict[str, object] = {}
    for snippet in (code for language, code in blocks(page) if language == "python"):
        exec(compile(snippet, str(page), "exec"), names)


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The folder of `tiepoint demo`, with aerial photographs."""
    folder = tmp_path_factory.mktemp("pages") / "tiepoint-demo"
    aerial = [str(folder / "aerial"), "--aerial", "12", "--size", "480x360"]
    for arguments in ([str(folder)], aerial):
        subprocess.run([command(), "demo", *arguments, "--quiet"], check=True)
    return folder


def is_shown(shown, printed):
    """Whether the shown lines were printed. … stands for any text within a line, and on a line alone for any lines."""
    if not shown:
        return not printed
    if shown[0] == "…":
        return any(is_shown(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    pattern = ".*".join(map(re.escape, shown[0].split("…")))
    return bool(printed and re.fullmatch(pattern, printed[0])) and is_shown(shown[1:], printed[1:])


@pytest.mark.parametrize("page", SHOWN, ids=name_of)
def test_commands_print_what_the_page_shows(page, demo, tmp_path, monkeypatch):
    """Runs commands and Python snippets in order, in one folder. TIEPOINT_BLESS=1 writes changed output into the page."""
    folder = shutil.copytree(demo, tmp_path / "here")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tiepoint").symlink_to(pathlib.Path(command()).absolute())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    text = page.read_text()
    for language, code in re.findall(r"^```(python|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(code, str(page), "exec"), names)
            continue
        told = code
        for line, shown in re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", code, re.MULTILINE):
            ran = subprocess.run(["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            printed = ran.stdout.replace(str(folder), "…")
            printed = re.sub(r"\b\d+(\.\d+)? (ms|s|pairs/s)(?=,|$)", r"… \2", printed, flags=re.MULTILINE)
            if not is_shown(shown.splitlines(), printed.splitlines()):
                assert os.environ.get("TIEPOINT_BLESS"), f"{line}\n{printed}"
                told = told.replace(f"$ {line}\n{shown}", f"$ {line}\n{printed}")
        text = text.replace(code, told)
    if text != page.read_text():
        page.write_text(text)


def test_links_between_pages_lead_somewhere():
    """Links to files of the repository exist, which Sphinx does not check."""
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose):
            name, _, heading = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), f"{page}: {link}"
            headings = re.findall(r"^(?:#+ (.*)|\((.*)\)=)$", target.read_text() if heading else "", re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", "".join(words).lower()).replace(" ", "-") for words in headings}
            assert not heading or heading in slugs, f"{page}: {link}"


#: What of a message differs from run to run, in the sources and in the page.
PLACES = re.compile(r"\{[\w.:?]*\}|…")


def test_messages_that_are_explained_are_those_of_the_sources():
    folders = [ROOT / "crates" / name / "src" for name in ("tiepoint", "tiepoint-cli", "tiepoint-colmap", "tiepoint-gpu")]
    sources = "".join(path.read_text() for folder in folders for path in folder.rglob("*.rs"))
    sources = PLACES.sub("…", re.sub(r"\\\n\s*", "", sources))
    rows = re.findall(r"^(?:\| |\| … |- \*\*)`(.*?)`", (SITE / "when_it_fails.md").read_text(), re.MULTILINE)
    for row in rows:
        for part in row.split("…"):
            # Short words are filled in, too.
            assert len(part) < 12 or part.strip() in sources, row
    assert len(rows) > 30


#: Keys that stand in one table for all lines.
EVERYWHERE = {"device", "threads", "seconds", "verdict", "reasons", "evidence"}


def keys_in(words):
    return set(re.findall(r"`([a-z_]+)`", words)) - EVERYWHERE


def test_every_key_of_json_is_explained(demo, tmp_path):
    """The tables of outputs.md have the keys that the command prints, no more and no less."""
    air = [str(demo / f"aerial/aerial_0000{i}.png") for i in (1, 2)]
    pair = [str(demo / f"stereo-{side}.png") for side in ("left", "right")]
    runs = {
        "detect": [["detect", air[0]]],
        "match": [["match", *air]],
        "register": [["register", *air, "--output", "a.png"]],
        "rectify": [["rectify", *air, "--output-left", "l.png", "--output-right", "r.png"]],
        "stereo": [["stereo", *pair, "--output", "d.pfm"], ["stereo", *air, "--rectify", "--depth", "z.tif"]],
        "evaluate homography": [["evaluate", "homography", *air, "h.txt"]],
        "evaluate disparity": [["evaluate", "disparity", "d.pfm", "d.pfm"]],
        "report": [["report", "--compare", "m.html", "m.html", "--output", "both.html"]],
        "filter gauss": [["filter", "gauss", air[0], "g.png", "--sigma", "2"]],
        "devices": [["devices"]],
    }
    (tmp_path / "h.txt").write_text("1 0 0\n0 1 0\n0 0 1\n")

    def run(*arguments):
        told = subprocess.run([command(), *arguments, "--json"], capture_output=True, text=True, cwd=tmp_path, check=True)
        return [json.loads(line) for line in told.stdout.splitlines()]

    run("match", *air, "--report", "m.html")
    page = (SITE / "outputs.md").read_text()
    tables = dict(re.findall(r"^<!-- keys: ([a-z ]*) -->\n.*?\n\n(.*?)\n(?:\n|\Z)", page, re.MULTILINE | re.DOTALL))
    assert set(tables) == {*runs, "collect"}
    rows = {name: re.findall(r"^\| (.*?) \| (.*) \|$", table, re.MULTILINE) for name, table in tables.items()}
    explained = {name: keys_in(" ".join(keys for keys, _ in rows[name])) for name in runs}
    explained["evaluate homography"] |= explained["match"]
    for name, calls in runs.items():
        printed = set().union(*(told for call in calls for told in run(*call)))
        assert printed - EVERYWHERE == explained[name], name
        assert ({"device", "seconds"} <= printed) == (name not in ("devices", "report")), name
        assert ("threads" in printed) == (name not in ("devices", "report", "evaluate disparity")), name
    (scored,) = run("evaluate", "homography", "h.txt", "h.txt", "--size", "9x9")
    assert set(scored) == {"corner_error"}
    stages = {stage.strip("`"): keys_in(keys) for stage, keys in rows["collect"][1:]}
    made = run("collect", str(demo / "aerial"), "--output", "c.db", "--report", "c.html")
    for told in made + run("collect", "status", "--work", "c.db.work"):
        if "progress" not in told:
            assert ("device" in told) == (told["stage"] != "estimate"), told
            assert set(told) - {"stage"} - EVERYWHERE == stages.pop(told["stage"]), told
    assert not stages


def test_the_snippet_with_files_of_rasterio_runs(folder):
    """The snippet of `rasterio.md` that `test_snippets_run` leaves out, on files and arrays of xarray."""
    rasterio = pytest.importorskip("rasterio")
    pytest.importorskip("xarray")
    place, crs = (0.5, 0.0, 500_000.0, 0.0, -0.5, 4_600_000.0), "EPSG:32632"
    shape = {"driver": "GTiff", "count": 1, "dtype": "uint8", "height": 240, "width": 320}
    arrays = {}
    for name, image in [("reference", tp.read("left.jpg")), ("moving", tp.read("right.jpg"))]:
        with rasterio.open(f"{name}.tif", "w", crs=crs, transform=rasterio.Affine(*place), **shape) as file:
            file.write(image, 1)
        arrays[name] = tp.raster.Raster(image, place, crs, None).to_xarray()
    names = {"tp": tp, "rasterio": rasterio, "array": arrays["reference"], "other": arrays["moving"]}
    [snippet] = re.findall(r"^```py\n(.*?)^```", (SITE / "coming_from/rasterio.md").read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(snippet, "rasterio.md", "exec"), names)
    with rasterio.open("out.tif") as file:
        assert (file.crs.to_epsg(), file.transform[:6]) == (32632, place)
    assert names["found"].shape[-2:] == (240, 320)


def snippet_with(page, word):
    """The snippet of a page with a word in it; those that need another program are not run with their page."""
    snippets = re.findall(r"^```(?:py|python)\n(.*?)^```", (SITE / page).read_text(), re.MULTILINE | re.DOTALL)
    [snippet] = [code for code in snippets if word in code]
    return snippet


def test_the_snippet_for_undistorted_workspaces_gives_the_depth(tmp_path, monkeypatch):
    """Of a workspace with two cameras side by side, of which the right one stands first in the list."""
    pycolmap = pytest.importorskip("pycolmap")
    monkeypatch.chdir(tmp_path)
    scene = tp.synth.stereo((320, 240), disparities=(4, 30), seed=5)
    for folder in ("images", "sparse"):
        (tmp_path / "dense" / folder).mkdir(parents=True)
    model, focal, baseline = pycolmap.Reconstruction(), 300.0, 2.0
    camera = pycolmap.Camera(model="PINHOLE", width=320, height=240, params=[focal, focal, 160, 120], camera_id=1)
    model.add_camera_with_trivial_rig(camera)
    for number, (name, view, x) in enumerate([("right.png", scene.right, baseline), ("left.png", scene.left, 0.0)], 1):
        tp.write(f"dense/images/{name}", view)
        image = pycolmap.Image(name=name, camera_id=1, image_id=number)
        model.add_image_with_trivial_frame(image, pycolmap.Rigid3d(pycolmap.Rotation3d(), [-x, 0, 0]))
    model.write("dense/sparse")
    names: dict[str, object] = {}
    exec(compile(snippet_with("coming_from/colmap.md", "dense/sparse"), "colmap.md", "exec"), names)
    pair, depth = names["pair"], names["depth"]
    y, x = np.mgrid[:240:4, :320:4].reshape(2, -1)
    u, v = np.round((pair.matrix_left @ [x, y, np.ones_like(x)])[:2]).astype(int)
    inside = (u >= 0) & (v >= 0) & (u < depth.shape[1]) & (v < depth.shape[0]) & np.isfinite(scene.truth_left[y, x])
    measured = depth[v[inside], u[inside]]
    ratio = measured / (focal * baseline / scene.truth_left[y, x][inside])
    assert np.isfinite(ratio).mean() > 0.6 and (np.abs(ratio[np.isfinite(ratio)] - 1) < 0.1).mean() > 0.9


def test_the_snippets_for_hloc_and_colmap_give_what_was_found(folder):
    """Keypoints, descriptors and matches in hloc's files; pycolmap opens the database of either layout."""
    h5py, pycolmap = pytest.importorskip("h5py"), pytest.importorskip("pycolmap")
    pathlib.Path("photos").mkdir()
    for name in ["left.jpg", "right.jpg"]:
        shutil.copy(name, "photos")
    collection = tp.collect("photos", "sift.db", device="cpu")
    exec(compile(snippet_with("coming_from/hloc.md", "import sqlite3"), "hloc.md", "exec"), {"h5py": h5py})
    with h5py.File("features.h5") as files:
        for name in collection.names:
            found, stored = collection.features(name), files[name]
            assert np.allclose(stored["keypoints"], found.xy, atol=1e-4)
            assert np.array_equal(stored["descriptors"], found.descriptors.T / np.float32(512))
            assert np.allclose(tp.interop.from_hloc(stored).xy, found.xy, atol=1e-4)
    [pair] = collection.pairs()
    i, j = pair.pairs[pair.inliers].T
    with h5py.File("matches.h5") as files:
        matches = files[f"{pair.a}/{pair.b}"]["matches0"][:]
    assert np.array_equal(matches[i], j) and (matches >= 0).sum() == len(i) > 50
    collection.export("old.db", colmap="3.8")
    for name in ["sift.db", "old.db"]:
        database = pycolmap.Database.open(name)
        # COLMAP gives a frame to an image that is added only if the others have one.
        assert database.num_frames() == (2 if name == "sift.db" else 0), name
        assert {frame.rig_id for frame in database.read_all_frames()} <= {rig.rig_id for rig in database.read_all_rigs()}
        assert {image.name for image in database.read_all_images()} == set(collection.names)
        first, second = (database.read_image_with_name(name).image_id for name in (pair.a, pair.b))
        assert np.array_equal(database.read_two_view_geometry(first, second).inlier_matches, np.stack([i, j], -1))
        database.close()


def test_commands_run_and_write_what_python_does(folder, monkeypatch):
    """The quick start's snippets in order; a file that both the command and Python write has the same bytes."""
    (folder / "bin").mkdir()
    (folder / "bin/tiepoint").symlink_to(pathlib.Path(command()).absolute())
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=os.pathsep)
    names: dict[str, object] = {}
    both, commands = set(), 0
    for language, code in blocks(SITE / "start.md"):
        if language == "python":
            exec(compile(code, "start.md", "exec"), names)
            continue
        assert all(line.startswith("tiepoint ") for line in code.splitlines()), code
        before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        subprocess.run(["bash", "-euc", code], check=True)
        commands += 1
        for word in re.findall(r"--output (\S+)", code):
            assert (folder / word).read_bytes() == before[folder / word], word
            both.add(word)
    assert commands == 4
    assert both == {"left.csv", "matches.csv", "right_on_left.png", "disparity.pfm"}


@functools.cache
def help_of(*names):
    """The subcommands and the flags of a command."""
    told = subprocess.run([command(), *names, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z-]+)  ", told, re.MULTILINE), set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", told))


def test_every_flag_in_a_command_of_the_documents_exists():
    checked = 0
    for page in PAGES:
        fenced = re.findall(r"^```(?:sh|console)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        text = "".join(fenced).replace("\\\n", " ")
        for line in re.findall(r"(?:^|\s|\")tiepoint ([a-z].*)", text):
            # The SLURM script takes the stage as its argument.
            words = re.sub(r"^collect \$1", "collect match", line.split("#")[0]).replace('"', " ").split()
            names = [words[0]]
            if words[1:] and words[1] in help_of(words[0])[0]:
                names.append(words[1])
            for word in words[len(names) :]:
                if re.match(r"--?[a-zA-Z]", word):
                    assert word.split("=")[0] in help_of(*names)[1], f"{page.name}: tiepoint {line}: {word}"
                    checked += 1
    assert checked > 60


def test_the_rust_quick_start_writes_the_same_bytes(folder):
    """The Rust example of which the page shows parts; `cargo build --example quick_start` builds it."""
    program = os.environ.get("TIEPOINT_QUICK_START")
    if program is None:
        if os.environ.get("TIEPOINT_REQUIRE_COMMAND"):
            raise AssertionError("TIEPOINT_QUICK_START names no program")
        pytest.skip("TIEPOINT_QUICK_START names no program to compare with")
    names: dict[str, object] = {}
    for language, code in blocks(SITE / "start.md"):
        if language == "python":
            exec(compile(code, "start.md", "exec"), names)
    (folder / "rust").mkdir()
    images = ["left.jpg", "right.jpg", "pair_left.png", "pair_right.png"]
    subprocess.run([pathlib.Path(program).absolute(), *images, "rust"], check=True)
    written = sorted(path.name for path in (folder / "rust").iterdir())
    assert written == ["disparity.pfm", "left.csv", "right_on_left.png"]
    for name in written:
        assert (folder / "rust" / name).read_bytes() == (folder / name).read_bytes(), name


def test_what_is_included_is_there():
    """Sphinx includes nothing, without a warning, if a mark is missing."""
    page = (SITE / "start.md").read_text()
    source = (ROOT / "crates/tiepoint/examples/quick_start.rs").read_text()
    marks = re.findall(r':(?:start-after|end-before): "(.*)"', page)
    assert len(marks) == 8 and all(source.count(mark) == 1 for mark in marks)


@pytest.mark.parametrize("example", sorted((SITE / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(example, monkeypatch, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    shutil.copytree(ROOT / "crates/tiepoint-cli/src/commands/demo/photographs", tmp_path / "tiepoint-demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    runpy.run_path(str(example))
    assert pyplot.get_fignums()
    pyplot.close("all")


@pytest.mark.parametrize("options", [tp.Sift, tp.Surf, tp.Stereo, tp.Rematch, tp.CollectionOptions])
def test_every_option_is_documented_where_it_is_given(options):
    told = re.findall(r"^(\w+) : ", inspect.getdoc(options), re.MULTILINE)
    assert sorted(told) == sorted({field.name for field in dataclasses.fields(options)} - {"list"})


MODULES = [tp, tp.errors, tp.io, tp.filter, tp.evaluate, tp.synth, tp.interop, tp.raster]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_name_and_parameter_is_documented(module):
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.ismodule(thing):
            assert thing.__doc__, name
            continue
        assert thing.__doc__, name
        parts = [thing, *(m for n, m in vars(thing).items() if not n.startswith("_"))] if inspect.isclass(thing) else [thing]
        for part in parts:
            if inspect.isfunction(part):
                assert part.__doc__, f"{name}.{part.__name__}"
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing) and "Parameters\n" in (thing.__doc__ or ""):
            for parameter in inspect.signature(thing).parameters:
                # From Python 3.13 on docstrings come without the indentation of their source.
                told = rf"^\s*([\w*, ]+, )?\*{{0,2}}{parameter}\b[\w, ]*( : .*)?$"
                assert re.search(told, thing.__doc__, re.MULTILINE), f"{name}: {parameter}"
