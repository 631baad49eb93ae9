"""Arrays of a CUDA device as any program may describe them, made by ctypes: valid ones, and hostile ones."""

import ctypes
import itertools

CUDA, CPU = 2, 1
VERSIONED, LEGACY = b"dltensor_versioned", b"dltensor"

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
is_capsule = ctypes.pythonapi.PyCapsule_IsValid
is_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", DELETER)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def numbers(values):
    return None if values is None else (ctypes.c_int64 * len(values))(*values)


class Producer:
    """An object with `__dlpack__`, whose capsule holds what the arguments say; `given_back` counts calls of its deleter."""

    def __init__(
        self,
        shape=(40, 50),
        strides=None,
        *,
        data=0x7F0000000000,
        device=(CUDA, 0),
        told=None,
        ndim=None,
        dtype=(1, 8, 1),
        byte_offset=0,
        versioned=True,
        version=(1, 0),
        has_deleter=True,
    ):
        self.given_back = 0
        self.asked = {}
        self.device = device
        self._shape, self._strides = numbers(shape), numbers(strides)
        empty = ctypes.POINTER(ctypes.c_int64)()
        tensor = Tensor(
            data, *(told or device), len(shape or ()) if ndim is None else ndim, *dtype,
            empty if shape is None else self._shape, empty if strides is None else self._strides, byte_offset,
        )  # fmt: skip
        self._deleter = DELETER(self._delete) if has_deleter else DELETER()
        if versioned:
            self._managed = ManagedVersioned(*version, None, self._deleter, 0, tensor)
        else:
            self._managed = Managed(tensor, None, self._deleter)
        self.capsule = new_capsule(ctypes.addressof(self._managed), VERSIONED if versioned else LEGACY, None)

    def _delete(self, _):
        self.given_back += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **asked):
        self.asked = asked
        return self.capsule


TAKE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
DESCRIBE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
CURRENT_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    """`DLPackExchangeAPI` of DLPack 1.3."""


Table._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("older", ctypes.POINTER(Table)),
    ("allocate", ctypes.c_void_p),
    ("take", TAKE),
    ("give", ctypes.c_void_p),
    ("describe", DESCRIBE),
    ("current_stream", CURRENT_STREAM),
]


def _take(producer, out):
    if producer.refuses:
        return -1
    out[0] = ctypes.addressof(producer._managed)
    producer.taken += 1
    return 0


def _describe(producer, out):
    if producer.refuses:
        return -1
    out[0] = producer._managed.tensor
    return 0


def _current_stream(_kind, number, out):
    # NULL, the default stream, for device 0; stream 77 for others.
    out[0] = None if number == 0 else 77
    return 0


def exchanging(*, version=(1, 3), older=None, describes=True, name=b"dlpack_exchange_api"):
    """A class of producers that have DLPack's C interface as well."""
    functions = TAKE(_take), DESCRIBE(_describe) if describes else DESCRIBE(), CURRENT_STREAM(_current_stream)
    older = None if older is None else ctypes.pointer(older.table)

    class Exchanging(Producer):
        refuses = False
        taken = 0
        table = Table(*version, older, None, functions[0], None, *functions[1:])
        __dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(table), name, None)

    return Exchanging


class Interface:
    """An object with `__cuda_array_interface__`, and nothing else."""

    def __init__(self, **told):
        right = {"shape": (40, 50), "typestr": "|u1", "data": (0x7F0000000000, False), "strides": None, "version": 3}
        self.__cuda_array_interface__ = {name: value for name, value in {**right, **told}.items() if value != "missing"}


#: What no capsule may hold, with the error message.
HOSTILE = [
    ({"shape": (-40, 50)}, r"shape \[-40, 50\]: negative"),
    ({"shape": (40, -1)}, "negative"),
    ({"ndim": -1}, "-1 dimensions"),
    ({"ndim": 2**31 - 1}, "2147483647 dimensions"),
    ({"shape": None, "ndim": 2}, "no shape"),
    ({"data": None}, "no address"),
    ({"shape": (2**62, 2**62)}, "exceeds memory"),
    ({"shape": (2**40, 2**40), "dtype": (2, 32, 1)}, "exceeds memory"),
    ({"dtype": (1, 8, 4)}, "in 4 lanes"),
    ({"dtype": (1, 4, 1)}, "4 bits"),
    ({"dtype": (1, 0, 1)}, "0 bits"),
    ({"dtype": (2, 32, 0)}, "in 0 lanes"),
    ({"byte_offset": 2**64 - 1}, "beyond all memory"),
    ({"version": (2, 0)}, "version 2.0: expected 1"),
    ({"version": (0, 8)}, "version 0.8: expected 1"),
]

#: Layouts that would need a copy.
UNPACKED = [
    {"strides": (1, 40)},
    {"strides": (-50, 1)},
    {"strides": (50, -1)},
    {"strides": (100, 2)},
    {"strides": (49, 1)},
    {"strides": (0, 1)},
    {"shape": (40, 50, 3), "strides": (50, 1, 2000)},
    {"shape": (40, 50, 3), "strides": (200, 4, 1)},
]

HOSTILE_INTERFACES = [
    ({"shape": (-1, 5)}, "negative"),
    ({"shape": 7}, "no tuple of int"),
    ({"shape": (2**62, 2**62)}, "exceeds memory"),
    ({"data": (0, False)}, "address 0"),
    ({"data": ("a", False)}, "no address"),
    ({"data": 5}, "no tuple"),
    ({"data": "missing"}, "has no data"),
    ({"strides": (50,)}, "1 strides for 2 sides"),
    ({"typestr": "<u2", "strides": (101, 2)}, "no multiples of 2 bytes"),
    ({"stream": 0}, "stream 0"),
    ({"stream": -5}, "stream -5"),
    ({"stream": "one"}, "stream one"),
    ({"mask": object()}, "has a mask"),
    ({"version": None}, "version"),
]


def all_hostile():
    """Every hostile capsule, of both kinds where the version does not matter."""
    for (told, message), versioned in itertools.product(HOSTILE, [True, False]):
        if versioned or "version" not in told:
            yield {**told, "versioned": versioned}, message
