"""Shapes: the pass of the run on the screen, or of any model, tensor by tensor, with nothing allocated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from functools import lru_cache
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import languages
from app.attention import in_progress
from app.kit import cover, stage, widgets
from app.kit.numbers import quoted
from app.kit.widgets import Panel
from app.rooms.shapes import debugger, words
from app.rooms.shapes import export as shapes_export
from app.rooms.shapes.component import STAGE
from app.rooms.shapes.diagram import Diagram, Part, diagram
from app.session import answer as session_answer
from app.session import boxes, notices, screen
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


TYPED_CHOICES = {  # the same for what is one of some: its caption, {id: title}, the first
    "norm": (words.NORM_ORDER, {name: words.NORM_ORDERS[name] for name in ("pre", "post")}, "pre"),
    "positions": (words.POSITIONS, words.POSITION_NAMES, list(words.POSITION_NAMES)[2]),
    "norms": (words.NORM, words.NORM_NAMES, next(iter(words.NORM_NAMES))),
    "activation": (words.ACTIVATION, words.ACT_NAMES, next(iter(words.ACT_NAMES))),
}
OF = widgets.choice(
    "of", {name: name for name in CHOICES}, words.OF, also={title: name for name, title in CHOICES.items()}
)
BATCH = widgets.whole("batch", BOUNDS["batch"], lambda of: str(_start(of)[0]))
LENGTH = widgets.whole("length", BOUNDS["length"], lambda of: str(_start(of)[1]))
TARGET = widgets.whole("target_length", BOUNDS["target_length"], "128")
DROPPED = widgets.switch("dropped", lambda of: "true" if of in LECTURES else "false")
FIELDS = {
    name: widgets.whole(f"typed_{name}", BOUNDS[f"typed_{name}"], str(start))
    for name, (_, start) in TYPED_FIELDS.items()
}
WAYS = {
    name: widgets.choice(f"typed_{name}", titles, label, titles[first])
    for name, (label, titles, first) in TYPED_CHOICES.items()
}
WINDOW = widgets.whole("typed_window", BOUNDS["typed_window"], "0")
GATED = widgets.switch("typed_gated")
TYPED_ONES = (*FIELDS.values(), *WAYS.values(), WINDOW, GATED)
SIZES = (BATCH, LENGTH, TARGET, DROPPED)
PANEL = Panel("shapes_of", (OF, pasted.CONTROL, *SIZES, *TYPED_ONES))


def _start(of: str) -> tuple[int, int]:
    return STARTS.get(of, STARTS[""])


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
                request, _ = shell_request.request()
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
            opened, key = widgets.opens(DROPPED), boxes.key(DROPPED.name)
            drops = widgets.holds(DROPPED, line.toggle(words.DROPOUT, opened, key=key, help=words.DROPOUT_HELP))
            data = _packed(
                config,
                title,
                Workload(batch=batch, source_len=source_len, target_len=target_len, dropout=drops),
            )
    except Refused as refusal:
        notes.append(languages.said(refusal))
    sentences = st.container(key="sentences", gap=None)
    if data is None and (data := st.session_state.get("shapes_last")) is not None:
        notes.append(words.LAST_DIAGRAM)
    followed = None if data is None else stage.follow(STAGE, None)
    of_link = [*of_link, *(_unknown(data, followed.values) if data is not None and followed is not None else [])]
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
    for control, value in zip((BATCH, LENGTH, DROPPED), (*_start(of), of in LECTURES), strict=True):
        boxes.fill(control.name, value)


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
    made = _diagram(config, of, languages.current())
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
def _diagram(config: ModelConfig, of: Workload, language: str) -> dict[str, Any]:
    """As it is told in a language, the one that is spoken."""
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
    batch, length = _start(of)
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


def _config(of: str, place: DeltaGenerator, notes: list[str]) -> tuple[ModelConfig, str]:
    """The config that was chosen, typed or pasted. Raises Refused."""
    if of in PRESETS:
        return PRESETS[of].config, PRESETS[of].title
    with place.popover(words.FIELDS):
        return (_typed(), words.OF_TYPED) if of == TYPED else (pasted.box(notes), words.OF_PASTED)


def _typed() -> ModelConfig:
    found: dict[str, Any] = {}
    columns = st.columns(2)
    for i, (name, (field, start)) in enumerate(TYPED_FIELDS.items()):
        bounds = BOUNDS[f"typed_{name}"]
        found[field] = widgets.number(columns[i % 2], FIELDS[name], words.FIELD_NAMES[name], bounds, start)
    said = {}
    for i, (name, (label, titles, _)) in enumerate(TYPED_CHOICES.items()):
        more = words.NORM_ORDER_HELP if name == "norm" else None
        said[name] = widgets.select(columns[i % 2], WAYS[name], label, list(titles), titles.__getitem__, help=more)
    bounds, more = BOUNDS[WINDOW.name], {"help": words.WINDOW_HELP}
    window = widgets.number(columns[0], WINDOW, words.WINDOW, bounds, 0, **more)
    opened, key = widgets.opens(GATED), boxes.key(GATED.name)
    gated = widgets.holds(GATED, columns[1].checkbox(words.GATED, opened, key=key))
    found |= {"norm_order": said["norm"], "final_norm": said["norm"] == "pre", "position": said["positions"]}
    found |= {"norm": said["norms"], "activation": said["activation"], "gated": gated, "window": window or None}
    return ModelConfig(**found)


def _unknown(data: Mapping[str, Any], asked: Mapping[str, str]) -> list[str]:
    """A sentence for each place that is asked for and that this diagram does not have."""

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
        "break": within(*BOUNDS["break"]),
    }
    return [
        words.UNKNOWN_PLACE.format(name=name, asked=quoted(asked[name]))
        for name, is_there in known.items()
        if asked.get(name) and not is_there(asked[name])
    ]
