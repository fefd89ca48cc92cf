"""The widgets that every view shares. Each has a key and lives in the URL, so that a link reproduces the screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import examples, state, tables, words
from app.offered import MODELS, TITLES
from core import checkpoints
from core.checkpoints import ModelSpec
from core.engine import GOING_ON, Request
from core.trace import Trace

WRITTEN_AT_ONCE = 20  # tokens


def bar(views: list[str]) -> str:
    """The top line: the name of the product and the views there are. Returns the chosen view."""
    if "view" not in st.session_state and (asked := st.query_params.get("view", views[0])) not in views:
        known = ", ".join(views)
        st.session_state["said"] = [words.UNKNOWN_VIEW.format(asked=tables.quoted(asked), shown=views[0], known=known)]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="bar"):
        st.title(words.TITLE, anchor=False, width="content")
        view = st.segmented_control(
            words.VIEW,
            views,
            default=views[0],
            required=True,
            key="view",
            bind="query-params",
            label_visibility="collapsed",
        )
    if st.query_params.get("view", views[0]) != view:
        # It was chosen in the same moment as something else, whose message came instead and knows the address before.
        st.query_params["view"] = view
    return view


def spell_out(titles: Mapping[str, Mapping[str, str]]) -> None:
    """On the first run of a visit, before any widget: let the link say the title of whatever it names by its id.

    `titles` are {parameter: {id: title}}. A bound widget knows titles alone, and would drop an id from the link.
    """
    if "view" in st.session_state:
        return
    asked = {name: known[st.query_params[name]] for name, known in titles.items() if st.query_params.get(name) in known}
    changed = {name: title for name, title in asked.items() if st.query_params[name] != title}
    if changed:
        st.query_params.update(changed)
        st.rerun()


def request() -> tuple[Request, list[str]]:
    """The sentence, the model, and the target of an encoder–decoder; and a sentence for whatever the link asked in vain."""
    notes = _model_of_the_link()
    place = st.container(key="request", gap="xsmall")
    row = place.container(horizontal=True, gap="small", key="request_row")
    boxes, chooser, shown = row.container(width="stretch"), row.container(width=230), row.container(width="content")
    model = chooser.selectbox(
        words.MODEL,
        list(TITLES),
        format_func=lambda name: TITLES[name],
        key="model",
        bind="query-params",
        label_visibility="collapsed",
        on_change=_model_changed,
    )
    spec = MODELS[model]
    shown.menu_button(
        words.EXAMPLES,
        [example.title for example in examples.shown_for(model)],
        key="examples",
        help=words.EXAMPLES_HELP,
        on_click=_take_chosen,
    )
    _fill(model)
    loaded = state.engine().ready(model)
    two = loaded is not None and loaded.config.kind == "encoder-decoder"
    columns = boxes.columns(2 if two else 1, gap="small")
    text = columns[0].text_area(
        words.TEXT,
        examples.first_text(spec),  # what a link leaves out
        key="text",
        bind="query-params",
        placeholder=words.TEXT_PLACEHOLDER,
        label_visibility="collapsed",
        height="content",
    )
    target = None
    if loaded is None:
        # Nobody knows yet whether it reads a target: what the link or the box before said waits until that is known.
        target = st.session_state.get("target") or st.query_params.get("target")
        if "target" in st.session_state:
            st.session_state["target"] = target
    for column in columns[1:]:
        target = column.text_area(
            words.TARGET,
            key="target",
            bind="query-params",
            placeholder=words.TARGET_PLACEHOLDER,
            label_visibility="collapsed",
            height="content",
        )
    model_id = _at_step(place, spec, notes) if spec.points else model
    asked = Request(model_id, (text or "",), target or None)
    return _with_what_to_write(asked), notes


def _fill(model: str) -> None:
    """What the model wrote, put into the boxes before they are drawn; not where another one was chosen meanwhile."""
    writer, texts = st.session_state.pop("filled", (model, {}))
    if writer == model:
        st.session_state.update(texts)


def _model_changed() -> None:
    """Another model gets a text that fits it, unless the visitor has typed one; what a model wrote is not typed."""
    spec, session = MODELS[st.session_state["model"]], st.session_state
    text = session.get("text") or ""
    typed = examples.was_typed(text, MODELS) and text != session.get("written")
    if not typed and not examples.fits(text, spec):
        session["text"] = examples.first_text(spec)
        if "target" in session:
            session["target"] = ""


def _at_step(place: DeltaGenerator, spec: ModelSpec, notes: list[str]) -> str:
    """The step of its training at which a visitor wants to see a model, as the id of that point."""
    points = {int(point): point for point, _ in spec.points}
    last = max(points)
    if "step" not in st.session_state and (asked := st.query_params.get("step", str(last))) not in map(str, points):
        known = ", ".join(f"{step:,}" for step in points)
        notes.append(words.UNKNOWN_STEP.format(asked=tables.quoted(asked), shown=f"{last:,}", known=known))
    if st.session_state.get("step", last) not in points:
        st.session_state["step"] = last
    row = place.container(horizontal=True, gap="medium", key="training_row", vertical_alignment="center")
    row.text(words.STEP, help=words.STEP_HELP, width="content")
    step = row.select_slider(
        words.STEP,
        list(points),
        last,
        key="step",
        bind="query-params",
        label_visibility="collapsed",
        width=300,
    )
    row.text(_learnt(spec, step, last), width="stretch")
    return spec.id if step == last else f"{spec.id}@{points[step]}"


def _learnt(spec: ModelSpec, step: int, last: int) -> str:
    """How far the training was at a step, in words, by the record that it left."""
    curve = checkpoints.curve(spec.id)
    columns = (curve.get(name, ()) for name in ("step", "loss", "accuracy"))
    rows = {int(at): (loss, accuracy) for at, loss, accuracy in zip(*columns, strict=False)}
    if step not in rows:
        return words.STEP_UNTRAINED if step == 0 else words.STEP_SAYS.format(step=f"{step:,}", last=f"{last:,}")
    loss, accuracy = rows[step]
    said = words.STEP_SAYS.format(step=f"{step:,}", last=f"{last:,}")
    return said + words.STEP_LEARNT.format(
        loss=f"{loss:.3f}" if loss >= 0.001 else f"{loss:.0e}", share=tables.share(accuracy, 1)
    )


def beneath(asked: Request, answer: state.Answer) -> None:
    """One line about the model, and what the visitor can have it write."""
    spec = MODELS[model_of(asked)]
    run = answer.trace if answer.request is not None and answer.request.model_id == asked.model_id else None
    model = None if run is None else run.loaded.model
    own = run is not None and run.target is not None and asked.target_text is None  # the target is the model's own
    if model is None and not spec.note:
        return
    row = st.container(horizontal=True, gap="medium", key="about", vertical_alignment="center")
    if spec.note:
        row.text(spec.note, width="stretch")
    if own and run is not None and run.target is not None and run.target.text:
        row.text(words.TARGET_WRITTEN, help=words.TARGET_WRITTEN_HELP, width="content")
        filled = (model_of(asked), {"target": run.target.text})
        row.button(words.TARGET_EDIT, key="edit_target", type="tertiary", on_click=_put, args=filled)
    elif model is not None and model.decoder is not None and model.head is not None and not (own or asked.write):
        more = words.WRITE_ON_HELP.format(n=WRITTEN_AT_ONCE, k=GOING_ON["top_k"], t=GOING_ON["temperature"])
        row.button(words.WRITE_ON, key="write_on", type="tertiary", help=more, on_click=_write_on, args=(asked,))


def was_written(asked: Request, run: Trace | None) -> None:
    """Put what the model wrote into its box and begin again with it. No run: it was refused, and will not be tried again."""
    st.session_state.pop("writing", None)
    if run is None:
        return
    if run.target is None:
        now, before, name = run.source.text, asked.texts[0], "text"
    else:
        now, before, name = run.target.text, asked.target_text, "target"
    if now == before:
        full = run.config.has_position_table and len(run.target or run.source) >= run.config.n_ctx
        st.session_state["said"] = [(words.NO_ROOM if full else words.NOTHING_WRITTEN).format(title=run.spec.title)]
    if name == "text":
        st.session_state["written"] = now
    st.session_state["written_over"] = (name, before, now)
    _put(model_of(asked), {name: now})
    st.rerun()


def _with_what_to_write(asked: Request) -> Request:
    """A request with what the visitor wants written behind it: behind this very text and model, not when they come back."""
    more = replace(asked, write=WRITTEN_AT_ONCE)
    if st.session_state.get("writing") == more:
        return more
    st.session_state.pop("writing", None)
    return asked


def _write_on(asked: Request) -> None:
    """Let the model go on with a text; for a callback."""
    st.session_state["writing"] = replace(asked, write=WRITTEN_AT_ONCE)
    name, before, now = st.session_state.get("written_over", ("text", None, None))
    goes_on = asked.texts[0] if name == "text" else asked.target_text
    if goes_on == now and (st.session_state.get(name) or "") == (before or ""):
        st.session_state[name] = now  # of a second click, that left before the browser had the text of the first


def _put(model: str, texts: dict[str, str]) -> None:
    """What a model wrote into the boxes, before they are drawn next."""
    st.session_state["filled"] = (model, texts)


def take(example: examples.Example) -> None:
    """Put one of the examples on the screen; for a callback, before any widget is drawn."""
    model = examples.owner_of(example)
    st.session_state["model"] = model
    st.session_state["text"] = example.text
    if example.target or "target" in st.session_state:
        st.session_state["target"] = example.target
    if MODELS[model].points:
        st.session_state["step"] = max(int(point) for point, _ in MODELS[model].points)
    st.session_state["explore_wish"] = example


def take_text(model: str) -> None:
    """Put a text into the box that this model was made for; for a callback."""
    st.session_state["text"] = examples.first_text(MODELS[model])


def take_model(model: str) -> None:
    """Choose a model from a view that does not show the choice; for a callback."""
    st.session_state["model"] = model
    _model_changed()
    # Of a box that was not on the screen, Streamlit does not tell the address what it holds.
    st.query_params["model"] = TITLES[model]
    st.query_params["text"] = st.session_state["text"]


def _take_chosen() -> None:
    chosen = st.session_state["examples"]
    for example in examples.shown_for(st.session_state["model"]):
        if example.title == chosen:
            take(example)


def model_of(request: Request) -> str:
    """The id of the model that a request is for, also where it asks for a point along its training."""
    return request.model_id if request.model_id in MODELS else request.model_id.partition("@")[0]


def link(request: Request) -> dict[str, str]:
    """What a link to this request says."""
    model = model_of(request)
    point = request.model_id[len(model) + 1 :]
    said = {"model": TITLES[model], "text": request.texts[0]}
    said |= {"target": request.target_text} if request.target_text else {}
    return said | ({"step": str(int(point))} if point else {})


def _model_of_the_link() -> list[str]:
    """A sentence when a link asks for a model that there is not, which Streamlit drops without a word."""
    if "model" in st.session_state or "model" not in st.query_params:
        return []
    asked = st.query_params["model"]
    if asked in TITLES.values():
        return []
    titles = ", ".join(TITLES.values())
    return [words.UNKNOWN_MODEL.format(name=tables.quoted(asked), title=TITLES[state.DEFAULT_MODEL], titles=titles)]
