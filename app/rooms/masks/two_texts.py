"""Leakage on two texts that differ in one word: which words before it notice, under the mask and without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.kit import numbers
from app.rooms.masks import choices, words
from app.session import service
from app.transport.routes import BadParameter
from core.edits import DropCausalMask
from core.run.request import Request
from core.service import Facts

NOTICED = 0.005  # nats: a loss that differs by less is the same on the screen


@dataclass(frozen=True, eq=False)
class TwoTexts:
    """Two texts with one beginning, and what one model makes of both."""

    texts: tuple[str, str]
    words: tuple[str, str]  # the first in which they differ
    before: int  # how many words, from the second on, stand before that one in both
    chances: tuple[tuple[float, float], tuple[float, float]]  # of that word of each text: under the mask, without
    noticed: tuple[int, int]  # words before it whose loss differs between the texts: under the mask, without
    most: tuple[float, float]  # the largest such difference, in nats


async def guessed_instead(facts: Facts) -> str:
    """The text with one word changed: in its second half, the one that surprised the model most, and in its place the model's guess."""
    ask, source = service.service(), facts.source
    losses = (await ask.outcome(facts.key)).losses
    n = len(source)
    for at in sorted(range(max(1, n // 2), n), key=lambda i: -losses[i - 1]):
        start, end = source.offsets[at]
        word, rest = source.text[start:end], source.text[end:]
        begins = word[:1].isspace() or not source.text[:start][-1:].isalnum()
        if not (word.strip().isalpha() and begins and not rest[:1].isalnum()):
            continue  # a part of a word, or a mark
        (found,) = await ask.next_words(facts.key, [at - 1], 5)
        for guess, _ in found.words:
            if guess.strip().isalpha() and guess.strip() != word.strip():
                spaces = word[: len(word) - len(word.lstrip())]
                return source.text[:start] + spaces + guess.strip() + rest
    return f"{source.text.rstrip()} {words.AND}"  # nothing in it is a word that could be changed


async def compared(facts: Facts, written: str, instead: str) -> TwoTexts:
    """Both texts of one model. Raises BadParameter where nothing can be compared."""
    ask = service.service()
    both = []
    for text in (written, instead):
        run = await ask.facts(await ask.submit(Request(facts.spec.id, (text,))))
        if (n := len(run.source)) > choices.SHOWN:
            raise BadParameter(words.ROUTE_LEAK.format(n=numbers.whole(n), most=choices.SHOWN))
        both.append(run)
    ids = [run.source.ids for run in both]
    differs = next((i for i, (a, b) in enumerate(zip(*ids, strict=False)) if a != b), min(len(one) for one in ids))
    if differs == 0:
        raise BadParameter(words.NO_BEGINNING)
    if differs >= min(len(one) for one in ids):
        raise BadParameter(words.NO_CHANGE)
    losses = [await _losses(run) for run in both]
    before = differs - 1
    moved = [np.abs(losses[0][way][:before] - losses[1][way][:before]) for way in (0, 1)]
    chances = [(float(np.exp(-own[before])), float(np.exp(-free[before]))) for own, free in losses]
    return TwoTexts(
        (written, instead),
        (both[0].source.labels[differs], both[1].source.labels[differs]),
        before,
        (chances[0], chances[1]),
        (int((moved[0] > NOTICED).sum()), int((moved[1] > NOTICED).sum())),
        (float(moved[0].max(initial=0)), float(moved[1].max(initial=0))),
    )


async def _losses(run: Facts) -> tuple[np.ndarray, np.ndarray]:
    """Of each word: under the mask, and with it taken away, or of the model that learnt without."""
    ask = service.service()
    if run.spec.id == choices.LEAKY:
        found = await ask.leakage(run.key)
        return found.losses, found.relearnt
    free = await ask.edited(run.key, (DropCausalMask(),))
    return (await ask.outcome(run.key)).losses, (await ask.outcome(free)).losses
