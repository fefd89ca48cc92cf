"""The list of models that other programs of this machine have, over the page: names, sizes, what opens, and what it takes."""

from __future__ import annotations

import hashlib

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.kit import numbers
from app.session import found, models
from app.session.found import Room
from app.session.session_state import Key
from app.shell import request, words
from core.checkpoints.local_models import Found

ROWS = 20  # that are added at a time: each is looked into before it says whether it opens
SHOWN: Key[int] = Key("already_here_rows")
FIND = "already_here_find"


def show() -> None:
    """The list, where the visitor has asked for it: in every run of the script, for one without it would close it."""
    if request.LISTING.get() and found.offered():
        st.dialog(words.HERE, width="large", on_dismiss=_closed)(_dialog)()


def _closed() -> None:
    request.LISTING.take()
    SHOWN.take()


def _dialog() -> None:
    all_of_them = found.named()
    if not all_of_them:
        st.text(words.HERE_NONE.format(folders="\n".join(found.places())))
        return
    st.caption(words.HERE_SAYS)
    wanted = ""
    if len(all_of_them) > ROWS:
        wanted = st.text_input(words.HERE_FIND, key=FIND, placeholder=words.HERE_FIND).strip().lower()
    those = [each for each in all_of_them if wanted in f"{each.name} {each.program}".lower()]
    n = max(ROWS, SHOWN.get() or 0)
    st.text(words.HERE_COUNT.format(shown=min(n, len(those)), n=len(those)))
    with st.container(key="already_here", gap="small"):
        rows = [(each, *_row(each)) for each in those[:n]]
    if len(those) > n:
        st.button(words.HERE_MORE.format(n=min(ROWS, len(those) - n)), key="already_here_more", on_click=_more)
    room = found.room()
    for each, line, button in rows:  # after all names are there: to look into a large model takes a moment
        if _looked_into(found.looked_into(each), room, line, button):
            st.rerun()


def _more() -> None:
    SHOWN.put(max(ROWS, SHOWN.get() or 0) + ROWS)


def _row(each: Found) -> tuple[DeltaGenerator, DeltaGenerator]:
    """The name of a model, and the places for what there is to say of it and for what opens it."""
    row = st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"here_{_key(each)}")
    said = row.container(gap=None, width="stretch")
    said.text(each.name)  # never markdown: a name comes from a file
    line = said.container(key=f"here_says_{_key(each)}").empty()
    line.text(words.HERE_LOOKED.format(where=_where(each)))
    return line, row.empty()


def _looked_into(each: Found, room: Room, line: DeltaGenerator, button: DeltaGenerator) -> bool:
    """What opening a model takes, with the button; or why it does not open. Returns whether it was chosen just now."""
    needed = room.needed(each)
    said = words.HERE_TAKES.format(where=_where(each), needed=numbers.size(needed), free=numbers.size(room.free))
    why_not = each.why_not or (each.no_text and words.HERE_NO_TEXT.format(why=each.no_text))
    if not why_not and needed > room.free:
        why_not = words.HERE_TOO_LARGE.format(needed=numbers.size(needed), free=numbers.size(room.free))
    line.text(f"{_where(each)} · {why_not}" if why_not else said)
    if why_not:
        return False
    return button.button(
        words.HERE_OPEN, key=f"open_{_key(each)}", help=each.name, on_click=_open, args=(each,), width="content"
    )


def _where(each: Found) -> str:
    return (
        words.HERE_WHERE.format(program=each.program, size=numbers.size(each.n_bytes)) if each.n_bytes else each.program
    )


def _key(each: Found) -> str:
    return hashlib.sha256(f"{each.program} {each.name} {each.path}".encode()).hexdigest()[:16]


def _open(each: Found) -> None:
    """For a callback: the model is one of the list from now on, and it is chosen."""
    _closed()
    request.choose_model(models.open_found(each))
