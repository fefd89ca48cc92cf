"""GGUF, llama.cpp's format: file names, and the header, validated before anything is allocated."""

from __future__ import annotations

import builtins
import itertools
import math
import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

from ...errors import CheckpointError
from ..family import shown

__all__ = ["SUFFIX", "is_gguf", "models_in", "parts_of", "title_of"]


SUFFIX = ".gguf"
PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})\.gguf")
MAX_PARTS = 1000
# Files that are not models
BESIDE = re.compile(r"(mmproj|imatrix|ggml-vocab)[-_.].*|.*[-_.](mmproj|imatrix|lora)([-_.].*)?\.gguf", re.IGNORECASE)


def parts_of(path: Path) -> list[Path]:
    """All files of a model: the file itself, or the parts of a split one. Raises CheckpointError naming missing parts."""
    match = PART.fullmatch(path.name)
    if match is None:
        return [path]
    total = int(match["total"])
    if not 1 <= int(match["number"]) <= total <= MAX_PARTS:
        raise CheckpointError(
            f"{path.name} is no part of a split model: parts are numbered from 1 to at most {MAX_PARTS}."
        )
    parts = [path.with_name(f"{match['stem']}-{n:05}-of-{total:05}{SUFFIX}") for n in range(1, total + 1)]
    if missing := [part.name for part in parts if not part.is_file()]:
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise CheckpointError(
            f"{path.name} is one of {total} parts, and {', '.join(missing[:8])}{more} "
            f"{are} not beside it. Download {them} into the same folder."
        )
    return parts


def models_in(names: list[str]) -> list[str]:
    """One file name per model of a folder: the file, or the first part that is present."""
    models: dict[str, str] = {}
    for name in sorted(names):
        if name.endswith(SUFFIX) and not BESIDE.fullmatch(name):
            match = PART.fullmatch(name)
            models.setdefault(name if match is None else f"{match['stem']} of {match['total']}", name)
    return list(models.values())


def title_of(path: str) -> str:
    """File name without its ending and its part number."""
    name = Path(path).name
    match = PART.fullmatch(name)
    return name.removesuffix(SUFFIX) if match is None else match["stem"]


def is_gguf(path: str) -> bool:
    """True for a GGUF file, by its ending, or by its first bytes if it has none, as in Ollama's folder."""
    if path.endswith(SUFFIX) or Path(path).suffix:
        return path.endswith(SUFFIX)
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_KEYS = 1 << 16
MAX_TENSORS = 1 << 17
MAX_STRINGS = 1 << 21  # in all lists; the largest vocabularies with their merges have 800,000
MAX_KEY_BYTES = 65_535  # of the format
MAX_NAME_BYTES = 64  # of a tensor's name, by the format
MAX_STRING_BYTES = 1 << 26  # of a chat template or a whole tokenizer.json
MAX_LIST_BYTES = 1 << 27  # of a list of numbers
MAX_DIMS = 4
KEY_OF_ALIGNMENT, ALIGNMENT, ALIGNMENTS = "general.alignment", 32, (8, 1 << 16)
MIN_KEY_BYTES = 8 + 4 + 1  # least size of an entry
MIN_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8

STRING, ARRAY = 8, 9
# Type number -> numpy's name of it.
NUMBERS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
U32, U64 = Struct("<I"), Struct("<Q")
RESERVED = ("GGUF.version", "GGUF.tensor_count", "GGUF.kv_count")  # keys that the package's reader adds
AGAIN = "Download the file again."


@dataclass(frozen=True)
class TensorInfo:
    """One tensor in the header, and the position of its bytes in the file."""

    name: str
    shape: tuple[int, ...]  # as in torch; the file lists dimensions in reverse
    type: int  # ggml's type number
    start: int  # offset in the file, in bytes
    n_bytes: int


@dataclass(frozen=True)
class Header:
    """Metadata and tensor descriptions of a file."""

    path: Path
    values: dict[str, Any]  # metadata: numbers, texts, and lists of them
    tensors: tuple[TensorInfo, ...]
    list_ends: dict[int, int]  # start -> end of each list in the metadata, in bytes
    alignment: int

    @property
    def name(self) -> str:
        return self.path.name


