"""page_of(): a run as one HTML page, the Explore screen with all that it needs in it: no server, no network, no Streamlit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from operator import index
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from app.attention import export, params, picture, scripts, transform
from app.attention import selection as attention_selection
from app.attention import words as attention_words
from app.export import offline
from app.export import words as export_words
from app.kit import params as kit_params
from app.kit import words as kit_words
from app.notebook import words
from app.shell import style
from app.transport import edited, messages, modules
from core.errors import HeadlightError
from core.service import Facts, OneRun, SiteId, one_run
from core.trace import Trace

ROOMS = ("explore",)  # that make a page of a run alone; the pages of others hold what was looked at on a screen
ENTRY = "rooms/explore/browser/standalone.js"
MOST = (
    4_000_000  # weights that a page holds: 8 MB before they are packed; of more there are small pictures and one head
)
KEY = "notebook"  # of the run on its page, which has no other
APP = Path(__file__).resolve().parents[1]


def page_of(
    run: Trace, layer: int | None = None, head: int | None = None, query: int | None = None, room: str = "explore"
) -> str:
    """The whole document, for a browser without a network or for the srcdoc of a frame. `query` is a token's position.

    What is left out is where the picture opens. Raises Refused with a sentence for a place or a room that there is not.
    All that is read of the run is core.service.one_run(); page() makes the same of an OneRun that was put together otherwise.
    """
    check_room(room)
    return page(one_run(run, KEY, MOST), layer, head, query, room)


def page(
    one: OneRun, layer: int | None = None, head: int | None = None, query: int | None = None, room: str = "explore"
) -> str:
    """The document of a run in plain data, whose docstring says which parts may be left out."""
    check_room(room)
    return placed(one, layer, head, query).page


@dataclass(frozen=True, eq=False)
class Placed:
    """A run with one head of it opened at a token: its message to the page, and the still of that head."""

    one: OneRun
    site: SiteId
    layer: int
    head: int
    query: int | None
    title: str
    message: bytes  # as the page's script reads it: the picture, its answers, and the words below it
    still: str

    @cached_property
    def page(self) -> str:
        return offline.filled(_frame(), self.still, self.message)


def placed(one: OneRun, layer: int | None = None, head: int | None = None, query: int | None = None) -> Placed:
    """Open a run at a place; where a part of it is left out, that is where the screen would open. Raises Refused for another one."""
    said = {name: at for name, at in {"layer": layer, "head": head, "query": query}.items() if at is not None}
    message, values, told = _message(one, said)
    place = params.place_of(values)
    site = next(site for site in one.facts.sites if site.id == place.site)
    body, at = bytearray(message), []
    for asked, answer in _answers(one):
        body += bytes(-len(body) % 4)
        at.append((asked, len(body), len(answer)))
        body += answer
    header = {"about": told, "theme": None, "data": [0, len(message)], "answers": at}
    still = one.still(site.records[place.layer], place.head) if one.still else export_words.NO_SCRIPT
    whole = messages.pack(header, bytes(body))
    return Placed(one, site.id, place.layer, place.head, place.query, told["title"], whole, still)


def check_place(one: OneRun, site: str, name: str, asked: object) -> int:
    """A layer, head or query of a kind of attention. Raises Refused, with what there is, for another one."""
    of = next(found for found in one.facts.sites if found.id == site)
    most = {"layer": len(of.records), "head": of.n_heads, "query": of.n_query}[name] - 1
    try:
        at = index(asked)  # type: ignore[arg-type]
    except TypeError:
        raise HeadlightError(words.NOT_WHOLE.format(name=name, most=most, asked=repr(asked)[:60])) from None
    if not 0 <= at <= most:
        raise HeadlightError(words.PLACE.format(name=name, asked=at, most=most))
    return at


def check_room(room: str) -> None:
    """Raises Refused for a room that makes no page."""
    if room not in ROOMS:
        raise HeadlightError(words.ROOM.format(room=repr(room)[:60], allowed=", ".join(ROOMS)))


@edited.cached
def _frame() -> str:
    """The page without a run. Explore's browser files are taken without its package, which Streamlit draws."""
    scripts.add()
    modules.add("rooms/explore/browser", APP / "rooms" / "explore" / "browser")
    return offline.packed(ENTRY, style.page_style())


