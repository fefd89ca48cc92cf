"""Tables, pure: a trace in, a DataFrame out."""

from __future__ import annotations

import pandas as pd
from pandas.io.formats.style import Styler

from app import words
from core.trace import Trace

MIB, MB = 1 << 20, 10**6


def steps(run: Trace) -> pd.DataFrame:
    """The tensors of a run in the order of the pass: name, axes, shape, dtype, bytes in MiB and MB, held or not."""
    return pd.DataFrame(
        [
            {
                "name": step.name,
                "axes": " × ".join(step.axes),
                "shape": " × ".join(f"{n:,}" for n in step.shape),
                "dtype": step.dtype,
                "mib": step.bytes / MIB,
                "mb": step.bytes / MB,
                "held": words.MATERIALISED if step.materialised else words.NEVER,
                "note": step.note,
            }
            for step in run.steps
        ],
        columns=list(words.STEPS_COLUMNS),
    )


def muted(table: pd.DataFrame, colour: str) -> Styler:
    """The table of steps with the rows of what never existed in a quieter colour."""
    style = f"color: {colour}"
    return table.style.apply(lambda row: [style if row["held"] == words.NEVER else ""] * len(row), axis=1)


def quoted(said: str) -> str:
    """What a link or a visitor said, for a sentence about it: at most forty characters that can be seen."""
    short = said if len(said) <= 40 else said[:39] + "…"
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in short)


def share(of: float, digits: int = 0) -> str:
    """A share of one, in per cent: 0.99 -> "99 %"."""
    return f"{100 * of:.{digits}f} %"


def size(n_bytes: int) -> str:
    """Bytes in words: "613 bytes", "4.2 MiB"."""
    amount, unit = float(n_bytes), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:,.0f} bytes" if unit == "bytes" else f"{amount:,.1f} {unit}"
