"""The base classes of options and of results."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from . import _pickle
from ._core import DeviceArray

if TYPE_CHECKING:
    from collections.abc import Callable

Self = TypeVar("Self", bound="Options")


#: The heading of a docstring's parameters.
_PARAMETERS = "\n\nParameters\n----------\n"


class Options:
    """Immutable options that are given by name. `replace` makes a changed copy."""

    #: Options of the base class that the docstring leaves out.
    _left_out: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Appends the parameters of the class's table of options to its docstring."""
        own = inspect.cleandoc(cls.__doc__ or "")
        tables = [inspect.cleandoc(base.__doc__ or "").partition(_PARAMETERS)[2] for base in cls.__bases__]
        for parameter in re.split(r"\n(?=\S)", "\n".join(filter(None, tables))):
            name = parameter.partition(" :")[0]
            if name and name not in cls._left_out and f"\n{name} : " not in own:
                own += ("\n" if _PARAMETERS in own else _PARAMETERS) + parameter
        cls.__doc__ = own

    def _given(self) -> dict[str, Any]:
        """The options as they were given."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: getattr(self, field.name) for field in fields if field.init}

    def replace(self: Self, **changes: Any) -> Self:
        """The same options, but for `changes`."""
        return type(self)(**{**self._given(), **changes})

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[type, dict[str, Any]]]:
        return _pickle.options, (type(self), self._given())


class Result:
    """A result with immutable fields. Results are equal if all their fields are; arrays are equal if all values are."""

    def __post_init__(self) -> None:
        numpy = sys.modules.get("numpy")
        for name, value in self._fields().items():
            if numpy is not None and type(value) is numpy.ndarray:
                # The caller's own array stays writable.
                shown = value.view()
                shown.setflags(write=False)
                object.__setattr__(self, name, shown)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # The arrays of a copy can be written.
        self.__post_init__()

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Result)
        mine, theirs = self._fields(), other._fields()
        return all(_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        # Equal results have equal arrays, so their shapes are equal, too.
        return hash((type(self).__name__, *(getattr(value, "shape", None) for value in self._fields().values())))

    def _summary(self) -> list[tuple[str, str]]:
        """The names and values that describe a result."""
        return [(name, _short(value)) for name, value in self._fields().items() if value is not None]

    def _picture(self) -> Any:
        """An image that shows the result, if there is one."""
        return None

    def __repr__(self) -> str:
        told = ", ".join(f"{name}: {value}" for name, value in self._summary())
        return f"{type(self).__name__}({told})"

    def _repr_png_(self) -> bytes | None:
        from ._show import png

        picture = self._picture()
        return None if picture is None else png(picture)

    def _repr_html_(self) -> str:
        from ._show import page

        return page(type(self).__name__, self._summary(), self._picture())


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    # Results on a GPU are compared by their values.
    a, b = (v.numpy() if isinstance(v, DeviceArray) else v for v in (a, b))
    if hasattr(a, "dtype") and hasattr(b, "dtype"):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        same = a == b
        if getattr(a.dtype, "kind", "") == "f":
            same |= (a != a) & (b != b)
        return bool(same.all())
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(_equal, a, b))
    # An array and None, or a number.
    if bool(getattr(a, "shape", ())) != bool(getattr(b, "shape", ())):
        return False
    return bool(a == b)


def _short(value: Any) -> str:
    if hasattr(value, "dtype"):
        return f"{value.shape} {value.dtype}"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
