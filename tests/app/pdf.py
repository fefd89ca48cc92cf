"""A page of PDF read again, as far as the exports write it: its objects, its operators, its text and what it says of itself."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from functools import cached_property

OBJECT = re.compile(rb"(\d+) 0 obj\n(.*?)\nendobj\n", re.DOTALL)
STREAM = re.compile(rb"^(<<.*?>>)\nstream\n(.*)\nendstream$", re.DOTALL)
TEXT = re.compile(r"/(F\d+) [\d.]+ Tf|<([0-9a-f]*)> Tj")
MEANING = re.compile(r"<([0-9a-f]{2})> <([0-9a-f]*)>")


@dataclass(frozen=True)
class Pdf:
    data: bytes

    @cached_property
    def objects(self) -> dict[int, bytes]:
        """By number; each is where the table of the file says."""
        at = int(re.findall(rb"startxref\n(\d+)\n%%EOF", self.data)[-1])
        table = self.data[at:].split(b"\n")
        assert table[0] == b"xref"
        count = int(table[1].split()[1])
        for number in range(1, count):
            begins = int(table[2 + number][:10])
            assert self.data[begins:].startswith(b"%d 0 obj\n" % number)
        found = {int(number): body for number, body in OBJECT.findall(self.data)}
        assert len(found) == count - 1
        return found

    def stream(self, number: int) -> str:
        """The text of an object, unpacked."""
        found = STREAM.match(self.objects[number])
        assert found
        body = zlib.decompress(found[2]) if b"/FlateDecode" in found[1] else found[2]
        return body.decode("utf-8" if b"/Metadata" in found[1] else "latin-1")

    @cached_property
    def page(self) -> str:
        return next(body.decode("latin-1") for body in self.objects.values() if body.startswith(b"<</Type/Page/"))

    @cached_property
    def operators(self) -> str:
        found = re.search(r"/Contents (\d+) 0 R", self.page)
        assert found
        return self.stream(int(found[1]))

    @cached_property
    def fonts(self) -> dict[str, tuple[str, dict[int, str]]]:
        """By name in the page: the font's own name, "" of one that was drawn, and what its codes mean."""
        return {name: self._font(int(number)) for name, number in re.findall(r"/(F\d+) (\d+) 0 R", self.page)}

    def _font(self, number: int) -> tuple[str, dict[int, str]]:
        body = self.objects[number].decode("latin-1")
        base = re.search(r"/BaseFont/([\w-]+)", body)
        meaning = re.search(r"/ToUnicode (\d+) 0 R", body)
        if not meaning:
            assert "/WinAnsiEncoding" in body
            known = {code: bytes([code]).decode("cp1252", "replace") for code in range(32, 256)}
        else:
            lines = MEANING.findall(self.stream(int(meaning[1])))
            known = {int(code, 16): bytes.fromhex(text).decode("utf-16-be") for code, text in lines}
        return (base[1] if base else ""), known

    @cached_property
    def text(self) -> str:
        """All that can be copied from the page, in the order in which it is drawn."""
        out, font = [], ""
        for name, codes in TEXT.findall(self.operators):
            if name:
                font = name
            else:
                out.append("".join(self.fonts[font][1][code] for code in bytes.fromhex(codes)))
        return "".join(out)

    @cached_property
    def images(self) -> int:
        return sum(b"/Subtype/Image" in body for body in self.objects.values())

    def said(self, name: str) -> str:
        """A text of its dictionaries, such as Title or Alt."""
        found = re.search(rb"/%s <FEFF([0-9a-f]*)>" % name.encode(), b"\n".join(self.objects.values()))
        assert found, name
        return bytes.fromhex(found[1].decode()).decode("utf-16-be")

    @cached_property
    def metadata(self) -> str:
        return next(self.stream(number) for number, body in self.objects.items() if b"/Type/Metadata" in body)
