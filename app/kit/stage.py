"""The stage of a room: its component in the page, and what the visitor chose there, in step with the address."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import streamlit as st

from app.kit import cover, scripts
from app.kit import params as kit_params
from app.kit.params import Param
from app.session import chosen, screen
from app.session import room as session_room
from app.session.chosen import SHARED
from app.session.session_state import Side
from app.transport import messages, modules
from core.errors import UnknownRun
from core.service import Facts

VISIT = "stage_visit"  # in the session: the room on the screen, and how many were entered so far
SHOWN = "stage_values"  # in the session: {room: what it shows}
DRAWN = "stage_drawn"  # in the session: the last rooms that were sent
MOST_BESIDE = 700  # bytes of what is chosen that travel beside a room that others see; more goes into what they see
MOST_DRAWN = 4 << 20  # bytes of a room that others may see
# Bytes of all of them, for classes that there are or may be; what was shown longest ago goes first.
MOST_KEPT = 64 << 20
ENTRIES: dict[str, str] = {}  # room -> the module that draws it, for a page that shows it alone


@dataclass(eq=False)
class Drawn:
    """A room as it was sent to one browser, for others who are to see the same: its message with `values` chosen.

    `nbytes` are those that it holds until it is forgotten, and `used` grows with each one that is shown or asked for.
    """

    room: str
    digest: str
    make: Callable[[], bytes]
    values: Mapping[str, str]
    params: tuple[Param, ...]
    shown: Any  # what the parameters are of
    nbytes: int = 0
    used: int = 0

    def forget(self) -> None:
        """Give its message back, for any holder."""
        self.make, self.nbytes = _forgotten, 0

    @cached_property
    def message(self) -> bytes:
        """What the room is drawn from."""
        return self.make()

    def chosen(self, said: Mapping[str, str]) -> dict[str, str]:
        """What is chosen otherwise than in `values`, with nothing in it that the room does not have."""
        found, _ = kit_params.read(self.params, self.shown, {**self.values, **said})
        return {name: text for name, text in found.items() if text != self.values[name]}


def _forgotten() -> bytes:
    raise UnknownRun("This room is not on the screen any more.")


# Held by the sessions that show them, and by the classes that follow one: one copy for all, gone with the last of them.
_drawn: WeakValueDictionary[str, Drawn] = WeakValueDictionary()
_drawing = threading.Lock()
_uses = count(1)


def drawn(digest: str) -> Drawn | None:
    """A room that a visitor has on the screen now, unless it was forgotten."""
    with _drawing:
        found = _drawn.get(digest)
        if found is not None:
            found.used = next(_uses)
        return found


@dataclass(frozen=True)
class Stage:
    """A room's component and its parameters."""

    room: str
    params: tuple[Param, ...]
    mount: Callable[..., Any]
    is_followed: bool = False
    told: tuple[Param, ...] = ()  # what a class hears beside the link
    of_run: bool = True  # whether its place is a place in the visitor's run, and not in one of its own


@dataclass(frozen=True)
class Followed:
    """State of a room: the text of every parameter, the parameters that a rule chose, and a sentence for each value of a link that
    cannot be shown.

    `asked` is what the address said of it when the script read it: the browser takes the values where it still says so. `shown` is
    what the parameters are of.
    """

    values: dict[str, str]
    by_rule: frozenset[str]
    asked: dict[str, str]
    notes: list[str]
    shown: Any
    of: str = ""  # the run that the values are a choice on
    run: Mapping[str, str] = field(default_factory=dict)  # the run part of a link to it
    going: bool = False  # True while the run continues; it may still be cancelled


def stage(
    room: str,
    params: Sequence[Param],
    entry: str,
    is_followed: bool = False,
    told: Sequence[Param] = (),
    of_run: bool = True,
) -> Stage:
    """Register the component of a room. `entry` is its module, whose default export gets what draw() sends as `data`.

    A class can follow a room whose message, with what is chosen, says all that is on the screen: what it asks of routes beside that
    they answer anybody, and compute once for all. `told` are parameters that the class hears of and no link says, such as that a
    training goes on.
    """
    scripts.add()
    if is_followed:
        ENTRIES[room] = entry
    mount = modules.component(f"{room}_stage", entry, html=lambda: f'<div class="hl {room}"></div>', host=scripts.HOST)
    return Stage(room, tuple(params), mount, is_followed, tuple(told), of_run)


def entered(room: str) -> None:
    """A room is drawn."""
    before, count = st.session_state.get(VISIT, ("", 0))
    if before == room:
        return
    st.session_state[VISIT] = (room, count + 1)
    cover.put(None)


def follow(
    on: Stage, shown: Any, run: Facts | None = None, wish: Mapping[str, str] | None = None, going: bool = False
) -> Followed:
    """Read the state of a stage from the address.

    `shown` is what the parameters are of, such as the facts of a run, or gives it for what is chosen: a value that it does not have
    gives way to the one it opens with. `run` is the run on the screen, for a place in it. `wish` is what the script itself wants
    shown. `going`: the run continues and may be cancelled.
    """
    said = chosen.address()
    was = said.get(chosen.WAS, "")
    facts = chosen.facts_of(was) if run is not None and was not in ("", run.key) else run
    found = selected(on, shown, said, run, facts, wish)
    link = {} if run is None else _link_of(run)
    if run is not None and not going:
        chosen.drawn(link, run)
    st.session_state[SHOWN] = {**st.session_state.get(SHOWN, {}), on.room: found.values}
    return replace(found, run=link, going=going)


