"""The script that runs for every visitor, on every change: page, shared controls, the chosen view."""

import streamlit as st

from app import controls, memory_words, offered, planning, shape_words, theme, training_words, words
from app.views import compute, explore, memory, shapes, training

VIEWS = {
    words.EXPLORE: explore.show,
    shape_words.SHAPES: shapes.show,
    memory_words.MEMORY: memory.show,
    memory_words.COMPUTE: compute.show,
    training_words.TRAINING: training.show,
}

st.set_page_config(page_title=words.TITLE, layout="wide", initial_sidebar_state="collapsed")
st.html(theme.PAGE_STYLE)
controls.spell_out({"model": offered.TITLES, "of": shapes.CHOICES, "plan_model": planning.IDS})
view = controls.bar(list(VIEWS))
VIEWS[view]()
