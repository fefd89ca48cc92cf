"""The script that runs for every visitor, on every change: page, bar, the chosen room."""

import streamlit as st

from app.kit import progress, stage
from app.session import answer, chosen, language, notices
from app.shell import all_models, already_here, bar, registry, style, words
from app.streamlit_edge import collection
from core.service.queue import Askers, asked_from_now_on

collection.ran()
asked_from_now_on(Askers(answer.accounts()))
chosen.begin()
notices.begin()
ROOMS = registry.rooms()
language.begin()

st.set_page_config(page_title=words.TITLE, layout="wide", initial_sidebar_state="collapsed")
st.html(style.page_style())
bar.spell_out(registry.old_states())
shown = bar.bar(
    [bar.Entry(room.id, room.title, room.group, room.line, progress.steps(room.id)) for room in ROOMS],
    registry.redirects(),
)
chosen.leave(registry.params_elsewhere(shown))
stage.entered(shown)
with answer.room():
    next(room.show for room in ROOMS if room.id == shown)()
already_here.show()
all_models.show()
notices.end()
