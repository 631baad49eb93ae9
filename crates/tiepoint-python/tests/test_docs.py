"""Every snippet of the documentation runs, page by page; every example of its gallery; every public name is documented."""

import inspect
import os
import pathlib
import re
import runpy
import shutil
import subprocess

import pytest
import tiepoint as tp

ROOT = pathlib.Path(__file__).parents[3]
SITE = ROOT / "docs/python"
PAGES = [*sorted(SITE.glob("**/*.md")), ROOT / "README.md", ROOT / "crates/tiepoint-python/README.md"]
#: Pages of links and of what the docstrings say.
WITHOUT = {"users", "benchmarks", "methods/index"}


def blocks(page):
    """The code of a page in its order, with its language."""
    return re.findall(r"^```(python|sh)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch, truth):
    """A folder with the pictures that the pages read."""
    monkeypatch.chdir(tmp_path)
    scene = tp.synth.scene((320, 240), truth, seed=3)
    for name, image in [("left", scene.reference), ("right", scene.moving)]:
        tp.write(f"{name}.png", image)
        # Images are told apart by content.
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


def test_commands_run_and_write_what_python_does(folder, monkeypatch):
    """The quick start's snippets in their order; each file that both write has the same bytes."""
    named = os.environ.get("TIEPOINT") or shutil.which("tiepoint")
    if named is None:
        if os.environ.get("TIEPOINT_REQUIRE_COMMAND"):
            raise AssertionError("TIEPOINT names no command")
        pytest.skip("no command to run: TIEPOINT names it")
    (folder / "bin").mkdir()
    (folder / "bin/tiepoint").symlink_to(pathlib.Path(named).absolute())
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


def test_the_rust_quick_start_writes_the_same_bytes(folder):
    """The example that the page shows parts of; `cargo build --example quick_start` builds it."""
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


def test_what_is_included_is_there():
    """Sphinx would include nothing where a mark is missing."""
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
                assert re.search(rf"^\s+(\*\*|.*\b){parameter}\b", thing.__doc__, re.MULTILINE), f"{name}: {parameter}"
