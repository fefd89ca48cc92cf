"""Controls that Streamlit draws, in step with the address: it fills their boxes, and says what they say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app import languages
from app.kit import numbers, params, words
from app.kit.params import Param
from app.session import boxes, chosen
from app.streamlit_edge import history
from app.transport import limits

Default = str | Callable[[Any], str]


@dataclass(frozen=True)
class Control:
    """A parameter that a widget asks for: what the widget holds for a text that the parameter has read, and the text of that."""

    param: Param
    value: Callable[[str], Any]
    text: Callable[[Any], str] = str

    @property
    def name(self) -> str:
        return self.param.name


def choice(
    name: str, said: Mapping[str, str], title: str = "", default: Default = "", also: Mapping[str, str] | None = None
) -> Control:
    """One of some ids, the first by default; `said` is {id: its text in a link}, and `also` {another text: the one that it stands for}.

    A link may give an id as well.
    """
    known = {**said, **(also or {}), **{text: text for text in said.values()}}
    ids = {text: one for one, text in said.items()}
    first = default or next(iter(said.values()))
    param = Param(name, first, lambda text, _: known[text], ", ".join(said.values()), title)
    return Control(param, ids.__getitem__, said.__getitem__)


def whole(name: str, bounds: tuple[int, int], default: Default, title: str = "") -> Control:
    """A whole number within bounds, both included."""

    def read(text: str, _: Any) -> str:
        return str(limits.whole(text, *bounds))

    def allowed(_: Any) -> str:
        low, high = (numbers.whole(bound) for bound in bounds)
        return words.BETWEEN.format(low=low, high=high)

    return Control(Param(name, default, read, allowed, title), int)


def switch(name: str, default: Default = "false", title: str = "") -> Control:
    """On or off: "true" or "false"."""
    said = {"false": "false", "true": "true"}
    found = choice(name, said, title, default)
    return Control(found.param, "true".__eq__, lambda is_on: "true" if is_on else "false")


@dataclass(frozen=True)
class Panel:
    """The controls of a room, or of rooms that share them."""

    id: str  # in the session
    controls: tuple[Control, ...]

    @property
    def params(self) -> tuple[Param, ...]:
        return tuple(control.param for control in self.controls)

    def asked(self) -> dict[str, str]:
        """Their values in the address."""
        said = chosen.address()
        return {one.name: said[one.name] for one in self.controls if one.name in said}

    @property
    def is_link(self) -> bool:
        """Whether a link decides what the boxes hold, or nothing has filled them yet."""
        return st.session_state.get(f"{self.id}_arrivals") != chosen.arrivals()

    def fill(self, shown: Any, names: Collection[str] | None = None) -> list[str]:
        """Where a link decides, have the boxes hold what it asks for; a sentence for each thing that it asks for in vain.

        `names` are those of the controls that are meant, else all; `shown` is what their parameters are of.
        """
        meant = [one for one in self.controls if names is None or one.name in names]
        asked, is_link = self.asked(), self.is_link
        if not is_link and all(boxes.is_filled(one.name) for one in meant):
            return []
        values, notes = params.read([one.param for one in meant], shown, asked)
        for one in meant:
            if is_link or not boxes.is_filled(one.name):
                boxes.fill(one.name, one.value(values[one.name]))
        return notes if is_link else []

    def said(self, names: Collection[str] | None = None) -> dict[str, str]:
        """What the boxes of these names say, or of all that were filled: the widgets are drawn."""
        return {
            one.name: one.text(boxes.held(one.name))
            for one in self.controls
            if boxes.is_filled(one.name) and (names is None or one.name in names)
        }

    def keep(self, said: Mapping[str, str], notes: Sequence[str], beside: Mapping[str, str] | None = None) -> list[str]:
        """Have the address say what they do; the sentences about the link that are still to be read: until a person chooses.

        `beside` is what else can be chosen.
        """
        session, key = st.session_state, f"{self.id}_notes"
        shown, before = session.get(key, ([], {}))
        if self.is_link:
            shown = list(notes)
        elif before != {**said, **(beside or {})}:
            shown = []
        session[key] = (shown, {**said, **(beside or {})})
        session[f"{self.id}_arrivals"] = chosen.arrivals()
        self._write({one.name: said[one.name] for one in self.controls if one.name in said})
        return shown

    def leave(self) -> None:
        """None of the controls is on the screen: the address says nothing of them."""
        self._write({})

    def _write(self, said: Mapping[str, str]) -> None:
        """Values that are empty by default and in every room are left out."""
        silent = {one.name for one in self.controls if one.param.default == ""}
        spoken = {name: text for name, text in said.items() if text or name not in silent}
        history.write({one.name: spoken.get(one.name) for one in self.controls})


def opens(control: Control) -> Any:
    """The value that the box of a control opens with. One that comes back to the screen holds what it held."""
    boxes.fill(control.name, boxes.held(control.name))
    return boxes.opened(control.name)


def holds(control: Control, value: Any) -> Any:
    """The value, which the box on the screen now holds."""
    boxes.keep(control.name, value)
    return value


def select(
    place: Any, control: Control, label: str, options: Sequence[str], title: Callable[[str], str] = str, **more: Any
) -> str:
    """A select box with these ids. One that it holds and that is not among them gives way to the first."""
    index, key = options.index(_among(control, options)), boxes.key(control.name)
    label, titled, more = _said(label, title, more)
    return holds(control, place.selectbox(label, options, index=index, format_func=titled, key=key, **more))


def row(
    place: Any, control: Control, label: str, options: Sequence[str], title: Callable[[str], str] = str, **more: Any
) -> str:
    """The same as buttons in a row, whose label is for a screen reader alone."""
    opened, key = _among(control, options), boxes.key(control.name)
    more |= {"required": True, "label_visibility": "collapsed"}
    label, titled, more = _said(label, title, more)
    value = place.segmented_control(label, options, format_func=titled, default=opened, key=key, **more)
    return holds(control, value)


def _among(control: Control, options: Sequence[str]) -> str:
    if boxes.held(control.name) not in options:
        boxes.fill(control.name, options[0])
    return opened if (opened := opens(control)) in options else options[0]


def number(place: Any, control: Control, label: str, bounds: tuple[int, int], start: int, **more: Any) -> int:
    """A box for a whole number; `start` where it is emptied."""
    opened, key = opens(control), boxes.key(control.name)
    label, _, more = _said(label, str, more)
    value = place.number_input(label, *bounds, opened, key=key, **more)
    return holds(control, start if value is None else int(value))


def lead(control: Control, *followers: tuple[Control, int]) -> Callable[[], None]:
    """A callback for the box of a control. Each (follower, times) that equalled `times` the control keeps that ratio."""

    def changed() -> None:
        before, now = boxes.drawn(control.name), boxes.held(control.name)
        for follower, times in followers:
            if before is not None and now is not None and boxes.held(follower.name) == times * before:
                low, high = limits.BOUNDS[follower.name]
                boxes.fill(follower.name, max(low, min(times * int(now), high)))

    return changed


def _said(
    label: str, title: Callable[[str], str], more: dict[str, Any]
) -> tuple[str, Callable[[str], str], dict[str, Any]]:
    """A label, titles and a help text in the language of the visit: most were put together when their module was imported."""
    said = {"help": languages.translated(more["help"])} if more.get("help") else {}
    return languages.translated(label), lambda one: languages.translated(title(one)), more | said
