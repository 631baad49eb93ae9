"""The exceptions of this package.

Every message says what was wrong, what was expected and what to do. A file that cannot be opened, read or written is
Python's own `OSError` (`FileNotFoundError`, `PermissionError`, …), and an argument of the wrong type a `TypeError`.
"""

__all__ = [
    "DeviceError",
    "Error",
    "FormatError",
    "ImageError",
    "MismatchError",
    "ModelError",
    "OptionError",
    "OutOfMemoryError",
]


class Error(Exception):
    """The base of all exceptions of this package."""


class OptionError(Error, ValueError):
    """An option is unknown or out of its range."""


class ImageError(Error, ValueError):
    """An array is not an image, or does not fit the operation."""


class MismatchError(Error, ValueError):
    """Two inputs do not fit each other."""


class FormatError(Error, ValueError):
    """A file is not what its format demands, or the format is not known."""


class OutOfMemoryError(Error, MemoryError):
    """More memory is needed than the limit allows, or than there is."""


class ModelError(Error, ArithmeticError):
    """Too few matches for the model, or matches that do not determine it. For two pictures the message also has the
    counts, and the options of the command to try."""


class DeviceError(Error, RuntimeError):
    """A device is missing, fails, or lacks a feature."""
