"""Shapes' message: the diagram of a run, or of a model without a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache
from typing import Any

from app import languages
from app.kit import params as kit_params
from app.kit.numbers import quoted
from app.kit.room import Message, Run
from app.kit.widgets import Control
from app.rooms.shapes import choices, debugger, words
from app.rooms.shapes import export as shapes_export
from app.rooms.shapes.component import PARAMS
from app.rooms.shapes.diagram import Diagram, Part, diagram
from app.session import room as session_room
from app.session import screen
from app.sizes import export, pasted
from app.sizes import words as size_words
from app.transport.limits import BOUNDS, is_whole
from core.errors import HeadlightError
from core.labs.sizes import Attempt
from core.model.config import ModelConfig
from core.plan import PRESETS, Workload
from core.plan.plan import check_positions
from core.service import Facts


def is_of_run(said: Mapping[str, str]) -> bool:
    """Whether a link asks for the diagram of a run."""
    (of,), _ = _held([choices.OF], None, said)
    return of == choices.RUN


async def message(run: Run | None, said: Mapping[str, str]) -> Message:
    """The room's message for a link. Raises Refused."""
    (of,), notes = _held([choices.OF], None, said)
    own: list[Control] = [choices.OF]
    if run is not None:
        data = of_run(run)
    else:
        (batch, length, target, dropped), wrong = _held(choices.SIZES, of, said)
        config, title, more = _model(of, said)
        own += [*choices.SIZES, *({choices.TYPED: choices.TYPED_ONES, choices.PASTED: [pasted.CONTROL]}.get(of, ()))]
        data = of_model(config, title, batch, length, target if config.kind == "encoder-decoder" else 0, dropped)
        notes += [*wrong, *more]
    values, wrong = kit_params.read(PARAMS, None, said)
    link = data.get("link", {}) | {one.name: said[one.name] for one in own if one.name in said}
    header = data | {"link": {session_room.PARAM: "shapes", **link}}
    return Message(header, values, [*notes, *wrong, *unknown(data, values)])


def _held(controls: Sequence[Control], of: Any, said: Mapping[str, str]) -> tuple[list[Any], list[str]]:
    """The values of these controls for a link, and a sentence for each value that does not exist."""
    texts, notes = kit_params.read([control.param for control in controls], of, said)
    return [control.value(texts[control.name]) for control in controls], notes


def _model(of: str, said: Mapping[str, str]) -> tuple[ModelConfig, str, list[str]]:
    """The config and the title that a link asks for, and what it asks for in vain. Raises Refused."""
    if of in PRESETS:
        return PRESETS[of].config, PRESETS[of].title, []
    if of == choices.PASTED:
        (text,), notes = _held([pasted.CONTROL], None, said)
        if not text:
            raise HeadlightError(size_words.PASTE_FIRST)
        return pasted.config_of(text), words.OF_PASTED, notes
    found, notes = _held(choices.TYPED_ONES, None, said)
    held = dict(zip((control.name for control in choices.TYPED_ONES), found, strict=True))
    fields = {name: held[control.name] for name, control in choices.FIELDS.items()}
    ways = {name: held[control.name] for name, control in choices.WAYS.items()}
    config = choices.typed(fields, ways, held[choices.WINDOW.name], held[choices.GATED.name])
    return config, words.OF_TYPED, notes


def of_run(run: Run) -> dict[str, Any]:
    """The diagram of a run, with where its values are."""
    facts = run.facts
    target = 0 if facts.target is None else len(facts.target)
    of = Workload(batch=facts.texts, source_len=len(facts.source), target_len=target, dtype=facts.dtype)
    made = packed(facts.config, facts.spec.title, of)
    return made | {"run": run.request.key, "link": dict(screen.link(run.request)), "tokens": _tokens(facts)}


def _tokens(run: Facts) -> dict[str, list[str]]:
    return {"source": list(run.source.labels), "target": [] if run.target is None else list(run.target.labels)}


def of_model(
    config: ModelConfig, title: str, batch: int, source_len: int, target_len: int, dropout: bool
) -> dict[str, Any]:
    """The diagram of a model on a text as long as this. Raises Refused."""
    if config.position == "sinusoidal":  # such a table is computed, as long as it is wanted
        config = replace(config, n_ctx=max(config.n_ctx, source_len, target_len))
    return packed(config, title, Workload(batch=batch, source_len=source_len, target_len=target_len, dropout=dropout))


def packed(config: ModelConfig, title: str, of: Workload) -> dict[str, Any]:
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


def _tries(found: Diagram, part: Part, place: str, row: Mapping[str, Any]) -> tuple[Attempt, ...]:
    own = found.target_len if part.stack == "decoder" and found.target_len else found.source_len
    n_key = found.source_len if ".cross." in row["id"] else own
    return debugger.tries(found.config, place, batch=found.batch, n=own, n_key=n_key)


def _table(found: Diagram) -> list[list[Any]]:
    """Every traced step: part, times, what it is, its name, axes, shape, dtype, bytes, FLOPs, whether it is a view."""
    lines = []
    for part in found.parts:
        titles = {id(row.traced): row.title for row in part.rows}
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


def unknown(data: Mapping[str, Any], asked: Mapping[str, str]) -> list[str]:
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
