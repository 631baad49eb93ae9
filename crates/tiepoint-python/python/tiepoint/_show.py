"""Small pictures of results, for notebooks."""

from __future__ import annotations

import base64
import html
import os
import tempfile
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        _core.write(path, np.ascontiguousarray(image), "none")
        with open(path, "rb") as file:
            return file.read()


def page(name: str, rows: Iterable[tuple[str, str]], picture: Any) -> str:
    """A table of names and values, and below it a picture, if there is one."""
    told = "".join(
        f"<tr><th style='text-align:left'>{html.escape(key)}</th><td>{html.escape(value)}</td></tr>" for key, value in rows
    )
    table = f"<table><caption>{name}</caption>{told}</table>"
    if picture is None:
        return table
    return f"{table}<img alt='' src='data:image/png;base64,{base64.b64encode(png(picture)).decode('ascii')}'>"


def features_html(features: _core.Features) -> str:
    """The representation of features in a notebook."""
    from ._draw import small

    width, height = features.image_size
    rows = [("features", str(len(features))), ("image", f"{width}x{height}"), ("device", features.device)]
    rows.append(("descriptors", f"{features.descriptors.shape} {features.descriptors.dtype}"))
    return page("Features", rows, small(features) if len(features) else None)


def features_png(features: _core.Features) -> bytes | None:
    """Only the picture."""
    from ._draw import small

    return png(small(features)) if len(features) else None
