"""The table of shapes of a run."""

from __future__ import annotations

import pandas as pd
from pandas.io.formats.style import Styler

from app.kit import numbers
from app.rooms.explore import words
from core.service import Facts


def steps(run: Facts) -> pd.DataFrame:
    """The tensors of a run in the order of the pass: name, axes, shape, dtype, bytes in MiB and MB, held or not."""
    return pd.DataFrame(
        [
            {
                "name": step.name,
                "axes": " × ".join(step.axes),
                "shape": " × ".join(f"{n:,}" for n in step.shape),
                "dtype": step.dtype,
                "mib": step.bytes / numbers.MIB,
                "mb": step.bytes / numbers.MB,
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


def non_finite(run: Facts) -> list[str]:
    """A sentence where a run came to numbers that are not finite, with the layer in which they began."""
    began = run.non_finite
    if began is None:
        return []
    form = words.NON_FINITE_ENDS if began.layer is None else words.NON_FINITE_LAYER
    where = form.format(stack=began.stack, layer=began.layer)
    return [words.NON_FINITE.format(where=where, kind=words.NON_FINITE_KINDS[began.kind], what=began.what)]
