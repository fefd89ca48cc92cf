"""The script that runs for every visitor, on every change: page, bar, the chosen room."""

import streamlit as st

from app.kit import stage
from app.session import answer, models
from app.shell import bar, registry, style, words
from app.shell.streamlit_edge import collection

collection.ran()
ROOMS = registry.rooms()

st.set_page_config(page_title=words.TITLE, layout="wide", initial_sidebar_state="collapsed")
st.html(style.PAGE_STYLE)
bar.spell_out({"model": models.TITLES, **registry.titles()})
shown = bar.bar([bar.Entry(room.id, room.title, room.group, room.line) for room in ROOMS], registry.redirects())
stage.entered(shown, {room.id: [param.name for param in room.params] for room in ROOMS})
with answer.room():
    next(room.show for room in ROOMS if room.id == shown)()
