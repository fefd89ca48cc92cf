"""Masks' message: the scores and masks of a run, and the cells that are painted on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.kit import params as kit_params
from app.kit.room import Message, Run
from app.rooms.masks import choices, sheet, words
from app.session import resolving, service
from app.session.chosen import SHARED
from app.session.screen import Screen
from core.run.request import Request

# Choices that make a mask, or are beside it: a link with one of them says what it wants
MASKING = ("lab", "stop", "mask", "window", "first", "when", "fill", "scope", "forbid", "allow", "whose")


@dataclass(frozen=True)
class Painted(Message):
    """The message, and whether cells that the link forbids or allows were cut: the text has no such ones."""

    is_cut: bool = False


async def message(run: Run, said: Mapping[str, str]) -> Message:
    """The message for what a link says. Raises Refused for a text that is too long."""
    found = await of_opened(await sheet.opened(service.service(), run.facts), run, said)
    return replace(found, notes=[*found.notes, *([words.LEFT_OUT] if found.is_cut else [])])


async def of_opened(opened: sheet.Opened, run: Run, said: Mapping[str, str]) -> Painted:
    """The same of a run whose scores are there."""
    opened = replace(opened, shown=_shown(await _with_row(opened, said) if opened.is_by_row else opened, said))
    values, notes = kit_params.read(choices.PARAMS, opened.shown, said)
    cut = any(choices.left_out(said.get(name), opened.shown) for name in ("forbid", "allow"))
    link = Screen("masks", run.request).said()
    header, body = sheet.packed(opened, values, link, run.request.texts[0])
    return Painted(header, values, notes, opened.shown, body, cut)


async def run_of(linked: Request, there: Screen) -> Request:
    """The run that a link to the room shows: with what is painted, or without the scale where it is taken away."""
    facts = await resolving.facts_of(linked)
    opened = await sheet.opened(service.service(), facts)
    shown = _shown(await _with_row(opened, there.params), there.params)
    values, _ = kit_params.read(choices.PARAMS, shown, there.params)
    if values["lab"] == "scale" and values["scale"] == "off":
        return resolving.edited(linked, (choices.NO_SCALE,))
    return resolving.edited(linked, choices.edits(values, facts) if values["lab"] == "paint" else ())


def _shown(opened: sheet.Opened, link: Mapping[str, str]) -> choices.Shown:
    """The values that choices have: where a link says nothing of masks, one look is forbidden, so that the first picture shows what a
    mask does. It is the one that was chosen in another room, or the one that every room opens on."""
    look = opened.look
    shown = replace(opened.shown, look=look)
    if (place := _place(opened, link)) is not None:
        key = link.get("key", "") if "query" in link else ""
        try:
            look = opened.look_of(*place, key if key.isdecimal() else "")
        except (IndexError, KeyError):  # a place of another kind of attention
            look = opened.look
    plain = kit_params.opening(choices.PARAMS, shown)
    said = {param.name: link[param.name] for param in choices.PARAMS if param.name in link and param.name not in SHARED}
    # A link from before there was a walk, and a first word that is kept; what is left of another text has both
    older = "stop" not in said and "first" not in said and ("lab" in said or "forbid" in said)
    is_shown = look is not None and not older
    is_shown = is_shown and not any(name in said and plain[name] != said[name] for name in MASKING)
    return replace(opened.shown, look=look, is_shown=is_shown)


def _place(opened: sheet.Opened, link: Mapping[str, str]) -> sheet.Place | None:
    """The row that a link names: the room then forbids a look in it. None where it names none."""
    if link.get("stop") == "3" or not any(name in link for name in ("site", "layer", "head", "query")):
        return None
    shown = replace(opened.shown, look=opened.look)
    at, _ = kit_params.read(choices.PARAMS, shown, {name: link[name] for name in SHARED if name in link})
    return at["site"], int(at["layer"]), int(at["head"]), int(at["query"])


async def _with_row(opened: sheet.Opened, link: Mapping[str, str]) -> sheet.Opened:
    """With the row that a link names, where a text is shown by row."""
    place = _place(opened, link)
    try:
        return opened if place is None else await sheet.with_row(service.service(), opened, place)
    except IndexError:  # a place of another kind of attention
        return opened
