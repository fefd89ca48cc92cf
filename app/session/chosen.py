"""The visitor's selection in the address: the browser owns it, and a script reads it when it runs.

Nothing is left out of the address because it is as a room opens: rooms, texts and models open differently, so what is left out means
another head elsewhere. An address that leaves something out, as older links do, shows it as the room opens.

A name in `rule` was chosen by a rule and by no person: another text lets the rule choose again, and keeps what a person
chose. What is chosen is of the run that the address names, or, with `was`, of the run of that key: so says an address whose text is
new and whose run is still to come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import streamlit as st

from app.session import service
from app.session.link_names import OF_THE_RUN, PINNED, RULE, SHARED, TOKENS, WAS
from app.session.session_state import Key
from app.streamlit_edge import history
from core.errors import HeadlightError
from core.service import Facts, Site

NOWHERE = "-"  # for a run that nothing is known of
MOST_RUNS = 4  # that a session knows the words of
Values = Mapping[str, str]

ARRIVALS: Key[int] = Key("arrivals")  # how often the address decided what is on the screen: by a link, or the way back
NOTED: Key[str] = Key(history.NOTED)
MEANT: Key[tuple[Values, Values]] = Key("arrival_meant")  # what the last of them said of its run, and what that means
RUNS: Key[dict[frozenset[tuple[str, str]], Facts]] = Key("runs_drawn")  # the last runs, by what a link says of them

_of_text: dict[str, frozenset[str]] = {}  # {room: names of its options that mean nothing on another text}
_many: set[str] = set()  # names that older links say once for each of their values


@dataclass(frozen=True)
class Chosen:
    """The selection in a room as texts of an address, and the names that a rule chose."""

    values: Values
    by_rule: frozenset[str] = frozenset()


def know(room: str, of_text: Collection[str] = (), many: Collection[str] = ()) -> None:
    """Told by a room at the start: which of its options mean nothing on another text, and which older links say once for each value."""
    _of_text[room] = frozenset(of_text)
    _many.update(many)


def of_text(room: str) -> frozenset[str]:
    """The names of a room's options that mean nothing on another text."""
    return _of_text.get(room, frozenset())


# the address


def begin() -> None:
    """First thing in a script: whether the address decides what is on the screen, as it does where a visit begins."""
    number = st.query_params.get(history.ARRIVED, "")
    if ARRIVALS.get() is None or (number and number != NOTED.get()):
        NOTED.put(number)
        ARRIVALS.put(arrivals() + 1)
    history.read_on()


def arrivals() -> int:
    """How often the address decided, and not what the visitor did since: grows with each link that is opened and each way back."""
    return ARRIVALS.get() or 0


def address() -> dict[str, str]:
    """The parameters of the address."""
    said = st.query_params.to_dict()
    return said | {name: ",".join(st.query_params.get_all(name)) for name in _many if name in said}


def leave(names: Collection[str]) -> None:
    """The address says no longer what only other rooms have. First thing in a room: what it reads is what its answer is compared with."""
    said = address()
    kept = said.keys() - {name for name in names if name not in OF_THE_RUN or not _is_of_run(name, said)}
    if kept == said.keys():
        return
    ruled = ",".join(name for name in said.get(RULE, "").split(",") if name in kept)
    was = said.get(WAS) if kept & set(SHARED) else None
    history.write(dict.fromkeys(said.keys() - kept) | {RULE: ruled or None, WAS: was})


def run() -> dict[str, str]:
    """Its run part."""
    said = address()
    return {name: said[name] for name in OF_THE_RUN if name in said and _is_of_run(name, said)}


def _is_of_run(name: str, said: Values) -> bool:
    """True unless a room uses the name for a choice of its own, as Shapes does with `as=table`."""
    return OF_THE_RUN[name] in (None, said.get(name, OF_THE_RUN[name]))