def read_header(path: Path) -> Header:
    """The header of a GGUF file. Raises CheckpointError with the position of an error, for any bytes."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size < 24:
                file.seek(0)
                _check_magic(path.name, file.read(4))
                raise CheckpointError(f"{path.name} has {size} bytes, less than the 24 of an empty GGUF file. {AGAIN}")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Walk(path, data).header()
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror or 'not a file'}.") from error


def _check_magic(name: str, start: bytes) -> None:
    if start != MAGIC:
        old = start in (b"lmgg", b"fmgg", b"tjgg", b"algg")
        raise CheckpointError(
            f"{name} is no GGUF file: it begins with {shown(start)}, not with {shown(MAGIC)}. "
            + ("It is of the older form GGML, which llama.cpp no longer reads either." if old else AGAIN)
        )


class _Walk:
    """A cursor in the bytes of a file that never moves beyond their end."""

    def __init__(self, path: Path, data: mmap.mmap):
        self.path, self.name, self.data, self.size = path, path.name, data, len(data)
        self.at = 0
        self.strings_left = MAX_STRINGS
        self.list_ends: dict[int, int] = {}

    def wrong(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.name}: {what} {AGAIN}")

    def take(self, n_bytes: int, what: str) -> int:
        """Position of the next bytes; advances the cursor."""
        start = self.at
        if n_bytes > self.size - start:
            raise self.wrong(
                f"{what} takes {n_bytes:,} bytes from byte {start:,} on, but the file ends at byte {self.size:,}."
            )
        self.at = start + n_bytes
        return start

    def u32(self, what: str) -> int:
        return U32.unpack_from(self.data, self.take(4, what))[0]

    def u64(self, what: str) -> int:
        return U64.unpack_from(self.data, self.take(8, what))[0]

    def string(self, what: str, longest: int = MAX_STRING_BYTES) -> str:
        length = self.u64(f"the length of {what}")
        if length > longest:
            raise self.wrong(f"{what} claims {length:,} bytes, and at most {longest:,} are read.")
        start = self.take(length, what)
        try:
            return self.data[start : start + length].decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.wrong(f"{what} is not UTF-8 text.") from error

    def header(self) -> Header:
        _check_magic(self.name, self.data[:4])
        self.take(4, "the magic number")
        version = self.u32("the version")
        if version & 0xFFFF == 0:
            raise CheckpointError(
                f"{self.name} is written for machines that put the highest byte first. Turn it round with the gguf package: "
                f"`gguf-convert-endian {self.name} little`."
            )
        if version not in VERSIONS:
            raise CheckpointError(
                f"{self.name} has version {version} of the GGUF format; versions 2 and 3 are read. "
                + ("Convert the model again with a newer llama.cpp." if version < 2 else "Choose an older file of it.")
            )
        n_tensors, n_keys = self.u64("the number of tensors"), self.u64("the number of keys")
        self.check_count("tensors", n_tensors, MAX_TENSORS, MIN_TENSOR_BYTES)
        self.check_count("keys", n_keys, MAX_KEYS, MIN_KEY_BYTES)
        values = self.metadata(n_keys)
        alignment = self.alignment(values)
        infos = [self.info() for _ in range(n_tensors)]
        data_start = -(-self.at // alignment) * alignment
        tensors = tuple(self.placed(infos, data_start, alignment))
        return Header(self.path, values, tensors, self.list_ends, alignment)

    def check_count(self, what: str, count: int, most: int, smallest: int) -> None:
        if count > most:
            raise self.wrong(f"the header claims {count:,} {what}, and at most {most:,} are read.")
        if count * smallest > self.size:
            raise self.wrong(
                f"the header claims {count:,} {what}, which take more bytes than the {self.size:,} of the file."
            )

    def metadata(self, n_keys: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for number in range(n_keys):
            key = self.string(f"key {number + 1} of the metadata", MAX_KEY_BYTES)
            if key in values or key in RESERVED:
                raise self.wrong(f"the metadata have {shown(key)} twice.")
            kind = self.u32(f"the type of {shown(key)}")
            if key == KEY_OF_ALIGNMENT and kind != 4:
                raise self.wrong(f"{key} has the type {kind}, but it must be a whole number of 4 bytes.")
            values[key] = self.value(kind, shown(key))
        return values

    def value(self, kind: int, key: str) -> Any:
        if kind == STRING:
            return self.string(key)
        if kind == ARRAY:
            return self.list(key)
        number = self.numbers(kind, 1, key)[0]
        # 1e-05 is stored as the nearest float32; the shortest decimal of that float32 is the intended number.
        return float(str(np.float32(number))) if NUMBERS[kind] == "<f4" else number

    def numbers(self, kind: int, count: int, key: str) -> builtins.list[Any]:
        if kind not in NUMBERS:
            raise self.wrong(f"{key} has the type {kind}, which the format does not know.")
        dtype = np.dtype(NUMBERS[kind])
        n_bytes = count * dtype.itemsize
        if n_bytes > MAX_LIST_BYTES:
            raise self.wrong(f"{key} claims {count:,} numbers, and at most {MAX_LIST_BYTES:,} bytes of them are read.")
        start = self.take(n_bytes, key)
        raw = self.data[start : start + n_bytes]
        if kind == 7:
            return [byte != 0 for byte in raw]
        return np.frombuffer(raw, dtype).tolist()

    def list(self, key: str) -> builtins.list[Any]:
        start = self.at
        kind, count = self.u32(f"the type of the list {key}"), self.u64(f"the length of the list {key}")
        if kind == ARRAY:
            raise self.wrong(f"{key} is a list of lists, which no model has and llama.cpp does not read.")
        if kind != STRING:
            items = self.numbers(kind, count, key)
        else:
            if count > self.strings_left:
                raise self.wrong(
                    f"{key} claims {count:,} texts, and at most {MAX_STRINGS:,} of them are read in a whole file."
                )
            if count * 8 > self.size - self.at:
                raise self.wrong(f"{key} claims {count:,} texts, which take more bytes than there are after it.")
            self.strings_left -= count
            items = [self.string(f"a text in {key}") for _ in range(count)]
        self.list_ends[start] = self.at
        return items

    def alignment(self, values: dict[str, Any]) -> int:
        value = values.get(KEY_OF_ALIGNMENT, ALIGNMENT)
        low, high = ALIGNMENTS
        if not low <= value <= high or value & (value - 1):  # not a power of two
            raise self.wrong(f"{KEY_OF_ALIGNMENT} is {value}, but it must be a power of two from {low} to {high:,}.")
        return value

    def info(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self.string("the name of a tensor", MAX_NAME_BYTES)
        what = f"the tensor {shown(name)}"
        n_dims = self.u32(f"the number of dimensions of {what}")
        if not 1 <= n_dims <= MAX_DIMS:
            raise self.wrong(f"{what} has {n_dims:,} dimensions, but it must have 1 to {MAX_DIMS}.")
        dims = tuple(self.u64(f"a dimension of {what}") for _ in range(n_dims))
        if 0 in dims:
            raise self.wrong(f"{what} has the dimensions {list(dims)}, and one of them is 0.")
        return name, dims, self.u32(f"the type of {what}"), self.u64(f"the offset of {what}")

    def placed(
        self, infos: builtins.list[tuple[str, tuple[int, ...], int, int]], data_start: int, alignment: int
    ) -> Iterator[TensorInfo]:
        """Each tensor with the position of its bytes. Raises for bytes outside of the file or shared by two tensors."""
        seen: set[str] = set()
        spans: list[tuple[int, int, str]] = []
        for name, dims, kind, offset in infos:
            what = f"the tensor {shown(name)}"
            if name in seen:
                raise self.wrong(f"{what} is there twice.")
            seen.add(name)
            block, block_bytes = _block(self.name, name, kind)
            if dims[0] % block:
                raise self.wrong(f"{what} has rows of {dims[0]:,} numbers, but its type packs {block} together.")
            n_bytes = math.prod(dims) // block * block_bytes  # Python integers do not overflow
            if offset % alignment:
                raise self.wrong(f"{what} begins at {offset:,}, which is not a multiple of the alignment, {alignment}.")
            start = data_start + offset
            if start + n_bytes > self.size:
                raise self.wrong(
                    f"{what} of {' × '.join(f'{d:,}' for d in reversed(dims))} numbers takes {n_bytes:,} bytes from byte {start:,} on, but the "
                    f"file ends at byte {self.size:,}."
                )
            spans.append((start, start + n_bytes, name))
            yield TensorInfo(name, dims[::-1], kind, start, n_bytes)
        spans.sort()
        for (_, end, one), (start, _, other) in itertools.pairwise(spans):
            if start < end:
                raise self.wrong(f"the tensors {shown(one)} and {shown(other)} lie on the same bytes.")


def _block(file: str, name: str, kind: int) -> tuple[int, int]:
    """(numbers, bytes) of a block of a type. Raises CheckpointError for a type unknown to the gguf package."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        return GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (ValueError, KeyError):
        raise CheckpointError(
            f"{file}: the tensor {shown(name)} has the type {kind}, which is not known here. Choose a file of the model in another "
            "type, such as Q8_0, Q4_K_M or F16."
        ) from None
