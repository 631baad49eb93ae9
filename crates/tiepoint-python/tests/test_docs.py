"""Every snippet and example of the documentation runs; every flag in a command exists; every public name is documented."""

import functools
import inspect
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
import tiepoint as tp
from test_command import command

ROOT = pathlib.Path(__file__).parents[3]
SITE = ROOT / "docs/python"
PAGES = [*sorted(SITE.glob("**/*.md")), ROOT / "README.md", ROOT / "crates/tiepoint-python/README.md"]
#: Pages without snippets: links, docstrings, and documents of other folders.
WITHOUT = {"users", "benchmarks", "collections", "files", "methods/index"}


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(page, folder):
    snippets = [code for language, code in blocks(page) if language == "python"]
    if not snippets:
        name = page.relative_to(SITE).with_suffix("").as_posix()
        assert name in WITHOUT or name.startswith("reference/")
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(page), "exec"), names)


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
    [snippet] = re.findall(r"^```py\n(.*?)^```", (SITE / "rasterio.md").read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(snippet, "rasterio.md", "exec"), names)
    with rasterio.open("out.tif") as file:
        assert (file.crs.to_epsg(), file.transform[:6]) == (32632, place)
    assert names["found"].shape[-2:] == (240, 320)


class Group(dict[str, object]):
    """A stand-in for h5py's files and groups."""

    def create_group(self, name):
        self[name] = Group()
        return self[name]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_the_snippet_for_hloc_gives_what_was_found(folder, monkeypatch):
    """Keypoints, descriptors and matches, in stand-ins for h5py's files."""
    pathlib.Path("photos").mkdir()
    for name in ["left.jpg", "right.jpg"]:
        shutil.copy(name, "photos")
    collection = tp.collect("photos", "database.db", device="cpu")
    files: dict[str, Group] = {}
    h5py = types.ModuleType("h5py")
    h5py.File = lambda name, mode: files.setdefault(name, Group())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "h5py", h5py)
    [snippet] = [code for _, code in blocks(ROOT / "docs/collections.md") if "h5py" in code]
    exec(compile(snippet, "collections.md", "exec"), {})
    for name in collection.names:
        found, stored = collection.features(name), files["features.h5"][name]
        assert np.allclose(stored["keypoints"], found.xy, atol=1e-4)
        assert np.array_equal(stored["descriptors"], found.descriptors.T / np.float32(512))
    [pair] = collection.pairs()
    matches = files["matches.h5"][f"{pair.a}/{pair.b}"]["matches0"]
    i, j = pair.pairs[pair.inliers].T
    assert np.array_equal(matches[i], j) and (matches >= 0).sum() == len(i) > 50


def test_commands_run_and_write_what_python_does(folder, monkeypatch):
    """The quick start's snippets in order; a file that both the command and Python write has the same bytes."""
    (folder / "bin").mkdir()
    (folder / "bin/tiepoint").symlink_to(pathlib.Path(command()).absolute())
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=os.pathsep)
    names: dict[str, object] = {}
    both, commands = set(), 0
    for language, code in blocks(SITE / "quick_start.md"):
        if language == "python":
            exec(compile(code, "quick_start.md", "exec"), names)
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
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(SITE.glob("**/*.md"))]:
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
    for language, code in blocks(SITE / "quick_start.md"):
        if language == "python":
            exec(compile(code, "quick_start.md", "exec"), names)
    (folder / "rust").mkdir()
    images = ["left.jpg", "right.jpg", "pair_left.png", "pair_right.png"]
    subprocess.run([pathlib.Path(program).absolute(), *images, "rust"], check=True)
    written = sorted(path.name for path in (folder / "rust").iterdir())
    assert written == ["disparity.pfm", "left.csv", "right_on_left.png"]
    for name in written:
        assert (folder / "rust" / name).read_bytes() == (folder / name).read_bytes(), name


def test_included_marks_exist():
    """Sphinx includes nothing, without a warning, if a mark is missing."""
    page = (SITE / "quick_start.md").read_text()
    source = (ROOT / "crates/tiepoint/examples/quick_start.rs").read_text()
    marks = re.findall(r':(?:start-after|end-before): "(.*)"', page)
    assert len(marks) == 8 and all(source.count(mark) == 1 for mark in marks)


@pytest.mark.parametrize("example", sorted((SITE / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(example, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    monkeypatch.chdir(example.parent)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    runpy.run_path(str(example))
    assert pyplot.get_fignums()
    pyplot.close("all")


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
