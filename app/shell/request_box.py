"""The request box: draws what request.py has read, and the lines beneath it."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import languages
from app.kit import edits as kit_edits
from app.kit import numbers
from app.session import answer as session_answer
from app.session import boxes, examples, found, room, screen
from app.session import models as session_models
from app.session.session_state import EDITS
from app.shell import request, words
from app.shell.request import Asked
from app.streamlit_edge import history
from core import checkpoints
from core.checkpoints import ModelSpec
from core.errors import CheckpointError
from core.run.request import Request
from core.write.generate import CONTINUATION


def draw(asked: Asked) -> DeltaGenerator:
    """Draw the boxes. Returns the place beneath them."""
    place = st.container(key="request", gap="xsmall")
    row = place.container(horizontal=True, gap="small", key="request_row")
    texts, chooser, menu = row.container(width="stretch"), row.container(width=230), row.container(width="content")
    _models(asked, chooser)
    menu.menu_button(
        words.EXAMPLES,
        [languages.translated(example.title) for example in examples.shown_for(asked.model)],
        key="examples",
        help=words.EXAMPLES_HELP,
        on_click=request.take_chosen,
    )
    line = _as_chat(place) if asked.chats else None
    _texts(asked, texts)
    spec = session_models.spec_of(asked.model)
    if spec.points:
        _steps(place, spec)
    request.filled()
    return (line or st).container(key="beneath", gap=None)


def _models(asked: Asked, place: DeltaGenerator) -> None:
    titles = asked.titles
    ids = [*((request.HERE,) if found.offered() else ()), request.ALL, *titles]
    model = place.selectbox(
        words.MODEL,
        ids,
        index=next((i for i, name in enumerate(ids) if name == boxes.opened("model")), 0),
        format_func=lambda name: titles[name] if name in titles else languages.translated(request.OPTIONS[name]),
        key=boxes.key("model"),
        label_visibility="collapsed",
        on_change=request.model_changed,
    )
    boxes.keep("model", model)


def _as_chat(place: DeltaGenerator) -> DeltaGenerator:
    """The choice whether a model with a chat template reads the text as a conversation. Returns its line."""
    row = place.container(horizontal=True, gap="medium", key="as_row", vertical_alignment="center")
    row.text(words.AS, help=words.AS_HELP, width="content")
    said = row.segmented_control(
        words.AS,
        list(words.AS_OPTIONS),
        default=screen.CHAT if boxes.opened(screen.AS) == screen.CHAT else "",
        format_func=words.AS_OPTIONS.__getitem__,
        key=boxes.key(screen.AS),
        label_visibility="collapsed",
        required=True,
    )
    boxes.keep(screen.AS, said or "")
    return row


def _texts(asked: Asked, place: DeltaGenerator) -> None:
    """The boxes of the sentence, and of the target or the answer where the model reads one."""
    columns = place.columns(2 if asked.two else 1, gap="small")
    numbers_alone = session_models.reads_numbers(session_models.spec_of(asked.model))
    kinds = [
        (
            "text",
            words.NUMBERS if numbers_alone else words.TEXT,
            words.NUMBERS_PLACEHOLDER if numbers_alone else words.TEXT_PLACEHOLDER,
        ),
        (
            "target",
            words.ANSWER if asked.request.chat else words.TARGET,
            words.ANSWER_PLACEHOLDER if asked.request.chat else words.TARGET_PLACEHOLDER,
        ),
    ]
    for column, (name, label, placeholder) in zip(columns, kinds, strict=False):
        if name == "target" and asked.config is None:
            continue  # no one knows yet whether the model reads one
        text = column.text_area(
            label,
            boxes.opened(name),
            key=boxes.key(name),
            placeholder=placeholder,
            label_visibility="collapsed",
            height="content",
        )
        boxes.keep(name, text)


def _steps(place: DeltaGenerator, spec: ModelSpec) -> None:
    """The steps of its training at which a model can be seen."""
    points = [int(point) for point, _ in spec.points]
    row = place.container(horizontal=True, gap="medium", key="training_row", vertical_alignment="center")
    row.text(words.STEP, help=words.STEP_HELP, width="content")
    step = row.select_slider(
        words.STEP,
        points,
        boxes.opened("step"),
        key=boxes.key("step"),
        label_visibility="collapsed",
        width=300,
    )
    boxes.keep("step", step)
    row.text(_learnt(spec, step, max(points)), width="stretch")


def _logged(spec: ModelSpec, step: int) -> str:
    """The losses that a Trainer wrote down for a step, in words; what is wrong with its file; "" where there is none."""
    try:
        found = checkpoints.trainer_losses(spec).get(step)
    except CheckpointError as error:
        return words.STEP_NO_LOSS.format(reason=error)
    if found is None or (found.training is None and found.evaluation is None):
        return ""
    if found.evaluation is None or found.training is None:
        word = words.STEP_LOSS if found.evaluation is None else words.STEP_EVALUATED
        return word.format(loss=_loss(found.training if found.training is not None else found.evaluation))
    return words.STEP_LOSSES.format(loss=_loss(found.training), evaluation=_loss(found.evaluation))


def _loss(loss: float | None) -> str:
    assert loss is not None
    return languages.decimal(f"{loss:.3f}") if abs(loss) >= 0.001 or not loss else numbers.scientific(loss)


def _learnt(spec: ModelSpec, step: int, last: int) -> str:
    """How far the training was at a step, in words, by the record that it left."""
    curve = checkpoints.curve(spec.id)
    columns = (curve.get(name, ()) for name in ("step", "loss", "accuracy"))
    rows = {int(at): (loss, accuracy) for at, loss, accuracy in zip(*columns, strict=False)}
    if step not in rows and spec.source == "folder":
        return words.STEP_SAYS.format(step=numbers.whole(step), last=numbers.whole(last)) + _logged(spec, step)
    if step not in rows:
        return (
            words.STEP_UNTRAINED
            if step == 0
            else words.STEP_SAYS.format(step=numbers.whole(step), last=numbers.whole(last))
        )
    loss, accuracy = rows[step]
    said = words.STEP_SAYS.format(step=numbers.whole(step), last=numbers.whole(last))
    return said + words.STEP_LEARNT.format(
        loss=languages.decimal(f"{loss:.3f}") if loss >= 0.001 else numbers.scientific(loss),
        share=numbers.share(accuracy, 1),
    )


def beneath(asked: Request, answer: session_answer.Answer) -> None:
    """One line about the model, what the visitor can have it write, what of its files takes no part in the numbers, and what of the
    text was read that is none."""
    spec = session_models.spec_of(screen.model_of(asked))
    run = answer.facts if answer.request is not None and answer.request.model_id == asked.model_id else None
    # The target is the model's own; of a classifier it is the text once more.
    own = run is not None and run.target is not None and asked.target_text is None and run.spec.classes is None
    if run is None and not spec.note and not asked.interventions:
        return
    edits = EDITS.get()
    # That a run is changed is said in the projector as well.
    row = st.container(horizontal=True, gap="medium", key="edited" if edits else "about", vertical_alignment="center")
    if edits:
        row.text(words.EDITED.format(edits=kit_edits.listed(edits)), width="stretch")
        row.button(words.UNEDIT, key="unedit", type="tertiary", on_click=request.take_edits, args=((),))
    elif spec.note:
        row.text(languages.said(spec.note), width="stretch")
    if own and run is not None and run.target is not None and run.target.text:
        row.text(
            words.TARGET_UNCHANGED if asked.interventions else words.TARGET_WRITTEN,
            help=words.TARGET_WRITTEN_HELP,
            width="content",
        )
        filled = (screen.model_of(asked), {"target": run.target.text})
        row.button(words.TARGET_EDIT, key="edit_target", type="tertiary", on_click=request.put, args=filled)
    elif run is not None and run.writes and run.spec.classes is None and not (own or asked.write or asked.chat):
        more = words.WRITE_ON_HELP.format(
            n=request.WRITTEN_AT_ONCE, k=CONTINUATION["top_k"], t=CONTINUATION["temperature"]
        )
        more += f" {words.WRITE_ON_EDITED}" if asked.interventions else ""
        row.button(words.WRITE_ON, key="write_on", type="tertiary", help=more, on_click=request.write_on, args=(asked,))
    if base := session_models.BASES.get(spec.id):
        help = words.COMPARE_BASE_HELP.format(title=spec.title, base=session_models.spec_of(base).title)
        row.button(
            words.COMPARE_BASE, key="compare_base", type="tertiary", help=help, on_click=_compare, args=(base, spec.id)
        )
    if run is not None and (run.spec.notices or run.notices):
        said = st.container(key="model_notices", gap="small")
        for notice in (*run.spec.notices, *run.notices):
            said.text(notice)  # never markdown: it names files, tensors and tokens


def _compare(base: str, model: str) -> None:
    """A model above, and another one beside it, in What if; for a callback."""
    request.choose_model(base)
    room.go("whatif")
    history.write({"other": model, "against": None, "edits": None, "pick": "off", "moved": None})
