"""Restores pickled objects."""

from __future__ import annotations

from typing import Any

from ._core import Features


def features(*given: Any) -> Features:
    """Features from their columns, in the order of `Features.__reduce__`, and the parts of the image that were masked."""
    *columns, hidden = given
    names = ("xy", "scale", "angle", "response", "sign", "octave", "layer", "descriptors", "image_size")
    fields = dict(zip(names, columns, strict=True))
    if fields["descriptors"].shape[1] == 0:
        fields["descriptors"] = None
    found = Features.from_arrays(**fields)
    return found._hiding(hidden) if any(hidden) else found


def options(cls: type, given: dict[str, Any]) -> Any:
    """An object of this class with these options."""
    return cls(**given)
