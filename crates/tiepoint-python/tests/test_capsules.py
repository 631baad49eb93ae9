"""Descriptions of arrays on a CUDA device are checked before they are used. These tests need no device."""

import gc

import numpy as np
import pytest
import tiepoint as tp
from capsules import CPU, CUDA, HOSTILE, HOSTILE_INTERFACES, UNPACKED, Interface, Producer, all_hostile, exchanging, is_capsule
from tiepoint import _core


@pytest.mark.parametrize("versioned", [True, False])
def test_a_capsule_is_taken_once_and_given_back_once(versioned):
    for told, shape, pitch in [
        ({}, (40, 50, 1), 50),
        ({"strides": (64, 1)}, (40, 50, 1), 64),
        ({"shape": (40, 50, 3), "strides": (200, 3, 1)}, (40, 50, 3), 200),
        ({"shape": (1, 50), "strides": (-7, 1)}, (1, 50, 1), 50),
        ({"shape": (40, 1), "strides": (9, 77)}, (40, 1, 1), 9),
        ({"shape": (0, 50), "data": None}, (0, 50, 1), 50),
        ({"byte_offset": 16}, (40, 50, 1), 50),
    ]:
        producer = Producer(versioned=versioned, **told)
        found = _core.described(producer)
        assert (found["shape"], found["pitch"], found["dtype"]) == (shape, pitch, "uint8"), told
        assert found["address"] == (told.get("data", 0x7F0000000000) or 0) + told.get("byte_offset", 0)
        assert producer.given_back == 1
        assert is_capsule(producer.capsule, b"used_dltensor_versioned" if versioned else b"used_dltensor")
        with pytest.raises(BufferError, match="used before"):
            _core.described(producer)
        del producer.capsule
        gc.collect()
        assert producer.given_back == 1


@pytest.mark.parametrize(("told", "message"), list(all_hostile()), ids=repr)
def test_hostile_capsules_are_errors(told, message):
    producer = Producer(**told)
    with pytest.raises(BufferError, match=message):
        _core.described(producer)
    # A taken capsule is given back; one of another version is never taken.
    assert producer.given_back == (0 if "version" in told else 1)


@pytest.mark.parametrize("told", UNPACKED, ids=repr)
def test_layouts_that_would_have_to_be_packed_are_errors(told):
    producer = Producer(**told)
    with pytest.raises(tp.ImageError, match="must follow each other"):
        _core.described(producer)
    assert producer.given_back == 1
    strides = told["strides"]
    with pytest.raises(tp.ImageError, match="must follow each other"):
        _core.described(Interface(shape=told.get("shape", (40, 50)), strides=strides))


def test_tensors_are_taken_by_the_c_interface_where_there_is_one():
    for kind in [exchanging(), exchanging(describes=False), exchanging(version=(2, 0), older=exchanging())]:
        producer = kind((40, 50, 3), (200, 3, 1))
        found = _core.described(producer)
        assert (found["shape"], found["pitch"], found["stream"]) == ((40, 50, 3), 200, 1), "the default stream is 1"
        assert (producer.taken, producer.given_back, producer.asked) == (1, 1, {}), "a capsule was asked for"
        assert _core.described(kind(device=(CUDA, 3)))["stream"] == 77
    for kind in [exchanging(version=(2, 0)), exchanging(name=b"another")]:
        producer = kind()
        assert "stream" not in _core.described(producer)
        assert (producer.taken, producer.asked) == (0, {"max_version": (1, 1)}), "a table of an unknown version was used"


def test_the_python_protocol_serves_where_the_c_interface_refuses():
    kind = exchanging()
    for name, value in [("refuses", True), ("requires_grad", True)]:
        producer = kind()
        setattr(producer, name, value)
        assert "stream" not in _core.described(producer)
        assert (producer.taken, producer.given_back, producer.asked) == (0, 1, {"max_version": (1, 1)})
    # An array on the host goes through NumPy as any other.
    pixels = tp.synth.texture((50, 40), seed=3)
    with pytest.raises(tp.ImageError, match='computes on cpu: take device="cuda:0"'):
        tp.Sift(device="cpu").detect(kind())
    assert tp.Sift(device="cpu").detect(kind(data=pixels.ctypes.data, device=(CPU, 0))) == tp.Sift(device="cpu").detect(pixels)


@pytest.mark.parametrize(("told", "message"), HOSTILE, ids=repr)
def test_hostile_tensors_of_the_c_interface_are_errors(told, message):
    producer = exchanging()(**told)
    with pytest.raises(BufferError, match=message):
        _core.described(producer)
    assert (producer.taken, producer.given_back) == (1, 1), "not given back once"


def test_a_capsule_without_a_deleter_is_valid():
    assert _core.described(Producer(has_deleter=False))["pitch"] == 50


def test_an_object_that_is_no_capsule_is_an_error():
    class Nonsense:
        def __init__(self, given):
            self.given = given

        def __dlpack__(self, **_):
            return self.given

    for given in [None, 5, "dltensor", np.datetime_data, Producer]:
        with pytest.raises(BufferError, match="no DLPack capsule"):
            _core.described(Nonsense(given))

    class Raises:
        def __dlpack__(self, **_):
            raise BufferError("requires grad")

    with pytest.raises(BufferError, match="requires grad"):
        _core.described(Raises())


