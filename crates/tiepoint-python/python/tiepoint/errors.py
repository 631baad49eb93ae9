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
    counts, and the arguments to try."""


#: Flags and commands that have another name here.
_NAMES = {"inlier_distance": "threshold", "mask": "mask_fixed", "mask_b": "mask_moving", "match": "tie_points", "detect": "read"}

#: Arguments of one function or class, which messages of others also name.
_OWNERS = {"views": "register(…, {})", "contrast": "Sift({})"}


def _spelled(text: str) -> str:
    """A message of the library, in which flags of the command are arguments: `--ratio 0.9` becomes `ratio=0.9`."""
    import re

    def value(given: str) -> str:
        if ":" in given:
            return f"({', '.join(given.split(':'))})"
        return given if re.fullmatch(r"[-0-9.]+", given) else f'"{given}"'

    def call(found: re.Match[str]) -> str:
        if "--" not in found[1]:
            return found[0]
        command, *flags = re.split(r" ?--", found[1])
        arguments = []
        for name, _, given in (flag.partition(" ") for flag in flags):
            name = name.replace("-", "_")
            name, given = (name.removeprefix("no_"), "False") if name.startswith("no_") else (name, given and value(given))
            name = _NAMES.get(name, name)
            argument = f"{name}={given}" if given else name
            arguments.append(argument if command else _OWNERS.get(name, "{}").format(argument))
        told = ", ".join(arguments)
        return f"`{_NAMES.get(command, command)}(…, {told})`" if command else f"`{told}`"

    return re.sub(r"`([^`]*)`", call, text)


class DeviceError(Error, RuntimeError):
    """A device is missing, fails, or lacks a feature."""