def selected(
    on: Stage,
    shown: Any,
    said: Mapping[str, str],
    run: Facts | None = None,
    was: Facts | None = None,
    wish: Mapping[str, str] | None = None,
) -> Followed:
    """The same of any address: `was` is the run that it says something of, where that is not `run`; None: no one knows."""
    names = [param.name for param in on.params]
    known = chosen.read(said, names)
    if run is not None and was is not run:
        known = chosen.carried(known, was, run, chosen.of_text(on.room))
    asked = {**known.values, **(wish or {})}
    found = shown(asked) if callable(shown) else shown
    values, notes = kit_params.read(on.params, found, asked)
    by_rule = ruled(on.params, values, asked, known.by_rule - (wish or {}).keys())
    return Followed(values, by_rule, read_of(on.params, said), notes, found, run.key if run else "")


def ruled(
    params: Sequence[Param], values: Mapping[str, str], asked: Mapping[str, str], by_rule: Collection[str]
) -> frozenset[str]:
    """The names whose values a rule chose: they were not asked for, were left open, or a rule chose them before (`by_rule`)."""
    given = {name for name, text in asked.items() if text or not values.get(name)}
    names = (param.name for param in params if not isinstance(param.default, str))
    return frozenset(name for name in names if name in values and (name not in given or name in by_rule))


def read_of(params: Sequence[Param], said: Mapping[str, str]) -> dict[str, str]:
    """The choices of a room in an address."""
    return {name: said[name] for name in (*(param.name for param in params), chosen.RULE, chosen.WAS) if name in said}


def _link_of(run: Facts) -> dict[str, str]:
    """The run part of a link to the run on the screen."""
    side = Side("")
    waiting = side.waiting.get()
    requests = (side.last_good.get(), waiting.request if waiting is not None else None)
    return next((screen.spelled_out(one) for one in requests if one is not None and one.key == run.key), {})


def values(room: str) -> dict[str, str]:
    """What a room shows, as its parameters say it: {} where it was not drawn in this visit, or has no stage."""
    return dict(st.session_state.get(SHOWN, {}).get(room, {}))


def sent(on: Stage, followed: Followed) -> dict[str, Any]:
    """The selection on the screen, as the browser receives it."""
    found = selection(on.room, on.params, followed, on.of_run)
    # Streamlit drops a message that equals the one before, and the visitor may have chosen something since.
    found["address"] |= {"view": session_room.shown(), "arrivals": chosen.arrivals()}
    return found


def selection(room: str, params: Sequence[Param], followed: Followed, of_run: bool) -> dict[str, Any]:
    """The selection in a room, as kit/browser/selection.js reads it; kit/browser/types.d.ts names the parts of `address`.

    `of_run`: the position in the room is one in the visitor's run.
    """
    return {
        "values": followed.values,
        "of": followed.of,
        "address": {
            "view": room,
            "room": room,
            "run": followed.run,
            "rule": sorted(followed.by_rule),
            "silent": [param.name for param in params if param.default == ""],
            "shared": [param.name for param in params if of_run and param.name in SHARED],
            "of_text": sorted(chosen.of_text(room)),
            "asked": followed.asked,
            "going": followed.going,
        },
    }


def draw(
    on: Stage, followed: Followed, header: Mapping[str, Any], body: bytes = b"", **opens: Callable[[], None]
) -> None:
    """Send a room to the browser: a header, raw numbers, and what is chosen. `opens` are called on what else it may tell."""
    chosen = sent(on, followed)
    head = messages.written(header)  # once for the visitor and for the others: of a large room this is most of the work
    if on.is_followed:
        now = _kept(on, followed, head, body)
        _hold(now)
        digest, base = (now.digest, now.values) if now else ("", {})
        chosen["follow"] = {"room": on.room, "drawn": digest, "base": base, "most": MOST_BESIDE}
    on.mount(
        key=f"{on.room}_stage",
        data=messages.assembled(head, body, {"chosen": chosen, "cover": cover.sent()}),
        on_again_change=lambda: None,
        **opens,
    )


def keep(found: Drawn) -> None:
    """Keep for others what this visitor has on the screen without a stage."""
    with _drawing:
        found = _drawn.setdefault(found.digest, found)
    _hold(found)


def _hold(now: Drawn | None) -> None:
    """As long as the visitor shows it; also the one before, since the browser may still speak of it."""
    last = st.session_state.get(DRAWN, ())[:1]
    st.session_state[DRAWN] = last if last == (now,) else (now, *last)


def _kept(on: Stage, followed: Followed, head: bytes, body: bytes) -> Drawn | None:
    """The room for others, of its header as it travels; None where it is too large for them."""
    opening = kit_params.opening(on.params, followed.shown)
    other = {name: text for name, text in followed.values.items() if text != opening[name]}
    base = opening if len(json.dumps(other)) <= MOST_BESIDE else followed.values
    more = {"chosen": {"values": base}, "cover": None}
    message = messages.assembled(head, body, more)
    if len(message) > MOST_DRAWN:
        return None
    digest = hashlib.blake2b(f"{on.room} ".encode() + message, digest_size=16).hexdigest()
    with _drawing:
        known = _drawn.get(digest)
        if known is None:
            values, params = base | kit_params.opening(on.told, followed.shown), (*on.params, *on.told)
            known = Drawn(on.room, digest, lambda: message, values, params, followed.shown, len(message))
            _drawn[digest] = known
        known.used = next(_uses)
        _bound()
        return known


def _bound() -> None:
    """Forget the rooms that were shown or asked for longest ago, on a screen or not, until the rest fit."""
    if sum(one.nbytes for one in _drawn.values()) <= MOST_KEPT:
        return
    held = 0
    for one in sorted(_drawn.values(), key=lambda one: -one.used):
        held += one.nbytes
        if held > MOST_KEPT:
            del _drawn[one.digest]  # who is shown it and opens a class is told so, and its next message makes it again
            one.forget()
