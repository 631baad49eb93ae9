"""A CUDA device, and the packages whose arrays may be on it, for tests that need them.

`TIEPOINT_REQUIRE_CUDA=1` makes a missing card or package a failure instead of a skip.
"""

import importlib
import os

import numpy as np
import pytest
import tiepoint as tp
from tiepoint import _core

#: Without this JAX takes most of the card's memory at its start.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

CARD = any(entry.get("device") == "cuda:0" for entry in _core.devices())
REQUIRED = bool(os.environ.get("TIEPOINT_REQUIRE_CUDA"))


def gpu_required():
    """Whether a missing GPU is a failure, as in the library's tests: in CI, and where TIEPOINT_REQUIRE_GPU is not 0."""
    return os.environ.get("TIEPOINT_REQUIRE_GPU", os.environ.get("CI", "0")) != "0"


#: Marks of modules whose tests need a card.
NEEDS_CARD = [
    pytest.mark.skipif(not CARD and not REQUIRED, reason="no CUDA device: arrays that stay on one are not tested"),
    # Warnings of other libraries are no failures.
    pytest.mark.filterwarnings("default"),
]


class Torch:
    """PyTorch as a producer and consumer of arrays."""

    def __init__(self):
        self.torch = importlib.import_module("torch")
        assert self.torch.cuda.is_available()

    def there(self, array):
        # A copy, because PyTorch warns of read-only arrays.
        return self.torch.from_numpy(np.array(array)).to("cuda:0")

    def back(self, array):
        return self.torch.from_dlpack(array)

    def address(self, array):
        return array.data_ptr()

    def numpy(self, array):
        return array.cpu().numpy()


class Cupy:
    """CuPy, with the methods of `Torch`."""

    def __init__(self):
        self.cupy = importlib.import_module("cupy")

    def there(self, array):
        return self.cupy.asarray(array)

    def back(self, array):
        return self.cupy.from_dlpack(array)

    def address(self, array):
        return array.data.ptr

    def numpy(self, array):
        return self.cupy.asnumpy(array)


class Jax:
    """JAX, with the methods of `Torch`."""

    def __init__(self):
        self.jax = importlib.import_module("jax")
        importlib.import_module("jax.dlpack")
        self.device = self.jax.devices("gpu")[0]

    def there(self, array):
        return self.jax.device_put(array, self.device)

    def back(self, array):
        return self.jax.dlpack.from_dlpack(array)

    def address(self, array):
        return array.unsafe_buffer_pointer()

    def numpy(self, array):
        return np.asarray(array)


def picture(kind, channels=1, size=(163, 120), seed=5):
    """A texture with pixels of type `kind`."""
    grey = tp.synth.texture(size, seed=seed)
    image = grey if channels == 1 else np.stack([np.roll(grey, i, 1) for i in range(channels)], -1)
    if kind == "uint16":
        return image.astype(np.uint16) * 40 + 700
    return image.astype(np.float32) / 255 if kind == "float32" else image
