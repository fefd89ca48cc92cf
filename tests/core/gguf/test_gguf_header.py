"""The header check of GGUF files: what a stranger's bytes may say, and that each wrong one ends in a sentence."""

from __future__ import annotations

import random
import resource
import struct
from pathlib import Path

import gguf
import pytest
from gguf import GGUFValueType as Kind

from core.checkpoints.gguf import MAX_STRINGS, Header, read_header
from core.checkpoints.gguf.model import Reader
from core.errors import CheckpointError
from tests.core.gguf.written import a_list, entry, raw, tensor, text

U32 = struct.Struct("<I")
ROW = b"\0" * 32  # eight float32


def header_of(tmp_path: Path, data: bytes) -> Header:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    return read_header(path)


def whole() -> bytes:
    """A file with a value of every kind, lists of numbers and texts, and tensors of two types."""
    numbers = {
        Kind.UINT8: "<B",
        Kind.INT8: "<b",
        Kind.UINT16: "<H",
        Kind.INT16: "<h",
        Kind.UINT32: "<I",
        Kind.INT32: "<i",
        Kind.FLOAT32: "<f",
        Kind.BOOL: "<B",
        Kind.UINT64: "<Q",
        Kind.INT64: "<q",
        Kind.FLOAT64: "<d",
    }
    entries = [entry(f"a.{kind.name}", kind, struct.pack(spelt, 1)) for kind, spelt in numbers.items()]
    entries += [
        entry("general.architecture", Kind.STRING, text("llama")),
        entry("general.alignment", Kind.UINT32, U32.pack(64)),
        entry("a.numbers", Kind.ARRAY, a_list(Kind.INT32, 3, struct.pack("<3i", -1, 0, 7))),
        entry("a.flags", Kind.ARRAY, a_list(Kind.BOOL, 2, b"\1\0")),
        entry("a.texts", Kind.ARRAY, a_list(Kind.STRING, 3, text("über") + text("") + text("日本"))),
        entry("a.nothing", Kind.ARRAY, a_list(Kind.STRING, 0)),
    ]
    tensors = [tensor("one.weight", [8, 3]), tensor("two.weight", [32, 2], kind=8, offset=128)]
    return raw(entries, tensors, bytes(128) + bytes(68), alignment=64)


def test_a_whole_header_says_what_the_package_reads(tmp_path: Path) -> None:
    header = header_of(tmp_path, whole())
    theirs = gguf.GGUFReader(header.path)
    said = {key: field.contents() for key, field in theirs.fields.items() if not key.startswith("GGUF.")}
    said["a.nothing"] = []
    assert dict(header.values.items()) == said
    assert [(t.name, t.shape, t.start, t.n_bytes) for t in header.tensors] == [
        (t.name, tuple(reversed(t.shape.tolist())), t.data_offset, t.n_bytes) for t in theirs.tensors
    ]
    ours = Reader(header)
    assert [(t.name, t.data_offset, t.data.tobytes()) for t in ours.tensors] == [
        (t.name, t.data_offset, t.data.tobytes()) for t in theirs.tensors
    ]