def ask(wanted: Values, is_arrival: bool) -> None:
    """The visitor wants to see this run: the address says so at once, since a long run is not waited for.

    Where it was not the address that asked for it, what is chosen is of the run before.
    """
    said = run()
    if is_arrival:
        MEANT.put((said, dict(wanted)))
    elif said and (known := _meant(said)) != wanted and WAS not in address():
        drawn = (RUNS.get() or {}).get(frozenset(known.items()))
        history.assume({WAS: drawn.key if drawn else NOWHERE})
    now = address()
    history.write({name: wanted.get(name) for name in OF_THE_RUN if name in wanted or _is_of_run(name, now)})


def _meant(said: Values) -> Values:
    """A message that left the browser before its address was completed says the run as the link did."""
    linked, meant = MEANT.get() or ({}, {})
    return meant if said == linked else said


def drawn(link: Values, facts: Facts) -> None:
    """This run is on the screen."""
    runs = {said: known for said, known in (RUNS.get() or {}).items() if said != frozenset(link.items())}
    RUNS.put(dict([*runs.items()][1 - MOST_RUNS :]) | {frozenset(link.items()): facts})


def facts_of(key: str) -> Facts | None:
    """The run of a key, where it was drawn lately or is still held."""
    for facts in (RUNS.get() or {}).values():
        if facts.key == key:
            return facts
    try:
        return None if key == NOWHERE else service.calls().result(service.service().facts(key))
    except HeadlightError:
        return None


# on another run


def read(said: Values, names: Collection[str]) -> Chosen:
    """The values of these names in an address."""
    return Chosen({n: said[n] for n in names if n in said}, frozenset(said.get(RULE, "").split(",")) - {""})


def carried(chosen: Chosen, was: Facts | None, now: Facts, of_text: Collection[str] = ()) -> Chosen:
    """The selection of one run carried over to another, without the values that a rule chose.

    Another model keeps no place. Another text opens on its own finding and keeps only a pinned head; an edited text keeps its place.
    """
    if was is not None and was.key == now.key:
        return chosen
    kept = {n: t for n, t in chosen.values.items() if n not in chosen.by_rule and n not in of_text}
    options = {n: t for n, t in kept.items() if n not in SHARED}
    if was is None or was.spec.id.partition("@")[0] != now.spec.id.partition("@")[0]:
        return Chosen(options)
    place = {n: t for n, t in kept.items() if n in SHARED}
    if was.source.text != now.source.text:
        place = {n: t for n, t in place.items() if n == "hide" or kept.get(PINNED) == "true"}
    return Chosen(on_labels(place, was, now) | options)


def on_labels(place: Values, was: Facts, now: Facts) -> dict[str, str]:
    """A place of one text on another: words that are there stay, counted from the front or from the end; others are left out."""
    found = {n: t for n, t in place.items() if n not in TOKENS}
    sites: dict[str, Site] = {site.id: site for site in was.sites}
    site = sites.get(place.get("site", ""), was.sites[0])
    if site.id not in {one.id for one in now.sites}:
        return found
    if "query" in place:
        moved = moved_to(place["query"], was.tokens(site.query).labels, now.tokens(site.query).labels)
        found |= {"query": moved} if moved else {}
    for name in ("key", "hide"):
        if place.get(name) == "":
            found[name] = ""
        elif name in place:
            sides = was.tokens(site.key).labels, now.tokens(site.key).labels
            words = [moved for word in place[name].split(",") if (moved := moved_to(word, *sides))]
            found |= {name: ",".join(words)} if words else {}
    return found


def moved_to(text: str, was: list[str] | tuple[str, ...], now: list[str] | tuple[str, ...]) -> str:
    """Where a token of one text is in another: at the same place from the front or the end, or anywhere; "" where it is not."""
    if not text.isdecimal():
        return text  # such as "none"
    at = int(text)
    if at >= len(was):
        return ""
    places: Iterable[int] = (at, at - len(was) + len(now), *range(len(now)))
    return next((str(i) for i in places if 0 <= i < len(now) and now[i] == was[at]), "")
