"""Shapes: the pass of the run on the screen, or of any model, tensor by tensor, with nothing allocated."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import languages
from app.kit import cover, stage, widgets
from app.kit.room import Run
from app.rooms.shapes import message, words
from app.rooms.shapes.choices import (
    BATCH,
    CHOICES,
    DROPPED,
    FIELDS,
    GATED,
    LECTURES,
    LENGTH,
    OF,
    PANEL,
    PASTED,
    RUN,
    SIZES,
    TARGET,
    TYPED,
    TYPED_CHOICES,
    TYPED_FIELDS,
    TYPED_ONES,
    WAYS,
    WINDOW,
    start_of,
    typed,
)
from app.rooms.shapes.component import STAGE
from app.session import answer as session_answer
from app.session import boxes, notices
from app.shell import run as shell_run
from app.shell import waiting
from app.sizes import pasted
from app.transport.limits import BOUNDS
from core.errors import HeadlightError
from core.model.config import ModelConfig
from core.plan import PRESETS

# KV heads follow heads while they are equal, and d_ff follows d_model while it is 4 · d_model.
FOLLOWED = {
    "heads": widgets.lead(FIELDS["heads"], (FIELDS["kv"], 1)),
    "width": widgets.lead(FIELDS["width"], (FIELDS["ff"], 4)),
}


def show() -> None:
    """Draw the view."""
    notes: list[str] = []
    of_link = _fill()
    row = st.container(horizontal=True, gap="small", key="shapes_request")
    left, right = row.container(width="stretch"), row.container(width=210)
    of = widgets.select(
        right, OF, words.OF, list(CHOICES), CHOICES.__getitem__, label_visibility="collapsed", on_change=_chosen
    )
    working = st.empty()  # has its place whether something is waited for or not, so that nothing below changes its own
    data, stopped = None, False
    try:
        if of == RUN:
            with left:
                asked, _ = shell_run.ask()
            answer = shell_run.answered(asked.request, working)
            working.empty()
            stopped = answer.stopped
            data = _run(answer, notes)
        else:
            line = left.container(horizontal=True, gap="medium", key="shapes_lengths", vertical_alignment="center")
            config, title = _config(of, line, notes)
            batch, source_len, target_len = _lengths(of, _is_pair(config), line)
            opened, key = widgets.opens(DROPPED), boxes.key(DROPPED.name)
            drops = widgets.holds(DROPPED, line.toggle(words.DROPOUT, opened, key=key, help=words.DROPOUT_HELP))
            if config is not None:
                data = message.of_model(config, title, batch, source_len, target_len, drops)
    except HeadlightError as refusal:
        notes.append(languages.said(refusal))
    sentences = st.container(key="sentences", gap=None)
    if data is None and (data := st.session_state.get("shapes_last")) is not None:
        notes.append(words.LAST_DIAGRAM)
    followed = None if data is None else stage.follow(STAGE, None)
    of_link = [*of_link, *(message.unknown(data, followed.values) if data is not None and followed is not None else [])]
    for note in [*notices.take(), *PANEL.keep(_said(of), of_link, followed.values if followed else {}), *notes]:
        sentences.text(note)  # never markdown: it may quote what the visitor typed
    if stopped:
        waiting.run_again(sentences)
    if data is None or followed is None:
        if of == RUN:
            sentences.text(words.NOTHING_YET)
        return
    st.session_state["shapes_last"] = data
    with cover.over("shape", "shape"):
        stage.draw(STAGE, followed, data | {"link": {"view": "shapes", **data.get("link", {}), **_said(of)}})


def _fill() -> list[str]:
    """Where a link decides, fill the boxes; what is typed or pasted is kept where it is not on the screen and the link says nothing of it."""
    notes = PANEL.fill(None, [OF.name])
    of, asked = boxes.held(OF.name), PANEL.asked()
    notes += PANEL.fill(of, [control.name for control in SIZES]) + pasted.fill(PANEL, of == PASTED)
    return notes + PANEL.fill(
        None,
        [c.name for c in TYPED_ONES if of == TYPED or c.name in asked or not boxes.is_filled(c.name)],
    )


def _said(of: str) -> dict[str, str]:
    """What a link says of the boxes: of those that are typed or pasted, where they are what is shown."""
    names = [OF.name]
    if of != RUN:
        names += [control.name for control in SIZES]
    if of == TYPED:
        names += [control.name for control in TYPED_ONES]
    return PANEL.said([*names, pasted.CONFIG.name] if of == PASTED else names)


def _chosen() -> None:
    """Another model was chosen: its diagram opens as large as its lecture has it."""
    of = boxes.held(OF.name)
    for control, value in zip((BATCH, LENGTH, DROPPED), (*start_of(of), of in LECTURES), strict=True):
        boxes.fill(control.name, value)


def _run(answer: session_answer.Answer, notes: list[str]) -> dict[str, Any] | None:
    """The diagram of the run on the screen, with where its values are."""
    if answer.sentence:
        notes.insert(0, answer.sentence)
    if answer.facts is None or answer.request is None:
        return None
    return message.of_run(Run(answer.request, answer.facts))


def _is_pair(config: ModelConfig | None) -> bool:
    """Whether the model has both stacks. For a refused config, the boxes decide."""
    if config is not None:
        return config.kind == "encoder-decoder"
    return all(boxes.held(FIELDS[name].name) for name in ("encoder", "decoder"))


def _lengths(of: str, pair: bool, place: DeltaGenerator) -> tuple[int, int, int]:
    """Batch, source and target length, from boxes with names of their own in the URL."""
    batch, length = start_of(of)
    asked = [
        (BATCH, words.BATCH, batch),
        (LENGTH, words.SOURCE if pair else words.LENGTH, length),
    ]
    if pair:
        asked.append((TARGET, words.TARGET, 128))
    found = []
    for control, label, start in asked:
        box = place.container(horizontal=True, gap="xsmall", width="content", vertical_alignment="center")
        box.caption(label, width="content")
        more = {"label_visibility": "collapsed", "width": 125}
        found.append(widgets.number(box, control, label, BOUNDS[control.name], start, **more))
    return found[0], found[1], found[2] if pair else 0


def _config(of: str, place: DeltaGenerator, notes: list[str]) -> tuple[ModelConfig | None, str]:
    """The config that was chosen, typed or pasted; None, with a sentence in the panel as well, for sizes that no model can have."""
    if of in PRESETS:
        return PRESETS[of].config, PRESETS[of].title
    with place.popover(words.FIELDS):
        if of != TYPED:
            return pasted.box(notes), words.OF_PASTED
        try:
            return _typed(), words.OF_TYPED
        except HeadlightError as refusal:
            notes.append(languages.said(refusal))
            st.text(notes[-1])
            return None, words.OF_TYPED


def _typed() -> ModelConfig:
    found: dict[str, int] = {}
    columns = st.columns(2)
    for i, (name, (_, start)) in enumerate(TYPED_FIELDS.items()):
        bounds = BOUNDS[f"typed_{name}"]
        more = {"on_change": FOLLOWED[name]} if name in FOLLOWED else {}
        found[name] = widgets.number(columns[i % 2], FIELDS[name], words.FIELD_NAMES[name], bounds, start, **more)
    said = {}
    for i, (name, (label, titles, _)) in enumerate(TYPED_CHOICES.items()):
        more = words.NORM_ORDER_HELP if name == "norm" else None
        said[name] = widgets.select(columns[i % 2], WAYS[name], label, list(titles), titles.__getitem__, help=more)
    bounds, more = BOUNDS[WINDOW.name], {"help": words.WINDOW_HELP}
    window = widgets.number(columns[0], WINDOW, words.WINDOW, bounds, 0, **more)
    opened, key = widgets.opens(GATED), boxes.key(GATED.name)
    gated = widgets.holds(GATED, columns[1].checkbox(words.GATED, opened, key=key))
    return typed(found, said, window, gated)
