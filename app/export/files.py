"""Numbers as files: CSV, safe to open in a spreadsheet, NPZ and JSON."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from app import languages
from app.export import words
from app.session import words as session_words
from core.model.rules import REASONS
from core.service import HIDDEN

if TYPE_CHECKING:
    import pandas as pd

CSV_CELLS = 512 * 512  # a line for each cell: some 15 MB
NPZ_CELLS = 2048 * 2048  # 16 MiB of float32
LEAST_LEFT = 1e-6  # of a row: what float32 has of less is noise
# Start of a text that a spreadsheet may read as a formula. Leading apostrophes count, so that removing one always restores the text.
RISKY = re.compile(r"^'*[=+\-@＝＋－＠\t\r]")
RISKY_INSIDE = re.compile(r"([,;\t])(?=[=+\-@＝＋－＠])")  # the same where a line is cut into cells


@dataclass(frozen=True, eq=False)
class Numbers:
    """The cells of a selection: values and codes are [query, key], and each axis has labels and first positions."""

    values: np.ndarray  # float32
    codes: np.ndarray  # uint8: why a cell has no number, as in core.model.rules.REASONS, or HIDDEN; 0 where it has one
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    query_positions: tuple[int, ...]
    key_positions: tuple[int, ...]
    writes: tuple[
        tuple[str, float], ...
    ] = ()  # by query the word that a decoder is about to write, and its probability
    sink: int | None = None  # the column of a token that the colours of the picture leave out

    @property
    def without_sink(self) -> np.ndarray | None:
        """Values by what the sink leaves of a row, w / (1 - w_sink): float32 [query, key], NaN where it leaves nothing.

        NaN in its own column too; None where no token is left out.
        """
        if self.sink is None:
            return None
        left = 1 - self.values[:, self.sink].astype(np.float64)
        left[left < LEAST_LEFT] = np.nan
        found = self.values / left[:, None]
        found[:, self.sink] = np.nan
        return found.astype(np.float32)


def csv_lines(found: Numbers, about: Sequence[str], unit: str) -> Iterator[str]:
    """A table with a line for each cell (RFC 4180), below lines of comment that start with #; a row of the map at a time."""
    for text in about:
        for line in text.splitlines():
            yield "# " + RISKY_INSIDE.sub(r"\1 ", line) + "\r\n" if line.strip() else "#\r\n"
    texts = (*found.queries, *found.keys, *(word for word, _ in found.writes))
    if any(RISKY.match(text) for text in texts):
        yield f"# {languages.translated(session_words.GUARDED)}\r\n"
    writes = [f",{cell(word)},{p:.9g}" for word, p in found.writes] or [""] * len(found.queries)
    without = found.without_sink
    apart = "" if without is None else f",{unit}_without_sink"
    yield f"query_position,query,key_position,key,{unit},masked{apart}{',next_word,next_probability' if found.writes else ''}\r\n"
    keys = [f"{at},{cell(name)}" for at, name in zip(found.key_positions, found.keys, strict=True)]
    for q, name in enumerate(found.queries):
        query = f"{found.query_positions[q]},{cell(name)}"
        rest = [""] * len(keys) if without is None else [f",{_number(value)}" for value in without[q].tolist()]
        row = zip(keys, found.values[q].tolist(), found.codes[q].tolist(), rest, strict=True)
        # Nine digits: every float32 comes back as it was.
        yield "".join(
            f"{query},{key},{value:.9g},{_reason(code)}{left}{writes[q]}\r\n" for key, value, code, left in row
        )


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.9g}"


def _reason(code: int) -> str:
    return words.EXPORT_HIDDEN_CELL if code == HIDDEN else REASONS[code]


def cell(text: str) -> str:
    """A label as a quoted field. One that looks like a formula gets an apostrophe in front: a spreadsheet must not run it."""
    text = text.replace('"', '""')
    return f'"\'{text}"' if RISKY.match(text) else f'"{text}"'


def safe(text: str) -> str:
    """A text for a table. A text that looks like a formula gets an apostrophe in front, as in cell()."""
    return f"'{text}" if RISKY.match(text) else text


def npz(found: Numbers, caption: str, alt: str, snippet: str, unit: str) -> bytes:
    """The same as arrays for numpy: the values under the name of their unit, [query, key] float32."""
    out = io.BytesIO()
    arrays: dict[str, np.ndarray] = {
        unit: found.values,
        "masked": (found.codes > 0) & (found.codes != HIDDEN),
        "queries": np.array(found.queries),
        "keys": np.array(found.keys),
        "query_positions": np.array(found.query_positions),
        "key_positions": np.array(found.key_positions),
        "caption": np.array(caption),
        "alt": np.array(alt),
        "snippet": np.array(snippet),
    }
    if (without := found.without_sink) is not None:
        arrays[f"{unit}_without_sink"] = without
    if found.writes:
        arrays["next_words"] = np.array([word for word, _ in found.writes])
        arrays["next_probabilities"] = np.array([p for _, p in found.writes], np.float32)
    np.savez_compressed(out, allow_pickle=False, **arrays)
    return out.getvalue()


def as_json(found: Numbers, caption: str, alt: str, snippet: str, unit: str) -> str:
    """The same as one JSON object: values [query][key] under the name of their unit, null where there is none.

    `masked` says why a cell has no number, null where it has one; `next` has the word that is about to be written by query.
    """
    said: dict[str, Any] = {
        "caption": caption,
        "alt": alt,
        "snippet": snippet,
        "queries": [*found.queries],
        "keys": [*found.keys],
        "query_positions": [*found.query_positions],
        "key_positions": [*found.key_positions],
        unit: _nulled(found.values),
        "masked": [[_reason(code) or None for code in row] for row in found.codes.tolist()],
    }
    if (without := found.without_sink) is not None:
        said[f"{unit}_without_sink"] = _nulled(without)
    if found.writes:
        said["next"] = [{"word": word, "probability": p} for word, p in found.writes]
    return json.dumps(said, ensure_ascii=False, allow_nan=False)


def _nulled(values: np.ndarray) -> list[list[float | None]]:
    """Nine digits, with which every float32 comes back as it was."""
    return [[float(f"{v:.9g}") if np.isfinite(v) else None for v in row] for row in values.tolist()]


def table_csv(table: pd.DataFrame, caption: str, snippet: str) -> str:
    """The table below lines of comment that start with #: what it is, and the code that gives it (RFC 4180)."""
    said = [caption, *snippet.splitlines()]
    guarded = table.map(lambda value: safe(value) if isinstance(value, str) else value).rename(columns=safe)
    if not guarded.equals(table):
        said.append(languages.translated(session_words.GUARDED))
    about = "".join(f"# {line}\r\n" if line.strip() else "#\r\n" for line in said)
    return about + guarded.to_csv(index=False, lineterminator="\r\n")
