"""Answers to questions of every kind and what Python says to them, for the browser's twin of the check."""

from __future__ import annotations

import random
from dataclasses import asdict, replace
from typing import Any

from app.rooms.lessons.checks import check
from app.rooms.lessons.replies import reply
from app.rooms.lessons.step import Candidate, Mistake, Truth

ROW = Truth(
    "point",
    "Which?",
    "The softmax shares out one whole.",
    "Checked against this run: layer 3, head 1, row 10.",
    candidates=tuple(
        Candidate(label, (i,), value)
        for label, i, value in (("animal", 2, 0.6768), ("[CLS]", 0, 0.1016), ("it", 10, 0.0644), ("{x}", 3, 0.00005))
    ),
    share=True,
)
TRUTHS = (
    ROW,
    replace(ROW, best=2, slip="The lesson says something else."),
    replace(ROW, form="ranked", share=False, digits=1, unit="bits"),
    replace(ROW, form="ranked", candidates=(Candidate("layer 0, head 2", (0, 2), 0.99986), Candidate("layer 1, head 9", (1, 9), 0.2967))),
    replace(ROW, form="plain", all_of=True, best=2),
    replace(ROW, form="plain", all_of=True, best=9, candidates=tuple(Candidate("[PAD]", (i,), float(i > 2)) for i in range(11, -1, -1))),
    Truth("drag", "", "Why.", "Checked.", number=30.56640625, unit="MiB", high=120, tolerance=1.5, digits=3),
    Truth("drag", "", "Why.", "Checked.", number=623, unit="tokens", high=2000, tolerance=31),
    Truth("drag", "", "Why.", "Checked.", number=10, unit="%", high=100, tolerance=0.5),
    Truth("drag", "", "Why.", "Checked.", number=-0.25, low=-1, high=1, digits=1),
    Truth("shape", "", "Why.", "Checked.", axes=("1", "12", "100", "100"), options=("1", "12", "64", "100")),
    Truth("choose", "", "Why.", "Checked.", options=("no", "yes", "never"), right=(1,)),
    Truth("choose", "", "Why.", "Checked.", options=("one", "the other"), right=(0, 1)),
    Truth("choose", "", "Why.", "Checked.", options=("W_q", "X", "W₁", "sines"), right=(0, 2), all_of=True),
    replace(ROW, remarks=(("[CLS]", "It is not right."), ("animal", "It gets {p}.")), is_written=True),
    Truth("choose", "", "Why.", "Checked.", options=("constructor", "yes"), right=(1,), remarks=(("yes", "So it is."),), is_written=True),
    Truth("choose", "", "Why.", "Checked.", options=("constructor", "yes"), right=(0,), mistakes=(Mistake("1", "No.", "It gets 2 %."),), is_written=True),
    Truth("do", "", "Why.", "Checked.", values={"mask": "causal"}),
    replace(ROW, mistakes=(Mistake("10", "The word that looks.", "It gets 6.4 %."), Mistake("0", "Where heads rest.", "It gets 10.2 %."))),
    replace(ROW, form="plain", all_of=True, best=2, mistakes=(Mistake("3,10", "The other way round.", "Hidden."), Mistake("3", "Not that.", "Later."))),
    replace(ROW, candidates=(Candidate("a", (0, 2), 0.9), Candidate("b", (1, 9), 0.2)), mistakes=(Mistake("1.9", "Another head.", "Its own."),)),
    Truth("drag", "", "Why.", "Checked.", number=623, unit="tokens", high=2000, step=1, tolerance=31, mistakes=(Mistake(2.0, "Twice.", "× 2."), Mistake(2.4, "More.", "× 3."))),
    Truth("drag", "", "Why.", "Checked.", number=1234567.5, high=2e6, step=5, tolerance=31, mistakes=(Mistake(9.0, "Nine.", "It is 9."),)),
    Truth("shape", "", "Why.", "Checked.", axes=("1", "100", "12", "100"), options=("1", "12"), mistakes=(Mistake("1,12,100,100", "The head in front.", "Not yet."),)),
    Truth("shape", "", "Why.", "Checked.", axes=("12", "1", "100", "100"), options=("1", "12")),
    Truth("choose", "", "Why.", "Checked.", options=("no", "yes", "never"), right=(1,), mistakes=(Mistake("2", "Never say it.", "It is not so."),)),
    Truth("choose", "", "Why.", "Checked.", options=("W_q", "X", "W₁", "sines"), right=(0, 2), all_of=True, mistakes=(Mistake("1", "X is a text.", "It has none."),)),
)  # fmt: skip
ANSWERS: tuple[Any, ...] = (
    0, 1, 2, 3, 9, 11, 12.4, 2.0, 2.5, -1, 623, 654, 655, 30.5, 32.07, -0.25, -0.35, 0.05, 1e12, 1e13, 1234567.5,
    None, True, "", "2", [], {}, [[]], [2], [0], [3], [10], [2, 0], [[2], [0]], [[3], [10]], [[2], [2]], [[0], [2], [99]], [[0, 2]], [0, 2], [1, 9], [[1, 9]], [2, 0, 0],
    [1], [0, 1], ["1", "12", "100", "100"], [1, 12, 100, 100], ["100", "x"], ["1"] * 9, ["x" * 41], [[1], "2"], [None], [True], [1e30],
    {"mask": "causal"}, {"mask": "none"}, {"mask": "causal", "more": 1},
    [[i] for i in range(3, 12)], [[i] for i in range(12)],
)  # fmt: skip


def answers() -> list[dict[str, Any]]:
    """Every answer to every question, and some that chance made."""
    chance = random.Random(17)
    found = []
    for truth in TRUTHS:
        some = [*ANSWERS, *(_any(chance) for _ in range(40))]
        found += [
            {
                "truth": truth.json(),
                "answer": answer,
                "checked": asdict(check(truth, answer)),
                "reply": _replied(truth, answer),
            }
            for answer in some
        ]
    return found


def _replied(truth: Truth, answer: Any) -> dict[str, str] | None:
    found = reply(truth, answer)
    return None if found is None else asdict(found)


def _any(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(7 if depth < 3 else 4)
    if kind < 4:
        return (
            chance.randrange(-3, 14),
            chance.uniform(-50, 700),
            chance.choice(["", "12", "é", None, False]),
            chance.randrange(12),
        )[kind]
    if kind == 4:
        return {chance.choice(["mask", "x"]): _any(chance, depth + 1)}
    return [_any(chance, depth + 1) for _ in range(chance.randrange(4))]