E32 = entry("k", Kind.UINT32, U32.pack(1))
WRONG: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "begins with b'', not with b'GGUF'"),
    "another form": (b"PK\3\4" + bytes(60), "is no GGUF file"),
    "the older form": (b"lmgg" + bytes(60), "older form GGML"),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "is no GGUF file"),
    "cut in the counts": (b"GGUF\3\0\0\0\0\0", "has 10 bytes"),
    "version 1": (raw(version=1), "version 1 .* versions 2 and 3 are read"),
    "a later version": (raw(version=9), "version 9"),
    "the other byte order": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "highest byte first"),
    "many tensors": (raw(n_tensors=1 << 63), "claims 9,223,372,036,854,775,808 tensors"),
    "more tensors than bytes": (raw(n_tensors=100), "100 tensors, which take more bytes than"),
    "many keys": (raw(n_entries=1 << 40), "claims 1,099,511,627,776 keys"),
    "more keys than bytes": (raw(n_entries=1000), "1,000 keys, which take more bytes than"),
    "a key beyond the end": (raw([struct.pack("<Q", 500), b"x" * 30]), "takes 500 bytes from byte 32"),
    "a long key": (raw([struct.pack("<Q", 1 << 62), b"x" * 30]), "key 1 .* claims 4,611,686,018,427,387,904 bytes"),
    "a key twice": (raw([E32, E32]), "'k' twice"),
    "a key of the reader": (raw([entry("GGUF.version", Kind.UINT32, U32.pack(1))]), "twice"),
    "a key that is no text": (raw([entry("k", Kind.UINT32, U32.pack(1)).replace(b"k", b"\xff")]), "not UTF-8"),
    "an unknown type": (raw([text("k") + U32.pack(77) + bytes(8)]), "'k' has the type 77"),
    "a text beyond the end": (raw([entry("k", Kind.STRING, struct.pack("<Q", 999))]), "'k' takes 999 bytes"),
    "a text that is no text": (raw([entry("k", Kind.STRING, text(b"\xff\xfe"))]), "'k' is not UTF-8"),
    "a list of lists": (raw([entry("k", Kind.ARRAY, a_list(Kind.ARRAY, 1, bytes(16)))]), "list of lists"),
    "a list of an unknown type": (raw([entry("k", Kind.ARRAY, struct.pack("<IQ", 55, 1))]), "the type 55"),
    "a list beyond the end": (raw([entry("k", Kind.ARRAY, a_list(Kind.INT32, 50))]), "'k' takes 200 bytes"),
    "a list of 2^63 numbers": (raw([entry("k", Kind.ARRAY, a_list(Kind.UINT8, 1 << 63))]), "claims 9,223,372"),
    "a list of 2^62 wide numbers": (raw([entry("k", Kind.ARRAY, a_list(Kind.UINT64, 1 << 62))]), "claims 4,611,686"),
    "a list of 2^63 texts": (raw([entry("k", Kind.ARRAY, a_list(Kind.STRING, 1 << 63))]), "claims 9,223,372"),
    "more texts than bytes": (raw([entry("k", Kind.ARRAY, a_list(Kind.STRING, 4000))]), "4,000 texts, which take more"),
    "alignment 0": (raw([entry("general.alignment", Kind.UINT32, U32.pack(0))]), "alignment is 0"),
    "alignment 48": (raw([entry("general.alignment", Kind.UINT32, U32.pack(48))]), "power of two from 8 to 65,536"),
    "alignment 2^31": (raw([entry("general.alignment", Kind.UINT32, U32.pack(1 << 31))]), "alignment is 2147483648"),
    "alignment as a text": (raw([entry("general.alignment", Kind.STRING, text("32"))]), "alignment has the type 8"),
    "alignment of another type": (raw([entry("general.alignment", Kind.UINT64, struct.pack("<Q", 32))]), "4 bytes"),
    "no dimensions": (raw([], [tensor("t", [])], ROW), "'t' has 0 dimensions"),
    "five dimensions": (raw([], [tensor("t", [1, 1, 1, 1, 1])], ROW), "5 dimensions, but it must have 1 to 4"),
    "2^32 dimensions": (raw([], [tensor("t", [8], n_dims=(1 << 32) - 1)], ROW), "4,294,967,295 dimensions"),
    "a dimension of 0": (raw([], [tensor("t", [8, 0])], ROW), "one of them is 0"),
    "dimensions that wrap round": (
        raw([], [tensor("t", [1 << 32, 1 << 32])], ROW),
        "takes 73,786,976,294,838,206,464 bytes",
    ),
    "more numbers than bytes": (raw([], [tensor("t", [9])], ROW), "takes 36 bytes from byte 64"),
    "a type that is not known": (raw([], [tensor("t", [8], kind=4)], ROW), "'t' has the type 4, which is not known"),
    "a row that is no block": (raw([], [tensor("t", [31], kind=8)], ROW), "its type packs 32 together"),
    "an offset beyond the end": (raw([], [tensor("t", [8], offset=1 << 63)], ROW), "the file ends at byte 96"),
    "a crooked offset": (raw([], [tensor("t", [4], offset=4)], ROW), "not a multiple of the alignment, 32"),
    "tensors on one another": (raw([], [tensor("t", [8]), tensor("u", [4])], ROW), "'u' and 't' lie on the same"),
    "a tensor twice": (raw([], [tensor("t", [8]), tensor("t", [8], offset=32)], ROW * 2), "'t' is there twice"),
    "a long name": (raw([], [tensor("t" * 65, [8])], ROW), "claims 65 bytes, and at most 64"),
    "a name that is no text": (raw([], [tensor("t", [8]).replace(b"t", b"\xff")], ROW), "not UTF-8"),
    "cut in a tensor": (raw([E32], [tensor("t", [8])])[:70], "the file ends at byte 70"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name: str, tmp_path: Path) -> None:
    data, sentence = WRONG[name]
    with pytest.raises(CheckpointError, match=sentence) as caught:
        header_of(tmp_path, data)
    assert str(caught.value).startswith("model.gguf")
    assert str(caught.value).endswith((".", "`."))


