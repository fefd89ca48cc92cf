"""Messages to the browser: a header and raw numbers as bytes."""

from __future__ import annotations

import builtins
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np


def pack(header: Mapping[str, Any], body: bytes) -> bytes:
    """One message."""
    return assembled(written(header), body)


def written(header: Mapping[str, Any]) -> bytes:
    """A header as it travels."""
    return json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()


def assembled(head: bytes, body: bytes, more: Mapping[str, Any] | None = None) -> bytes:
    """One message of a header that is written already: for several that differ only in `more`, which goes over what the header says."""
    if more:
        head = head[:-1] + b"," * (len(head) > 2) + written(more)[1:]  # of two fields of one name the later one counts
    padding = b" " * (-len(head) % 4)  # JSON ignores it, and numbers in the body stay aligned
    return b"".join((struct.pack("<I", len(head) + len(padding)), head, padding, body))


def framed(header: dict[str, Any], body: bytes) -> bytes:
    """One message after its length, for a stream of several."""
    message = pack(header, body)
    return struct.pack("<I", len(message)) + message


def unpack(message: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the body of a message."""
    (length,) = struct.unpack_from("<I", message)
    return json.loads(message[4 : 4 + length]), message[4 + length :]


def quantised(weights: np.ndarray, top: int = 65535) -> np.ndarray:
    """Weights in 0..1 as integers 0..top, rounded: uint16, or uint8 for a top of 255. NaN, of a run that overflowed, becomes 0."""
    whole = np.clip(weights, 0, 1, dtype=np.float64)
    np.copyto(whole, 0, where=np.isnan(whole))
    whole *= top
    return np.rint(whole, out=whole).astype("<u2" if top > 255 else "u1")


def float32(values: np.ndarray) -> np.ndarray:
    """As they travel; no copy where they are so already."""
    return np.ascontiguousarray(values, dtype="<f4")


class Body:
    """Raw numbers after one header: each array goes in at a multiple of 4 bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, array: np.ndarray) -> int:
        """The offset at which the array starts."""
        data = np.ascontiguousarray(array).tobytes()
        data += b"\0" * (-len(data) % 4)
        start = self.size
        self.parts.append(data)
        self.size += len(data)
        return start

    def bytes(self) -> builtins.bytes:
        return b"".join(self.parts)


def joined(*arrays: np.ndarray) -> bytes:
    """Arrays one after the other, each at a multiple of 4 bytes."""
    body = Body()
    for array in arrays:
        body.add(array)
    return body.bytes()
