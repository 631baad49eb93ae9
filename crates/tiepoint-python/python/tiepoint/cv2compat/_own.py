"""OpenCV's module, if it is installed, and its namespaces with the names of this package."""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.machinery
import operator
import re
import sys
import types
from typing import TYPE_CHECKING, Any, TypeVar

from .._core import Device
from ..errors import Error, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Self

    _Call = TypeVar("_Call", bound=Callable[..., Any])


#: OpenCV's module, once it was loaded.
_real: Any = sys.modules.get("cv2")


def opencv() -> Any:
    """OpenCV's module, or None if it is not installed; also where ``sys.modules["cv2"]`` is this package's."""
    global _real
    held, ours = sys.modules.get("cv2"), stands_as_cv2()
    if ours and _real is not None:
        return _real
    if ours:
        # So that the import below finds OpenCV.
        del sys.modules["cv2"]
    try:
        import cv2  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return None
    finally:
        if ours and held is not None:
            sys.modules["cv2"] = held
    _real = cv2
    return cv2


def stands_as_cv2() -> bool:
    """Whether this package is what ``import cv2`` gives."""
    return getattr(sys.modules.get("cv2"), "__name__", None) == __package__


def needed(for_what: str) -> Any:
    """OpenCV's module, for a function that only OpenCV has; raises if it is not installed."""
    found = opencv()
    if found is None:
        raise OptionError(f"{for_what} needs OpenCV, which is not installed: pip install opencv-python-headless")
    return found


#: The device of functions and objects that are given none; None for the package's own choice.
_device: Device | None = None


def setNumThreads(nthreads: int) -> None:  # noqa: N802
    """`cv2.setNumThreads`: the threads of OpenCV, and of this package's functions and of its objects made afterwards that are
    given no `device`. 0 is one thread, and below 0 all cores."""
    global _device
    nthreads = operator.index(nthreads)
    _device = Device(threads=max(nthreads, 1)) if nthreads >= 0 else None
    if (theirs := opencv()) is not None:
        theirs.setNumThreads(nthreads)


def placed(device: Any) -> Any:
    """The device that an argument names; of None, one of as many threads as `setNumThreads` was given."""
    return _device if device is None else device


def host(given: Any) -> Any:
    """An argument, of OpenCV's `UMat` its array."""
    return given.get() if is_umat(given) else given


def masking(mask: Any) -> Any:
    """A mask, or None for an empty one, as in OpenCV; of a `UMat` its array."""
    mask = host(mask)
    return None if getattr(mask, "size", 1) == 0 else mask


def is_umat(given: Any) -> bool:
    """Whether an argument is OpenCV's `UMat`."""
    return type(given).__name__ == "UMat"


def like(given: Any, found: Any, into: Any = None) -> Any:
    """The result, as OpenCV's `UMat` if the input, or one of several, was one; written to `into` if that is one."""
    if is_umat(into):
        return opencv().copyTo(opencv().UMat(found), None, into)
    several = given if isinstance(given, tuple) else (given,)
    return opencv().UMat(found) if found is not None and any(map(is_umat, several)) else found


_BOTH: dict[tuple[Any, Any], Any] = {}


def _both(kind: Any, theirs: Any) -> Any:
    """A class of errors that derives from both classes."""
    if (kind, theirs) not in _BOTH:
        told = {"__reduce__": lambda error: (_error, (kind, error.args, vars(error)))}
        _BOTH[kind, theirs] = type(kind.__name__, (kind, theirs), told)
    return _BOTH[kind, theirs]


def _error(kind: Any, arguments: tuple[Any, ...], told: dict[str, Any]) -> Any:
    """An error of this package that is OpenCV's, too, if that is installed, and has the attributes of OpenCV's."""
    theirs = getattr(opencv(), "error", None)
    made = (kind if theirs is None else _both(kind, theirs))(*arguments)
    vars(made).update(told)
    return made


def raising(call: _Call) -> _Call:
    """A function of ours in OpenCV's place: None stands for the default of any argument, and errors are OpenCV's, too, so
    that ``except cv2.error`` catches them."""
    code = call.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = dict(zip(reversed(names), reversed(call.__defaults__ or ()), strict=False)) | (call.__kwdefaults__ or {})

    @functools.wraps(call)
    def called(*arguments: Any, **named: Any) -> Any:
        given = [defaults.get(name, value) if value is None else value for name, value in zip(names, arguments, strict=False)]
        named = {name: defaults.get(name, value) if value is None else value for name, value in named.items()}
        try:
            return call(*given, *arguments[len(names) :], **named)
        except (Error, TypeError, ValueError) as error:
            theirs = getattr(opencv(), "error", None)
            if theirs is None or isinstance(error, theirs):
                raise
            told = {"code": -5, "err": str(error), "func": call.__name__, "msg": str(error), "file": "", "line": -1}
            made = _error(type(error), error.args, told)
            raise made.with_traceback(error.__traceback__) from error.__cause__

    return called  # type: ignore[return-value]


