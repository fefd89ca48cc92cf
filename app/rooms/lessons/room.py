"""Questions that a class may be asked of a step: one option, one thing that can be pointed at, or one number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from app import languages
from app.classroom.steps import MOST_OPTIONS, Reply, Said, Step, offer
from app.rooms.lessons import checks, replies, words
from app.rooms.lessons.step import Candidate, Truth

LONGEST = 90  # signs of an option on a phone


def askable(
    name: str, title: str, truth: Truth, written_in: str = "", picture: Callable[[], Awaitable[Any]] | None = None
) -> Step | str:
    """The step as a class is asked it, or a sentence that says why it is not. An answer is checked as everywhere in Lessons.

    `written_in`: the language of one that a teacher wrote, whose words stay as they are. `picture`: what phones are shown of it.
    """
    if truth.kind in ("shape", "do"):
        return words.ROOM_CANNOT[truth.kind]
    if truth.all_of:
        return words.ROOM_CANNOT["several"]
    language, truth = languages.current(), truth.spoken()
    places = sorted(truth.candidates, key=lambda one: one.place)  # and not in the order of what is right
    options = [one.label for one in places] if truth.kind == "point" else list(truth.options)
    if len(options) > MOST_OPTIONS or (truth.kind != "drag" and len(options) < 2):
        return words.ROOM_CANNOT["many"].format(n=MOST_OPTIONS)

    def answer_of(said: Said) -> object:
        return [places[int(said)].place] if truth.kind == "point" else [said] if truth.kind == "choose" else said

    def replied(said: Said) -> Reply:
        with languages.speaking(language):
            return _reply(truth, answer_of(said), len(after))

    def slipped(said: Said) -> Reply | None:
        with languages.speaking(language):
            wrong = replies.reply(truth, answer_of(said))
        return None if wrong is None else Reply(False, (wrong.sentence,), wrong.name)

    best: Said = truth.number if truth.kind == "drag" else _right(truth, places)[0]
    after = [text for text in (truth.reason, truth.slip, truth.footer) if text]
    known = json.dumps([name, language, asdict(truth)])
    return offer(
        Step(
            key=hashlib.blake2b(known.encode(), digest_size=16).hexdigest(),
            number=name.rpartition(".")[2] if truth.is_written else name,
            title=title if truth.is_written else languages.translated(title),
            question=truth.question,
            language=written_in,
            options=tuple(text[:LONGEST] for text in options),
            unit=truth.unit,
            digits=truth.digits,
            true=checks.check(truth, answer_of(best)).true,
            right=() if truth.kind == "drag" else _right(truth, places),
            value=truth.number,
            values=tuple(one.value for one in places) if truth.share else (),
            words=tuple(after if truth.is_written else map(languages.said, after)),
            reply=replied,
            mistake=slipped,
            picture=picture,
            tokens=tuple(one.place[0] for one in places) if truth.form == "row" and truth.places == "token" else (),
        )
    )


def _right(truth: Truth, places: list[Candidate]) -> tuple[int, ...]:
    if truth.kind == "choose":
        return truth.right
    best = {one.place for one in truth.candidates[: truth.best]}
    return tuple(i for i, one in enumerate(places) if one.place in best)


def _reply(truth: Truth, answer: object, after: int) -> Reply:
    """The words to this answer alone, without the last so many, which are said to all: of a mistake that is known what it is, then its numbers."""
    checked, wrong = checks.check(truth, answer), replies.reply(truth, answer)
    said, *more = checked.words[: len(checked.words) - after]
    if wrong is None or not any((one.name, one.sentence) == (wrong.name, wrong.sentence) for one in truth.mistakes):
        return Reply(checked.right, (said, *more))
    return Reply(False, (wrong.sentence, *more), wrong.name)
