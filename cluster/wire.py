"""What a Service is asked and answers as bytes, and back: numbers, words, arrays and the records that its annotations name.

Never a pickle: what comes in may only become one of those records, so bytes from anywhere can do nothing but be refused. Every
number comes out as it went in, bit for bit.
"""

from __future__ import annotations

import inspect
import json
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
from core.errors import Refused
from core.service import Service

ASKERS = "x-askers"  # the header that says whose question it is, as JSON
ALIGNED = 16  # bytes; arrays begin at multiples, so that torch may use them where they lie
PLAIN = (type(None), bool, int, float, str)
NUMBERS = "biuf"  # kinds of dtypes that travel
DTYPE = re.compile(r"[<>|][biuf]\d{1,2}")

CALLS = {
    name: inspect.signature(call)
    for name, call in inspect.getmembers(Service, inspect.isfunction)
    if not name.startswith("_")
}
STREAMS = frozenset(name for name, call in CALLS.items() if "AsyncGenerator" in str(call.return_annotation))
REFUSALS: Mapping[str, type[Exception]] = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Refused)
} | {"IndexError": IndexError}


class Unreadable(ValueError):
    """Bytes that nobody of ours wrote."""


@cache
def records() -> dict[str, type]:
    """Every record that may travel, by its name: those that Service's annotations name, theirs, and the edits of a run."""
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
    """core.write.writing.Opening: two modules may have a record of the same name."""
    return f"{kind.__module__}.{kind.__qualname__}"


def packed(value: Any) -> bytes:
    """A value as bytes: the length of what follows as JSON, that, and arrays behind it. Raises TypeError for what may not travel."""
    blobs: list[bytes] = []
    spelled = json.dumps(_spelled(value, blobs, [0]), separators=(",", ":")).encode()
    spelled += b" " * (-(4 + len(spelled)) % ALIGNED)
    return b"".join((struct.pack("<I", len(spelled)), spelled, *blobs))


def unpacked(body: bytes) -> Any:
    """What packed() was given; its arrays are views of `body`, not to be written to. Raises Unreadable."""
    try:
        (length,) = struct.unpack_from("<I", body)
        return _read(json.loads(body[4 : 4 + length]), memoryview(body)[4 + length :])
    except Exception as error:  # whatever a record or numpy says to arguments that are none
        raise Unreadable(f"These bytes are no message of a Service: {type(error).__name__}.") from error


def _spelled(value: Any, blobs: list[bytes], at: list[int]) -> Any:
    """JSON has one kind of list: it is a tuple here, and everything else that has parts is an object with one member."""
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
    raise TypeError(f"{type(value).__name__} is nothing that a Service's annotations name")


def _put(blob: bytes, blobs: list[bytes], at: list[int]) -> int:
    """Where the blob begins."""
    begins, pad = at[0], -len(blob) % ALIGNED
    blobs += [blob, bytes(pad)]
    at[0] += len(blob) + pad
    return begins


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
        if not DTYPE.fullmatch(name) or not all(type(n) is int and n >= 0 for n in shape):
            raise Unreadable("no array of numbers")
        dtype = np.dtype(name)
        array = np.frombuffer(_slice(blobs, at, dtype.itemsize * _product(shape)), dtype).reshape(shape)
        return array if kind == "array" else array[()]
    name, parts = of
    record = records()[name]
    names = (field.name for field in fields(record))
    return record(**{name: _read(part, blobs) for name, part in zip(names, parts, strict=True)})


def _slice(blobs: memoryview, at: int, length: int) -> memoryview:
    if not 0 <= at <= at + length <= len(blobs):
        raise Unreadable("bytes are missing")
    return blobs[at : at + length]


def _product(shape: Sequence[int]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


# Frames: an answer is one, and a stream some, each with its kind and its length before it.

VALUE, REFUSED, END, BROKEN, BEAT = range(5)
HEAD = struct.Struct("<BQ")


def frame(kind: int, body: bytes = b"") -> bytes:
    return HEAD.pack(kind, len(body)) + body


def refusal(error: Exception) -> bytes:
    """A frame that says what was refused and why; of an error that is no refusal, only that there was one."""
    name = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in REFUSALS), "")
    return frame(REFUSED, packed((name, str(error)))) if name else frame(BROKEN)


def refused(body: bytes) -> Exception:
    """The error that refusal() was given."""
    name, text = unpacked(body)
    return REFUSALS.get(name, Refused)(text)
