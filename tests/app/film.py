"""Videos read again, as far as the exports write them: WebM's elements and MP4's boxes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MASTERS = {0x18538067, 0x1549A966, 0x1654AE6B, 0xAE, 0xE0, 0x1254C367, 0x7373, 0x67C8, 0x1F43B675, 0x1A45DFA3}
UNKNOWN = (1 << 56) - 1  # how long something is that a recorder has not ended yet


@dataclass(frozen=True)
class Video:
    kind: str  # webm or another
    seconds: float
    size: tuple[int, int]
    frames: int
    tags: dict[str, str]


def _elements(data: bytes, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Every element of EBML that holds no others, by its id."""
    while at < end:
        width = 9 - data[at].bit_length()
        number = int.from_bytes(data[at : at + width], "big")
        at += width
        width = 9 - data[at].bit_length()
        size = int.from_bytes(data[at : at + width], "big") & ((1 << (7 * width)) - 1)
        at += width
        last = end if size == (1 << (7 * width)) - 1 else at + size
        assert last <= end
        if number in MASTERS:
            yield from _elements(data, at, last)
        yield number, data[at : min(last, at + 4096)]
        at = last


def webm(data: bytes) -> Video:
    found: dict[int, list[bytes]] = {}
    for number, body in _elements(data, 0, len(data)):
        found.setdefault(number, []).append(body)
    assert data[:4] == b"\x1a\x45\xdf\xa3"
    names, values = found.get(0x45A3, []), found.get(0x4487, [])
    duration = found.get(0x4489, [struct.pack(">d", 0)])[0]
    return Video(
        found[0x4282][0].decode(),
        struct.unpack(">d" if len(duration) == 8 else ">f", duration)[0] / 1000,
        (int.from_bytes(found[0xB0][0], "big"), int.from_bytes(found[0xBA][0], "big")),
        len(found[0xA3]),
        {name.decode(): value.decode() for name, value in zip(names, values, strict=True)},
    )


def mp4(data: bytes) -> Video:
    boxes: dict[str, bytes] = {}

    def read(at: int, end: int, path: str) -> None:
        while at < end:
            size, name = struct.unpack_from(">I4s", data, at)
            assert size >= 8 and at + size <= end
            here = f"{path}/{name.decode('latin-1')}"
            boxes[here] = data[at + 8 : at + size]
            kind = here.rsplit("/", 1)[1]
            if kind in ("moov", "trak", "mdia", "minf", "stbl", "udta", "meta", "ilst") or path.endswith("/ilst"):
                read(at + 8 + 4 * (kind == "meta"), at + size, here)
            at += size

    read(0, len(data), "")
    ticks, duration = struct.unpack_from(">II", boxes["/moov/mvhd"], 12)
    width, height = struct.unpack_from(">II", boxes["/moov/trak/tkhd"], 76)
    tags = {path.split("/")[-2]: body[8:].decode() for path, body in boxes.items() if path.endswith("/data")}
    frames = struct.unpack_from(">I", boxes["/moov/trak/mdia/minf/stbl/stsz"], 8)[0]
    return Video(boxes["/ftyp"][:4].decode(), duration / ticks, (width >> 16, height >> 16), frames, tags)
