"""What a follower's view is drawn from: the picture of the run, or the room as it is, on the teacher's screen, with what is chosen there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from app.attention import in_progress, params, picture
from app.classroom import sentences
from app.classroom.messages import Question, Shown, TooLong
from app.classroom.state import Asked, Screen
from app.kit import params as kit_params
from app.kit import stage
from app.session import service
from app.session.screen import texts_said
from app.transport import messages
from core.errors import HeadlightError, UnknownRun
from core.service import Facts, MapTransform

MOST_CHOSEN = 800  # bytes: with what stands beside it a change travels in less than a kilobyte
EXPLORE = "explore"  # the view whose screen is a run and a place in it


async def screen_of(shown: Shown) -> Screen:
    """The screen to tell everybody, with nothing in it that the picture does not have. Raises Unknown for a run, or a room, that
    no one has on the screen."""
    packed = None
    if shown.view == EXPLORE:
        header = (await in_progress.picture_of_run(shown.run)).header
        found, _ = kit_params.read(params.PARAMS, params.Shown(header, shown.chosen), shown.chosen)
        opening = kit_params.opening(params.OPTIONS, None)
        chosen = {name: text for name, text in found.items() if text != opening.get(name)}
    elif not shown.run:
        chosen = shown.chosen  # for a link, which is read as any other
    else:
        drawn = stage.drawn(shown.run)
        if drawn is None or drawn.room != shown.view:
            raise UnknownRun(sentences.NO_RUN)
        packed = await asyncio.to_thread(lambda: drawn.message)  # some are made for the first who asks
        chosen = drawn.chosen(shown.chosen)
    if len(json.dumps(chosen)) + len(json.dumps(shown.said)) > MOST_CHOSEN:
        raise TooLong(sentences.TOO_LONG)
    return Screen(shown.view, shown.run, {"with": chosen, "said": shown.said}, shown.cover, packed)


async def message(run: str) -> bytes:
    """The picture of a run as Explore's component takes it, opened as it opens by itself."""
    made, facts = await in_progress.picture_of_run(run), await service.service().facts(run)
    if not made.header["whole"]:
        made = picture.with_small_pictures(made, await service.service().thumbnails(run))
    values = kit_params.opening(params.PARAMS, params.Shown(made.header))
    rest = {"chosen": {"values": values}, "cover": None, "link": _link(facts)}
    return messages.pack(made.header | rest, made.body)


def _link(facts: Facts) -> Mapping[str, str]:
    """What opens the same picture elsewhere. Edits are in no link of a follower's: such a run has none."""
    if facts.interventions:
        return {}
    return {"model": facts.spec.title, **texts_said(facts)}


async def asked_of(question: Question) -> Asked:
    """The row that a question is about, and the places that may be said: those that it may look at, and that are words.

    Raises Refused where the run has no such row.
    """
    run = await service.service().facts(question.run)
    site = next((site for site in run.sites if site.id == question.site), None)
    if site is None or question.layer >= len(site.records):
        raise HeadlightError(f"This run has no layer {question.layer} of {question.site[:20]!r}.")
    record = site.records[question.layer]
    row = await service.service().row(run.key, MapTransform(record, question.head), question.query)
    padding = run.tokens(site.key).padding
    places = frozenset(at for at, reason in enumerate(row.reasons.tolist()) if not reason and not padding[at])
    return Asked(run.key, site.id, question.layer, question.head, question.query, site.n_key, places)