def _message(one: OneRun, said: Mapping[str, int]) -> tuple[bytes, dict[str, str], dict[str, str]]:
    """The picture as Explore gets it, the values chosen in it, and the words of the page about itself."""
    header, body = _picture(one)
    values = _chosen(one, header, said)
    if one.whole is None and one.head is not None:
        header, body = _with_head(one, header, body, values)
    facts = one.facts
    link = {"model": facts.spec.title, "text": facts.source.text}
    link |= {"target": facts.target.text} if facts.target is not None and facts.target.text else {}
    header |= {"link": link, "chosen": {"values": values}, "cover": None, "offline": True}
    return messages.pack(header, body), values, _told(facts, values)


def _picture(one: OneRun) -> tuple[dict[str, Any], bytes]:
    facts, whole = one.facts, one.whole
    if whole is None:
        larger = picture.with_small_pictures(picture.larger_picture(facts), one.small)
        return larger.header, larger.body
    made = picture.whole_picture(facts, whole.heads, whole.openings, whole.roles, whole.look, whole.sinks)
    header, parts = dict(made.header), [made.body]
    size = len(made.body)
    for site in header["sites"]:
        norms = (one.norms or {}).get(site["id"])
        if norms is None:
            continue
        site["norms_at"] = size
        parts.append(np.ascontiguousarray(norms, "<f4").tobytes())
        size += len(parts[-1])
    return header, b"".join(parts)


def _with_head(
    one: OneRun, header: dict[str, Any], body: bytes, values: Mapping[str, str]
) -> tuple[dict[str, Any], bytes]:
    """The head that is opened, and the row of its query, beside the small pictures."""
    assert one.head is not None
    place = params.place_of(values)
    record = next(site for site in one.facts.sites if site.id == place.site).records[place.layer]
    added, first = messages.Body(), []
    for path, asked, answer in transform.opened(one.head(record, place.head, place.query)):
        first.append([path, asked, len(body) + added.add(np.frombuffer(answer, "u1")), len(answer)])
    return header | {"first": first}, body + added.bytes()


def _chosen(one: OneRun, header: dict[str, Any], said: Mapping[str, int]) -> dict[str, str]:
    """The text of every parameter of Explore: as it opens, but for what is asked for."""
    wanted: dict[str, str] = {}
    shown = params.Shown(header, wanted, one.begin)
    for name, asked in said.items():
        wanted[name] = str(check_place(one, shown.site["id"], name, asked))
    values, _ = kit_params.read(params.PARAMS, shown, wanted)
    return values


def _told(facts: Facts, values: Mapping[str, str]) -> dict[str, str]:
    """The words below the picture: those of an exported page."""
    selection = attention_selection.selected(facts, {name: values[name] for name in ("site", "layer", "head")})
    title = export.title(facts, selection)
    site = facts.site_of(selection.record)
    sizes = {"{title}": title, "{n}": str(site.n_query), "{m}": str(site.n_key)}
    alt = attention_words.COMPONENT["export_alt_map"]
    for name, size in sizes.items():
        alt = alt.replace(name, size)
    return {
        "title": title,
        "alt": alt,
        "caption": export.caption(facts, selection, date.today()),
        "snippet": export.snippet(facts, selection),
        "note": kit_words.COMPONENT["offline_page"],
        "code": kit_words.COMPONENT["offline_code"],
    }


def _answers(one: OneRun) -> Sequence[tuple[str, bytes]]:
    """Answers of a server that the page has with it, by address: the receipts."""
    return [
        (
            f"proof?{urlencode({'run': one.facts.key, 'record': record})}",
            json.dumps(picture.proof_message(found)).encode(),
        )
        for record, found in enumerate(one.receipts)
    ]
