"""Every snippet of the documentation runs, page by page, and every public name is documented."""

import inspect
import pathlib
import re

import pytest
import tiepoint as tp

ROOT = pathlib.Path(__file__).parents[3]
PAGES = [*sorted((ROOT / "docs/python").glob("*.md")), ROOT / "README.md", ROOT / "crates/tiepoint-python/README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(page, tmp_path, monkeypatch, truth):
    monkeypatch.chdir(tmp_path)
    scene = tp.synth.scene((320, 240), truth, seed=3)
    for name, image in [("left", scene.reference), ("right", scene.moving)]:
        tp.write(f"{name}.png", image)
        # Images are told apart by content.
        pathlib.Path(f"{name}.png").rename(f"{name}.jpg")
    snippets = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert snippets or page.stem in ("index", "reference")
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(page), "exec"), names)


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