@contextlib.contextmanager
def naming(names: Mapping[str, str]) -> Iterator[None]:
    """Errors about options of this package name them as OpenCV does."""
    try:
        yield
    except OptionError as error:
        raise OptionError(re.sub(r"(?<=option )\w+", lambda m: names.get(m[0], m[0]), str(error))) from None


def numbers(**given: Any) -> None:
    """Refuses parameters that are no numbers."""
    for name, value in given.items():
        if not hasattr(value, "__float__"):
            raise TypeError(f"option {name} is {value!r}: expected a number")


def parameters(arguments: dict[str, Any]) -> dict[str, Any]:
    """OpenCV's parameters among the arguments of a constructor, in their order."""
    return {name: value for name, value in arguments.items() if name not in ("self", "__class__", "preset", "device")}


def accessors(*names: str) -> dict[str, str]:
    """The parameters of these names by what follows ``get`` and ``set``."""
    return {name[0].upper() + name[1:]: name for name in names}


class _Kind(type):
    """The class of the classes in OpenCV's place: an object of OpenCV's own class of that name is an instance, too."""

    def __instancecheck__(cls, given: Any) -> bool:
        theirs = getattr(opencv() if "cv2" in sys.modules else None, cls.__name__, cls)
        return super().__instancecheck__(given) or theirs is not cls and isinstance(given, theirs)


