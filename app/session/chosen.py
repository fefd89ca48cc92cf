"""What a visitor has chosen: one frozen record, read whole from the address where they arrive, and written whole into it.

Nothing is left out of the address because it is as a room opens: rooms, texts and models open differently, so what is left out means
another head elsewhere. An address that leaves something out, as older links do, shows it as the room opens.

A name in `by_rule` was chosen by a rule and by no person: another text lets the rule choose again, and keeps what a person
chose.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import streamlit as st

from app.session.room import PARAM
from app.session.screen import OF_THE_RUN
from app.session.session_state import Key
from app.streamlit_edge.history import is_history_navigation
from core.service import Facts

SHARED = ("site", "layer", "head", "query", "key", "hide")  # mean the same in every room that has them
RULE = "rule"  # in the address: the names that a rule chose
HEAD = frozenset(("site", "layer", "head"))  # are one choice
Values = Mapping[str, str]

_of_text: dict[str, frozenset[str]] = {}  # {room: names of its options that mean nothing on another text}
_many: set[str] = set()  # names that older links say once for each of their values


@dataclass(frozen=True)
class Chosen:
    """What is on a visitor's screen. Every text is as an address says it.

    `facts` are of the run that place and options were chosen on, and `before` is what was chosen on the one before it, for news from
    the browser that left before it knew of the new one. `links` grows whenever the record was not changed by the visitor's hand in a
    room: the browser then takes it as it is.
    """

    room: str = ""
    at: str = ""  # the room whose values were drawn last: `room`, or one inside of it
    run: Values = field(default_factory=dict)  # of the request: model, text, target, step, edits
    place: Values = field(default_factory=dict)  # of SHARED
    options: Mapping[str, Values] = field(default_factory=dict)  # {room: the rest of what is chosen there}
    by_rule: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()  # names that are left out while they are empty, as they open everywhere
    links: int = 0
    address: Values | None = None  # as the visitor arrived, in the room that they arrived in
    read: frozenset[str] = frozenset()  # the rooms, and parts of one, that have read theirs of it
    facts: Facts | None = field(default=None, repr=False, compare=False)
    going: bool = False  # the run still goes on, and may be given up
    before: Chosen | None = field(default=None, repr=False, compare=False)
    lent: Chosen | None = field(
        default=None, repr=False, compare=False
    )  # what a room that borrows the screen gives back

    def values(self, room: str, shared: Collection[str]) -> dict[str, str]:
        """What is chosen in a room that has these names of SHARED."""
        return {n: t for n, t in self.place.items() if n in shared} | dict(self.options.get(room, {}))

    def with_values(self, room: str, values: Values, shared: Collection[str]) -> Chosen:
        """The same with these values in a room."""
        place = {n: t for n, t in values.items() if n in shared}
        own = {n: t for n, t in values.items() if n not in shared}
        return replace(self, place={**self.place, **place}, options={**self.options, room: own})


RECORD: Key[Chosen] = Key("chosen")
ARRIVED: Key[Mapping[str, Sequence[str]]] = Key("arrived")  # an address that is still to be read
USED: Key[bool] = Key("chosen_used")  # something of the run was drawn in this run of the script
# The values that were drawn in this run of the script; None for a name that the room has and does not show
DRAWN: Key[dict[str, str | None]] = Key("chosen_drawn")


def now() -> Chosen:
    """The record of this visitor."""
    return RECORD.get() or Chosen()


def note_arrival() -> None:
    """First thing in a script: the address, where it is to be read. A script that is broken off before it does leaves that to the next.

    That next one may have another address: the room that was left wrote its own over the one that the visitor went back to.
    """
    if RECORD.get() is None or is_history_navigation():
        ARRIVED.put({name: st.query_params.get_all(name) for name in st.query_params})
    USED.take()
    DRAWN.take()


def enter(room: str, borrows: Callable[[str], bool]) -> bool:
    """A room is drawn. Reads the address where the visitor has just arrived, and returns whether they did.

    A room that `borrows` the screen gives sentence, model and place back when it is left.
    """
    record, address = now(), ARRIVED.get()
    if address is not None:
        said = {name: ",".join(values) if name in _many else values[-1] for name, values in address.items()}
        lent = record.lent or (record if record.run else None)
        record = replace(
            record,
            room=room,
            run={n: said[n] for n in OF_THE_RUN if n in said},
            place={n: said[n] for n in SHARED if n in said},
            by_rule=frozenset(said.get(RULE, "").split(",")) - {""},
            links=record.links + 1,
            address=said,
            read=frozenset(),
            facts=None,
            before=None,
            lent=lent if borrows(room) else None,
        )
    elif room != record.room:
        lent = record.lent
        if borrows(room):
            record = replace(record, lent=lent or record)
        elif lent is not None:
            record = replace(lent, options={**record.options, **lent.options}, links=record.links + 1, lent=None)
        record = replace(record, room=room, address=None)
    RECORD.put(record)
    ARRIVED.take()  # last: a script that is broken off before leaves it to the next
    return address is not None


def read_address(room: str, own: Collection[str]) -> Chosen:
    """The record, with what the address says of a room, or of a part of one, in which the visitor arrived."""
    record = now()
    if record.address is not None and room not in record.read:
        said = {n: t for n, t in record.address.items() if n in own}
        record = replace(record, options={**record.options, room: said}, read=record.read | {room})
        RECORD.put(record)
    return record


def ask(run: Values) -> None:
    """The visitor wants to see this run: what a person chose stays, and what a rule chose is chosen again once the run is there."""
    record = now()
    USED.put(True)
    if dict(record.run) == dict(run):
        return
    is_first = not record.run
    record = replace(record, run=dict(run))
    RECORD.put(record)
    if not is_first and record.facts is not None:
        write(settled=False)  # a long run is not waited for: nothing that was typed may be lost


def know(room: str, of_text: Collection[str] = (), many: Collection[str] = ()) -> None:
    """Told by a room at the start: which of its options mean nothing on another text, and which older links say once for each value."""
    _of_text[room] = frozenset(of_text)
    _many.update(many)


def on_run(facts: Facts, going: bool = False) -> Chosen:
    """The record, brought to a run that is drawn now. After one that was given up while it was `going`, it is what it was before."""
    record = now()
    if record.facts is None:
        record = replace(record, facts=facts)
    elif record.going and (was := record.before) is not None and was.facts is not None and was.facts.key == facts.key:
        record = replace(was, room=record.room, run=record.run, links=record.links, lent=record.lent)
    elif record.facts.key != facts.key:
        record = carried(record, facts)
    elif record.going and not going:
        record = chosen_again(record)
    record = replace(record, going=going)
    RECORD.put(record)
    return record


def carried(record: Chosen, facts: Facts) -> Chosen:
    """What was chosen on one run, on another: the same head, the same word; nothing that a rule chose, and of another model no place."""
    was = record.facts
    if was is None or was.key == facts.key:
        return replace(record, facts=facts)
    same = was.spec.id.partition("@")[0] == facts.spec.id.partition("@")[0]
    kept = {n: t for n, t in record.place.items() if same and n not in record.by_rule}
    place = on_labels(kept, was, facts)
    options = {
        room: {n: t for n, t in said.items() if n not in record.by_rule | _of_text.get(room, frozenset())}
        for room, said in record.options.items()
    }
    return replace(record, place=place, options=options, facts=facts, before=replace(record, before=None))


def chosen_again(record: Chosen) -> Chosen:
    """The record of a run that has ended: a rule chooses the place with all of its numbers, which it did not have before.

    No link: what the visitor changes next is to count, and what they have changed by hand is not in `by_rule`.
    """
    if not (ruled := record.by_rule & record.place.keys()):
        return record
    place = {n: t for n, t in record.place.items() if n not in ruled}
    return replace(record, place=place, by_rule=record.by_rule - ruled)


def on_labels(place: Values, was: Facts, now: Facts) -> dict[str, str]:
    """A place of one text on another: words that are there stay, counted from the front or from the end; others are left out."""
    found = {n: t for n, t in place.items() if n not in ("query", "key", "hide")}
    sites = {site.id: site for site in was.sites}
    site = sites.get(place.get("site", ""), was.sites[0])  # pyright: ignore[reportArgumentType, reportCallIssue]
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


def reported(
    record: Chosen, room: str, said: Values, of: object, shared: Collection[str], shown: Values
) -> tuple[Chosen, bool]:
    """The record with what the browser says was chosen: what differs from what was `shown` was chosen by a person.

    `of` is the run that it was chosen on. Of the run before, it counts as if it had been known in time; the browser, which shows the
    new one by now, is then to take it: True.
    """
    was, facts = record.before, record.facts
    late = was is not None and was.facts is not None and facts is not None and of == was.facts.key != facts.key
    if not late or was is None or facts is None:
        if of and facts is not None and of != facts.key:
            return record, False  # of a picture that is long gone
        hand = _by_hand(said, shown)
        return replace(record.with_values(room, said, shared), by_rule=record.by_rule - hand), False
    known = was.values(room, shared)
    hand = _by_hand(said, known)
    then = replace(was.with_values(room, said, shared), by_rule=was.by_rule - hand)
    moved = carried(then, facts)
    place = {n: t for n, t in moved.place.items() if n in hand}
    own = {n: t for n, t in moved.options.get(room, {}).items() if n in hand}
    options = {**record.options, room: {**record.options.get(room, {}), **own}}
    return replace(record, place={**record.place, **place}, options=options, by_rule=record.by_rule - hand), True


def _by_hand(said: Values, shown: Values) -> frozenset[str]:
    """The names that a person chose: those that are not as they were shown."""
    hand = frozenset(n for n, t in said.items() if shown.get(n) != t)
    return hand | HEAD if hand & HEAD else hand


def drawn(
    room: str,
    values: Values,
    shared: Collection[str],
    asked: Values,
    ruled: Collection[str],
    silent: Collection[str],
) -> None:
    """A room shows these values: they are what is chosen now. `asked` were chosen, and of the others a rule chose those in `ruled`."""
    record = now()
    by_rule = {n for n in ruled if n in values and (n not in asked or n in record.by_rule)}
    still = record.silent - values.keys()
    record = record.with_values(room, values, shared)
    RECORD.put(replace(record, by_rule=(record.by_rule - values.keys()) | by_rule, silent=still | set(silent), at=room))
    DRAWN.put({**(DRAWN.get() or {}), **values})
    USED.put(True)


def hidden(names: Collection[str]) -> None:
    """A room does not show these now: the address does not say them."""
    DRAWN.put({**(DRAWN.get() or {}), **dict.fromkeys(names)})


def choose(room: str, name: str, text: str) -> None:
    """Choose an option of a room from the script; for a callback."""
    record = now()
    RECORD.put(replace(record, options={**record.options, room: {**record.options.get(room, {}), name: text}}))


def write(names: Collection[str] = (), settled: bool = True) -> None:
    """Let the address say all that is on the screen, at once: each change is a step that Back takes.

    `names` are of other rooms' parameters, which the address says no longer. Not `settled`: a run is still to come, and what a rule
    chose on the one before is not said of it.
    """
    record, address = now(), st.query_params
    wanted, owned = {PARAM: record.room}, {PARAM, *names}
    if USED.get():
        shown = (DRAWN.get() or {}) if settled else record.values(record.at, SHARED)
        spoken = {n: t for n, t in shown.items() if t is not None and (t != "" or n not in record.silent)}
        said = {n: t for n, t in spoken.items() if settled or n not in record.by_rule}
        ruled = ",".join(sorted(record.by_rule & said.keys()))
        wanted |= {**record.run, **said, **({RULE: ruled} if ruled else {})}
        owned |= {*OF_THE_RUN, RULE, *shown}
    # A name that was taken out stays as one without a text, which Streamlit says as "".
    there = {n: address.get_all(n) for n in owned | wanted.keys()}
    changed: dict[str, str | list[str]] = {n: [] for n in owned if there[n] and n not in wanted}
    changed |= {n: t for n, t in wanted.items() if there[n] != [t]}
    if changed:
        address.update(changed)
