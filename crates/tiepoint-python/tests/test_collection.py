"""Collections: what the stages find, and that the command finds the same."""

import hashlib
import os
import pickle
import re
import sqlite3
import struct
import subprocess
import warnings
import zlib

import numpy as np
import pytest
import tiepoint as tp
from tiepoint.errors import _spelled
from test_command import command, run  # noqa: F401


@pytest.fixture(scope="module")
def photographs(tmp_path_factory, truth):
    """Two views of one scene, a view of another, and a file that is no photograph."""
    folder = tmp_path_factory.mktemp("photographs")
    one = tp.synth.scene((320, 240), truth, seed=3)
    other = tp.synth.scene((320, 240), truth, seed=4, texture="shapes")
    for name, image in [("a", one.reference), ("b ü", one.moving), ("c", other.reference)]:
        tp.write(folder / f"{name}.png", image)
    (folder / "d.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    return folder


@pytest.fixture(scope="module")
def collection(photographs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    return tp.collect(photographs, folder / "database.db", device="cpu")


def rows_of(database):
    """A hash over the sorted rows of every table."""
    digest = hashlib.sha256()
    with sqlite3.connect(database) as open_:
        for (table,) in open_.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
            for row in sorted(map(repr, open_.execute(f"SELECT * FROM {table}"))):
                digest.update(f"{table} {row}\n".encode())
    return digest.hexdigest()


def test_photographs_of_the_same_scene_are_matched(collection, truth):
    assert collection.names == ["a.png", "b ü.png", "c.png", "d.png"] and len(collection) == 4
    [pair] = collection.pairs()
    assert (pair.a, pair.b) == ("a.png", "b ü.png") and "planar" in pair.configuration
    a, b = collection.features(pair.a), collection.features(pair.b)
    xy_a, xy_b = a.xy[pair.pairs[pair.inliers, 0]], b.xy[pair.pairs[pair.inliers, 1]]
    predicted = tp.Model("homography", pair.homography).apply(xy_a)
    # The inliers may be those of the fundamental matrix, which fixes only the epipolar line of a point.
    assert len(xy_a) > 50 and (np.linalg.norm(predicted - xy_b, axis=1) < 3).mean() > 0.9
    assert pair.homography / pair.homography[2, 2] == pytest.approx(truth, abs=0.3)


def test_the_database_is_the_command_s(collection, photographs, tmp_path, run):  # noqa: F811
    told = run("collect", photographs, "--output", tmp_path / "theirs.db")
    found = collection.assess()
    judged = [[reason["text"] for reason in reasons] for reasons in (found.reasons, told[-1]["reasons"])]
    assert found.verdict == collection.verdict == told[-1]["verdict"] and judged[0] == judged[1]
    written = collection.export(tmp_path / "ours.db")
    pairs = collection.export(tmp_path / "pairs", format="s2p")
    files = sorted((tmp_path / "pairs").glob("*/sift_matches.txt"))
    assert pairs == {name: written[name] for name in ("pairs", "inliers")} and len(files) == pairs["pairs"]
    lines = [path.read_text().splitlines() for path in files]
    assert all(len(set(of)) == len(of) for of in lines), "each pair of places once"
    assert 0.5 * pairs["inliers"] < sum(map(len, lines)) <= pairs["inliers"]
    with pytest.raises(tp.OptionError, match="those of a database"):
        collection.export(tmp_path / "pairs", format="s2p", colmap="3.8")
    with pytest.raises(tp.OptionError, match="expected asp"):
        collection.export(tmp_path / "pairs", format="csv")
    assert rows_of(tmp_path / "ours.db") == rows_of(tmp_path / "theirs.db")
    assert {key: told[-1][key] for key in written} == written


def test_unreadable_photographs_are_reported(collection):
    status = collection.status()
    assert status["complete"] and status["photographs"] == 4 and status["verified"] == 1
    [(name, reason)] = status["unreadable"]
    assert name == "d.png" and reason
    with pytest.raises(tp.FormatError, match=re.escape("d.png has no features")):
        collection.features("d.png")
    with pytest.raises(tp.OptionError, match=re.escape("no photograph e.png")):
        collection.features("e.png")


def test_photographs_without_a_mask_are_warned_of(photographs, tmp_path):
    mask = np.full((240, 320), 255, np.uint8)
    mask[:, :160] = 0
    (tmp_path / "masks").mkdir()
    tp.write(tmp_path / "masks" / "a.png", mask)
    options = tp.CollectionOptions(masks=tmp_path / "masks")
    masked = tp.Collection.scan(photographs, tmp_path / "work", options)
    assert masked.scanned["masked"] == 1
    with pytest.warns(UserWarning, match="3 of 4 photographs have no mask in .* count whole: b ü.png"):
        found = masked.extract(device="cpu")
    assert found["without_mask"] == ["b ü.png", "c.png", "d.png"]
    assert masked.features("a.png").xy[:, 0].min() > 159


def brute_force(a, b, ratio, most):
    """Mutual nearest neighbours of unit descriptors by NumPy's product, with the ratio of distances."""
    similar = a @ b.T
    nearest, i = similar.argmax(1), np.arange(len(a))
    far = np.sqrt(np.maximum(2 - 2 * similar, 0))
    first, second = far[i, nearest], np.partition(far, 1, axis=1)[:, 1]
    kept = (similar.argmax(0)[nearest] == i) & (first < ratio * second) & (first <= most)
    return np.stack([i[kept], nearest[kept]], 1)


def test_features_of_others_match_as_numpy_finds_them(photographs, tmp_path):
    """Of files with names of hloc's, of 16-bit floats too, of arrays, and of matches that NumPy finds."""
    sift = tp.Sift(descriptors="float", contrast=0.02, device="cpu")
    found = {name: sift.detect(tp.read(photographs / name)) for name in ("a.png", "b ü.png", "c.png")}
    unit = {name: features.descriptors[:, :64] for name, features in found.items()}
    unit = {name: rows / np.linalg.norm(rows, axis=1, keepdims=True) for name, rows in unit.items()}
    for name, features in found.items():
        np.savez(tmp_path / f"{name}.npz", keypoints=features.xy, descriptors=np.ascontiguousarray(unit[name].T), image_size=[320, 240])
    options = tp.CollectionOptions(features=tmp_path, max_distance=1.2)
    given = tp.collect(photographs, tmp_path / "given.db", options=options, device="cpu")
    [pair] = given.pairs()
    expected = brute_force(unit[pair.a], unit[pair.b], 0.77, 1.2)
    assert np.array_equal(pair.pairs, expected) and pair.inliers.sum() > 30
    assert given.options.features == str(tmp_path) and given.features("a.png").descriptors.shape[1] == 64

    arrays = tp.Collection.scan(photographs, tmp_path / "arrays", tp.CollectionOptions(pairs="matches"))
    for name, features in found.items():
        arrays.import_features(name, tp.Features.from_arrays(xy=features.xy, descriptors=unit[name]))
    assert arrays.features("a.png").image_size == (320, 240), "read from the photograph"
    assert arrays.extract(device="cpu")["present"] == 3
    with pytest.raises(tp.MismatchError, match="none are given"):
        arrays.choose_pairs()
    with pytest.raises(tp.OptionError, match="no photograph e"):
        arrays.import_matches({("a.png", "e"): expected})
    with pytest.raises(tp.MismatchError, match="which has"):
        arrays.import_matches({("a.png", "c.png"): [[0, 10**6]]})
    arrays.import_matches({("b ü.png", "a.png"): expected[:, ::-1], ("a.png", "c.png"): np.zeros((0, 2), int)})
    assert arrays.choose_pairs() == 2 and arrays.match_pairs(device="cpu")["pairs"] == 2
    [again] = arrays.pairs()
    assert np.array_equal(again.pairs, expected) and again.inliers.sum() > 30

    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "features.h5", "w") as file, h5py.File(tmp_path / "matches.h5", "w") as matches:
        for name, features in found.items():
            for array, values in tp.interop.to_hloc(features).items():
                kind = np.float16 if array == "scores" else values.dtype
                file.create_dataset(f"{name}/{array}", data=values.astype(kind))
        to = np.full(len(found["a.png"]), -1, np.int16)
        to[expected[:, 0]] = expected[:, 1]
        matches["a.png/b ü.png/matches0"] = to
    options = tp.CollectionOptions(features=tmp_path / "features.h5", matches=tmp_path / "matches.h5")
    [of_hloc] = tp.collect(photographs, work=tmp_path / "hloc", options=options, device="cpu").pairs()
    assert np.array_equal(of_hloc.pairs, expected) and of_hloc.inliers.sum() > 30


def with_exif(png, data):
    """The PNG with Exif's camera data."""
    chunk = b"eXIf" + data
    return png[:33] + struct.pack(">I", len(data)) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[33:]


def placed(png):
    """The PNG with camera data: it was taken at 48° N, 11° E, 500 m up."""
    data = b"II*\0" + struct.pack("<IHHHIII", 8, 1, 0x8825, 4, 1, 26, 0) + struct.pack("<H", 5)
    data += struct.pack("<HHI4s", 1, 2, 2, b"N") + struct.pack("<HHII", 2, 5, 3, 92)
    data += struct.pack("<HHI4s", 3, 2, 2, b"E") + struct.pack("<HHII", 4, 5, 3, 116)
    data += struct.pack("<HHII", 6, 5, 1, 140) + struct.pack("<I14I", 0, 48, 1, 0, 1, 0, 1, 11, 1, 0, 1, 0, 1, 500, 1)
    return with_exif(png, data)


def turned(png, orientation):
    return with_exif(png, b"II*\0" + struct.pack("<IHHHIII", 8, 1, 0x112, 3, 1, orientation, 0))


def collect_by_command(*words):
    words = [command(), "collect", *words, "--device", "cpu"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stderr


def test_imported_features_are_checked_as_the_command_checks_given_ones(photographs, tmp_path):
    images, given, sift = tmp_path / "images", tmp_path / "given", tp.Sift(device="cpu")
    images.mkdir()
    given.mkdir()
    for name, orientation in [("a", 1), ("b", 3), ("c", 6)]:
        (images / f"{name}.png").write_bytes(turned((photographs / "a.png").read_bytes(), orientation))
    found = {name: sift.detect(tp.read(images / name)) for name in ("a.png", "b.png", "c.png")}
    found["a.png"] = sift.detect(np.ascontiguousarray(tp.read(images / "a.png")[::2, ::2]))
    ours = tp.Collection.scan(images, tmp_path / "ours", device="cpu")
    told = []
    for name, features in found.items():
        tp.io.write_features(given / f"{name}.npz", features)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                ours.import_features(name, features)
            except tp.MismatchError as refused:
                told.append(str(refused))
        told += [str(warning.message) for warning in caught]
    assert told[0] == "a.png: holds features of a picture of 160x120, and the photograph has 320x240"
    assert told[1].startswith("1 photographs are not stored upright, such as b.png") and "EXIF orientation 6" in told[2]
    theirs = collect_by_command(images, "--features", given, "--output", tmp_path / "theirs.db")
    for sentence in (told[0], told[2]):
        name, reason = sentence.split(": ", 1)
        assert f"{name} is left out: {given / name}.npz: {reason}\n" in _spelled(theirs)
    assert told[1].replace("1 photo", "2 photo") in theirs


def test_imported_features_are_not_mixed_with_others(photographs, tmp_path):
    images, work, sift = tmp_path / "images", tmp_path / "work", tp.Sift(upright=True, device="cpu")
    images.mkdir()
    found = {}
    for name in ("a.png", "c.png", "d.png", "e.png"):
        (images / name).write_bytes((photographs / name.replace("e", "b ü")).read_bytes())
    added = (images / "e.png").rename(tmp_path / "e.png")
    collection = tp.Collection.scan(images, work, device="cpu")
    for name in ("a.png", "c.png"):
        found[name] = sift.detect(tp.read(images / name))
        collection.import_features(name, found[name])
    assert tp.collect(images, work=work, device="cpu").status()["unreadable"][0][0] == "d.png"
    added.rename(images / "e.png")
    reason = "e.png has no features, and those of a.png were imported: import features for it, too"
    with pytest.raises(tp.MismatchError, match=reason):
        tp.collect(images, work=work, device="cpu")
    assert reason in collect_by_command(images, "--work", work, "--output", tmp_path / "x.db")
    collection = tp.Collection.scan(images, work, device="cpu")
    collection.import_features("e.png", sift.detect(tp.read(images / "e.png")))
    [pair] = tp.collect(images, work=work, device="cpu").pairs()
    assert (pair.a, pair.b) == ("a.png", "e.png") and len(collection.features("a.png")) == len(found["a.png"])


def test_matches_are_those_of_the_features_that_are_there(photographs, tmp_path):
    names, sift = ("a.png", "b ü.png"), tp.Sift(max_features=500, device="cpu")
    found = {name: sift.detect(tp.read(photographs / name)) for name in names}
    pairs = tp.match(*found.values(), device="cpu").pairs
    images = [photographs / name for name in names]
    collection = tp.Collection.scan(images, tmp_path / "work", tp.CollectionOptions(pairs="matches"), device="cpu")
    with pytest.raises(tp.MismatchError, match="a.png has no features yet: import matches after the features"):
        collection.import_matches({names: pairs})
    for name, features in found.items():
        collection.import_features(name, features)
    collection.import_matches({names: pairs})
    collection.match_pairs(device="cpu")
    [pair] = collection.pairs()
    for other in (found["a.png"][::-1], found["a.png"][:400]):
        collection.import_features("a.png", other)
        for stage in (collection.choose_pairs, collection.match_pairs, lambda: list(collection.pairs())):
            with pytest.raises(tp.MismatchError, match="features have changed since: import matches again"):
                stage()
    collection.import_features("a.png", found["a.png"][::-1])
    collection.import_matches({names: np.c_[len(found["a.png"]) - 1 - pairs[:, 0], pairs[:, 1]]})
    collection.match_pairs(device="cpu")
    [again] = collection.pairs()
    assert again.inliers.sum() > 0.9 * pair.inliers.sum() > 30


def test_left_out_photographs_and_pairs_are_warned_of_as_by_the_command(photographs, tmp_path):
    """Hidden files, photographs without positions, most photographs left out, no pair, and no verified pair."""
    images, options = tmp_path / "images", tp.CollectionOptions(pairs="gps")
    images.mkdir()
    for name in ["a.png", "c.png", ".hidden.png"]:
        (images / name).write_bytes((photographs / name.replace(".hidden", "a")).read_bytes())
    (images / "c.png").write_bytes(placed((images / "c.png").read_bytes()))
    for i in range(3):
        (images / f"broken {i}.png").write_bytes((photographs / "d.png").read_bytes())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        collection = tp.collect(images, tmp_path / "ours.db", options=options, device="cpu")
    assert {warning.filename for warning in caught} == {__file__}
    assert len({warning.lineno for warning in caught}) == 1
    told = [str(warning.message) for warning in caught]
    assert told == [
        f"1 hidden files or folders are left out, such as {images}/.hidden.png",
        "4 of 5 photographs record no position: gps gives them no pair",
        "3 of 5 photographs are left out",
        "no pair is chosen, so nothing will be matched",
        "no two photographs were found to show the same thing",
    ]
    scanned = collection.scanned
    assert scanned["hidden"] == [f"{images}/.hidden.png"] and (scanned["positions"], scanned["masked"]) == (1, 0)
    assert tp.Collection(collection.work).scanned == {}
    words = [command(), "collect", images, "--output", tmp_path / "theirs.db", "--pairs", "gps", "--device", "cpu"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    assert [line for line in said.splitlines() if "warning: " in line] == [f"tiepoint: warning: {line}" for line in told]


def test_pairs_read_the_features_once(photographs, tmp_path):
    """All features are read before the first pair, and not again for each block."""
    collection = tp.collect(photographs, work=tmp_path / "work", options=tp.CollectionOptions(block=1), device="cpu")
    wanted = list(collection.pairs())
    pairs = collection.pairs()
    found = [next(pairs)]
    for path in (tmp_path / "work").rglob("*.features"):
        path.unlink()
    assert found + list(pairs) == wanted


def test_parts_make_the_whole_and_nothing_is_done_twice(collection, photographs, tmp_path):
    parts = tp.Collection.scan([photographs], tmp_path / "work", tp.CollectionOptions(block=2))
    assert parts.extract(shard=(1, 2), device="cpu")["searched"] == 1
    assert parts.extract(device=["cpu", "cpu"])["present"] == 1
    assert parts.choose_pairs(device="cpu") == 6
    first = parts.match_pairs(shard=(0, 2), device="cpu")
    second = parts.match_pairs(shard=(1, 2), device="cpu")
    # The third tile has no pair to match, because its photograph cannot be read.
    assert first["tiles"] + second["tiles"] == 2 and second["complete"]
    assert parts.match_pairs(device="cpu")["tiles"] == 0
    parts.export(tmp_path / "parts.db")
    collection.export(tmp_path / "whole.db")
    assert rows_of(tmp_path / "parts.db") == rows_of(tmp_path / "whole.db")


def test_a_folder_that_is_opened_again_is_the_same(collection, tmp_path, monkeypatch):
    again = pickle.loads(pickle.dumps(collection))
    # A relative path is that of the folder at the time.
    monkeypatch.chdir(os.path.dirname(collection.work))
    relative = tp.Collection(os.path.basename(collection.work))
    monkeypatch.chdir(tmp_path)
    assert relative.work == collection.work and list(relative.pairs()) == list(collection.pairs())
    assert again.names == collection.names and again.options == collection.options == tp.CollectionOptions()
    assert list(again.pairs()) == list(collection.pairs())
    assert repr(again) == repr(collection) and "4 photographs" in repr(collection)


def test_options_are_recorded_and_only_those_of_pairs_may_change(photographs, tmp_path):
    (tmp_path / "pairs.txt").write_text("a.png c.png\n")
    options = tp.CollectionOptions(pairs=tmp_path / "pairs.txt", max_features=100, closure=False)
    listed = tp.collect(photographs, work=tmp_path / "work", options=options, device="cpu")
    assert listed.status()["tried"] == 1 and list(listed.pairs()) == []
    assert listed.options.pairs == str(tmp_path / "pairs.txt") and listed.options.max_features == 100
    with pytest.raises(tp.MismatchError):
        tp.Collection.scan(photographs, tmp_path / "work")
    # Options of pairs may change, and features stay.
    with pytest.warns(UserWarning, match="options changed since the last scan: --pairs list → auto, --no-closure true → false"):
        every = tp.Collection.scan(photographs, tmp_path / "work", tp.CollectionOptions(max_features=100))
    assert every.extract(device="cpu")["present"] == 3 and every.status()["pairs"] is None
    assert every.choose_pairs(device="cpu") == 6
    with pytest.raises(tp.OptionError, match="a file that is there"):
        tp.Collection.scan(photographs, tmp_path / "other", tp.CollectionOptions(pairs="nearly all"))
    with pytest.raises(tp.OptionError, match="at least 16"):
        tp.Collection.scan(photographs, tmp_path / "other", tp.CollectionOptions(longest_side=3))


def test_a_photograph_that_is_too_large_is_left_out_as_the_command_does(photographs, tmp_path, run):  # noqa: F811
    images = [photographs / "a.png", photographs / "b ü.png", photographs / "c.png", tmp_path / "large.png"]
    tp.write(images[-1], tp.synth.scene((400, 300), np.eye(3), seed=5).reference)
    theirs, ours = tmp_path / "theirs.db", tmp_path / "ours.db"
    found = run("collect", *images, "--output", theirs, "--max-pixels", 100_000)
    [told] = next(line for line in found if line["stage"] == "features")["unreadable"]
    limited = tp.collect(images, ours, max_pixels=100_000, device="cpu")
    assert limited.status()["unreadable"] == [(told["image"], told["reason"])] and "100000" in told["reason"]
    assert rows_of(ours) == rows_of(theirs)
    # With a higher limit the photograph is matched.
    whole = tp.collect(images, ours, max_pixels="120K", max_bytes="1MiB", device="cpu")
    run("collect", *images, "--output", theirs, "--max-pixels", 120_000, "--max-bytes", "1M")
    assert whole.status()["unreadable"] == [] and rows_of(ours) == rows_of(theirs)


def test_changed_photographs_are_matched_again(photographs, tmp_path):
    images, work, database = tmp_path / "images", tmp_path / "work", tmp_path / "a.db"
    images.mkdir()
    for name in ["a.png", "b ü.png"]:
        (images / name).write_bytes((photographs / name).read_bytes())
    with pytest.raises(tp.FormatError, match="max_unreadable is 0"):
        (images / "d.png").write_bytes(b"no picture")
        tp.collect(images, database, work=work, device="cpu", max_unreadable=0)
    (images / "d.png").write_bytes((photographs / "a.png").read_bytes())
    (images / "e.png").symlink_to("gone.png")
    with pytest.raises(tp.FormatError, match="1 of 4 photographs cannot be read .of these, the scan left out 1., and max_unreadable is 0; .*e.png"):
        tp.collect(images, database, work=work, device="cpu", max_unreadable=0)
    (images / "e.png").unlink()
    assert len(list(tp.collect(images, database, work=work, device="cpu").pairs())) == 3
    (images / "a.png").unlink()
    changed = tp.collect(images, database, work=work, device="cpu")
    assert [(pair.a, pair.b) for pair in changed.pairs()] == [("b ü.png", "d.png")]
    opened = tp.Collection(work)
    (images / "d.png").write_bytes(b"something else")
    (images / "c.png").write_bytes((photographs / "c.png").read_bytes())
    scanned = tp.Collection.scan(images, work)
    assert scanned.names == ["b ü.png", "c.png", "d.png"] and opened.names == ["b ü.png", "d.png"]
    assert scanned.status()["missing_features"] == [1, 2]


def test_limits_are_those_of_the_object_and_not_of_the_folder(photographs, tmp_path):
    images, work = photographs / "a.png", tmp_path / "work"
    small = tp.Collection.scan(images, work, max_bytes=76_799)
    assert (small.max_pixels, small.max_bytes) == (1 << 32, 76_799)
    with pytest.warns(UserWarning, match="1 of 1 photographs are left out"):
        [(name, reason)] = small.extract(device="cpu")["unreadable"]
    assert name == "a.png" and "76800 bytes" in reason and "max_bytes" in reason
    assert pickle.loads(pickle.dumps(small)).max_bytes == 76_799
    large = tp.Collection(work, max_bytes="75K")
    assert large.max_bytes == 76_800 and large.extract(device="cpu")["searched"] == 1
    assert tp.Collection(work).max_bytes == 1 << 32
    # Nor is `sync` recorded in the folder.
    assert tp.Collection(work).sync and small.sync
    assert not pickle.loads(pickle.dumps(tp.Collection(work, sync=False))).sync
    for wrong in [{"max_pixels": 0}, {"max_pixels": -1}, {"max_pixels": "2MB"}, {"max_bytes": 0}, {"max_bytes": "much"}]:
        [(option, value)] = wrong.items()
        for refused in [
            lambda: tp.Collection(work, **wrong),
            lambda: tp.Collection.scan(images, tmp_path / "new", **wrong),
            lambda: tp.collect(images, tmp_path / "db", **wrong),
            lambda: tp.read(images, **wrong),
            lambda: tp.io.decode(images.read_bytes(), **wrong),
        ]:
            with pytest.raises(tp.OptionError, match=f"{option} is {value}"):
                refused()
    assert not (tmp_path / "new").exists() and not (tmp_path / "db.work").exists()


def test_wrong_arguments_are_errors(tmp_path, photographs):
    with pytest.raises(tp.FormatError, match="no work folder"):
        tp.Collection(tmp_path)
    with pytest.raises(tp.OptionError, match="work folder"):
        tp.collect(photographs)
    with pytest.raises(tp.OptionError, match="at least one device"):
        tp.collect(photographs, tmp_path / "db", device=[])
    with pytest.raises(tp.FormatError, match="none of the photographs"), pytest.warns(UserWarning, match="1 of 1"):
        tp.collect(photographs / "d.png", tmp_path / "db", device="cpu")
    unfinished = tp.Collection.scan(photographs, tmp_path / "work")
    with pytest.raises(tp.Error, match=r"call `Collection\.\w+\(\)` first"):
        list(unfinished.pairs())
    with pytest.raises(tp.MismatchError, match="this collection has pairs = exhaustive: .* scanned with pairs = matches"):
        unfinished.import_matches({})


def test_the_page_shows_photographs_and_pairs(collection, tmp_path):
    page = tp.report(collection, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert "b ü.png" in page and "1 of 3 pairs of 4 photographs" in page and "Content-Security-Policy" in page
    assert "<iframe" in page._repr_html_()
    with pytest.raises(tp.OptionError, match="neither images nor title"):
        tp.report(collection, title="mine")
