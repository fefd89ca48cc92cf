"""Generate: a text as a path through everything that it might have been."""

from __future__ import annotations

from functools import cache

import streamlit as st

from app.rooms.generate import message, words
from app.rooms.generate.component import STAGE
from app.session import boxes
from app.session.models import MODELS, TITLES
from app.shell import request as shell_request
from app.shell import run as shell_run
from core.checkpoints.from_config import read_config
from core.errors import CheckpointError

LANGUAGE = ("smollm2",)  # models that go on with any sentence, where they are offered here
WRITERS = ("storyteller", "translator")  # that write in their own words: with a text of their own
MOST_NAMED = 3  # models of the operator's own that are offered beside them


def show() -> None:
    """Draw the room."""
    with shell_run.on_screen() as shown:
        if shown is None:
            return
        if not shown.facts.writes:
            shown.say(words.CANNOT_WRITE.format(title=shown.facts.spec.title))
            _offer_writers()
            return
        shell_run.draw(shown, STAGE, message.message)
        shown.say(*message.left_out(shown.facts))


def _offer_writers() -> None:
    """Below the sentence that the model cannot write: one click to a model that can, which a language model does with this sentence."""
    row = st.container(horizontal=True, gap="small", key="generate_writers")
    for model in (*(name for name in LANGUAGE if name in MODELS), *_named()[:MOST_NAMED]):
        label = words.WRITE_ON.format(title=TITLES[model])
        row.button(label, key=f"generate_{model}", on_click=_take_with_text, args=(model,))
    for model in WRITERS:
        if model in MODELS:
            label = words.TAKE_WRITER.format(title=TITLES[model])
            row.button(label, key=f"generate_{model}", on_click=shell_request.choose_model, args=(model,))


@cache
def _named() -> tuple[str, ...]:
    """Models in folders of the operator's own that write the next word; their configuration alone is read."""
    found = []
    for name, spec in MODELS.items():
        if spec.source == "folder":
            try:
                config = read_config(spec.location)
            except CheckpointError:
                continue
            if config.writes and config.kind == "decoder":
                found.append(name)
    return tuple(found)


def _take_with_text(model: str) -> None:
    """Another model, and the sentence as it is; for a callback."""
    text = boxes.held("text")
    shell_request.choose_model(model)
    boxes.fill("text", text)
    boxes.fill("target", "")
