"""Writes `python/tiepoint/_options.py` from the library's tables of options, which the compiled module lists.

Run it as `cargo xtask options` after a change to a table; a test fails while the file is not what this writes.
"""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from typing import Any

HEAD = '''"""The options of the library, by its tables. Written by `cargo xtask options`: change the library's table instead."""

from __future__ import annotations

import dataclasses
import os
from typing import Literal

from ._base import Options
'''

#: Columns of a line.
WIDTH = 120


def type_of(field: dict[str, Any]) -> tuple[str, str]:
    """The type of a field, as an annotation and as a docstring says it."""
    values = [v if v.isdigit() else f'"{v}"' for v in field["values"]]
    optional = field["optional"] or field["follows_preset"]
    if values:
        annotation, told = f"Literal[{', '.join(values)}]", f"{{{', '.join(values)}}}"
    elif field["kind"] == "path":
        annotation, told = "str | os.PathLike[str]", "path"
    elif field["unit"] in ("BYTES", "PIXELS"):
        annotation, told = "int | str", "int or str"
    else:
        annotation, told = field["kind"], field["kind"]
    return (f"{annotation} | None", f"{told}, optional") if optional else (annotation, told)


def default_of(field: dict[str, Any]) -> str:
    """The default of a field as Python writes it."""
    default = field["default"]
    if field["follows_preset"] or default is None:
        return "None"
    if isinstance(default, str):
        return default if default.isdigit() else f'"{default}"'
    return "float('inf')" if default == float("inf") else repr(default)


def help_of(field: dict[str, Any]) -> str:
    """What a field means, with its range, and its flag where that is called otherwise."""
    told = field["help"]
    if field["follows_preset"]:
        told += f" None: the preset's, {field['default']} without one."
    if field["allowed"] and not field["values"]:
        told += f" Allowed: {field['allowed']}."
    if field["flag"].startswith("!"):
        told += f" The command's ``--{field['flag'][1:]}`` switches it off."
    elif field["flag"] not in ("-", field["name"].replace("_", "-")):
        told += f" The command calls it ``--{field['flag']}``."
    return told


def table(name: str, about: str, fields: list[dict[str, Any]]) -> str:
    """A class of options."""
    lines = ["@dataclasses.dataclass(frozen=True, kw_only=True)", f"class {name}(Options):"]
    lines += textwrap.wrap(f'"""{about}', WIDTH, initial_indent="    ", subsequent_indent="    ")
    lines += ["", "    Parameters", "    ----------"]
    for field in fields:
        lines.append(f"    {field['name']} : {type_of(field)[1]}")
        lines += textwrap.wrap(help_of(field), WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    lines += ['    """', ""]
    lines += [f"    {field['name']}: {type_of(field)[0]} = {default_of(field)}" for field in fields]
    return "\n".join(lines) + "\n"


def written(tables: dict[str, tuple[str, list[dict[str, Any]]]]) -> str:
    """The whole module."""
    parts = [HEAD, *(table(name, about, fields) for name, (about, fields) in tables.items())]
    return "\n\n".join(parts)


def main(compiled: str) -> None:
    """Prints the module. The compiled half of the package is loaded by itself: the other half may not fit it now."""
    found = importlib.util.spec_from_file_location("tiepoint._core", compiled)
    core = importlib.util.module_from_spec(found)
    found.loader.exec_module(core)
    sys.stdout.write(written(core.tables()))


if __name__ == "__main__":
    main(sys.argv[1])