class Algorithm(metaclass=_Kind):
    """The base of OpenCV's objects with parameters, each of which has a getter and a setter."""

    #: OpenCV's name of the algorithm.
    _name = ""
    #: The parameter that ``getX`` and ``setX`` access.
    _accessors: dict[str, str] = {}

    def __init_subclass__(cls) -> None:
        for name, held in list(vars(cls).items()):
            if name[0] == "_" and name not in ("__new__", "__init__"):
                continue
            if isinstance(held, staticmethod):
                setattr(cls, name, staticmethod(raising(held.__func__)))
            elif isinstance(held, types.FunctionType):
                setattr(cls, name, raising(held))

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    @classmethod
    def create(cls, *arguments: Any, **named: Any) -> Self:
        """An object with these parameters."""
        return cls(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        """A getter or setter."""
        verb, key = name[:3], type(self)._accessors.get(name[3:])
        if key is None or verb not in ("get", "set"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return (lambda: self._given[key]) if verb == "get" else (lambda value: self._set(key, value))

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuses an attribute that would have no effect."""
        if name[0] != "_" and not hasattr(type(self), name):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}: its parameters are set by methods, set…")
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(verb + name for name in self._accessors for verb in ("get", "set"))]

    @raising
    def _set(self, key: str, value: Any) -> None:
        before = self._given
        self._given = {**before, key: value}
        try:
            self._changed()
        except Exception:
            self._given = before
            raise

    def _changed(self) -> None:
        """Called after a parameter was set."""

    def opencv(self) -> Any:
        """OpenCV's own object with the same parameters, for functions that take no other; its results are OpenCV's."""
        raise OptionError(f"OpenCV has no {type(self).__name__} with the same parameters")

    @raising
    def write(self, *arguments: Any) -> None:
        """Writes the parameters to OpenCV's ``FileStorage``, as OpenCV's own object does."""
        self.opencv().write(*arguments)

    @raising
    def save(self, filename: Any) -> None:
        """Writes the parameters to a file, as OpenCV's own object does."""
        self.opencv().save(filename)

    @raising
    def read(self, node: Any) -> None:
        """Reads parameters from OpenCV's ``FileNode``."""
        theirs = self.opencv()
        theirs.read(node)
        for name, key in self._accessors.items():
            self._set(key, getattr(theirs, f"get{name}")())

    def getDefaultName(self) -> str:  # noqa: N802
        """OpenCV's name."""
        return self._name

    def clear(self) -> None:
        """Does nothing: there is no state to clear."""

    def empty(self) -> bool:
        """False, as OpenCV's own."""
        return False


def checked(name: str, theirs: Any) -> Any:
    """An object of OpenCV. If a function refuses an object of this package, the error tells how to get OpenCV's."""
    if not isinstance(theirs, types.BuiltinFunctionType):
        return theirs
    if (name, theirs) not in _checked:
        _checked[name, theirs] = _telling(name, theirs)
    return _checked[name, theirs]


#: The wrapper of each function, kept so that one name always gives the same object.
_checked: dict[tuple[str, Any], Any] = {}


def _telling(name: str, theirs: Any) -> Any:
    @functools.wraps(theirs)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return theirs(*arguments, **named)
        except Exception as error:
            ours = [a for a in (*arguments, *named.values()) if issubclass(type(a), Algorithm)]
            if not ours:
                raise
            kind = type(ours[0]).__name__
            raise TypeError(
                f"{name} is OpenCV's own, and takes no {kind} of tiepoint: give it OpenCV's own with the same "
                f"parameters, which the method .opencv() makes, or call detectAndCompute, match or compute of the "
                f"{kind} and hand on what it gives"
            ) from error

    # By these, `pickle` finds it.
    call.__module__, call.__qualname__ = str(__package__), name
    return call


class Namespace(types.ModuleType):
    """A module of OpenCV's in which some names are ours."""

    def __init__(self, name: str, ours: dict[str, Any]) -> None:
        super().__init__(f"{__package__}.{name}", f"OpenCV's `{name}`, of which {', '.join(ours)} are tiepoint's.")
        self.__dict__.update(ours)
        # By it, `importlib.util.find_spec` tells that there is such a module.
        self.__spec__: importlib.machinery.ModuleSpec | None = importlib.machinery.ModuleSpec(self.__name__, None)
        self._ours = tuple(ours)
        sys.modules[self.__name__] = self

    def __getattr__(self, name: str) -> Any:
        short = self.__name__.rpartition(".")[2]
        theirs = getattr(opencv(), short, None)
        if name.startswith("__") or theirs is None:
            raise AttributeError(f"{short}.{name} is OpenCV's own, which is not installed: tiepoint has {', '.join(self._ours)}")
        return checked(f"{short}.{name}", getattr(theirs, name))

    def __dir__(self) -> list[str]:
        theirs = getattr(opencv(), self.__name__.rpartition(".")[2], None)
        return sorted({*self._ours, *(n for n in dir(theirs) if theirs is not None and not n.startswith("_"))})


class _Shared(types.ModuleType):
    """What ``sys.modules`` has for a module of OpenCV's in which some names are ours: the module of whichever package is
    ``cv2``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        replaced = vars(sys.modules[name])
        names = ("__spec__", "__loader__", "__package__", "__path__", "__file__")
        self.__dict__.update({name: replaced[name] for name in names if name in replaced})

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(sys.modules["cv2"], self.__name__[4:]), name)

    def __dir__(self) -> list[str]:
        return dir(getattr(sys.modules["cv2"], self.__name__[4:]))


def _share(real: Any) -> None:
    """Remembers OpenCV's module, and shares those of its modules that have names of ours."""
    global _real
    _real = real
    for name in ("xfeatures2d", "ximgproc", "detail"):
        if f"cv2.{name}" in sys.modules:
            sys.modules[f"cv2.{name}"] = _Shared(f"cv2.{name}")


class _Finder:
    """Finds ``cv2.NAME`` where this package stands as ``cv2``, and ``tiepoint.cv2compat.NAME``: modules with names of
    ours, and any other of OpenCV's."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        parent, _, short = name.rpartition(".")
        if name == "cv2" and not _Sharing.active:
            others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not _Finder)
            if (spec := next(filter(None, others), None)) is not None and spec.loader is not None:
                spec.loader = _Sharing(spec.loader)
            return spec
        if short[:1] != "_" and (parent == __package__ or parent == "cv2" and stands_as_cv2()):
            return importlib.machinery.ModuleSpec(name, _Loader())
        return None


class _Sharing(importlib.abc.Loader):
    """The loader of OpenCV, for any import of it: shares its modules once it has loaded all."""

    active = False

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs

    def create_module(self, spec: Any) -> Any:
        return self._theirs.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._theirs
        _Sharing.active = True
        try:
            self._theirs.exec_module(module)
        finally:
            _Sharing.active = False
        _share(sys.modules["cv2"])


class _Loader(importlib.abc.Loader):
    """Gives a module that is there by another name."""

    def create_module(self, spec: Any) -> Any:
        opencv()
        short = spec.name.rpartition(".")[2]
        found = sys.modules.get(f"{__package__}.{short}") or sys.modules.get(f"cv2.{short}")
        if found is None:
            raise ModuleNotFoundError(f"No module named {spec.name!r}", name=spec.name)
        self._spec = found.__spec__
        return found

    def exec_module(self, module: Any) -> None:
        # It was replaced by that of the other name.
        module.__spec__ = self._spec


if _real is not None:
    _share(_real)
sys.meta_path.insert(0, _Finder)
