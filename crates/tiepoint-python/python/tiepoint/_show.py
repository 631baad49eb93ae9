"""Small pictures of results, for notebooks."""

from __future__ import annotations

import base64
import os
import tempfile
from typing import Any

from . import _core

#: Pixels of the longer side, at most.
LONGEST = 640


def png(image: Any) -> bytes:
    """An image as PNG: floats from their least to their greatest value, and everything reduced to `LONGEST` pixels."""
    import numpy as np

    image = np.asarray(image)
    step = max(1, -(-max(image.shape[:2]) // LONGEST))
    image = image[::step, ::step]
    if image.dtype.kind == "f":
        finite = image[np.isfinite(image)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        image = np.nan_to_num((image - low) / ((high - low) or 1.0), nan=0.0, posinf=0.0, neginf=0.0)
        image = (255.0 * image).astype(np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "picture.png")
        _core.write(path, np.ascontiguousarray(image))
        with open(path, "rb") as file:
            return file.read()


def data_url(image: Any) -> str:
    """The same as a URL."""
    return "data:image/png;base64," + base64.b64encode(png(image)).decode("ascii")
