"""Progress: passed to a function, drawn as a bar, or logged; on any thread."""

import io
import logging
import sys
import threading
import types

import numpy as np
import pytest
import tiepoint as tp
from tiepoint import _progress


@pytest.fixture(scope="module")
def folder(tmp_path_factory, truth):
    folder = tmp_path_factory.mktemp("photographs")
    scene = tp.synth.scene((480, 360), truth, seed=3)
    for i, image in enumerate([scene.reference, scene.moving, scene.reference[::-1], scene.moving[:, ::-1]]):
        tp.write(folder / f"{i}.png", np.ascontiguousarray(image))
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    return folder


def rises(states):
    """Checks that within each task `done` rises and never exceeds the total."""
    for before, after in zip(states, states[1:], strict=False):
        assert before.task != after.task or before.done < after.done <= after.total


def test_a_function_gets_the_progress_of_a_collection(folder, tmp_path):
    told: list[_progress.State] = []
    found = tp.collect(folder, tmp_path / "a.db", device="cpu", progress=told.append)
    assert len(list(found.pairs())) >= 1
    rises(told)
    assert told and all(isinstance(s, tuple) and s.task and 0 < s.done <= s.total for s in told)
    assert len({s.task for s in told}) >= 2, told
    elsewhere: list[_progress.State] = []

    def work():
        tp.collect(folder, tmp_path / "b.db", device="cpu", progress=elsewhere.append)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    rises(elsewhere)
    assert elsewhere, "no progress on a thread that gets no signals"
    assert (tmp_path / "a.db").read_bytes() == (tmp_path / "b.db").read_bytes()
    tp.Sift(device="cpu").detect(tp.synth.texture((300, 200)))
    assert len(told) == len(told[:]) and threading.main_thread().is_alive()


def test_a_function_is_not_told_of_what_it_calls_itself():
    image, small = tp.synth.texture((640, 480)), tp.synth.texture((320, 240))
    told = []

    def hear(state):
        told.append(state)
        if len(told) < 5:
            tp.register(small, small, device="cpu")

    tp.register(image, image, device="cpu", progress=hear)
    # Each photograph is a task of its own, so `done` begins anew; those of the inner calls have half as many steps.
    assert len({state.total for state in told if state.task == told[0].task}) == 1, told
    tp.register(small, small, device="cpu", progress=False)


def test_an_exception_of_the_progress_function_ends_the_work(folder, tmp_path):
    def stop(state):
        raise LookupError(state.task)

    with pytest.raises(LookupError):
        tp.collect(folder, tmp_path / "a.db", device="cpu", progress=stop)
    told = []
    tp.collect(folder, tmp_path / "a.db", device="cpu", progress=told.append)
    told.clear()
    collection = tp.Collection(tmp_path / "a.db.work")
    wanted = collection.export(tmp_path / "b.db")
    assert collection.export(tmp_path / "b.db", progress=told.append) == wanted
    rises(told)
    assert {s.task for s in told} == {"export"} and told[-1].done == told[-1].total
    with pytest.raises(LookupError):
        collection.export(tmp_path / "c.db", progress=stop)
    assert not list(tmp_path.glob("*.part")), "an unfinished database is left"
    for wrong in ("yes", 3):
        with pytest.raises(tp.OptionError, match="option progress"):
            tp.collect(folder, tmp_path / "b.db", progress=wrong)


def test_registration_and_stereo_report_progress(scene, pair):
    told = []
    found = tp.register(scene.reference, scene.moving, device="cpu", progress=told.append)
    assert found == tp.register(scene.reference, scene.moving, device="cpu") and told
    told = []
    pairs = [(pair.left, pair.right)] * 3
    list(tp.Stereo(disparities=16, device="cpu").compute_many(pairs, progress=told.append))
    assert [(s.task, s.done, s.total) for s in told] == [("stereo", 1, 3), ("stereo", 2, 3), ("stereo", 3, 3)]


def test_every_stage_is_logged(folder, tmp_path, caplog):
    with caplog.at_level(logging.INFO, "tiepoint"):
        tp.collect(folder, tmp_path / "a.db", device="cpu")
    text = caplog.text
    assert "5 photographs below" in text and "features of 4 photographs" in text and "verified pairs" in text
    [warning] = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert "broken.png" in warning.getMessage()
    caplog.clear()
    tp.collect(folder, tmp_path / "b.db", device="cpu")
    assert all(r.levelno >= logging.WARNING for r in caplog.records)


def test_a_line_that_looks_like_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with _progress.counting("SIFT", 4, True) as count:
        for _ in range(4):
            count(1)
    told = sys.stderr.getvalue()
    assert told.startswith("\rSIFT:  25%|█████               | 1/4 [00:00<00:00]")
    assert told.endswith("SIFT: 100%|████████████████████| 4/4 [00:00<00:00]\n")


class Broken(io.StringIO):
    """The end of a pipe that nobody reads any more."""

    def write(self, text):
        raise BrokenPipeError("broken pipe")


@pytest.mark.parametrize("module", [None, types.SimpleNamespace(tqdm=lambda **_: Broken().write(""))], ids=["line", "tqdm"])
@pytest.mark.parametrize("stream", [lambda: None, Broken], ids=["none", "broken"])
def test_without_a_console_the_work_goes_on(module, stream, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    monkeypatch.setattr(sys, "stderr", stream())
    images = [tp.synth.texture((60, 50))] * 3
    assert len(list(tp.Sift(device="cpu").detect_many(images, progress=True))) == 3
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert tp.register(scene := tp.synth.texture((200, 150)), scene, device="cpu", progress=True).verdict


def test_tqdm_itself_where_it_is_installed(monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total, desc):
            self.total, self.n, self.name, self.closed = total, 0, desc, False
            bars.append(self)

        def update(self, steps):
            self.n += steps

        def close(self):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    images = [tp.synth.texture((60, 50))] * 10
    assert len(list(tp.Sift(device="cpu").detect_many(images, progress=True))) == 10
    [bar] = bars
    assert (bar.name, bar.n, bar.total, bar.closed) == ("SIFT", 10, 10, True)
