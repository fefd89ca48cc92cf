"""The message of a picture of attention, for what a link says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.attention import in_progress, transform
from app.attention import params as attention_params
from app.attention.params import PARAMS, Shown
from app.attention.picture import Picture
from app.kit import params as kit_params
from app.kit.room import Message, Run
from app.session import screen, service
from core.service import Facts


async def message(run: Run, said: Mapping[str, str]) -> Message:
    """The picture of a run; of a larger one with the head that is opened."""
    picture = await in_progress.made_of(run.request)
    shown = await shown_for(picture.header, said)
    values, notes = kit_params.read(PARAMS, shown, said)
    if not picture.header["whole"]:
        picture = await with_head(run.facts, picture, values)
    header = picture.header | {"link": screen.link(run.request)}
    return Message(header, values, notes, shown, picture.body)


async def shown_for(header: Mapping[str, Any], said: Mapping[str, str]) -> Shown:
    """The subject of the parameters, with the token at which the selected head is first read."""
    shown = Shown(header, said)
    if (head := shown.other_head) is None:
        return shown
    query = (await service.service().opening(header["key"], *head)).query
    return Shown(header, said, lambda *_: query)


async def with_head(run: Facts, picture: Picture, values: Mapping[str, str]) -> Picture:
    """A picture that does not hold all heads, with the one that is opened."""
    header, body, place = picture.header, picture.body, attention_params.place_of(values)
    records = next(site["records"] for site in header["sites"] if site["id"] == place.site)
    index, first = await transform.first(service.service(), run, records[place.layer], place.head, place.query)
    found = [[path, params, len(body) + at, size] for path, params, at, size in index]
    return Picture(header | {"first": found}, body + first)
