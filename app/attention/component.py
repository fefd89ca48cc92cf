"""Registers the stage that shows a run, and draws it: a picture of attention, with what is chosen in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.attention import message as attention_message
from app.attention import params as attention_params
from app.attention import picture as attention_picture
from app.attention import place as attention_place
from app.attention import scripts
from app.kit import cover, stage
from app.session import boxes, chosen, examples, service
from app.session.models import TITLES
from app.session.session_state import Key
from app.transport import messages, modules
from core.service import Facts

ROOM = "explore"
WISH = "explore_wish"  # in the session: the example that the visitor took, until its picture is there
PLAIN = {"kind": "head", "heads": "", "key": "", "hide": "", "words": "false"}  # as an example shows its head
SEEN: Key[str] = Key("explore_seen")  # the run whose opened head the browser has
FIRST: Key[bool] = Key("explore_drawn")  # a picture was drawn in this visit

scripts.add()


@dataclass(frozen=True)
class Mounts:
    """The two components of a room that shows a run."""

    stage: stage.Stage
    underway: Callable[..., Any]  # tells the picture before of a run that still goes on, and draws on its place
    opens: Callable[[], None]  # called before the script runs when a visitor asks for what is opened over the picture


def register(entry: str, opens: Callable[[], None]) -> Mounts:
    """The components of a room whose module `entry` exports them as default and as `underway`."""
    stage.ENTRIES[ROOM] = entry
    chosen.know(ROOM, of_text=attention_params.OF_TEXT)
    return Mounts(
        stage.stage(ROOM, attention_params.PARAMS, entry),
        modules.component("underway", entry, "underway", html=lambda: "<i></i>"),
        opens,
    )


def explore(mounts: Mounts, run: Facts, picture: attention_picture.Picture, link: Mapping[str, str]) -> list[str]:
    """Draw the picture of a run, with what the visitor has chosen in it.

    `link` is what a link to the picture says beside that: model, text and target. Returns a sentence for each part of an address that
    the picture cannot show.
    """
    header = picture.header
    wish = _wished(header)
    followed = _followed(mounts, run, header, wish)
    if wish is not None:
        del st.session_state[WISH]
    if not header["whole"] and SEEN.get() != header["key"]:
        picture = service.awaited(attention_message.with_head(run, picture, followed.values))
    FIRST.put(True)
    _draw(mounts, followed, picture.header | {"link": link}, picture.body)
    return followed.notes


def underway(
    mounts: Mounts, run: Facts, header: dict[str, Any], link: Mapping[str, str], so_far: DeltaGenerator
) -> bool:
    """Let the browser draw a run that still goes on where the picture before is, as soon as the head that is opened is there.

    `header` is that of the picture to come. Not where what is shown is more than one head as it is: that is computed from
    the whole run. Into `so_far` goes what tells the picture before of it; the first one of a visit is drawn where it will be.

    Returns whether it was drawn there, so that explore() has its place only in another run of the script.
    """
    followed = _followed(mounts, run, header, _wished(header), going=True)
    values = followed.values
    if values["show"] != "map" or values["kind"] != "head" or values["hide"] or values["words"] == "true":
        return False
    SEEN.put(header["key"])  # the browser has the head that is opened
    if not FIRST.get():
        _draw(mounts, followed, header | {"link": link, "going": True}, b"")
        return True
    with so_far:
        opened = {"link": link, "chosen": stage.sent(mounts.stage, followed), "cover": cover.sent()}
        mounts.underway(key="underway", data=messages.pack(header | opened, b""))
    return False


def _followed(
    mounts: Mounts, run: Facts, header: Mapping[str, Any], wish: Mapping[str, str] | None, going: bool = False
) -> stage.Followed:
    def shown(said: Mapping[str, str]) -> attention_params.Shown:
        return service.awaited(attention_message.shown_for(header, said))

    return stage.follow(mounts.stage, shown, run, wish, going)


def _draw(mounts: Mounts, followed: stage.Followed, header: Mapping[str, Any], body: bytes) -> None:
    opens = {"on_inspect_change": mounts.opens, "on_shapes_change": mounts.opens}
    stage.draw(mounts.stage, followed, header, body, **opens)


def _wished(header: Mapping[str, Any]) -> dict[str, str] | None:
    """The place of the example that the visitor took, once its picture is there."""
    wish: examples.Example | None = st.session_state.get(WISH)
    if wish is None or boxes.held("text") != wish.text or header["model"] != TITLES[examples.owner_of(wish)]:
        return None
    place = attention_place.example_place(header, wish)
    return None if place.query is None else place.params() | PLAIN
