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


#: Phrases of the command in messages of the library, and their equivalents here, where the rules below do not apply.
_HERE = {
    "collect --matches": "collect(…, options=CollectionOptions(matches=FILE))",
    "detect --no-orient": "read(…, orient=False)",
    "match --model fundamental": 'tie_points(…, "fundamental")',
    "rectify --calibration": "rectify(…, calibration)",
    "stereo --calibration": "Stereo.compute(…, calibration)",
    "tiepoint collect status": "Collection.status()",
    "tiepoint match A B": "register(a, b)",
    "tiepoint match A B --model fundamental": 'tie_points(a, b, "fundamental")',
    "tiepoint rectify": "rectify(left, right)",
    "tiepoint rectify A B": "rectify(left, right)",
    "tiepoint register --overlay": "draw(registration)",
    "tiepoint stereo --rectify": "rectify(left, right)",
    "--halve auto": "filter.resample",
    "--mask": "mask_fixed` or `mask_left",
    "--mask-b": "mask_moving` or `mask_right",
    "--no-rematch": "rematch=None",
    "--rectify": "rectify(left, right)",
}

#: Flags that have another name here.
_NAMES = {"inlier_distance": "threshold", "truth_scale": "scale"}

#: Arguments of one function or class, which messages of others also name.
_OWNERS = {
    "views": "register(…, {})",
    "contrast": "Sift({})",
    "range": "Sift({})",
    "scale": "read_disparity(…, {})",
}


#: The methods of a collection that run the stages of the command.
_STAGES = {"scan": "scan", "features": "extract", "pairs": "choose_pairs", "match": "match_pairs"}


def _spelled(text: str) -> str:
    """A message of the library with the command's flags replaced by arguments: `--ratio 0.9` becomes `ratio=0.9`. What
    only the command has stays as it is."""
    import re

    def value(given: str) -> str:
        if ":" in given:
            return f"({', '.join(given.split(':'))})"
        if given == "none":
            return "None"
        return given if re.fullmatch(r"[-0-9.]+", given) else f'"{given}"'

    def call(found: re.Match[str]) -> str:
        if found[1] in _HERE:
            return f"`{_HERE[found[1]]}`"
        if not found[1].startswith("--"):
            return found[0]
        arguments = []
        for name, _, given in (flag.partition(" ") for flag in found[1][2:].split(" --")):
            name = name.replace("-", "_")
            name = _NAMES.get(name, name)
            argument = f"{name}={value(given)}" if given else name
            arguments.append(_OWNERS.get(name, "{}").format(argument))
        return f"`{', '.join(arguments)}`"

    text = re.sub(r"run the stage `(\w+)`", lambda found: f"call `Collection.{_STAGES.get(found[1], found[1])}()`", text)
    return re.sub(r"`([^`]*)`", call, text)


class DeviceError(Error, RuntimeError):
    """A device is missing, fails, or lacks a feature."""