@pytest.mark.parametrize(("told", "message"), HOSTILE_INTERFACES, ids=repr)
def test_hostile_interfaces_are_errors(told, message):
    with pytest.raises(BufferError, match=message):
        _core.described(Interface(**told))


def test_interfaces_are_read():
    found = _core.described(Interface(shape=(4, 5, 3), typestr="<f4", strides=(100, 12, 4), stream=7))
    assert found == {"address": 0x7F0000000000, "dtype": "float32", "shape": (4, 5, 3), "pitch": 25}
    assert _core.described(Interface(shape=(0, 5), data=(0, True)))["shape"] == (0, 5, 1)
    with pytest.raises(tp.ImageError, match="holds <f8"):
        _core.described(Interface(typestr="<f8"))
    with pytest.raises(tp.ImageError, match=r"channels come last here, .* \(40, 50, 3\)"):
        _core.described(Interface(shape=(3, 40, 50)))


class OnCard(Interface):
    """An array with both protocols, as those of PyTorch and CuPy."""

    def __dlpack_device__(self):
        return (CUDA, 0)


@pytest.mark.parametrize("image", [Producer(), Interface(), OnCard()], ids=lambda image: type(image).__name__)
def test_the_cpu_says_what_to_do_with_an_array_on_a_card(image):
    with pytest.raises(tp.ImageError, match='computes on cpu: take device="cuda'):
        tp.Sift(device="cpu").detect(image)
    with pytest.raises(tp.ImageError, match='computes on cpu: take device="cuda'):
        next(tp.Sift(device="cpu").detect_many([image]))
    with pytest.raises(tp.ImageError, match="mask lies in the memory of"):
        tp.Sift(device="cpu").detect(np.zeros((40, 50), np.uint8), image)
    with pytest.raises(tp.ImageError, match=r"lies in the memory of .*computes on cpu: .*bring it to the host"):
        tp.filter.gauss(image, 1.0, device="cpu")
    with pytest.raises(tp.ImageError, match=r"lies in the memory of .*which this call does not read: bring it to the host"):
        tp.evaluate.disparity(image, image)
    # `gauss` computes where the array is; this machine has no card, or not this memory.
    with pytest.raises(tp.Error):
        tp.filter.gauss(image, 1.0)


def test_devices_that_do_not_exist_are_errors():
    with pytest.raises(BufferError, match="CUDA device -1"):
        tp.Sift(device="cpu").detect(Producer(device=(CUDA, -1)))
    with pytest.raises(tp.ImageError, match="device type 8"):
        tp.Sift(device="cpu").detect(Producer(device=(8, 0)))
    with pytest.raises((tp.DeviceError, tp.ImageError)):
        tp.Features.from_arrays(xy=np.zeros((40, 2)), descriptors=Producer(device=(CUDA, 123)))


def opencl():
    """The name of the first OpenCL device, or None."""
    found = [entry["device"] for entry in _core.devices() if entry.get("device", "").startswith("opencl")]
    return found[0] if found else None


@pytest.mark.skipif(opencl() is None, reason="no OpenCL device (PoCL would do: pocl-opencl-icd)")
def test_features_go_to_a_device_and_come_back(features):
    a, b = features
    device = tp.Device(opencl())
    there = a.to(device)
    assert there.device == opencl() and a.device == "cpu" and len(there) == len(a)
    assert there.to(device) is there and a.to("cpu") is a
    assert repr(there).endswith(f", on {opencl()})") and there.image_size == a.image_size
    for name in ["xy", "scale", "angle", "response", "sign", "octave", "layer", "descriptors"]:
        array, wanted = getattr(there, name), getattr(a, name)
        assert isinstance(array, tp.DeviceArray) and array.device == opencl()
        assert (array.shape, array.dtype, array.ndim) == (wanted.shape, wanted.dtype, wanted.ndim), name
        assert (array.size, array.nbytes, len(array)) == (wanted.size, wanted.nbytes, len(wanted)), name
        assert np.array_equal(array.numpy(), wanted) and np.array_equal(np.asarray(array), wanted), name
        assert np.asarray(array, dtype=np.float64).dtype == np.float64
        with pytest.raises(ValueError, match="copy alone"):
            np.asarray(array, copy=False)
        with pytest.raises(BufferError, match="shared with no other program"):
            array.__dlpack__()
        assert not hasattr(array, "__cuda_array_interface__")
    assert there == a and there.to("cpu") == a and there[3:9] == a[3:9] and there[3:9].device == opencl()
    import pickle

    assert pickle.loads(pickle.dumps(there)) == a
    assert np.array_equal(pickle.loads(pickle.dumps(there.xy)), a.xy)
    wanted, nearest = tp.match(a, b, device="cpu"), tp.nearest(a, b, device="cpu")
    for pair in [(there, b.to(device)), (there, b), (a, b.to(device))]:
        assert tp.match(*pair) == wanted and tp.match(*pair, device="cpu") == wanted
        assert all(map(np.array_equal, tp.nearest(*pair), nearest))
    device.release_memory()
    assert tp.match(there, b.to(device)) == wanted, "after unused memory was released"
    other = b.to(tp.Device(opencl()))
    assert tp.match(there, other) == wanted, "features of a device that was opened twice"
    tie, tie_there = tp.tie_points(a, b, device="cpu"), tp.tie_points(there, b, device=device)
    assert np.array_equal(tie.xy_a, tie_there.xy_a) and tie == tie_there
    assert np.array_equal(tp.interop.to_lafs(there), tp.interop.to_lafs(a))
