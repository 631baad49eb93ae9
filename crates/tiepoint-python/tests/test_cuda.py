"""Arrays that stay on a CUDA device: those of PyTorch, CuPy and JAX as input, ours as output."""

import dataclasses
import json

import numpy as np
import pytest
import tiepoint as tp
from capsules import HOSTILE, Interface, Producer
from card import NEEDS_CARD, Jax, picture

pytestmark = NEEDS_CARD

COLUMNS = ["xy", "scale", "angle", "response", "sign", "octave", "layer", "descriptors"]


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("kind", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("detector", [tp.Sift, tp.Surf])
def test_features_are_those_of_the_cpu(library, card, detector, kind, channels):
    image = picture(kind, channels)
    if channels == 4:
        image[40:60, 30:50, 3] = 0
    there = library.there(image)
    found, wanted = detector(device=card).detect(there), detector(device="cpu").detect(image)
    assert found.device == "cuda:0" and len(found) > 20 and found == wanted
    for name in COLUMNS:
        array = getattr(found, name)
        assert isinstance(array, tp.DeviceArray) and array.device == "cuda:0"
        assert np.array_equal(array.numpy(), getattr(wanted, name)), name
        back = library.back(array)
        assert np.array_equal(library.numpy(back), getattr(wanted, name)), name
        assert library.address(back) == array.__cuda_array_interface__["data"][0], f"{name}: no copy"
    assert np.array_equal(library.numpy(there), image), "the image is as it was"
    ranged = detector(device=card, range=(0.1, 0.8) if kind == "float32" else (5, 200)).detect(there)
    assert ranged == detector(device="cpu", range=(0.1, 0.8) if kind == "float32" else (5, 200)).detect(image)
    assert next(detector(device=card).detect_many([there])) == wanted
    limited = detector(device=card, max_features=15).detect(there)
    assert len(limited) == 15 and limited == detector(device="cpu", max_features=15).detect(image)


def test_masks_and_holes(library, card):
    image = picture("float32")
    mask = np.zeros(image.shape, bool)
    mask[:, :90] = True
    cpu = tp.Sift(device="cpu")
    for wanted_mask in [mask, mask.astype(np.uint8)]:
        wanted = cpu.detect(image, wanted_mask)
        for given in [library.there(wanted_mask), wanted_mask]:
            assert tp.Sift(device=card).detect(library.there(image), given) == wanted
    image[50:52, 60:65] = np.nan
    assert tp.Sift(device=card).detect(library.there(image)) == cpu.detect(image)
    assert tp.Sift(device=card).detect(library.there(image), library.there(mask)) == cpu.detect(image, mask)
    # The verdict leaves out what either mask hides, given or made of the holes.
    moving = np.roll(image, 3, axis=1)
    image[:, 90:] = np.nan
    for masks in [(None, None), (None, mask)]:
        there = [None if of is None else library.there(of) for of in masks]
        found = tp.register(
            library.there(image), library.there(moving), device=card, mask_fixed=there[0], mask_moving=there[1]
        )
        wanted = tp.register(image, moving, device="cpu", mask_fixed=masks[0], mask_moving=masks[1])
        assert found.verdict == wanted.verdict


def test_views_with_a_pitch_are_not_packed(torch, cupy, card):
    image = picture("uint8", size=(300, 200))
    sift, cpu = tp.Sift(device=card), tp.Sift(device="cpu")
    for crop in [np.s_[:, 7:201], np.s_[3:150, :], np.s_[11:150:1, 30:263], np.s_[::2, 5:200]]:
        wanted = cpu.detect(np.ascontiguousarray(image[crop]))
        assert len(wanted) > 20
        assert sift.detect(torch.from_numpy(image).cuda()[crop]) == wanted
        assert sift.detect(cupy.asarray(image)[crop]) == wanted
    colour = picture("uint8", 3, size=(300, 200))
    assert sift.detect(torch.from_numpy(colour).cuda()[5:150, 31:240]) == cpu.detect(colour[5:150, 31:240])
    there = torch.from_numpy(image).cuda()
    for turned in [there.T, there[:, ::2], there.flip(0)[::2, ::2], there.expand(3, -1, -1).permute(1, 2, 0)]:
        with pytest.raises(tp.ImageError, match="must follow each other"):
            sift.detect(turned)
    with pytest.raises(tp.ImageError, match="channels come last"):
        sift.detect(there.expand(3, -1, -1).contiguous())


def test_nothing_of_an_image_is_copied(torch, card):
    """Counts CUDA's copies during detection, by its profiler."""
    image = picture("uint8", size=(1920, 1080))
    sift, there = tp.Sift(device=card), torch.from_numpy(image).cuda()
    sift.detect(there)
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        found = sift.detect(there)
        tensor = torch.from_dlpack(found.descriptors)
        torch.cuda.synchronize()
    events = [event for event in profile.events() if "Memcpy" in event.name]
    kernels = [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    assert any("blur_base" in name for name in kernels), f"the profiler sees the work: {kernels}"
    # Nothing is copied from the host, the number of features to the host, and the kept features on the device.
    assert not [event.name for event in events if "HtoD" in event.name], [event.name for event in events]
    assert len([event for event in events if "DtoH" in event.name]) <= 1, [event.name for event in events]
    assert len([event for event in events if "DtoD" in event.name]) <= 3, [event.name for event in events]
    assert tensor.data_ptr() == found.descriptors.__cuda_array_interface__["data"][0]
    assert tensor.shape == (len(found), 128) and tensor.dtype == torch.uint8


def copied(torch, work, folder):
    """The bytes that CUDA copies during `work`, by direction, from its profiler, and what `work` returns."""
    work()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        found = work()
        torch.cuda.synchronize()
    profile.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert any(event.get("cat") == "kernel" for event in events), "the profiler sees the work"
    ways = {"HtoD": 0, "DtoH": 0, "DtoD": 0}
    for event in events:
        if event.get("cat") == "gpu_memcpy":
            way = next(way for way in ways if way in event["name"])
            ways[way] += event["args"]["bytes"]
    return ways, found


def test_images_descriptors_and_maps_do_not_leave_the_card(torch, card, scene, tmp_path):
    """Matching and stereo copy only the counts of results to the host, according to the profiler."""
    sift = tp.Sift(device=card)
    a, b = (sift.detect(torch.from_numpy(image).cuda()) for image in (scene.reference, scene.moving))
    ways, found = copied(torch, lambda: tp.match(a, b), tmp_path)
    assert len(found) > 20 and ways["HtoD"] == 0 and ways["DtoH"] < 256, ways
    pair = tp.synth.stereo((640, 480), disparities=(2, 30), seed=5)
    left, right = (torch.from_numpy(view).cuda() for view in (pair.left, pair.right))
    stereo = tp.Stereo(disparities=40, device=card)
    ways, seen = copied(torch, lambda: torch.from_dlpack(stereo.compute(left, right).disparity), tmp_path)
    assert seen.shape == (480, 640) and ways["HtoD"] == 0 and ways["DtoH"] < 256, ways
    cost = torch.rand((480, 640, 40), device="cuda")
    ways, seen = copied(torch, lambda: torch.from_dlpack(stereo.optimize(cost, left, right).disparity), tmp_path)
    # Penalties, for whole costs whose scale is found there, go to the card; the volume has 49 million bytes.
    assert seen.shape == (480, 640) and ways["HtoD"] < 4096 and ways["DtoH"] < 256, ways
    # A registration copies places and matches to the host, where the model is estimated, but no image and no descriptor.
    scene = tp.synth.scene((1280, 960), scene.moving_from_reference, seed=3)
    fixed, moving = (torch.from_numpy(image).cuda() for image in (scene.reference, scene.moving))
    ways, found = copied(torch, lambda: tp.register(fixed, moving, device=card), tmp_path)
    features = len(found.tie_points.a) + len(found.tie_points.b)
    # The weights of bicubic interpolation go to the card. An image has 1.2 million bytes, a descriptor 128.
    assert ways["HtoD"] < 20_000 and ways["DtoH"] < 100 * features, (ways, features)


def test_matches_are_those_of_the_cpu(library, card, features):
    a, b = features
    wanted, nearest = tp.match(a, b, device="cpu"), tp.nearest(a, b, device="cpu")
    there = a.to(card)
    assert there.device == "cuda:0" and there == a and there.to("cuda:0") is there and there[::3] == a[::3]
    for pair in [(there, b.to("cuda:0")), (there, b), (a, b.to(tp.Device("cuda")))]:
        assert tp.match(*pair) == wanted
        assert all(map(np.array_equal, tp.nearest(*pair), nearest))
    assert tp.match(there, b, device="cpu") == wanted
    # Features of other programs, whose descriptors are not copied.
    arrays = {name: getattr(a, name) for name in COLUMNS}
    arrays_there = {name: library.there(array) for name, array in arrays.items()}
    made = tp.Features.from_arrays(**arrays_there, image_size=a.image_size)
    assert made.device == "cuda:0" and made == a
    address = library.address(arrays_there["descriptors"])
    assert made.descriptors.__cuda_array_interface__["data"][0] == address, "no copy"
    assert tp.match(made, b.to("cuda:0")) == wanted
    mixed = tp.Features.from_arrays(**{**arrays, "descriptors": arrays_there["descriptors"]}, image_size=a.image_size)
    assert tp.match(mixed, b) == wanted
    assert np.array_equal(library.numpy(library.back(made.descriptors)), a.descriptors)
    # An odd address, where kernels cannot read sixteen bytes at a time.
    odd = library.there(np.concatenate([np.zeros(1, np.uint8), a.descriptors.ravel()]))[1:].reshape(a.descriptors.shape)
    moved = tp.Features.from_arrays(**{**arrays_there, "descriptors": odd}, image_size=a.image_size)
    assert isinstance(library, Jax) or library.address(odd) % 16 != 0, "JAX copies, the others do not"
    assert moved == a and tp.match(moved, b.to("cuda:0")) == wanted
    assert tp.tie_points(made, b) == tp.tie_points(a, b, device="cpu")
    with pytest.raises(tp.ImageError, match="places, but"):
        tp.Features.from_arrays(xy=a.xy[1:], descriptors=arrays_there["descriptors"])


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("kind", ["uint8", "uint16", "float32"])
def test_filtered_images_stay_on_the_card(library, card, kind, channels):
    image = picture(kind, channels)
    there = library.there(image)
    kernel = np.array([[1, -2, 0.5], [0.25, 3, -1]])
    calls = [
        lambda image, device: tp.filter.gauss(image, 1.7, border="reflect", device=device),
        *(lambda image, device, part=part: tp.filter.sobel(image, part, device=device) for part in ("magnitude", "gx", "gy")),
        lambda image, device: tp.filter.hessian(image, device=device),
        lambda image, device: tp.filter.convolve(image, kernel, device=device),
        lambda image, device: tp.filter.convolve(image, kernel, float=True, border="zero", device=device),
        lambda image, device: tp.warp(image, [[1.1, 0.1, -5], [-0.1, 0.9, 8], [1e-4, 0, 1]], shape=(90, 131), device=device),
        lambda image, device: tp.warp(image, np.eye(3), interpolation="lanczos", device=device),
    ]
    for number, call in enumerate(calls):
        wanted = call(image, "cpu")
        for device in (None, card):
            found = call(there, device)
            assert isinstance(found, tp.DeviceArray) and found.device == "cuda:0", number
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), number
            assert np.array_equal(found.numpy(), wanted), number
        back = library.back(found)
        assert np.array_equal(library.numpy(back), wanted), number
        assert library.address(back) == found.__cuda_array_interface__["data"][0], f"{number}: no copy"
        # A result is an image for other calls, and its memory is kept while they read it.
        assert np.array_equal(tp.filter.gauss(found).numpy(), tp.filter.gauss(wanted, device="cpu")), number
    assert all(map(np.array_equal, tp.filter.blobs(there), tp.filter.blobs(image, device="cpu")))
    assert np.array_equal(library.numpy(there), image), "the image is as it was"


def test_a_registered_image_stays_on_the_card(library, card, scene):
    fixed, moving = scene.reference, scene.moving
    wanted = tp.register(fixed, moving, device="cpu")
    mask = np.full(fixed.shape, 255, np.uint8)
    for masks in [{}, {"mask_fixed": library.there(mask), "mask_moving": library.there(mask != 0)}]:
        found = tp.register(library.there(fixed), library.there(moving), device=card, **masks)
        assert isinstance(found.warped, tp.DeviceArray) and isinstance(found.covered, tp.DeviceArray)
        assert np.array_equal(found.warped.numpy(), wanted.warped) and np.array_equal(found.covered.numpy(), wanted.covered)
        assert found.model == wanted.model and found.tie_points == wanted.tie_points
        assert found.tie_points.a.device == found.tie_points.b.device == "cuda:0", "searched there"
        assert np.array_equal(found.tie_points.xy_a, wanted.tie_points.xy_a)
        assert "covered" in repr(found) and found._repr_png_()
    host = tp.register(library.there(fixed), moving, device=card)
    assert np.array_equal(host.warped, wanted.warped) and isinstance(host.warped, np.ndarray)
    # Simulated views and masks need the image on the host.
    for options in [{"views": 3}, {"mask_fixed": mask}]:
        assert tp.register(library.there(fixed), library.there(moving), device=card, **options).model == tp.register(fixed, moving, device="cpu", **options).model  # fmt: skip
    holes = np.stack([moving, moving, moving, np.full_like(moving, 255)], -1)
    holes[100:140, 90:150, 3] = 0
    found, wanted = tp.register(library.there(fixed), library.there(holes), device=card), tp.register(fixed, holes, device="cpu")
    assert found.tie_points == wanted.tie_points and np.array_equal(found.warped.numpy(), wanted.warped)
    with pytest.raises(tp.ModelError):
        tp.register(library.there(np.zeros_like(fixed)), library.there(moving), device=card)
    sift = tp.Sift(device=card)
    a, b = (sift.detect(library.there(image)) for image in (moving, fixed))
    assert np.array_equal(tp.tie_points(a, b).inliers, tp.tie_points(a.to("cpu"), b.to("cpu"), device="cpu").inliers)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("kind", ["uint8", "uint16", "float32"])
def test_disparities_stay_on_the_card(library, card, kind, channels):
    pair = tp.synth.stereo((241, 160), disparities=(2, 30), seed=5)
    left, right = (np.stack([view] * channels, -1) if channels > 1 else view for view in (pair.left, pair.right))
    if kind == "uint16":
        left, right = (view.astype(np.uint16) * 40 + 700 for view in (left, right))
    if kind == "float32":
        left, right = (view.astype(np.float32) / 255 for view in (left, right))
        left[40:44, 50:90] = np.nan
    if channels == 4:
        left[..., 3] = 65535 if kind == "uint16" else 1 if kind == "float32" else 255
        left[70:90, 100:140, 3] = 0
    mask = np.full((160, 241), 255, np.uint8)
    mask[:, :9] = 0
    everything = {"right": True, "confidence": True, "reasons": True}
    for options, given in [({}, {}), ({"cost": "census", **everything}, {}), ({}, {"no_data": 0.0}), ({"cost": "mi"}, {})]:
        wanted = tp.Stereo(disparities=40, device="cpu", **options).compute(left, right, mask_left=mask, **given)
        stereo = tp.Stereo(disparities=40, device=card, **options)
        for masked in (mask, library.there(mask)):
            found = stereo.compute(library.there(left), library.there(right), mask_left=masked, **given)
            assert dataclasses.replace(found, images=wanted.images, masks=wanted.masks) == wanted, (options, given)
        for name in ("disparity", "right", "confidence", "reasons"):
            array, right_one = getattr(found, name), getattr(wanted, name)
            assert (array is None) == (right_one is None)
            if array is not None:
                assert isinstance(array, tp.DeviceArray) and array.device == "cuda:0", name
                back = library.back(array)
                assert np.array_equal(library.numpy(back), right_one, equal_nan=name in ("disparity", "right"))
                assert library.address(back) == array.__cuda_array_interface__["data"][0], f"{name}: no copy"
        assert np.isnan(found.disparity.numpy()).any() and "valid" in repr(found) and found._repr_png_()
    host = stereo.compute(library.there(left), right, mask_left=mask, **given)
    assert dataclasses.replace(host, images=wanted.images, masks=wanted.masks) == wanted, "one of them on the host"
    calibration = tp.Calibration(focal=200.0, principal=(120.0, 80.0), baseline=0.1, size=(241, 160))
    assert np.array_equal(found.depth(calibration), wanted.depth(calibration), equal_nan=True)


@pytest.mark.parametrize("kind", ["uint8", "uint16", "float32"])
def test_cost_volumes_are_aggregated_on_the_card(library, card, kind):
    pair = tp.synth.stereo((241, 160), disparities=(2, 30), seed=5)
    left, right = (view.astype(np.int16) for view in (pair.left, pair.right))
    cost = np.full((160, 241, 40), 255 if kind != "float32" else np.nan, np.float32)
    for d in range(40):
        cost[:, d:, d] = np.abs(left[:, d:] - right[:, : 241 - d])
    cost = (cost / 255 if kind == "float32" else cost * 4 if kind == "uint16" else cost).astype(kind)
    options = {"disparities": 40, "right": True, "confidence": True}
    wanted = tp.Stereo(device="cpu", **options).optimize(cost, pair.left, pair.right)
    there = [library.there(array) for array in (cost, pair.left, pair.right)]
    for device in (card, tp.Device("cuda:0")):
        for given in ([cost, pair.left, pair.right], there, [there[0], pair.left, pair.right]):
            found = tp.Stereo(device=device, **options).optimize(*given)
            assert isinstance(found.disparity, tp.DeviceArray) == (given[0] is not cost)
            assert dataclasses.replace(found, images=wanted.images, masks=wanted.masks) == wanted
    small = tp.Stereo(device=card, device_memory="1MiB", **options)
    assert dataclasses.replace(small.optimize(*there), images=wanted.images) == wanted, "by the CPU"
    with pytest.raises(tp.ImageError, match="height, width, disparities"):
        tp.Stereo(device=card, **options).optimize(there[1], *there[1:])


def test_a_pair_too_large_for_the_memory_that_may_be_used(library, card):
    """The pair is computed in bands of rows through the host; the result is the same, and on the card."""
    pair = tp.synth.stereo((640, 480), disparities=(2, 30), seed=5)
    wanted = tp.Stereo(disparities=40, device="cpu").compute(pair.left, pair.right)
    device = tp.Device("cuda:0")
    stereo = tp.Stereo(disparities=40, device=device, device_memory="12MiB")
    found = stereo.compute(library.there(pair.left), library.there(pair.right))
    assert isinstance(found.disparity, tp.DeviceArray)
    assert np.array_equal(found.disparity.numpy(), wanted.disparity, equal_nan=True)
    assert stereo.options["device_memory"] == 12 << 20


@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_a_rectified_pair_stays_on_the_card(library, card, kind):
    pair = tp.synth.stereo((400, 300), disparities=(2, 30), seed=5)
    left, right = pair.left, pair.right
    if kind == "float32":
        left, right = (view.astype(np.float32) / 255 for view in (left, right))
    wanted = tp.rectify(left, right, device="cpu")
    found = tp.rectify(library.there(left), library.there(right), device=card)
    assert found == wanted and found.tie_points.a.device == "cuda:0"
    for name in ("left", "right", "valid_left", "valid_right"):
        array = getattr(found, name)
        assert isinstance(array, tp.DeviceArray), name
        assert np.array_equal(library.numpy(library.back(array)), getattr(wanted, name), equal_nan=kind == "float32")
    disparities = tp.Stereo(disparities=64, device=card).compute(found.left, found.right, found)
    assert disparities == tp.Stereo(disparities=64, device="cpu").compute(wanted.left, wanted.right, wanted)


def test_matches_of_features_on_the_card_stay_there(library, card, features):
    a, b = (side.to(card) for side in features)
    for options in [{}, {"ratio": None, "mutual": False, "same_sign": False}, {"max_distance": 0.3}, {"guide": np.eye(3)}]:
        wanted = tp.match(*features, device="cpu", **options)
        found = tp.match(a, b, **options)
        assert len(found) == len(wanted) > 3
        for name in ("pairs", "distance", "ratio"):
            array, right = getattr(found, name), getattr(wanted, name)
            assert isinstance(array, tp.DeviceArray) and array.dtype == right.dtype, name
            back = library.back(array)
            if not isinstance(library, Jax) or name != "pairs":  # JAX has no 64-bit numbers unless told so
                assert np.array_equal(library.numpy(back), right), name
                assert library.address(back) == array.__cuda_array_interface__["data"][0], f"{name}: no copy"
            assert np.array_equal(array.numpy(), right), name
        assert found == wanted and tp.match(a, features[1], **options) == wanted
        assert isinstance(tp.match(a, features[1], **options).pairs, np.ndarray)
        assert isinstance(tp.match(a, b, device="cpu", **options).pairs, np.ndarray)
    for array, right in zip(tp.nearest(a, b), tp.nearest(*features, device="cpu"), strict=True):
        assert isinstance(array, tp.DeviceArray) and np.array_equal(array.numpy(), right)


def test_capsules_of_results(torch, card):
    found = tp.Sift(device=card).detect(torch.from_numpy(picture("uint8")).cuda())
    array = found.descriptors
    assert array.__dlpack_device__() == (2, 0)
    for versioned, name in [(True, b"dltensor_versioned"), (False, b"dltensor")]:
        from capsules import is_capsule

        capsule = array.__dlpack__(max_version=(1, 3) if versioned else None, stream=-1)
        assert is_capsule(capsule, name)
        del capsule
    assert np.array_equal(np.from_dlpack(array, device="cpu"), array.numpy())
    copied = torch.utils.dlpack.from_dlpack(array.__dlpack__(copy=True, max_version=(1, 0)))
    assert copied.data_ptr() != array.__cuda_array_interface__["data"][0]
    assert np.array_equal(copied.cpu().numpy(), array.numpy())
    for stream in [None, -1, 1, 2, torch.cuda.Stream().cuda_stream]:
        array.__dlpack__(stream=stream)
    for stream, error in [(0, ValueError), (-2, ValueError), ("1", TypeError), (1.5, TypeError), (2**64, TypeError)]:
        with pytest.raises(error, match="stream"):
            array.__dlpack__(stream=stream)
    for device in [(2, 1), (4, 0), (1, 1)]:
        with pytest.raises(BufferError, match="DLPack's device"):
            array.__dlpack__(dl_device=device)
    with pytest.raises(BufferError, match="copy alone"):
        array.__dlpack__(dl_device=(1, 0), copy=False)
    told = array.__cuda_array_interface__
    assert (told["shape"], told["typestr"], told["strides"], told["version"]) == (array.shape, "|u1", None, 3)
    viewed = torch.as_tensor(array, device="cuda")
    assert viewed.data_ptr() == told["data"][0] and np.array_equal(viewed.cpu().numpy(), array.numpy())
    empty = tp.Sift(device=card).detect(torch.zeros((40, 50), dtype=torch.uint8, device="cuda"))
    assert len(empty) == 0 and torch.from_dlpack(empty.descriptors).shape == (0, 128)
    assert empty.xy.numpy().shape == (0, 2) and empty.xy.__cuda_array_interface__["data"][0] == 0


def test_what_does_not_fit_is_an_error(torch, cupy, card):
    sift = tp.Sift(device=card)
    image = torch.from_numpy(picture("uint8")).cuda()
    with pytest.raises(tp.ImageError, match='cuda:0, and this computes on cpu: take device="cuda:0"'):
        tp.Sift(device="cpu").detect(image)
    with pytest.raises(tp.ImageError, match=r"float64: .*\.float\(\)"):
        sift.detect(image.double())
    with pytest.raises(tp.ImageError, match="bfloat16"):
        sift.detect(image.bfloat16())
    with pytest.raises(BufferError, match="grad"):
        sift.detect(image.float().requires_grad_())
    with pytest.raises(tp.MismatchError, match="mask"):
        sift.detect(image, torch.ones((3, 4), dtype=torch.uint8, device="cuda"))
    with pytest.raises(tp.ImageError, match="mask holds"):
        sift.detect(image, image.float())
    with pytest.raises(tp.ImageError, match="empty"):
        sift.detect(torch.zeros((0, 5), dtype=torch.uint8, device="cuda"))
    with pytest.raises(tp.ImageError, match="lies in the memory of cuda:0, which this call does not read"):
        tp.evaluate.disparity(image.float(), image.float())
    with pytest.raises(tp.ImageError, match="cuda:0, and this computes on cpu"):
        tp.filter.gauss(image, 1.0, device="cpu")
    with pytest.raises(tp.ImageError, match='lies on cuda:0, and this computes on cpu: take device="cuda:0"'):
        tp.filter.gauss(tp.filter.gauss(image, 1.0), 1.0, device="cpu")
    with pytest.raises(tp.ImageError, match="must follow each other"):
        tp.warp(image.T, np.eye(3))
    with pytest.raises(tp.ImageError, match="holds <f8"):
        sift.detect(Interface(typestr="<f8"))
    # An array on another device than the detector's.
    with pytest.raises(tp.ImageError, match="cuda:7"):
        sift.detect(Producer(device=(2, 7)))
    assert len(sift.detect(image)) > 20, "works on after errors"


def test_hostile_capsules_are_errors(torch, card):
    sift = tp.Sift(device=card)
    for told, message in HOSTILE:
        producer = Producer(**told)
        with pytest.raises(BufferError, match=message):
            sift.detect(producer)
        assert producer.asked["max_version"] == (1, 1) and producer.asked["stream"] > 2
    real = torch.from_numpy(picture("uint8")).cuda()
    host = np.zeros((40, 50), np.uint8)
    last = real.data_ptr()
    for told, message in [
        ({"data": 0x7F0000000000}, "not in memory of"),
        ({"data": host.ctypes.data}, "not in memory of"),
        ({"data": last, "shape": (1 << 20, 1 << 19)}, "not in memory of|below 2"),
        ({"data": last, "shape": (1 << 18, 1 << 20)}, "not in memory of"),
        ({"data": last + 1, "dtype": (2, 32, 1), "shape": (8, 8)}, "not a multiple of 4"),
    ]:
        for hostile in [Producer(**told), *([] if "dtype" in told else [Interface(data=(told["data"], False), shape=told.get("shape", (40, 50)))])]:  # fmt: skip
            with pytest.raises((tp.MismatchError, tp.Error), match=message):
                sift.detect(hostile)
    lying = Producer(device=(2, 0), told=(1, 0))
    with pytest.raises(BufferError, match="said cuda:0"):
        sift.detect(lying)
    twice = Producer(data=real.data_ptr())
    sift.detect(twice)
    assert twice.given_back == 1
    with pytest.raises(BufferError, match="used before"):
        sift.detect(twice)
    assert twice.given_back == 1
    assert sift.detect(real) == tp.Sift(device="cpu").detect(real.cpu().numpy()), "works on after errors"
