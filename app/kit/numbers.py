"""Numbers in words: sizes, shares, counts and times, one formatter each."""

from __future__ import annotations

from string import Formatter
from typing import Any

from app import languages

MIB, MB = 1 << 20, 10**6
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def quoted(said: str) -> str:
    """What a link or a visitor said, for a sentence about it: at most forty characters that can be seen."""
    short = said if len(said) <= 40 else said[:39] + "…"
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in short)


def whole(number: int) -> str:
    """A whole number with its thousands apart: "49,152"."""
    return languages.decimal(f"{number:,}")


def fixed(number: float, digits: int) -> str:
    """A number with so many digits after the point: "1,234.50"."""
    return languages.decimal(f"{number:,.{digits}f}")


def digits(number: float, most: int) -> str:
    """A number with so many digits at most, and no more than it needs: "33", "0.057", "1e+03"."""
    return languages.decimal(f"{number:.{most}g}")


def filled(sentence: str, **parts: object) -> str:
    """A sentence with its parts put in; a number that it says how to write, as in "{n:,}", is written as the language does."""
    return _FILLER.vformat(sentence, (), parts)


class _Filler(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        said = super().format_field(value, format_spec)
        return languages.decimal(said) if format_spec and isinstance(value, int | float) else said


_FILLER = _Filler()


def plain(number: float) -> str:
    """A number with the digits that it needs: "0.05"."""
    return languages.decimal(f"{number:g}")


def share(of: float, digits: int = 0) -> str:
    """A share of one, in per cent: 0.99 -> "99 %"."""
    return languages.decimal(f"{100 * of:.{digits}f} %")


def part_of(part: float, whole: float) -> str:
    """A part in per cent, which is 100 only where it is all of it: "34 %", "99.7 %"."""
    said = share(part / whole)
    return share(part / whole, 1) if said == "100 %" and part != whole else said


def scientific(number: float) -> str:
    """A very small number as the pictures write it: 2e-05 -> "2·10⁻⁵"."""
    if not number:
        return "0"
    digits, exponent = f"{number:.0e}".split("e")
    return f"{digits}·10{str(int(exponent)).translate(RAISED)}"


def size(n_bytes: int) -> str:
    """Bytes in words: "613 bytes", "4.2 MiB"."""
    amount, unit = float(n_bytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return languages.decimal(f"{amount:,.0f} bytes" if unit == "bytes" else f"{amount:,.1f} {unit}")


def apart(*sizes: int) -> list[str]:
    """Sizes that differ by little, in the unit of the largest and with as many digits as tell them apart: "21.79 GiB" and "21.82 GiB".

    No two that differ are ever said alike: where six digits do not tell them apart, every byte is written.
    """
    power = max((i for i in range(1, 5) if max(sizes) >= 1024**i), default=0)
    unit = ("bytes", "KiB", "MiB", "GiB", "TiB")[power]
    if not power:
        return [languages.decimal(f"{n:,} {unit}") for n in sizes]
    for digits in range(1, 7):
        said = [languages.decimal(f"{n / 1024**power:,.{digits}f} {unit}") for n in sizes]
        if len(set(said)) == len(set(sizes)):
            return said
    return [languages.decimal(f"{n:,} bytes") for n in sizes]


def both(n_bytes: int) -> str:
    """Bytes in both units: "30.6 MiB (32.1 MB)"."""
    amount, unit = float(n_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return size(n_bytes) if unit == "bytes" else f"{size(n_bytes)} ({languages.decimal(f'{amount:,.1f}')} {unit})"


def count(number: float) -> str:
    """A large number in words: "124.4 M", "2.9 T", ready for a unit."""
    for limit, unit in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return languages.decimal(f"{number / limit:,.1f} {unit}")
    return languages.decimal(f"{number:,.0f} ")


def seconds(time: float) -> str:
    """A time in words: "0.29 ms", "45 ms", "1.2 s"."""
    if time >= 1:
        return languages.decimal(f"{time:,.1f} s")
    return languages.decimal(f"{time * 1e3:,.1f} ms" if time >= 1e-3 else f"{time * 1e6:,.1f} µs")


def in_both(n_bytes: int) -> dict[str, float]:
    return {"mib": n_bytes / MIB, "mb": n_bytes / MB}


def short(n_bytes: int) -> str:
    """Bytes in the three digits that a picture needs: "924 MiB", "12.5 MiB", "140 GiB"."""
    amount, unit = float(abs(n_bytes)), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1023.5:
            break
        amount, unit = amount / 1024, larger
    digits = 0 if unit == "bytes" or amount >= 99.95 else 1
    return languages.decimal(f"{'−' if n_bytes < 0 else ''}{amount:,.{digits}f} {unit}")


def rounded_down(number: int, digits: int = 3) -> int:
    """A whole number with so many digits of its own, never more than it is: 66,920 -> 66,900."""
    step = 10 ** max(0, len(str(number)) - digits)
    return number // step * step
