"""The top line: the name of the product and the rooms there are, as links in groups; and what a link may say for a title."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from app import languages
from app.classroom import component as classroom
from app.kit import held, numbers, scripts, stage, theme
from app.session import chosen, notices, room
from app.session.session_state import Key
from app.shell import words
from app.streamlit_edge import history
from app.transport import modules

HERE = Path(__file__).with_name("browser")
GROUPS = ("look", "try", "count", "learn")  # from left to right
scripts.add()
modules.add("shell/browser", HERE)
SETTINGS = {"theme": ("auto", "light", "dark"), "projector": ("true", "false")}  # of the page, which the browser keeps
LOOKED: Key[int] = Key("bar_looked")  # in the session: chosen.arrivals() when the settings of a link were looked at
KEYS = "1234567890"  # of the rooms in their order; those of the last group have their first letter


class Entry(NamedTuple):
    """A room as the bar names it."""

    id: str
    title: str
    group: str  # of GROUPS
    line: str  # what one can do there
    steps: int = 0  # the bar counts those that were looked at


def bar(entries: Sequence[Entry], redirects: Mapping[str, str]) -> str:
    """Draw the top line. Returns the id of the chosen room; `redirects` are {what old links say: id}."""
    rooms = [entry.id for entry in entries]
    said = st.query_params.get(room.PARAM)
    if LOOKED.get() != chosen.arrivals():
        _refuse_settings()
        LOOKED.put(chosen.arrivals())
    shown, unknown = room.follow(rooms, redirects)
    if unknown:
        known = ", ".join(languages.translated(entry.title) for entry in entries)
        first = languages.translated(entries[0].title)
        notices.add(words.UNKNOWN_VIEW.format(asked=numbers.quoted(unknown), shown=first, known=known))
    _component(tuple(entries))(
        key=room.BAR,
        data={
            "room": shown,
            "said": said,
            "holders": [one for one in rooms if held.holds(one)],
            "classroom": f"headlight/m/{modules.address(classroom.TEACH)}",
            "entries": {one: f"headlight/m/{modules.address(entry)}" for one, entry in stage.ENTRIES.items()},
        },
        on_chosen_change=lambda: None,
    )
    return shown


def _refuse_settings() -> None:
    """A sentence for what a link asks of the page and no page can be. The browser leaves it out of the address."""
    for name, known in SETTINGS.items():
        for asked in st.query_params.get_all(name):
            if asked not in known:
                said = words.UNKNOWN_SETTING.format(what=name, asked=numbers.quoted(asked), allowed=", ".join(known))
                notices.add(said)


@cache
def _component(entries: tuple[Entry, ...]) -> Any:
    return modules.component("bar", "shell/browser/bar.js", html=lambda: markup(entries), css=_style)


def _style() -> str:
    palettes = (("light", theme.LIGHT), ("dark", theme.DARK))
    colours = "".join(
        f"--{tone}-{name}: {palette[tone]}; "
        for name, palette in palettes
        for tone in ("mute", "line", "panel", "query")
    )
    return f":host {{ {colours}}}\n" + (HERE / "bar.css").read_text(encoding="utf-8")


def markup(entries: Sequence[Entry]) -> str:
    """The rooms as links, once in a row and once for the sheet of a phone, in the language that is spoken. They lead to their rooms
    without any script.
    """
    pressed_by = keys(entries)  # of their English titles: the keys are the same in every language
    entries = [
        entry._replace(title=languages.translated(entry.title), line=languages.translated(entry.line))
        for entry in entries
    ]
    said = {"look": words.LOOK, "try": words.TRY, "count": words.COUNT, "learn": words.LEARN}
    groups = {name: [entry for entry in entries if entry.group == name] for name in GROUPS}
    groups = {name: members for name, members in groups.items() if members}

    def link(entry: Entry, line: str = "") -> str:
        key = pressed_by.get(entry.id)
        pressed = f' data-key="{key}" aria-keyshortcuts="{key.upper()}"' if key else ""
        text = f"<b>{escape(entry.title)}</b>" + (f" <small>{escape(line)}</small>" if line else "")
        if entry.steps:
            text += f' <span class="steps" data-of="{entry.steps}" data-said="{words.STEPS_DONE}"></span>'
        return f'<li><a href="?view={entry.id}" data-room="{entry.id}"{pressed}>{text}</a></li>'

    row = "".join(
        f'<div class="group {name}{" many" * (len(members) > 1)}" data-name="{said[name]}">'
        f'<button type="button" class="opener" aria-expanded="false">'
        f'<span class="unseen">{said[name]}: </span><span class="name">{said[name]}</span></button>'
        f'<ul aria-label="{said[name]}">{"".join(link(one, one.line) for one in members)}</ul></div>'
        for name, members in groups.items()
    )
    sheet = "".join(
        f'<h2>{said[name]}</h2><ul class="{name}" aria-label="{said[name]}">{"".join(map(link, members))}</ul>'
        for name, members in groups.items()
    )
    pick = (
        '<button type="button" class="pick" aria-haspopup="dialog" aria-expanded="false">'
        f'<span class="unseen">{words.VIEW}: </span><span class="name"></span></button>'
    )
    return (
        f'<div class="bar"><h1>{words.TITLE}</h1><nav aria-label="{words.VIEWS}">{pick}{row}</nav>{_languages()}'
        f'<dialog aria-label="{words.VIEWS}">{sheet}{_languages()}</dialog></div>'
    )


def _languages() -> str:
    """The languages to choose from, each by its own name; where there is room for two letters, it shows these."""
    spoken = languages.current()
    options = "".join(
        f'<option value="{code}" lang="{code}"{" selected" * (code == spoken)}>{escape(name)}</option>'
        for code, name in languages.names().items()
    )
    code = spoken.partition("-")[0].upper()
    return (
        f'<label class="language"><span aria-hidden="true">{code}</span>'
        f'<select aria-label="{words.LANGUAGE}" title="{words.LANGUAGE}">{options}</select></label>'
    )


def keys(entries: Sequence[Entry]) -> dict[str, str]:
    """{room: the key that chooses it}; none for what comes after the tenth."""
    ordered = [entry for name in GROUPS for entry in entries if entry.group == name]
    numbered = [entry.id for entry in ordered if entry.group != "learn"]
    lettered = {entry.id: entry.title[0].lower() for entry in ordered if entry.group == "learn"}
    return dict(zip(numbered, KEYS, strict=False)) | lettered


def spell_out(old_states: Mapping[str, Mapping[str, str]]) -> None:
    """On the first run of a visit, before any room: let the address say what an old link means.

    `old_states` are {what an old link says of a room: {parameter: text}}.
    """
    if room.shown():
        return
    meant = old_states.get(st.query_params.get(room.PARAM, ""), {})
    changed = {name: text for name, text in meant.items() if name not in st.query_params}
    if changed:
        history.write(changed)
