"""Files that Pillow, tifffile and rasterio's GDAL write, and our files as these read them."""

import json
import os
import struct

import numpy as np
import pytest
import tiepoint as tp

cv2 = pytest.importorskip("cv2")
rasterio = pytest.importorskip("rasterio")
tifffile = pytest.importorskip("tifffile")
imageio = pytest.importorskip("imageio.v3")
pandas = pytest.importorskip("pandas")
plyfile = pytest.importorskip("plyfile")
Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")

SIZE = (93, 71)


def grey(bits=8, size=SIZE):
    """A picture without symmetry."""
    y, x = np.mgrid[: size[1], : size[0]]
    top = 2**bits - 1
    return ((x * 7 + y * 3 + (x // 9 % 2) * (y // 5 % 3) * 40) * (top // 255) % (top + 1)).astype(np.uint8 if bits <= 8 else np.uint16)


def colour():
    g = grey()
    return np.dstack([g, g[::-1], 255 - g])


def opened(path, mode=None):
    """The pixels that Pillow reads, converted to this mode and turned upright."""
    with Image.open(path) as file:
        upright = ImageOps.exif_transpose(file)
        return np.asarray(upright.convert(mode) if mode else upright)


@pytest.fixture(scope="module")
def scenes():
    """A scene from two viewpoints, with 8 bits."""
    made = tp.synth.scene((320, 240), [[0.99619, -0.08716, 14.0], [0.08716, 0.99619, -9.0], [0, 0, 1]], seed=3)
    return made.reference, made.moving


def raster(path, bands, **options):
    bands = np.atleast_3d(bands) if bands.ndim == 2 else bands
    bands = np.moveaxis(bands, -1, 0)
    names = {"driver": "GTiff", "dtype": bands.dtype, "count": len(bands), "height": bands.shape[1], "width": bands.shape[2]}
    with rasterio.open(path, "w", **(names | options)) as file:
        file.write(bands)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("extension", ["jpg", "png", "webp", "tif"])
def test_pictures_are_turned_as_exif_says(tmp_path, extension, orientation):
    path = tmp_path / f"p.{extension}"
    picture = Image.fromarray(colour())
    exif = Image.Exif()
    exif[274] = orientation
    how = {"lossless": True} if extension == "webp" else {"quality": 98, "subsampling": 0} if extension == "jpg" else {}
    picture.save(path, exif=exif, **how)
    upright = opened(path, "RGB").astype(int)
    read = tp.read(path).astype(int)
    assert read.shape == upright.shape
    assert np.abs(read - upright).max() <= (4 if extension == "jpg" else 0)
    assert tp.read(path, orient=False).shape == colour().shape


@pytest.mark.parametrize("after", [b"SEFT\xff\xda\x00", b"\xff\xd8\xff\xd9", os.urandom(1 << 20)])
def test_data_after_the_end_of_a_jpeg_is_ignored(tmp_path, after):
    Image.fromarray(colour()).save(tmp_path / "plain.jpg")
    plain = (tmp_path / "plain.jpg").read_bytes()
    (tmp_path / "motion.jpg").write_bytes(plain + after)
    assert np.array_equal(tp.read(tmp_path / "motion.jpg"), tp.read(tmp_path / "plain.jpg"))
    (tmp_path / "cut.jpg").write_bytes(plain[: len(plain) // 2])
    with pytest.raises(tp.FormatError, match="truncated"):
        tp.read(tmp_path / "cut.jpg")


TIFFS = {
    "zstd": (grey(), {"compress": "zstd"}),
    "zstd, predicted": (grey(16), {"compress": "zstd", "predictor": 2}),
    "zstd, floats predicted": (grey(16).astype(np.float32) / 7, {"compress": "zstd", "predictor": 3}),
    "lzw in tiles": (colour(), {"compress": "lzw", "tiled": True, "blockxsize": 64, "blockysize": 32, "predictor": 2}),
    "deflate in planes": (colour(), {"compress": "deflate", "interleave": "band"}),
    "packbits": (grey(16), {"compress": "packbits"}),
    "8 bands": (np.dstack([grey(16) // (i + 1) for i in range(8)]), {"compress": "deflate"}),
    "int16": (grey(16).astype(np.int32).astype(np.int16), {}),
    "int32": (grey(16).astype(np.int32) - 30000, {"compress": "lzw"}),
    "uint32": (grey(16).astype(np.uint32) * 3, {"compress": "deflate", "predictor": 2}),
    "int8": (grey().astype(np.int8), {}),
    "double": (grey() / 9.0, {}),
    "12 bits": (grey(16) >> 4, {"nbits": 12}),
    "9 bits in tiles": (grey(16) >> 7, {"nbits": 9, "tiled": True, "blockxsize": 32, "blockysize": 32}),
    "big": (grey(), {"BIGTIFF": "YES"}),
}


@pytest.mark.parametrize("kind", TIFFS)
def test_tiffs_of_gdal(tmp_path, kind):
    pixels, options = TIFFS[kind]
    raster(tmp_path / "t.tif", pixels, **options)
    read = tp.read(tmp_path / "t.tif")
    kept = pixels.dtype if pixels.dtype in (np.uint8, np.uint16) else np.float32
    assert read.dtype == kept and np.array_equal(read, pixels.astype(kept))


def test_tiffs_of_tifffile(tmp_path):
    for name, pixels, options in [
        ("half", (grey() / 8).astype(np.float16), {}),
        ("big-endian", grey(16), {"byteorder": ">"}),
        ("floats, big-endian", grey(16).astype(np.float32), {"byteorder": ">"}),
        ("white is zero", grey(), {"photometric": "miniswhite"}),
    ]:
        path = tmp_path / "t.tif"
        tifffile.imwrite(path, pixels, **options)
        expected = 255 - pixels if name == "white is zero" else pixels
        assert np.array_equal(tp.read(path), expected.astype(np.float32) if name == "half" else expected), name
    tifffile.imwrite(path, np.zeros(SIZE, np.complex64))
    with pytest.raises(tp.FormatError, match="complex"):
        tp.read(path)


def tiff_of(pixels, *more):
    """An uncompressed grey TIFF of one strip with these further entries (tag, value)."""
    height, width = pixels.shape
    entries = {256: width, 257: height, 258: 8, 259: 1, 262: 1, 277: 1, 278: height, 279: pixels.size, **dict(more)}
    entries[273] = 8 + 2 + 12 * (len(entries) + 1) + 4
    packed = b"".join(struct.pack("<HHIHH", tag, 3, 1, value, 0) for tag, value in sorted(entries.items()))
    return struct.pack("<2sHIH", b"II", 42, 8, len(entries)) + packed + bytes(4) + pixels.tobytes()


def test_bits_may_be_stored_from_the_lowest(tmp_path):
    turned = np.packbits(np.unpackbits(grey()[..., None], -1)[..., ::-1], -1)[..., 0]
    (tmp_path / "f.tif").write_bytes(tiff_of(turned, (266, 2)))
    assert np.array_equal(tp.read(tmp_path / "f.tif"), grey())


def test_palettes_are_colour(tmp_path):
    for extension in ["tif", "gif", "png", "bmp"]:
        path = tmp_path / f"p.{extension}"
        picture = Image.fromarray(colour()).quantize(64)
        picture.save(path)
        expected = opened(path, "RGB")
        assert np.array_equal(tp.read(path), expected), extension
    raster(path.with_suffix(".tif"), grey() % 4, nodata=3, nbits=4)
    with rasterio.open(path.with_suffix(".tif"), "r+") as file:
        file.write_colormap(1, {i: (10 * i, 5, 200, 255) for i in range(16)})
    assert np.array_equal(tp.read(path.with_suffix(".tif"))[..., 0], grey() % 4 * 10)


def test_formats_of_other_programs(tmp_path):
    picture = Image.fromarray(colour())
    for extension, how in [("bmp", {}), ("webp", {"lossless": True}), ("jp2", {"irreversible": False})]:
        path = tmp_path / f"p.{extension}"
        picture.save(path, **how)
        assert np.array_equal(tp.read(path), colour()), extension
    clear = np.dstack([colour(), np.where(grey() < 90, 0, 255).astype(np.uint8)])
    Image.fromarray(clear).save(tmp_path / "a.webp", lossless=True, exact=True)
    assert np.array_equal(tp.read(tmp_path / "a.webp"), clear)
    raster(tmp_path / "s.jp2", grey(16), driver="JP2OpenJPEG", QUALITY=100, REVERSIBLE="YES")
    assert np.array_equal(tp.read(tmp_path / "s.jp2"), grey(16))
    for array in [grey(), grey(16), colour(), grey() / 7.0, grey().astype(np.int16) - 99, grey().astype(">u2")]:
        np.save(tmp_path / "a.npy", array)
        read = tp.read(tmp_path / "a.npy")
        assert np.array_equal(read, array.astype(read.dtype)) and read.shape == array.shape
    for array in [grey(), colour(), grey(16), np.float32(grey()) - 7]:
        tp.write(tmp_path / "b.npy", array)
        assert np.array_equal(np.load(tmp_path / "b.npy"), array)


def test_openexr_both_ways(tmp_path):
    openexr = pytest.importorskip("OpenEXR")
    floats = np.float32(colour()) / 7 - 3
    tp.write(tmp_path / "a.exr", floats)
    with openexr.File(str(tmp_path / "a.exr")) as file:
        assert np.array_equal(file.channels()["RGB"].pixels, floats)
    halves = {"RGB": colour().astype(np.float16), "Z": floats[..., 0].copy()}
    with openexr.File({"compression": openexr.PIZ_COMPRESSION, "type": openexr.scanlineimage}, halves) as file:
        file.write(str(tmp_path / "b.exr"))
    assert np.array_equal(tp.read(tmp_path / "b.exr"), np.dstack([colour(), floats[..., :1]]))
    names = dict(zip("RGBA", np.moveaxis(np.dstack([floats, np.ones_like(floats[..., 0])]), -1, 0), strict=True))
    layers = {f"ViewLayer.Combined.{name}": np.ascontiguousarray(values) for name, values in names.items()}
    layers["ViewLayer.Depth.Z"] = floats[..., 0] * 9
    expected = np.dstack([*layers.values()])
    with openexr.File({"compression": openexr.ZIP_COMPRESSION, "type": openexr.scanlineimage}, layers) as file:
        file.write(str(tmp_path / "c.exr"))
    assert np.array_equal(tp.read(tmp_path / "c.exr"), expected), "colours of a layer come first"


def test_sparse_tiles_hold_no_data(tmp_path):
    with rasterio.open(
        tmp_path / "s.tif", "w", driver="GTiff", dtype="uint8", count=1, width=96, height=64, tiled=True,
        blockxsize=32, blockysize=32, SPARSE_OK="TRUE", nodata=9,
    ) as file:
        file.write(grey(8, (32, 32)), 1, window=rasterio.windows.Window(32, 0, 32, 32))
    read = tp.read(tmp_path / "s.tif")
    assert np.array_equal(read[:32, 32:64], grey(8, (32, 32))) and (read[32:] == 9).all() and (read[:, :32] == 9).all()


def test_bitmaps_of_pillow_are_read_as_opencv_reads_them(tmp_path):
    clear = np.dstack([colour(), grey()])
    for name, picture in {
        "bits": Image.fromarray(grey() > 100),
        "grey": Image.fromarray(grey()),
        "palette": Image.fromarray(colour()).quantize(40),
        "colour": Image.fromarray(colour()),
        "alpha": Image.fromarray(clear),
    }.items():
        path = tmp_path / f"{name}.bmp"
        picture.save(path)
        read = tp.read(path)
        assert np.array_equal(np.atleast_3d(read)[..., ::-1][..., -3:], cv2.imread(str(path))[..., -np.atleast_3d(read).shape[2]:]), name
        path.write_bytes(path.read_bytes()[: len(path.read_bytes()) * 2 // 3])
        with pytest.raises(tp.FormatError, match="truncated"):
            tp.read(path)


def test_jpeg_2000_keeps_signs(tmp_path):
    heights = grey(16).astype(np.int32) // 3 - 9000
    raster(tmp_path / "s.jp2", heights.astype(np.int16), driver="JP2OpenJPEG", QUALITY=100, REVERSIBLE="YES")
    read = tp.read(tmp_path / "s.jp2")
    assert read.dtype == np.float32 and np.array_equal(read, heights)
    raster(tmp_path / "s.j2k", heights.astype(np.int16), driver="JP2OpenJPEG", QUALITY=100, REVERSIBLE="YES", CODEC="J2K")
    assert np.array_equal(tp.read(tmp_path / "s.j2k"), heights)


def test_rare_layouts_of_tiff(tmp_path):
    inks = np.stack([grey(), grey()[::-1], 255 - grey(), grey() // 2])
    tifffile.imwrite(tmp_path / "planes.tif", inks, photometric="separated", planarconfig="separate")
    tifffile.imwrite(tmp_path / "pixels.tif", np.moveaxis(inks, 0, -1), photometric="separated", planarconfig="contig")
    assert np.array_equal(tp.read(tmp_path / "planes.tif"), opened(tmp_path / "pixels.tif", "RGB"))
    for values in [grey() / np.float32(7), grey().astype(np.int16) - 99]:
        tifffile.imwrite(tmp_path / "white.tif", values, photometric="miniswhite")
        assert np.array_equal(tp.read(tmp_path / "white.tif"), values)
    raster(tmp_path / "jpeg.tif", colour(), compress="jpeg", photometric="ycbcr", blockysize=16)
    assert np.abs(tp.read(tmp_path / "jpeg.tif").astype(int) - opened(tmp_path / "jpeg.tif")).max() <= 4
    whole = (tmp_path / "jpeg.tif").read_bytes()
    (tmp_path / "jpeg.tif").write_bytes(whole[:-200])
    with pytest.raises(tp.FormatError, match="truncated"):
        tp.read(tmp_path / "jpeg.tif")


def test_arrays_of_other_types(tmp_path):
    for kind in ["i8", "u8", ">i8", "f2", ">f2", "?"]:
        array = (grey() % 99 > 40 if kind == "?" else grey()).astype(kind)
        np.save(tmp_path / "a.npy", array)
        assert np.array_equal(tp.read(tmp_path / "a.npy"), array * 255 if kind == "?" else array), kind
    for array in [grey(), colour(), np.float32(grey()).astype(">f4")]:
        np.save(tmp_path / "a.npy", np.asfortranarray(array))
        assert np.array_equal(tp.read(tmp_path / "a.npy"), array), "columns first"
    for array, why in [(np.moveaxis(colour(), -1, 0), "moveaxis"), (grey() * 1j, "c16")]:
        np.save(tmp_path / "a.npy", array)
        with pytest.raises(tp.FormatError, match=why):
            tp.read(tmp_path / "a.npy")


def test_headers_may_end_their_lines_as_windows_does(tmp_path):
    size = f"{SIZE[0]} {SIZE[1]}"
    floats = np.float32(grey()) / 7
    for start in [10, 11]:
        # A picture that begins with a line feed is not taken for a part of the header.
        picture = grey().copy()
        picture[0, 0] = start
        for end in ["\n", "\r\n", "\r"]:
            (tmp_path / "a.pgm").write_bytes(f"P5{end}{size}{end}255{end}".encode() + picture.tobytes())
            assert np.array_equal(tp.read(tmp_path / "a.pgm"), picture), (start, end)
            (tmp_path / "a.pfm").write_bytes(f"Pf{end}{size}{end}-1{end}".encode() + floats[::-1].tobytes())
            assert np.array_equal(tp.read(tmp_path / "a.pfm"), floats), end


REFUSED = {
    "raw.dng": "darktable",
    "photo.heic": "heif-convert",
    "photo.avif": "avifdec",
    "image.ntf": "gdal_translate",
    "image.vrt": "gdal_translate",
    "film.mp4": "ffmpeg",
    "pointer.png": "git lfs pull",
}


def test_errors_for_unread_formats_name_a_converter(tmp_path):
    for name, content in {
        "photo.heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
        "photo.avif": b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf",
        "image.ntf": b"NITF02.10" + b" " * 400,
        "image.vrt": b'<VRTDataset rasterXSize="5" rasterYSize="5">',
        "film.mp4": b"\0\0\0\x18ftypisom\0\0\2\0isommp42",
        "pointer.png": b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n",
    }.items():
        (tmp_path / name).write_bytes(content)
    raster(tmp_path / "envi.img", grey(), driver="ENVI")
    with pytest.raises(tp.FormatError, match="ENVI raster .* gdal_translate"):
        tp.read(tmp_path / "envi.img")
    with pytest.raises(tp.FormatError, match="ENVI raster.* gdal_translate"):
        tp.read(tmp_path / "envi.hdr")
    (tmp_path / "raw.dng").write_bytes(tiff_of(grey(), (254, 1), (50706, 1)))
    for name, word in REFUSED.items():
        with pytest.raises(tp.FormatError, match=word):
            tp.read(tmp_path / name)


def features(command, path, *words):
    told = command("detect", path, "--json", *words, text=True, check=True)
    return json.loads(told.stdout)["features"]


def test_alpha_is_alpha_only_where_the_file_says_so(command, scenes, tmp_path):
    empty = np.zeros_like(scenes[0])
    colour = np.dstack([scenes[0]] * 3 + [empty])
    raster(tmp_path / "nir.tif", colour, photometric="rgb", alpha="unspecified")
    raster(tmp_path / "alpha.tif", colour, photometric="rgb", alpha="yes")
    raster(tmp_path / "two.tif", colour[..., 2:], photometric="minisblack", alpha="unspecified")
    raster(tmp_path / "eight.tif", np.dstack([scenes[0]] + [empty] * 7), photometric="minisblack")
    tp.write(tmp_path / "grey.png", scenes[0])
    all_of_them = features(command, tmp_path / "grey.png")
    assert all_of_them > 100
    for name in ["nir.tif", "two.tif", "eight.tif"]:
        assert features(command, tmp_path / name) == all_of_them, name
    assert features(command, tmp_path / "alpha.tif") == 0
    assert features(command, tmp_path / "eight.tif", "--band", 2) == 0
    told = command("detect", tmp_path / "eight.tif", "--band", 9, text=True)
    assert told.returncode == 1 and "band 9" in told.stderr


def test_all_bands_are_warped_and_marked(command, scenes, tmp_path):
    paths = []
    for name, grey in zip("rm", scenes, strict=True):
        deep = grey.astype(np.uint16) * 8
        paths.append(tmp_path / f"{name}.tif")
        raster(paths[-1], np.dstack([deep, deep // 2, deep // 3, deep // 4]), photometric="rgb", alpha="unspecified")
    out = tmp_path / "o.tif"
    command("register", *paths, "-o", out, "--overlay", tmp_path / "o.png", check=True)
    with rasterio.open(out) as file, rasterio.open(paths[0]) as reference:
        assert file.count == 4 and file.colorinterp[3].name != "alpha"
        mask, bands, expected = file.dataset_mask() > 0, file.read(), reference.read()
    assert 0.7 < mask.mean() < 1
    inner = np.abs(bands.astype(int) - expected)[:, mask]
    assert (np.median(inner, 1) < 8 * 6).all()
    assert opened(tmp_path / "o.png").max() > 200, "the overlay is not black"
    assert tifffile.imread(out).shape == bands.shape[1:] + (4,) or tifffile.imread(out, key=0).shape[-1] == 4


@pytest.mark.parametrize("compress", ["none", "deflate", "zstd"])
def test_other_programs_read_what_is_compressed(command, scenes, rectified, tmp_path, compress):
    """OpenCV's wheel has no Zstandard."""
    for name, grey in zip("rm", scenes, strict=True):
        tp.write(tmp_path / f"{name}.png", grey)
    paths = [tmp_path / "r.png", tmp_path / "m.png"]
    words = ["--compress", compress]
    command("register", *paths, "-o", tmp_path / "w.tif", *words, check=True)
    command("filter", "gauss", paths[0], tmp_path / "g.tif", *words, check=True)
    maps = ["-o", "--output-right", "--confidence", "--depth"]
    outputs = [word for i, flag in enumerate(maps) for word in (flag, tmp_path / f"s{i}.tif")]
    known = ["--disparities", 16, "--focal", 300, "--baseline", 0.1]
    command("stereo", *paths, *outputs, *known, *words, check=True)
    outputs = [f"--{name}={tmp_path}/{name}.tif" for name in ("output-left", "output-right", "valid-left", "valid-right")]
    command("rectify", rectified / "l.tif", rectified / "r.tif", *outputs, *words, check=True)
    tp.write(tmp_path / "colour.tif", np.dstack([scenes[0].astype(np.float32)] * 3), compress=compress)
    tp.io.write_disparity(tmp_path / "disparity.tif", scenes[0].astype(np.float32), compress=compress)
    files = sorted(tmp_path.glob("*.tif"))
    assert len(files) == 12
    for path in files:
        expected = tp.read(path)
        with rasterio.open(path) as file:
            found = np.moveaxis(file.read(), 0, -1).squeeze()
            assert (file.compression.value if file.compression else "none").lower() == compress, path
        deep = compress == "zstd" and pytest.importorskip("imagecodecs")
        own = [] if deep is None else [tifffile.imread(path)]
        # Pillow has no floats in colour.
        own += [] if path.name == "colour.tif" else [opened(path)]
        for values in [found, *own]:
            assert np.array_equal(values, expected, equal_nan=expected.dtype == np.float32), path


def test_pixels_without_data_take_no_part_in_warping(command, scenes, tmp_path):
    paths, hole = [], np.zeros(scenes[0].shape, bool)
    hole[100:140, 150:190] = True
    for name, grey in zip("rm", scenes, strict=True):
        dem = np.where(hole, -9999, grey * 2.5 + 300).astype(np.float32)
        paths.append(tmp_path / f"{name}.tif")
        raster(paths[-1], dem, nodata=-9999)
    command("register", *paths, "-o", tmp_path / "o.tif", check=True)
    with rasterio.open(tmp_path / "o.tif") as file:
        assert file.nodata == -9999
        values = file.read(1, masked=True)
    assert values.min() > 150 and values.mask.mean() > 0.05


def test_internal_masks_leave_features_out(command, scenes, tmp_path):
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(
        tmp_path / "m.tif", "w", driver="GTiff", dtype="uint8", count=1, width=320, height=240
    ) as file:
        file.write(scenes[0], 1)
        file.write_mask(np.where(np.arange(320) < 160, 0, 255).astype(np.uint8)[None].repeat(240, 0))
    command("detect", tmp_path / "m.tif", "-o", tmp_path / "k.csv", check=True)
    x = np.loadtxt(tmp_path / "k.csv", delimiter=",", skiprows=1, usecols=0)
    assert len(x) > 50 and x.min() > 164


@pytest.fixture(scope="module")
def rectified(command, tmp_path_factory):
    """A rectified pair, 12 bits in 16."""
    folder = tmp_path_factory.mktemp("rectified")
    pair = tp.synth.stereo((320, 240), disparities=(2, 30), seed=5)
    turn = np.array([[0.9994, -0.035, 9], [0.035, 0.9994, -6], [0, 0, 1]])
    for name, grey in [("l", pair.left), ("r", tp.warp(pair.right, turn))]:
        tp.write(folder / f"{name}.tif", grey.astype(np.uint16) * 16)
    files = [f"--output-left={folder}/L.{{}}", f"--output-right={folder}/R.{{}}"]
    for extension, kind in {"tif": "txt", "png": "yml", "pfm": "xml", "exr": "json"}.items():
        named = [word.format(extension) for word in files]
        calibration = f"--output-calibration={folder}/c.{kind}"
        done = command("rectify", folder / "l.tif", folder / "r.tif", *named, calibration, text=True)
        assert done.returncode == 0, done.stderr
    return folder


def test_rectified_pictures_keep_their_type_and_masks_in_other_programs(command, rectified):
    deep = opened(rectified / "L.png")
    assert deep.dtype in (np.uint16, np.int32) and deep.max() > 255
    with rasterio.open(rectified / "L.png") as png, rasterio.open(rectified / "L.tif") as tif:
        assert png.dtypes == tif.dtypes == ("uint16",)
        assert np.array_equal(png.read(1), tif.read(1)) and np.array_equal(deep, tif.read(1))
        mask = tif.dataset_mask()
        assert np.array_equal(png.dataset_mask(), mask) and 0 < (mask == 0).mean() < 0.5
    floats = tp.read(rectified / "L.pfm")
    assert np.array_equal(np.isnan(floats), mask == 0) and np.nanmax(floats) == deep.max()
    valid = []
    for extension in ["tif", "png", "pfm"]:
        done = command("stereo", *(rectified / f"{side}.{extension}" for side in "LR"), "--json", text=True, check=True)
        valid.append(json.loads(done.stdout)["valid"])
    # A pair of floats is matched by its float values, so the result may differ a little.
    assert valid[0] == valid[1] and abs(valid[2] - valid[0]) < 0.03


def test_calibrations_in_every_format_agree(rectified):
    of = [tp.Calibration.read(rectified / f"c.{extension}") for extension in ["txt", "yml", "xml", "json"]]
    for name in ["c.yml", "c.xml", "c.json"]:
        storage = cv2.FileStorage(str(rectified / name), cv2.FILE_STORAGE_READ)
        q = storage.getNode("Q").mat()
        assert np.isclose(q[2, 3], of[0].focal, rtol=1e-12), name
    for other in of[1:]:
        assert np.allclose([other.focal, *other.principal, other.doffs, other.baseline],
                           [of[0].focal, *of[0].principal, of[0].doffs, of[0].baseline], rtol=1e-12)  # fmt: skip
    assert (rectified / "c.yml").read_text().startswith("%YAML:1.0\n---\n")


def test_pipes(command, tmp_path):
    picture = tp.synth.scene((160, 120), np.eye(3), seed=1).reference
    tp.write(tmp_path / "a.png", picture)
    command("detect", tmp_path / "a.png", "-o", tmp_path / "a.csv", check=True)
    piped = command("detect", "-", "-o", "-", input=(tmp_path / "a.png").read_bytes(), check=True)
    assert piped.stdout == (tmp_path / "a.csv").read_bytes()
    assert b"features" in piped.stderr
    command("filter", "gauss", tmp_path / "a.png", tmp_path / "g.png", check=True)
    for words, given in [(["-", "-"], (tmp_path / "a.png").read_bytes()), ([tmp_path / "a.png", "-"], None)]:
        piped = command("filter", "gauss", *words, input=given, check=True)
        assert piped.stdout == (tmp_path / "g.png").read_bytes() and b"160x120" in piped.stderr


def test_lists_of_windows_long_names_and_links_without_a_target(command, tmp_path):
    tp.write(tmp_path / "ä b.png", tp.synth.scene((160, 120), np.eye(3), seed=1).reference)
    (tmp_path / "list.txt").write_bytes("\ufeffä b.png\r\n".encode())
    (tmp_path / "link.csv").symlink_to("target.csv")
    long = f"{'a' * 251}.csv"
    command("detect", "--list", "list.txt", "-o", "{}.csv", cwd=tmp_path, check=True)
    for name in ["link.csv", long]:
        command("detect", "ä b.png", "-o", name, cwd=tmp_path, check=True)
    written = (tmp_path / "ä b.csv").read_bytes()
    assert (tmp_path / "link.csv").is_symlink()
    assert written == (tmp_path / "target.csv").read_bytes() == (tmp_path / long).read_bytes()


def test_matches_hold_the_model_and_file_names_relative_to_their_folder(command, scenes, tmp_path):
    (tmp_path / "d/inner").mkdir(parents=True)
    tp.write(tmp_path / "d/a.png", scenes[0])
    tp.write(tmp_path / "d/inner/b.png", scenes[1])
    pair = [tmp_path / "d/a.png", tmp_path / "d/inner/b.png"]
    command("match", *pair, "-o", tmp_path / "m.txt", "--output-model", tmp_path / "H.txt", check=True)
    assert (tmp_path / "m.txt").read_text().splitlines()[0] == "a.png inner/b.png"
    command("match", *pair, "-o", tmp_path / "m.json", check=True)
    told = json.loads((tmp_path / "m.json").read_text())
    assert told["sizes"] == [[320, 240], [320, 240]] and told["model"] == "homography"
    assert np.array_equal(np.loadtxt(tmp_path / "H.txt"), told["matrix"])
    assert command("evaluate", "homography", tmp_path / "H.txt", *pair).returncode in (0, 1, 2)


def test_keypoints_for_colmap_are_of_stored_pixels(command, scenes, tmp_path):
    exif = Image.Exif()
    exif[274] = 6
    Image.fromarray(scenes[0]).save(tmp_path / "p.jpg", exif=exif)
    told = command("detect", tmp_path / "p.jpg", "-o", tmp_path / "p.txt", text=True, check=True)
    assert "320x240" in told.stdout and "COLMAP" in told.stderr
    told = command("detect", tmp_path / "p.jpg", "-o", tmp_path / "p.csv", text=True, check=True)
    assert "240x320" in told.stdout
    assert "320x240" in command("detect", tmp_path / "p.jpg", "--no-orient", text=True, check=True).stdout


def test_clipped_floats_are_warned_of(command, scenes, tmp_path):
    for name, grey in zip("rm", scenes, strict=True):
        tp.write(tmp_path / f"{name}.tif", (grey / 100 - 0.5).astype(np.float32))
    told = command("register", tmp_path / "r.tif", tmp_path / "m.tif", "-o", tmp_path / "o.png", text=True, check=True)
    assert "outside 0 to 1" in told.stderr
    with pytest.warns(UserWarning, match="outside 0 to 1") as warned:
        tp.write(tmp_path / "o.png", np.float32([[0.5, 1.5]]))
    assert [warning.filename for warning in warned] == [__file__]


def seen_by_others(path):
    """The pixels that every other program at hand reads, by its name."""
    found = {}
    image = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if image is not None:
        found["OpenCV"] = image[..., [2, 1, 0, 3][: image.shape[2]]] if image.ndim == 3 else image
    extension = path.suffix
    if extension in (".png", ".jpg"):
        found["Pillow"] = opened(path)
        with rasterio.open(path) as file:
            found["GDAL"] = np.moveaxis(file.read(), 0, -1).squeeze()
    if extension == ".tif":
        found["tifffile"] = tifffile.imread(path)
        with rasterio.open(path) as file:
            found["GDAL"] = np.moveaxis(file.read(), 0, -1).squeeze()
    if extension == ".npy":
        found["NumPy"] = np.load(path)
    if extension in (".png", ".jpg", ".tif"):
        found["imageio"] = imageio.imread(path)
    return found


@pytest.fixture(scope="module")
def outputs(command, scenes, rectified, tmp_path_factory):
    """A file of every kind that each command writes: {command: paths}."""
    home = tmp_path_factory.mktemp("outputs")
    pair = [home / "r.png", home / "m.png"]
    for path, grey in zip(pair, scenes, strict=True):
        tp.write(path, grey)
    sides = [rectified / "L.tif", rectified / "R.tif"]
    raw = [rectified / "l.tif", rectified / "r.tif"]
    written = {}

    def run(name, *words, **files):
        files = {flag: home / f"{name}-{file}" for flag, file in files.items()}
        flags = [word for flag, path in files.items() for word in (f"--{flag.replace('_', '-')}", path)]
        done = command(*name.split(), *words, *flags, text=True)
        assert done.returncode == 0, done.stderr
        written.setdefault(name, []).extend(files.values())

    for kind in ["csv", "json", "npz", "sift", "txt"]:
        run("detect", pair[0], output=f"a.{kind}", draw=f"{kind}.png")
    run("detect", pair[0], draw="drawn.jpg")
    for kind in ["csv", "json", "npz", "txt", "points"]:
        run("match", *pair, output=f"a.{kind}", draw="drawn.png", output_model="model.txt")
    for kind in ["png", "tif", "npy", "pgm"]:
        run("register", *pair, output=f"a.{kind}", overlay="overlay.png", draw="drawn.png")
    for kind in ["png", "tif", "npy", "pfm", "exr"]:
        run("rectify", *raw, output_left=f"l.{kind}", output_right=f"r.{kind}", draw="drawn.png", valid_left="valid.png")
    known = ["--focal", 300, "--baseline", 0.1]
    for kind in ["png", "tif", "npy", "pfm", "exr"]:
        maps = {"output": f"d.{kind}", "output_right": f"dr.{kind}", "depth": f"z.{kind}", "cloud": f"{kind}.ply"}
        run("stereo", *sides, *known, **maps, confidence="sure.png", preview="preview.jpg")
    for kind in ["png", "tif", "npy"]:
        done = command("filter", "gauss", pair[0], home / f"filter-{kind}.{kind}", text=True)
        assert done.returncode == 0, done.stderr
        written.setdefault("filter", []).append(home / f"filter-{kind}.{kind}")
    return written


@pytest.mark.parametrize("name", ["detect", "match", "register", "rectify", "stereo", "filter"])
def test_other_programs_open_what_each_command_writes(outputs, name):
    pictures = 0
    for path in dict.fromkeys(outputs[name]):
        if path.suffix not in (".png", ".jpg", ".tif", ".npy", ".pgm", ".pfm", ".exr"):
            continue
        own, others = tp.read(path), seen_by_others(path)
        pictures += 1
        assert others or path.suffix == ".exr", f"{path.name}: nobody reads it"
        for reader, pixels in others.items():
            assert pixels.shape == own.shape, (path.name, reader)
            near = 4 if path.suffix == ".jpg" else 0
            assert np.allclose(pixels, own, rtol=0, atol=near, equal_nan=True), (path.name, reader)
    assert pictures


def test_tables_and_clouds_are_read_by_others(outputs):
    rows = {path.name: pandas.read_csv(path) for name in ("detect", "match") for path in outputs[name] if path.suffix == ".csv"}
    features, matches = rows["detect-a.csv"], rows["match-a.csv"]
    with np.load(next(path for path in outputs["detect"] if path.suffix == ".npz")) as arrays:
        assert np.allclose(features["x"], arrays["xy"][:, 0]) and np.allclose(features["response"], arrays["response"])
    with np.load(next(path for path in outputs["match"] if path.suffix == ".npz")) as arrays:
        assert np.allclose(matches["bx"], arrays["xy_b"][:, 0]) and np.array_equal(matches["b"], arrays["pairs"][:, 1])
        model = next(path for path in outputs["match"] if path.name.endswith("model.txt"))
        assert np.array_equal(np.loadtxt(model), arrays["matrix"]) and arrays["sizes"].tolist() == [[320, 240]] * 2
    clouds = [path for path in outputs["stereo"] if path.suffix == ".ply"]
    own, _ = tp.io.read_points(clouds[0])
    vertices = plyfile.PlyData.read(clouds[0])["vertex"]
    assert np.array_equal(np.stack([vertices[axis] for axis in "xyz"], -1), own) and len(own) > 1000
