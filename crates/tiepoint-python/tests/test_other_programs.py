"""Files in the conventions of other programs: HDF5 of hloc and its relatives, places on maps, pixels without data."""

import functools
import shutil

import numpy as np
import pytest
import tiepoint as tp

rasterio = pytest.importorskip("rasterio")
tifffile = pytest.importorskip("tifffile")
h5py = pytest.importorskip("h5py")
Image = pytest.importorskip("PIL.Image")

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")


@pytest.fixture(scope="module")
def command(command):
    """Gives what is printed as text."""
    return functools.partial(command, text=True)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Three photographs of one scene."""
    folder = tmp_path_factory.mktemp("photographs")
    for name, shift in [("a", 0), ("b", 6), ("c", 12)]:
        moved = np.array([[1, 0, -shift], [0, 1, -shift], [0, 0, 1.0]])
        tp.write(folder / f"{name}.png", tp.synth.scene((240, 200), moved, seed=3).moving)
    return folder


@pytest.fixture(scope="module")
def found(photographs):
    sift = tp.Sift(max_features=300, device="cpu")
    return {name: sift.detect(tp.read(photographs / name, orient=False)) for name in ["a.png", "b.png", "c.png"]}


def hloc(path, found, descriptors=lambda features: features.descriptors.T.astype(np.float32) / 512):
    with h5py.File(path, "w") as file:
        for name, features in found.items():
            file[f"{name}/keypoints"] = features.xy.astype(np.float32)
            file[f"{name}/descriptors"] = descriptors(features)
    return path


def collected(photographs, tmp_path, **options):
    work = tmp_path / f"work{len(list(tmp_path.iterdir()))}"
    options = tp.CollectionOptions(**options)
    return list(tp.collect(photographs, work=work, options=options, device="cpu").pairs())


def test_square_descriptors_of_hloc_are_columns(photographs, found, tmp_path):
    """128 features of 128 values each."""
    some = {name: features[:128] for name, features in found.items()}
    square = hloc(tmp_path / "square.h5", some)
    more = hloc(tmp_path / "more.h5", {name: features[:127] for name, features in found.items()})
    [of_square, of_more] = [collected(photographs, tmp_path, features=path) for path in (square, more)]
    assert len(of_square) == len(of_more) == 3
    assert sum(pair.inliers.sum() for pair in of_square) > 0.9 * sum(pair.inliers.sum() for pair in of_more)


def test_matches_in_layouts_of_others_are_read_or_refused(photographs, found, tmp_path):
    features = hloc(tmp_path / "features.h5", found)
    pairs = tp.match(found["a.png"], found["b.png"], device="cpu").pairs
    assert len(pairs) > 50

    def written(name, fill):
        with h5py.File(tmp_path / name, "w") as file:
            fill(file)
        return tmp_path / name

    def matches0(count):
        to = np.full(count, -1, np.int32)
        to[pairs[:, 0]] = pairs[:, 1]
        return to

    def collect(path):
        return collected(photographs, tmp_path, features=features, matches=path)

    count = len(found["a.png"])
    [of_group] = collect(written("group.h5", lambda file: file.update({"a.png/b.png/matches0": matches0(count)})))
    # A group for each photograph with an array of two indices a row for each partner.
    [of_array] = collect(written("array.h5", lambda file: file.update({"a.png/b.png": pairs})))
    assert np.array_equal(of_group.pairs, of_array.pairs) and of_array.inliers.sum() > 30
    for name, fill, reason in [
        ("longer.h5", lambda file: file.update({"a.png/b.png/matches0": matches0(count + 7)}), "for other features"),
        ("empty.h5", lambda file: None, "holds no matches"),
        ("features-again.h5", lambda file: file.update({"a.png/keypoints": pairs}), "'keypoints'|\"keypoints\""),
        ("halves.h5", lambda file: file.update({"a.png/b.png/matches0": matches0(count) + 0.5}), "matches0 holds .*whole numbers"),
        (
            "nan.h5",
            lambda file: file.update({"a.png/b.png/matches0": np.where(matches0(count) < 0, np.nan, matches0(count))}),
            "matches0 holds NaN",
        ),
        ("rows.h5", lambda file: file.update({"a.png/b.png/matches0": pairs}), r"matches0 has the shape \[\d+, 2\]"),
        ("threes.h5", lambda file: file.update({"a.png/b.png": np.c_[pairs, pairs[:, 0]]}), "two indices a row"),
    ]:
        with pytest.raises((tp.FormatError, tp.MismatchError), match=reason):
            collect(written(name, fill))
    (tmp_path / "cut.h5").write_bytes(features.read_bytes()[: features.stat().st_size // 2])
    options = tp.CollectionOptions(features=tmp_path / "cut.h5")
    collection = tp.Collection.scan(photographs, tmp_path / "cut", options, device="cpu")
    with pytest.raises(tp.FormatError, match=r"cut\.h5: .*: unexpected end of data"):
        collection.extract(device="cpu")


def test_what_is_not_read_of_hdf5_is_told(photographs, found, tmp_path):
    hloc(tmp_path / "all.h5", found)
    with h5py.File(tmp_path / "lzf.h5", "w") as lzf, h5py.File(tmp_path / "linked.h5", "w") as linked:
        for name, features in found.items():
            lzf.create_dataset(f"{name}/keypoints", data=features.xy, compression="lzf")
            linked[name] = h5py.ExternalLink("all.h5", name)

    def scanned(name):
        options = tp.CollectionOptions(features=tmp_path / f"{name}.h5")
        return tp.Collection.scan(photographs, tmp_path / name, options, device="cpu")

    with pytest.raises(tp.FormatError, match=r"lzf\.h5: .*32000: expected no compression or gzip"):
        scanned("lzf").extract(device="cpu")
    with pytest.warns(UserWarning, match="left out"):
        reasons = scanned("linked").extract(device="cpu")["unreadable"]
    assert "no group a.png (links to other files are not followed)" in reasons[0][1]


def test_imported_matches_have_two_columns(photographs, found, tmp_path):
    collection = tp.Collection.scan(photographs, tmp_path / "work", tp.CollectionOptions(pairs="matches"), device="cpu")
    for name, features in found.items():
        collection.import_features(name, features)
    pairs = tp.match(found["a.png"], found["b.png"], device="cpu").pairs
    for wrong in (np.c_[pairs, pairs[:, 0]][: len(pairs) // 2 * 2], pairs.T, pairs.ravel(), pairs + 0.9, pairs > 3):
        with pytest.raises(tp.OptionError, match=r"expected \(M, 2\) integers"):
            collection.import_matches({("a.png", "b.png"): wrong})
    collection.import_matches({("a.png", "b.png"): pairs.astype(np.int64), ("a.png", "c.png"): []})
    collection.match_pairs(device="cpu")
    [only] = collection.pairs()
    assert np.array_equal(only.pairs, pairs)


def test_a_list_is_matched_as_it_is(photographs, command, tmp_path):
    """No pairs are added by a common partner; a byte order mark is accepted, and UTF-16 is not misread silently."""
    (tmp_path / "pairs.txt").write_bytes(b"\xef\xbb\xbfa.png b.png\r\na.png c.png\r\n")
    verified = collected(photographs, tmp_path, pairs=tmp_path / "pairs.txt", max_features=300)
    assert [(pair.a, pair.b) for pair in verified] == [("a.png", "b.png"), ("a.png", "c.png")]
    (tmp_path / "pairs.txt").write_text("a.png b.png\n", "utf-16")
    said = command("collect", photographs, "-o", tmp_path / "x.db", "--pairs", tmp_path / "pairs.txt").stderr
    assert "UTF-16" in said
    (tmp_path / "pairs.txt").write_text("nowhere.png b.png\n")
    said = command("collect", photographs, "-o", tmp_path / "x.db", "--pairs", tmp_path / "pairs.txt").stderr
    assert 'no photograph of the collection, whose names are like "a.png"' in said


def test_features_that_could_not_serve_are_refused(photographs, found, command, tmp_path):
    """Floats far longer than the greatest distance, and one file for two photographs."""
    long = hloc(tmp_path / "long.h5", found, lambda features: features.descriptors.T.astype(np.float32))
    said = command("collect", photographs, "-o", tmp_path / "long.db", "--features", long)
    assert said.returncode == 1 and "--metric cosine" in said.stderr
    done = command("collect", photographs, "-o", tmp_path / "unit.db", "--features", long, "--metric", "cosine")
    assert done.returncode == 0, done.stderr
    both = tmp_path / "both"
    shutil.copytree(photographs, both)
    Image.open(both / "a.png").save(both / "a.jpg")
    (tmp_path / "given").mkdir()
    for name, features in found.items():
        tp.io.write_features(tmp_path / "given" / name.replace("png", "npz"), features)
    said = command("collect", both, "-o", tmp_path / "both.db", "--features", tmp_path / "given")
    assert said.returncode == 1 and "both a.jpg and a.png" in said.stderr


def test_a_database_in_the_way_is_told_of_before_the_work(photographs, command, tmp_path):
    (tmp_path / "other.db").write_bytes(b"not ours")
    said = command("collect", photographs, "-o", tmp_path / "other.db")
    assert said.returncode == 1 and "replace it (`--replace`" in said.stderr and "features" not in said.stderr
    assert not (tmp_path / "other.db.work").exists()
    with pytest.raises(tp.FormatError, match="replace it"):
        tp.collect(photographs, tmp_path / "other.db", device="cpu")
    assert (tmp_path / "other.db").read_bytes() == b"not ours" and not (tmp_path / "other.db.work").exists()


# Places on maps.
NORTH_UP = rasterio.Affine(0.5, 0, 500000, 0, -0.5, 4600000) if rasterio else None


@pytest.fixture(scope="module")
def scene():
    truth = np.array([[0.98, -0.2, 30], [0.2, 0.98, -20], [0, 0, 1.0]])
    return tp.synth.scene((320, 240), truth, seed=3)


def georeferenced(path, pixels, **more):
    bands = np.atleast_3d(pixels).transpose(2, 0, 1)
    given = {"crs": "EPSG:32632", "transform": NORTH_UP, **more}
    count, height, width = bands.shape
    with rasterio.open(path, "w", "GTiff", width, height, count, dtype=bands.dtype, **given) as file:
        file.write(bands)
    return path


def test_a_picture_with_a_world_file_is_not_turned(scene, command, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(scene.reference).save(tmp_path / "ref.jpg", quality=98, exif=exif)
    numbers = [0.5, 0, 0, -0.5, 500000.25, 4599999.75]
    (tmp_path / "ref.jgw").write_text("\n".join(map(str, numbers)))
    tp.write(tmp_path / "moving.png", scene.moving)
    done = command("register", tmp_path / "ref.jpg", tmp_path / "moving.png", "-o", tmp_path / "out.tif", "--model", "affine")
    assert done.returncode == 0, done.stderr
    with rasterio.open(tmp_path / "out.tif") as file:
        assert (file.width, file.height) == (320, 240) and file.transform.almost_equals(NORTH_UP)
        apart = np.abs(file.read(1).astype(int) - scene.reference)[60:180, 80:240]
    assert np.median(apart) < 6
    # Without a place it is turned.
    assert tp.read(tmp_path / "ref.jpg").shape == (240, 320)
    (tmp_path / "ref.jgw").unlink()
    assert tp.read(tmp_path / "ref.jpg").shape == (320, 240)


def test_points_of_two_pictures_on_maps_are_read_back(scene, command, tmp_path):
    a = georeferenced(tmp_path / "a.tif", scene.moving, transform=rasterio.Affine(0.4, 0.1, 499000, 0.1, -0.4, 4600500))
    b = georeferenced(tmp_path / "b.tif", scene.reference)
    assert command("match", a, b, "-o", tmp_path / "m.points", "--model", "affine").returncode == 0
    rows = np.loadtxt(tmp_path / "m.points", delimiter=",", skiprows=2)
    assert (rows[:, 0] > 400000).all() and (rows[:, 2] > 400000).all(), "both on their maps, as QGIS takes them"
    done = command("match", a, b, "--matches", tmp_path / "m.points", "--model", "affine", "--json")
    assert done.returncode == 0, done.stderr


def test_a_virtual_raster_of_a_palette_is_refused_and_of_no_data_keeps_it(scene, command, tmp_path):
    b = georeferenced(tmp_path / "b.tif", scene.reference)
    Image.fromarray(scene.moving).quantize(200).save(tmp_path / "palette.png")
    said = command("match", tmp_path / "palette.png", b, "-o", tmp_path / "p.vrt", "--model", "affine")
    assert said.returncode == 1 and "palette" in said.stderr and not (tmp_path / "p.vrt").exists()
    holed = np.maximum(scene.moving, 1)
    holed[:40, :60] = 0
    a = georeferenced(tmp_path / "a.tif", holed, nodata=0)
    assert command("match", a, b, "-o", tmp_path / "a.vrt", "--model", "affine").returncode == 0
    with rasterio.open(tmp_path / "a.vrt") as file:
        assert file.nodata == 0 and (file.read_masks(1) == 0).sum() == 2400


def test_what_is_beside_a_result_is_not_lost_or_mistaken(scene, command, tmp_path):
    ref, moving = georeferenced(tmp_path / "ref.tif", scene.reference), tmp_path / "moving.png"
    tp.write(moving, scene.moving)
    mask = tmp_path / "out.png.msk"
    Image.fromarray(np.full(scene.moving.shape, 255, np.uint8)).save(mask, "TIFF")
    words = ["register", ref, moving, "-o", tmp_path / "out.png", "--model", "affine"]
    said = command(*words, "--mask-b", mask)
    assert said.returncode == 2 and "would replace the input" in said.stderr and mask.exists()
    assert command(*words).returncode == 0 and (tmp_path / "out.pgw").exists()
    before = (tmp_path / "out.pgw").read_text()
    # A canvas for both begins elsewhere on the map.
    assert command(*words, "--canvas", "union").returncode == 0 and (tmp_path / "out.pgw").read_text() != before
    tp.write(tmp_path / "plain.png", scene.reference)
    words[1] = tmp_path / "plain.png"
    assert "does not belong to it" in command(*words).stderr


def test_a_place_that_is_not_read_is_told_of(scene, command, tmp_path):
    moving = tmp_path / "moving.png"
    tp.write(moving, scene.moving)
    place = b"\x00\x00\x00\x20uuid\xb1\x4b\xf8\xbd\x08\x3d\x4b\x43\xa5\xae\x8c\xd7\xd5\xa6\xce\x03" + bytes(8)
    Image.fromarray(scene.reference).save(tmp_path / "ref.jp2", irreversible=False)
    stored = (tmp_path / "ref.jp2").read_bytes()
    codestream = stored.index(b"jp2c") - 4
    (tmp_path / "ref.jp2").write_bytes(stored[:codestream] + place + stored[codestream:])
    done = command("register", tmp_path / "ref.jp2", moving, "-o", tmp_path / "out.tif", "--model", "affine")
    assert done.returncode == 0 and "whose place is not read" in done.stderr


# Pixels without data.
def test_disparities_without_data_are_unknown(tmp_path):
    map_ = np.linspace(1, 9, 600, dtype=np.float32).reshape(20, 30)
    holed = map_.copy()
    holed[5:10] = -9999
    georeferenced(tmp_path / "d.tif", holed, nodata=-9999)
    read = tp.io.read_disparity(tmp_path / "d.tif", signed=True)
    assert np.isnan(read[5:10]).all() and np.array_equal(read[:5], map_[:5])
    holed[5:10] = 9999
    georeferenced(tmp_path / "d.tif", holed, nodata=9999)
    assert np.isnan(tp.io.read_disparity(tmp_path / "d.tif")[5:10]).all()


def test_white_is_zero_and_no_data(tmp_path):
    for kind, value in [(np.uint8, 0), (np.uint8, 255), (np.uint16, 60000)]:
        pixels = (np.arange(600).reshape(20, 30) % 200 + 20).astype(kind)
        pixels[4:9, 6:16] = value
        georeferenced(tmp_path / "w.tif", pixels, nodata=value, photometric="MINISWHITE")
        image, valid = tp.io.read_masked(tmp_path / "w.tif") if hasattr(tp.io, "read_masked") else (tp.read(tmp_path / "w.tif"), None)
        top = np.iinfo(kind).max
        assert np.array_equal(image, top - pixels)


def test_jpeg_of_two_bands_is_refused(tmp_path):
    two = np.random.default_rng(1).integers(0, 255, (64, 64, 2)).astype(np.uint8)
    georeferenced(tmp_path / "two.tif", two, compress="JPEG", interleave="pixel")
    with pytest.raises(tp.FormatError, match="two channels"):
        tp.read(tmp_path / "two.tif")


def test_one_band_may_lack_data_where_another_has_some(scene, command, tmp_path):
    ref = georeferenced(tmp_path / "ref.tif", scene.reference)
    two = np.dstack([scene.moving, scene.moving]).astype(np.float32)
    two[60:120, 80:150, 1] = -9999
    georeferenced(tmp_path / "two.tif", two, nodata=-9999)
    done = command("register", ref, tmp_path / "two.tif", "-o", tmp_path / "out.tif", "--model", "affine", "--band", 1)
    assert done.returncode == 0, done.stderr
    with rasterio.open(tmp_path / "out.tif") as file:
        first, second = file.read()
    lacking = (second == -9999) & (first != -9999)
    assert lacking.sum() > 2000 and second[second != -9999].min() >= -80, "no value between"
    assert np.array_equal(second[~lacking], first[~lacking])


def test_a_filter_keeps_the_place_and_tells_of_pixels_without_data(command, tmp_path):
    plain = np.full((40, 50), 50, np.float32)
    plain[10:20, 10:20] = -9999
    georeferenced(tmp_path / "f.tif", plain, nodata=-9999)
    done = command("filter", "gauss", tmp_path / "f.tif", tmp_path / "o.tif", "--sigma", 2)
    assert done.returncode == 0 and "without data" in done.stderr
    with rasterio.open(tmp_path / "o.tif") as file:
        assert file.transform == NORTH_UP and file.crs.to_epsg() == 32632
