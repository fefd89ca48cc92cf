"""What can be chosen in Step through, as a link says it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

from app.attention import picture, place
from app.kit.params import Param, one_of, pinned, whole
from app.rooms.step import words
from app.rooms.step.steps import ids_of, tokens_of
from app.session import examples
from core.edits import from_text, to_text
from core.errors import InterventionError
from core.service import Facts

OPENS_AT = "scores"  # q · k
PAGES = ("run", "experts", "one", "batch", "reshape")
SMALL = ("x", "q", "k", "v", "scores", "scale", "softmax", "output")  # the steps of the page of 3 × 4
DIVISOR = (0.05, 64.0)
X = re.compile(r"([0-2])-([0-3]):(-?[0-9]{1,2}(?:\.[0-9]{1,4})?)", re.ASCII)
MOST_X = 9
NONE = 1 << 20  # where there is no run: nothing to hold a number against


def stacks_of(run: Facts | None) -> dict[str, int]:
    return {} if run is None else dict(run.config.stacks)


def opening(run: Facts | None) -> place.Place:
    """Where a run opens: at the head and the token of the model's first example."""
    if run is None:
        return place.Place("encoder", 0, 0, 0)
    header = picture.outline(run)
    found = place.example_place(header, examples.shown_for(header["model_id"])[0])
    if found.query is not None:
        return found
    n = len(tokens_of(run, "encoder" if found.site == "encoder" else "decoder"))
    return replace(found, query=n - 1 if run.writes else max(0, n - 2))  # what is to be guessed, or the last word


def opening_stack(run: Facts | None) -> str:
    return "" if run is None else ("encoder" if opening(run).site == "encoder" else "decoder")


def place_of(run: Facts, values: Mapping[str, str]) -> tuple[str, int, int]:
    """Stack, layer and token of a link, as the browser reads them: what another stack does not have is its last."""
    stacks = stacks_of(run)
    stack = values["stack"] if values["stack"] in stacks else list(stacks)[-1]
    layer, query = (
        min(int(values["layer"]), stacks[stack] - 1),
        min(int(values["query"]), len(tokens_of(run, stack)) - 1),
    )
    return stack, layer, query


def n_tokens(run: Facts | None) -> int:
    return NONE if run is None else max(len(tokens_of(run, stack)) for stack in stacks_of(run))


def n_keys(run: Facts | None) -> int:
    return NONE if run is None else max(record.n_key for record in run.records)


def _at() -> Param:
    def known(run: Facts | None) -> tuple[str, ...]:
        steps = [] if run is None else [id for stack in stacks_of(run) for id in ids_of(run, stack)]
        return tuple(dict.fromkeys([*steps, *SMALL]))

    def read(text: str, run: Facts | None) -> str:
        if text not in known(run):
            raise ValueError
        return text

    return Param("at", OPENS_AT, read, lambda run: words.ALLOWED_STEP.format(known=", ".join(known(run))))


def pages_of(run: Facts | None) -> tuple[str, ...]:
    """The pages that there are: that of the experts is of a run of a model that has some."""
    return tuple(page for page in PAGES if page != "experts" or run is None or run.config.expert_layers)


def _page() -> Param:
    def read(text: str, run: Facts | None) -> str:
        if text not in pages_of(run):
            raise ValueError
        return text

    return Param("page", PAGES[0], read, lambda run: ", ".join(pages_of(run)))


def _stack() -> Param:
    def read(text: str, run: Facts | None) -> str:
        if run is not None and text not in stacks_of(run):
            raise ValueError
        return text

    return Param("stack", opening_stack, read, lambda run: ", ".join(stacks_of(run)))


def _divide() -> Param:
    low, high = DIVISOR

    def read(text: str, _: Facts | None) -> str:
        value = float(text) if text and len(text) <= 12 else math.nan
        if not text:
            return ""
        if not low <= value <= high:
            raise ValueError
        return f"{value:g}"

    return Param("divide", "", read, words.ALLOWED_DIVIDE.format(low=low, high=high))


def _hide() -> Param:
    def read(text: str, run: Facts | None) -> str:
        if not text:
            return ""
        parts = text.split(",")
        if any(not (part.isascii() and part.isdecimal() and len(part) <= 7) for part in parts):
            raise ValueError
        keys = sorted({int(part) for part in parts})
        if keys[-1] >= n_keys(run) or len(keys) == n_keys(run):
            raise ValueError
        return ",".join(map(str, keys))

    return Param("hide", "", read, lambda run: words.ALLOWED_HIDE.format(last=n_keys(run) - 1))


def _cell() -> Param:
    def read(text: str, _: Facts | None) -> str:
        parts = text.split(".") if text else []
        if text and (len(parts) != 2 or any(not (p.isascii() and p.isdecimal() and len(p) <= 6) for p in parts)):
            raise ValueError
        return ".".join(str(int(part)) for part in parts)

    return Param("cell", "", read, words.ALLOWED_CELL)


def _x() -> Param:
    """Numbers of x on the page of 3 × 4 that are not as they were, each as row-column:value."""

    def read(text: str, _: Facts | None) -> str:
        found: dict[tuple[int, int], float] = {}
        for part in text.split(",") if text else ():
            if (said := X.fullmatch(part)) is None or abs(float(said[3])) > MOST_X:
                raise ValueError
            found[int(said[1]), int(said[2])] = round(float(said[3]), 2) + 0.0  # no -0.0
        return ",".join(f"{row}-{column}:{found[row, column]:g}" for row, column in sorted(found))

    return Param("x", "", read, words.ALLOWED_X.format(most=MOST_X))


def _edits() -> Param:
    def read(text: str, _: Facts | None) -> str:
        try:
            return to_text(from_text(text))
        except InterventionError as error:
            raise ValueError from error

    return Param("edits", "", read, words.ALLOWED_EDITS)


PARAMS: tuple[Param, ...] = (
    _page(),
    _at(),
    _stack(),
    whole(
        "layer",
        lambda run: str(opening(run).layer),
        lambda run: max(stacks_of(run).values(), default=NONE),
    ),
    whole("head", lambda run: str(opening(run).head), lambda run: NONE if run is None else run.config.n_heads),
    whole("query", lambda run: str(opening(run).query or 0), n_tokens),
    whole("key", "", n_keys, empty=True),
    pinned(),
    _cell(),
    _divide(),
    _hide(),
    one_of("act", "own", "relu", "gelu", "silu"),
    one_of("norm", "own", "batch"),
    one_of("show", "picture", "table"),
    _x(),
    _edits(),
)
