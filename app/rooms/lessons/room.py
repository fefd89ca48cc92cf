"""Questions that a class may be asked of a step: one option, one thing that can be pointed at, or one number."""

from __future__ import annotations

import hashlib
import json

from app import languages
from app.classroom.steps import MOST_OPTIONS, Reply, Said, Step, offer
from app.rooms.lessons import checks, words
from app.rooms.lessons.step import Candidate, Truth

LONGEST = 90  # signs of an option on a phone


def askable(number: str, title: str, truth: Truth) -> Step | str:
    """The step as a class is asked it, or a sentence that says why it is not. An answer is checked as everywhere in Lessons."""
    if truth.kind in ("shape", "do"):
        return words.ROOM_CANNOT[truth.kind]
    if truth.all_of:
        return words.ROOM_CANNOT["several"]
    places = sorted(truth.candidates, key=lambda one: one.place)  # and not in the order of what is right
    options = [one.label for one in places] if truth.kind == "point" else list(map(languages.part, truth.options))
    if len(options) > MOST_OPTIONS or (truth.kind != "drag" and len(options) < 2):
        return words.ROOM_CANNOT["many"].format(n=MOST_OPTIONS)
    language = languages.current()

    def checked(said: Said) -> checks.Checked:
        answer = [places[int(said)].place] if truth.kind == "point" else [said] if truth.kind == "choose" else said
        with languages.speaking(language):
            return checks.check(truth, answer)

    best: Said = truth.number if truth.kind == "drag" else _right(truth, places)[0]
    after = [text for text in (truth.reason, truth.slip, truth.footer) if text]
    known = json.dumps([number, language, truth.json()])
    return offer(
        Step(
            key=hashlib.blake2b(known.encode(), digest_size=16).hexdigest(),
            number=number,
            title=languages.translated(title),
            question=languages.said(truth.question),
            options=tuple(text[:LONGEST] for text in options),
            unit=truth.unit,
            digits=truth.digits,
            true=checked(best).true,
            right=() if truth.kind == "drag" else _right(truth, places),
            value=truth.number,
            values=tuple(one.value for one in places) if truth.share else (),
            words=tuple(map(languages.said, after)),
            reply=lambda said: _reply(checked(said), len(after)),
        )
    )


def _right(truth: Truth, places: list[Candidate]) -> tuple[int, ...]:
    if truth.kind == "choose":
        return truth.right
    best = {one.place for one in truth.candidates[: truth.best]}
    return tuple(i for i, one in enumerate(places) if one.place in best)


def _reply(found: checks.Checked, after: int) -> Reply:
    """The words to this answer alone: why it is so is said to all."""
    return Reply(found.right, found.words[: len(found.words) - after])
