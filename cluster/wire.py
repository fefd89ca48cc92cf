"""Calls of a Service and their answers as bytes: numbers, text, arrays and the records that its annotations name.

Not pickle: a message can only become one of those records, so bytes from an unknown sender can do nothing but be refused. Every number
is restored bit for bit.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from core import errors
from core.edits import KINDS
from core.errors import HeadlightError
from core.service import Service

ASKERS = "x-askers"  # the header with the visitors who wait for the answer, as JSON
ALIGNED = 16  # bytes; arrays start at multiples, so that torch can use them without a copy
PLAIN = (type(None), bool, int, float, str)
NUMBERS = "biuf"  # allowed kinds of dtypes
DTYPE = re.compile(r"[<>|][biuf]\d{1,2}")

CALLS = {
    name: inspect.signature(call)
    for name, call in inspect.getmembers(Service, inspect.isfunction)
    if not name.startswith("_")
}
STREAMS = frozenset(name for name, call in CALLS.items() if "AsyncGenerator" in str(call.return_annotation))
REFUSALS: Mapping[str, type[Exception]] = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HeadlightError)
} | {"IndexError": IndexError}


class Unreadable(ValueError):
    """Bytes that packed() did not write."""


@cache
def records() -> dict[str, type]:
    """Every allowed record by name: those in the annotations of Service, those in their own, and the edits of a run."""
    found: dict[str, type] = {}

    def add(kind: Any) -> None:
        if get_origin(kind) is Literal:
            return
        if get_origin(kind) is not None or isinstance(kind, UnionType):
            for part in get_args(kind):
                add(part)
        elif isinstance(kind, type) and is_dataclass(kind) and _name(kind) not in found:
            found[_name(kind)] = kind
            for part in get_type_hints(kind).values():
                add(part)

    for name in CALLS:
        for kind in get_type_hints(getattr(Service, name)).values():
            add(kind)
    for edit in KINDS.values():
        add(edit)
    return found


def _name(kind: type) -> str:
    """Such as core.write.writer.Opening: two modules may have a record of the same name."""
    return f"{kind.__module__}.{kind.__qualname__}"


def packed(value: Any) -> bytes:
    """A value as bytes: the length of its JSON, the JSON, then the arrays. Raises TypeError for values that are not allowed."""
    blobs: list[bytes] = []
    spelled = json.dumps(_spelled(value, blobs, [0]), separators=(",", ":")).encode()
    spelled += b" " * (-(4 + len(spelled)) % ALIGNED)
    return b"".join((struct.pack("<I", len(spelled)), spelled, *blobs))


def unpacked(body: bytes) -> Any:
    """Inverse of packed(). Arrays are read-only views of `body`. Raises Unreadable."""
    try:
        (length,) = struct.unpack_from("<I", body)
        return _read(json.loads(body[4 : 4 + length]), memoryview(body)[4 + length :])
    except Exception as error:  # whatever a record or numpy raises for invalid arguments
        raise Unreadable(f"These bytes are no message of a Service: {type(error).__name__}.") from error


def _spelled(value: Any, blobs: list[bytes], at: list[int]) -> Any:
    """A value for JSON. Tuples become JSON lists; everything else with parts becomes an object with one member."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, tuple):
        return [_spelled(part, blobs, at) for part in value]
    if isinstance(value, list):
        return {"list": [_spelled(part, blobs, at) for part in value]}
    if isinstance(value, Mapping):
        return {"map": [[_spelled(key, blobs, at), _spelled(part, blobs, at)] for key, part in value.items()]}
    if isinstance(value, bytes):
        return {"bytes": [_put(value, blobs, at), len(value)]}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in NUMBERS:
        array = np.asarray(value, order="C")
        kind = "array" if isinstance(value, np.ndarray) else "number"
        return {kind: [array.dtype.str, list(array.shape), _put(array.tobytes(), blobs, at)]}
    name = _name(type(value))
    if name in records():
        of = [_spelled(getattr(value, field.name), blobs, at) for field in fields(records()[name])]
        return {"record": [name, of]}
    raise TypeError(f"{type(value).__name__} is not named by the annotations of a Service")


def _put(blob: bytes, blobs: list[bytes], at: list[int]) -> int:
    """Append a blob and return its offset."""
    start, pad = at[0], -len(blob) % ALIGNED
    blobs += [blob, bytes(pad)]
    at[0] += len(blob) + pad
    return start


def _read(spelled: Any, blobs: memoryview) -> Any:
    if type(spelled) in PLAIN:
        return spelled
    if isinstance(spelled, list):
        return tuple(_read(part, blobs) for part in spelled)
    ((kind, of),) = spelled.items()
    if kind == "list":
        return [_read(part, blobs) for part in of]
    if kind == "map":
        return {_read(key, blobs): _read(part, blobs) for key, part in of}
    if kind == "range":
        return range(*of)
    if kind == "bytes":
        at, length = of
        return bytes(_slice(blobs, at, length))
    if kind in ("array", "number"):
        name, shape, at = of
        array = _read_array(name, shape, at, blobs)
        return array if kind == "array" else array[()]
    name, parts = of
    record = records()[name]
    names = (field.name for field in fields(record))
    return record(**{name: _read(part, blobs) for name, part in zip(names, parts, strict=True)})


def _read_array(name: str, shape: Sequence[int], at: int, blobs: memoryview) -> np.ndarray:
    if not DTYPE.fullmatch(name) or not all(type(n) is int and n >= 0 for n in shape):
        raise Unreadable("not an array of numbers")
    dtype = np.dtype(name)
    return np.frombuffer(_slice(blobs, at, dtype.itemsize * math.prod(shape)), dtype).reshape(shape)


def _slice(blobs: memoryview, at: int, length: int) -> memoryview:
    if not 0 <= at <= at + length <= len(blobs):
        raise Unreadable("bytes are missing")
    return blobs[at : at + length]


# Frames: an answer is one frame, a stream several. Each starts with its kind and its length.

VALUE, REFUSED, END, BROKEN, BEAT = range(5)
HEAD = struct.Struct("<BQ")


def frame(kind: int, body: bytes = b"") -> bytes:
    return HEAD.pack(kind, len(body)) + body


def refusal(error: Exception) -> bytes:
    """A frame with the kind and text of a refusal. Of any other error, only that there was one."""
    name = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in REFUSALS), "")
    return frame(REFUSED, packed((name, str(error)))) if name else frame(BROKEN)


def refused(body: bytes) -> Exception:
    """Inverse of refusal()."""
    name, text = unpacked(body)
    return REFUSALS.get(name, HeadlightError)(text)
