"""The column and the curve of "Does it fit": the lengths that are drawn, how far both axes go, and what is written on them, pure."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from dataclasses import dataclass
from math import floor, log10

from app.kit import numbers
from app.kit.numbers import short
from app.rooms.memory import words
from app.rooms.memory.question import MOST_TOKENS, Question
from core.plan import Verdict

SMALL = 0.16  # of the budget: a need below it has a scale of its own
PLACES = 100  # lengths of the curve, beside the ones that are asked about
TICKS = 5
PREDICTED = (1.35, 3.1)  # how far an axis ends beyond what is to be guessed
UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


@dataclass(frozen=True)
class Scale:
    """`top` bytes at the upper end, `ends` tokens at the right one; `is_card`: the line of the budget is on it."""

    top: int
    ends: int
    is_card: bool


def scale(question: Question, found: Verdict, zoom: str, predicted: bool) -> Scale:
    """How far both axes go.

    Around the budget where the need is a good part of it, or where the whole card was asked for; else around the need. While the
    crossing is to be guessed, the right end is a multiple of it that only the question decides.
    """
    n, total, budget = question.setup.source_len, found.total, found.budget
    is_card = zoom == "card" or predicted or total >= SMALL * budget
    crossing = found.longest if found.longest and not found.unlimited else 0
    if predicted and crossing:
        ends = round(crossing * _hidden(question))
    elif is_card:
        far = crossing if zoom == "card" or crossing <= 4 * n else 0
        ends = max(round(1.16 * n), round(1.16 * far), 16)
    else:
        ends = max(round(1.4 * n), 16)
    ends = min(ends, MOST_TOKENS)
    if (rows := _rows(question)) is not None:
        ends = min(ends, rows)
    top = round(max(budget, min(total, 3 * budget)) * 1.07) if is_card else round(1.5 * total)
    return Scale(top, ends, is_card)


def _hidden(question: Question) -> float:
    """From 1.35 to 3.1, the same for the same question, and with nothing in it of the answer."""
    setup = question.setup
    of = repr(
        (setup.config, setup.batch, setup.dtype, setup.weight_dtype, setup.training, question.card, question.cards)
    )
    share = int.from_bytes(hashlib.blake2b(of.encode(), digest_size=4).digest(), "big") / 2**32
    return PREDICTED[0] + share * (PREDICTED[1] - PREDICTED[0])


def _rows(question: Question) -> int | None:
    """Rows of a learned table of positions, beyond which there is nothing."""
    config = question.setup.config
    return config.longest_text


def lengths(ends: int, *also: int) -> list[int]:
    """Round lengths from 1 to the end of the axis, and those that are asked about."""
    step = _whole_step(ends / PLACES)
    inside = [n for n in also if 1 <= n <= max(ends, also[0])]
    return sorted({1, *range(step, ends + 1, step), ends, *inside})


def place_of(found: list[int], n: int) -> int:
    """Where a length stands among the lengths: the nearest that is not longer."""
    return max(0, bisect_left(found, n + 1) - 1)


def byte_ticks(top: int) -> list[dict[str, object]]:
    """Round amounts of bytes up the axis; the unit stands at one of them."""
    by, unit = next((by, unit) for by, unit in UNITS if top >= 1.5 * by or by == 1)
    step = _round_step(top / by / TICKS)
    amounts = [step * i for i in range(int(top / by / step) + 1)]
    named = 1 if len(amounts) > 1 else 0
    return [
        {"bytes": round(amount * by), "text": numbers.plain(round(amount, 6)) + (f" {unit}" if i == named else "")}
        if amount < 1000
        else {"bytes": round(amount * by), "text": numbers.whole(round(amount)) + (f" {unit}" if i == named else "")}
        for i, amount in enumerate(amounts)
    ]


def token_ticks(ends: int) -> list[dict[str, object]]:
    """Round lengths along the axis."""
    step = _whole_step(ends / TICKS)
    return [{"n": n, "text": numbers.whole(n)} for n in range(step, ends + 1, step)]


def _whole_step(least: float) -> int:
    """The same in whole numbers, at least 1."""
    return max(1, round(_round_step(least)))


def _round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least this."""
    if least <= 0:
        return 1.0
    power = 10.0 ** floor(log10(least))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= least * (1 - 1e-9))


def over(question: Question, found: Verdict, scaled: Scale) -> str:
    """The line of a budget that is higher than the axis."""
    if scaled.is_card:
        return ""
    times = found.budget / max(1, scaled.top)
    said = numbers.whole(round(times)) if times >= 9.5 else numbers.fixed(times, 1)
    return words.AS_HIGH.format(line=budget_line(question, found), times=said)


def budget_line(question: Question, found: Verdict) -> str:
    place = found.set_up.place
    line = words.BUDGET_LINE if place.device is not None or question.card == "own" else words.BUDGET_FREE
    return line.format(name=place.name, size=short(place.budget))