def test_the_few_bytes_that_hang_the_package(tmp_path: Path) -> None:
    """One key whose list claims 2^63 numbers: gguf 0.19.0 walks through them all, and grows by 120 MB a second."""
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry("", Kind.ARRAY, a_list(Kind.UINT8, 1 << 63))
    assert len(data) == 48
    for end in range(len(data) + 1):
        with pytest.raises(
            CheckpointError, match="'' claims 9,223,372,036,854,775,808" if end == len(data) else "model.gguf"
        ):
            header_of(tmp_path, data[:end])


def test_texts_are_bounded_over_all_lists_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.checkpoints.gguf.MAX_STRINGS", 5)
    three = a_list(Kind.STRING, 3, text("") * 3)
    header_of(tmp_path, raw([entry("a", Kind.ARRAY, three)]))
    with pytest.raises(CheckpointError, match="'b' claims 3 texts, and at most 5 of them are read in a whole file"):
        header_of(tmp_path, raw([entry("a", Kind.ARRAY, three), entry("b", Kind.ARRAY, three)]))
    assert MAX_STRINGS >= 1 << 20  # the largest published vocabularies with their merges have 800,000


def mutated(data: bytes, random: random.Random) -> bytes:
    """One to four changes: a bit, a byte, a number of four or eight bytes with a telling value, a piece cut out, doubled or appended."""
    changed = bytearray(data)
    telling = (
        0,
        1,
        2,
        9,
        31,
        32,
        255,
        2**16,
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**40,
        2**61,
        2**62,
        2**63 - 1,
        2**63,
        2**64 - 1,
    )
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(changed))
        how = random.randrange(8)
        if how == 0:
            changed[at] ^= 1 << random.randrange(8)
        elif how == 1:
            changed[at] = random.randrange(256)
        elif how in (2, 3):
            changed[at : at + 8] = struct.pack("<Q", random.choice(telling))
        elif how in (4, 5):
            changed[at : at + 4] = struct.pack("<I", random.choice(telling) & 0xFFFFFFFF)
        elif how == 6:
            del changed[at : at + random.choice((1, 4, 8, 40, len(changed)))]
        else:
            changed[at:at] = changed[at : at + random.choice((1, 8, 24))]
        if not changed:
            changed = bytearray(b"G")
    return bytes(changed)


@pytest.mark.thorough
def test_mutated_headers_end_in_a_header_or_a_sentence(tmp_path: Path) -> None:
    """2,400 of them; and what passes, the package's own reader reads without an error, and quickly, since its work is bounded."""
    source, dice = whole(), random.Random(34)
    path = tmp_path / "model.gguf"
    passed = refused = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(2400):
        path.write_bytes(mutated(source, dice))
        try:
            header = read_header(path)
        except CheckpointError as error:
            assert len(str(error)) < 600
            refused += 1
            continue
        Reader(header)
        if number % 4 == 0:
            gguf.GGUFReader(path)
        passed += 1
    assert passed > 100 and refused > 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB
