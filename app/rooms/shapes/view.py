"""Shapes: the pass of the run on the screen, or of any model, tensor by tensor, with nothing allocated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from functools import lru_cache
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.attention import in_progress
from app.kit import cover, stage
from app.kit.numbers import quoted
from app.rooms.shapes import debugger, words
from app.rooms.shapes import export as shapes_export
from app.rooms.shapes.component import STAGE
from app.rooms.shapes.diagram import Diagram, Part, diagram
from app.session import answer as session_answer
from app.session import notices, screen
from app.session.links import newly_asked
from app.shell import request as shell_request
from app.shell import waiting
from app.sizes import export, pasted
from app.transport.limits import BOUNDS, is_whole
from core.errors import Refused
from core.model.config import ModelConfig
from core.plan import PRESETS, Workload
from core.plan.plan import check_positions
from core.plan.slips import Try
from core.service import Facts

RUN, TYPED, PASTED = "run", "typed", "pasted"
STARTS = {"": (1, 128), "lesson-encoder": (32, 50)}  # texts and tokens that a diagram opens with
LECTURES = ("lesson-encoder",)  # that are told of a model that learns: they open with dropout
CHOICES = {RUN: words.OF_RUN, TYPED: words.OF_TYPED, PASTED: words.OF_PASTED} | {
    name: preset.title for name, preset in PRESETS.items()
}
TYPED_FIELDS = {  # URL name -> the field of ModelConfig, and what it is by default
    "encoder": ("n_encoder_layers", 6),
    "decoder": ("n_decoder_layers", 0),
    "width": ("d_model", 512),
    "heads": ("n_heads", 8),
    "kv": ("n_kv_heads", 8),
    "ff": ("d_ff", 2048),
    "vocabulary": ("vocab_size", 32_000),
    "context": ("n_ctx", 2048),
}


def show() -> None:
    """Draw the view."""
    asked = st.query_params.to_dict()  # before a widget drops what it cannot be
    notes = _of_the_link()
    row = st.container(horizontal=True, gap="small", key="shapes_request")
    left, right = row.container(width="stretch"), row.container(width=210)
    of = right.selectbox(
        words.OF,
        list(CHOICES),
        format_func=CHOICES.__getitem__,
        key="of",
        bind="query-params",
        label_visibility="collapsed",
        on_change=_chosen,
    )
    if of != PASTED:
        pasted.leave()
    working = st.empty()  # has its place whether something is waited for or not, so that nothing below changes its own
    data, stopped = None, False
    try:
        if of == RUN:
            with left:
                request = shell_request.request()
            answer = session_answer.answer(request, in_progress.picture_of, waiting.SOON)
            if answer.waiting is not None:
                waiting.wait(answer.waiting, working)
                answer = session_answer.answer(request, in_progress.picture_of)
                working.empty()
            stopped = answer.stopped
            data = _run(answer, notes)
        else:
            line = left.container(horizontal=True, gap="medium", key="shapes_lengths", vertical_alignment="center")
            config, title = _config(of, line, notes)
            batch, source_len, target_len = _lengths(of, config, line)
            if config.position == "sinusoidal":  # such a table is computed, as long as it is wanted
                config = replace(config, n_ctx=max(config.n_ctx, source_len, target_len))
            drops = line.toggle(
                words.DROPOUT, of in LECTURES, key="dropped", bind="query-params", help=words.DROPOUT_HELP
            )
            data = _packed(
                config,
                title,
                Workload(batch=batch, source_len=source_len, target_len=target_len, dropout=bool(drops)),
            )
    except Refused as refusal:
        notes.append(str(refusal))
    sentences = st.container(key="sentences", gap=None)
    if data is None and (data := st.session_state.get("shapes_last")) is not None:
        notes.append(words.LAST_DIAGRAM)
    for note in [*notices.take(), *notes]:
        sentences.text(note)  # never markdown: it may quote what the visitor typed
    if stopped:
        waiting.run_again(sentences)
    if data is None:
        if of == RUN:
            sentences.text(words.NOTHING_YET)
        return
    for note in _unknown_choices(data, asked):
        sentences.text(note)
    st.session_state["shapes_last"] = data
    with cover.over("shape"):
        stage.draw(STAGE, stage.follow(STAGE, None), data)


def _chosen() -> None:
    """Another model was chosen: its diagram opens as large as its lecture has it."""
    of = st.session_state["of"]
    st.session_state["batch"], st.session_state["length"] = STARTS.get(of, STARTS[""])
    st.session_state["dropped"] = of in LECTURES


def _run(answer: session_answer.Answer, notes: list[str]) -> dict[str, Any] | None:
    """The diagram of the run on the screen, with where its values are."""
    if answer.sentence:
        notes.insert(0, answer.sentence)
    run = answer.facts
    if run is None or answer.request is None:
        return None
    target = 0 if run.target is None else len(run.target)
    of = Workload(batch=run.texts, source_len=len(run.source), target_len=target, dtype=run.dtype)
    packed = _packed(run.config, run.spec.title, of)
    link = screen.link(answer.request)
    return packed | {"run": answer.request.key, "link": dict(link), "tokens": _tokens(run)}


def _tokens(run: Facts) -> dict[str, list[str]]:
    return {"source": list(run.source.labels), "target": [] if run.target is None else list(run.target.labels)}


def _packed(config: ModelConfig, title: str, of: Workload) -> dict[str, Any]:
    """The message of the diagram of a model that is run on this, or trained where dropout is on."""
    check_positions(config, source_len=of.source_len, target_len=of.target_len)
    made = _diagram(config, of)
    about = f"{title} · {words.NORM_ORDERS[config.norm_order]} · {words.POSITION_NAMES[config.position]}"
    code = export.snippet(config, replace(of, dropout=False), "plan.parameters.total, plan.flops")
    caption = shapes_export.caption(about, config, of.batch, (of.source_len, of.target_len), date.today())
    return made | {
        "title": about,
        "heads": config.n_heads,
        "kv_heads": config.n_kv_heads,
        "caption": caption,
        "snippet": code,
    }


@lru_cache(maxsize=64)
def _diagram(config: ModelConfig, of: Workload) -> dict[str, Any]:
    found = diagram(config, of)
    plain = found.to_dict()
    for part, packed in zip(found.parts, plain["parts"], strict=True):
        for row in packed["rows"]:
            if (place := debugger.PLACES.get(row["kind"])) is not None:
                row["tries"] = [debugger.plain(one) for one in _tries(found, part, place, row)]
    plain["table"] = _table(found)
    return plain


def _tries(found: Diagram, part: Part, place: str, row: Mapping[str, Any]) -> tuple[Try, ...]:
    own = found.target_len if part.stack == "decoder" and found.target_len else found.source_len
    n_key = found.source_len if ".cross." in row["id"] else own
    return debugger.tries(found.config, place, batch=found.batch, n=own, n_key=n_key)


def _table(found: Diagram) -> list[list[Any]]:
    """Every traced step: part, times, what it is, its name, axes, shape, dtype, bytes, FLOPs, whether it is a view."""
    lines = []
    for part in found.parts:
        titles = {id(row.step): row.title for row in part.rows}
        lines += [
            [
                part.stack,
                1,
                row.title,
                "ids",
                "",
                list(row.step.axes),
                list(row.step.shape),
                row.step.dtype,
                row.step.bytes,
                0,
                False,
            ]
            for row in part.rows
            if row.kind == "tokens"  # what goes in is no step of the pass
        ]
        for step in part.steps:
            title = titles.get(id(step)) or words.STEPS.get(step.name.rsplit(".", 1)[1], "")
            name = step.name.replace(".blocks.0.", ".blocks.*.")
            axes, shape = list(step.axes), list(step.shape)
            lines.append(
                [
                    part.stack,
                    part.times,
                    title,
                    name,
                    step.op,
                    axes,
                    shape,
                    step.dtype,
                    step.bytes,
                    step.flops,
                    step.view,
                ]
            )
    return lines


def _lengths(of: str, config: ModelConfig, place: DeltaGenerator) -> tuple[int, int, int]:
    """Batch, source and target length, from boxes with names of their own in the URL."""
    pair = config.kind == "encoder-decoder"
    batch, length = STARTS.get(of, STARTS[""])
    names = [
        ("batch", words.BATCH, batch),
        ("length", words.SOURCE if pair else words.LENGTH, length),
    ]
    if pair:
        names.append(("target_length", words.TARGET, 128))
    found = {}
    for name, label, start in names:
        box = place.container(horizontal=True, gap="xsmall", width="content", vertical_alignment="center")
        box.caption(label, width="content")
        found[name] = int(
            box.number_input(
                label, *BOUNDS[name], start, key=name, bind="query-params", label_visibility="collapsed", width=125
            )
            or start
        )
    return found["batch"], found["length"], found.get("target_length", 0)


def _config(of: str, place: DeltaGenerator, notes: list[str]) -> tuple[ModelConfig, str]:
    """The config that was chosen, typed or pasted. Raises Refused."""
    if of in PRESETS:
        return PRESETS[of].config, PRESETS[of].title
    with place.popover(words.FIELDS):
        return (_typed(), words.OF_TYPED) if of == TYPED else (pasted.box("shapes", notes), words.OF_PASTED)


def _typed() -> ModelConfig:
    found: dict[str, Any] = {}
    columns = st.columns(2)
    for i, (name, (field, start)) in enumerate(TYPED_FIELDS.items()):
        box = columns[i % 2].number_input(
            words.FIELD_NAMES[name], *BOUNDS[f"typed_{name}"], start, key=f"typed_{name}", bind="query-params"
        )
        found[field] = int(start if box is None else box)
    orders = {name: words.NORM_ORDERS[name] for name in ("pre", "post")}
    order = _one_of(columns[0], "norm", words.NORM_ORDER, orders, more=words.NORM_ORDER_HELP)
    where = _one_of(columns[1], "positions", words.POSITIONS, words.POSITION_NAMES, start=2)
    norm = _one_of(columns[0], "norms", words.NORM, words.NORM_NAMES)
    activation = _one_of(columns[1], "activation", words.ACTIVATION, words.ACT_NAMES)
    window = columns[0].number_input(
        words.WINDOW, *BOUNDS["typed_window"], 0, key="typed_window", bind="query-params", help=words.WINDOW_HELP
    )
    gated = columns[1].checkbox(words.GATED, key="typed_gated", bind="query-params")
    found |= {"norm_order": order, "final_norm": order == "pre", "position": where, "gated": gated}
    found |= {"norm": norm, "activation": activation, "window": int(window or 0) or None}
    return ModelConfig(**found)


def _one_of(
    place: DeltaGenerator, name: str, label: str, titles: Mapping[str, str], start: int = 0, more: str | None = None
) -> str:
    """A select box of the typed sizes; the link says the title."""
    return place.selectbox(
        label,
        list(titles),
        index=start,
        format_func=titles.__getitem__,
        key=f"typed_{name}",
        bind="query-params",
        help=more,
    )


def _unknown_choices(data: Mapping[str, Any], asked: Mapping[str, str]) -> list[str]:
    """A sentence for each place that a link newly asks for and this diagram does not have."""

    def within(low: int, high: int) -> Callable[[str], bool]:
        return lambda text: is_whole(text, low, high)

    rows = {row["id"] for part in data["parts"] for row in part["rows"]}
    folds = {f"{part['stack']}.{part['section']}" for part in data["parts"]} | set(data["stacks"])
    known: dict[str, Callable[[str], bool]] = {
        "tensor": rows.__contains__,
        "at": within(0, max(data["layers"].values()) - 1),
        "with_head": within(0, data["heads"] - 1),
        "as": ("diagram", "table").__contains__,
        "unfold": lambda text: set(text.split(",")) <= folds,
    }
    sizes = ("break", "batch", "length", "target_length", *(f"typed_{name}" for name in (*TYPED_FIELDS, "window")))
    known |= {name: within(*BOUNDS[name]) for name in sizes}
    newly = newly_asked("shapes", {name: asked[name] for name in known if asked.get(name)})
    return [
        words.UNKNOWN_PLACE.format(name=name, asked=quoted(text))
        for name, text in newly.items()
        if not known[name](text)
    ]


def _of_the_link() -> list[str]:
    """A sentence when the URL asks for something that is not on the list."""
    asked = st.query_params.get("of")
    if asked is None or asked in CHOICES.values() or not newly_asked("of", {"of": asked}):
        return []
    return [words.UNKNOWN_OF.format(asked=quoted(asked), known=", ".join(CHOICES.values()))]
