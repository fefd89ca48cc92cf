"""What came out of a question: the class as a head beside all others, and its votes as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from app.classroom import sentences
from app.classroom.state import Question
from app.export import files
from core.service import Facts, Service, Similarity

MOST_WEIGHTS = 64  # of the asked row that travel, the largest
OWN = 0.3  # a head is a word's own where the word is its largest, with more than this


async def likeness(asked: Service, question: Question, before: Question | None) -> dict[str, Any]:
    """The class as one more head: what it shares with every head of the model, and what each word that was said gets."""
    of, tally, said = question.asked, question.tally(), question.said
    shares = np.zeros(of.keys, dtype=np.float32)
    for place, votes in tally.items():
        shares[place] = votes / said
    found = await asked.similarity(of.run, of.site, of.query, shares.tolist())  # type: ignore[arg-type]
    row, shared = found.rows[of.layer, of.head], found.shared
    best = np.unravel_index(int(shared.argmax()), shared.shape)
    here = float(shared[of.layer, of.head])
    order = np.argsort(-row, kind="stable")
    rank = np.empty(len(row), dtype=int)
    rank[order] = np.arange(1, len(row) + 1)
    return {
        "q": question.number,
        "said": said,
        "site": of.site,
        "layers": shared.shape[0],
        "heads": shared.shape[1],
        "agree": [[_short(value) for value in layer] for layer in shared],
        "best": [int(best[0]), int(best[1]), _short(shared[best])],
        "this": [of.layer, of.head, _short(here), int((shared > here).sum()) + 1],
        "weights": [[int(key), _short(row[key])] for key in order[:MOST_WEIGHTS]],
        "words": {
            str(at): _word(found, at) | {"weight": _short(row[at]), "rank": int(rank[at])} for at in sorted(tally)
        },
        "before": None if before is None else await _moved(asked, question, before, row, shares),
    }


def _word(found: Similarity, at: int) -> dict[str, Any]:
    """The head that gives a word most, and the one whose row's largest it is, if it gets much there."""
    weights = found.rows[:, :, at]
    most = np.unravel_index(int(weights.argmax()), weights.shape)
    leads = np.where(found.rows.argmax(-1) == at, weights, -1)
    own = np.unravel_index(int(leads.argmax()), leads.shape)
    return {"most": _head(weights, most), "own": _head(weights, own) if leads[own] > OWN else None}


def _head(weights: np.ndarray, at: tuple[Any, ...]) -> list[Any]:
    return [int(at[0]), int(at[1]), _short(weights[at])]


async def _moved(
    asked: Service, question: Question, before: Question, row: np.ndarray, shares: np.ndarray
) -> dict[str, Any] | None:
    """How much of the votes and of the weight is elsewhere than in the round before; None where the sentences differ in length."""
    was = before.asked
    if was.keys != question.asked.keys or was.site != question.asked.site:
        return None
    old = np.zeros(was.keys, dtype=np.float32)
    for place, votes in before.tally().items():
        old[place] = votes / before.said
    other = await asked.similarity(was.run, was.site, was.query, old.tolist())  # type: ignore[arg-type]
    moved = {"votes_moved": (shares, old), "weight_moved": (row, other.rows[was.layer, was.head])}
    return {"q": before.number} | {name: _short(np.maximum(new - old, 0).sum()) for name, (new, old) in moved.items()}


def csv_lines(run: Facts, question: Question, weights: np.ndarray) -> Iterator[str]:
    """A line for every place of the sentence: its word, votes, their share and the head's weight. No times: no one is told apart."""
    of, tally, said = question.asked, question.tally(), max(1, question.said)
    site = next(site for site in run.sites if site.id == of.site)
    names = {
        "query": run.tokens(site.query).labels[of.query],
        "votes": sentences.VOTES[question.said != 1].format(n=question.said),
        "layer": of.layer,
        "head": of.head,
        "model": run.spec.title,
    }
    for line in (sentences.CAPTION.format(**names), sentences.SENTENCE.format(text=run.source.text)):
        yield "# " + " ".join(files.RISKY_INSIDE.sub(r"\1 ", line).split()) + "\r\n"
    yield f"{sentences.COLUMNS}\r\n"
    for place, label in enumerate(run.tokens(site.key).labels):
        votes = tally.get(place, 0)
        yield f"{place},{files.cell(label)},{votes},{votes / said:.6g},{float(weights[place]):.9g}\r\n"


def counts(question: Question) -> dict[str, Any]:
    """Every vote of a revealed question."""
    tally: Mapping[int, int] = question.tally()
    return {"q": question.number, "said": question.said, "votes": [[at, tally[at]] for at in sorted(tally)]}


def _short(value: Any) -> float:
    return round(float(value), 4)
