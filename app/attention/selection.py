"""What part of a run is on the screen, from the words of a URL, and its exact numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from app.attention import params as attention_params
from app.attention import transform, words
from app.export import files
from app.kit.numbers import filled, quoted
from app.transport import limits
from app.transport import words as transport_words
from core.errors import HeadlightError
from core.service import MAP_KINDS, METRICS, Facts, MapKind, MapTransform, RecordFacts, Service

NEXT_AT_ONCE = 64  # positions whose next words are asked for together
APART = ("lines", "beside")  # where several heads are drawn each by itself
Scale = Literal["linear", "log", "row"]
Show = Literal["map", "lines", "beside", "heads"]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What part of a run is on the screen, and what was done to its numbers.

    rows and columns count tokens, or with `merged` the words that they make; hide and query always count tokens.
    """

    record: int  # in the order of the pass
    head: int = 0
    kind: MapKind = "head"
    members: tuple[tuple[int, int], ...] = ()  # (record, head) of a mean or max; none: all heads of the record
    hide: tuple[int, ...] = ()  # keys that are left out, the rest renormalised
    merged: bool = False  # sub-words put together
    rows: tuple[int, int] | None = None  # queries q0..q1, end excluded; None: all
    columns: tuple[int, int] | None = None  # keys k0..k1
    scale: Scale = "linear"  # of the colours
    bounds: tuple[float, float] | None = None  # values at their ends; None: as the scale has them
    apart: int | None = None  # the key that the colours leave out, on which most heads rest
    show: Show = "map"  # as what; heads: all of them, this one outlined
    keep: int = 80  # percent of each row that lines carry
    metric: str = "maps"  # what the grid of all heads shows: small maps, or one number a head

    @property
    def unit(self) -> Literal["weight", "norm"]:
        return "norm" if self.kind == "value" else "weight"


def selected(run: Facts, params: Mapping[str, str]) -> Selection:
    """The selection that URL parameters name. Raises Refused with a sentence for what this run does not have."""
    sites = {site.id: site for site in run.sites}
    site = sites[one_of(params, "site", tuple(sites))]
    records = [run.records[i] for i in site.records]
    layer = _number(params, "layer", len(records))
    head = _number(params, "head", records[0].n_heads)
    kind = one_of(params, "kind", MAP_KINDS, "head")
    members = []
    for pair in filter(None, params.get("heads", "").split(",")):
        at, _, of = pair.partition(".")
        both = {"layer": at, "head": of}
        members.append((site.records[_number(both, "layer", len(records))], _number(both, "head", records[0].n_heads)))
    hide = [
        _number({"hide": part}, "hide", records[0].n_key) for part in filter(None, params.get("hide", "").split(","))
    ]
    show = one_of(params, "show", get_args(Show), "map")
    if members and kind == "head" and show not in APART:
        kind = "mean"  # of several heads one map
    if len(set(hide)) == records[0].n_key:
        raise HeadlightError(words.ROUTE_HIDES_ALL)
    if kind == "rollout" and records[0].site == "cross_attn":
        raise HeadlightError(words.COMPONENT["rollout_cross"])
    selection = Selection(
        record=site.records[layer],
        head=head,
        kind=kind,
        members=tuple(members) if kind in ("mean", "max") or (show in APART and kind != "rollout") else (),
        hide=tuple(sorted(set(hide))),
        merged=one_of(params, "words", ("true", "false"), "false") == "true",
        scale=one_of(params, "scale", get_args(Scale), "linear"),
        bounds=_bounds(params.get("bounds", "")),
        apart=_number(params, "apart", records[0].n_key) if params.get("apart") else None,
        show=show,
        metric=one_of(params, "metric", ("maps", *METRICS), "maps"),
        keep=_number({"keep": params.get("keep", "80")}, "keep", 101),
    )
    n_query, n_key = size(run, selection)
    rows, columns = _span(params, "q", n_query), _span(params, "k", n_key)
    return replace(
        selection,
        rows=None if rows == (0, n_query) else rows,
        columns=None if columns == (0, n_key) else columns,
    )


def one_of(params: Mapping[str, str], name: str, allowed: tuple[Any, ...], default: str | None = None) -> Any:
    value = params.get(name, default)
    if value not in allowed:
        raise HeadlightError(
            words.EXPORT_UNKNOWN.format(name=name, allowed=", ".join(allowed), value=quoted(value or ""))
        )
    return value


def _number(params: Mapping[str, str], name: str, size: int) -> int:
    value = params.get(name, "")
    number = limits.read(value)
    if number is None:
        raise HeadlightError(transport_words.TILE_NOT_A_NUMBER.format(name=name, value=value[:20]))
    if number >= size:
        raise HeadlightError(transport_words.TILE_OUT_OF_RANGE.format(name=name, value=number, low=0, high=size - 1))
    return number


def _bounds(text: str) -> tuple[float, float] | None:
    try:
        return attention_params.bounds(text) if text else None
    except ValueError as error:
        allowed = words.OPTION_BOUNDS
        raise HeadlightError(words.EXPORT_UNKNOWN.format(name="bounds", allowed=allowed, value=quoted(text))) from error


def _span(params: Mapping[str, str], axis: str, n: int) -> tuple[int, int]:
    """q0..q1 or k0..k1, end excluded; all of them where nothing is said."""
    start = _number({axis: params.get(f"{axis}0", "0")}, axis, n)
    end = _number({axis: params.get(f"{axis}1", str(n))}, axis, n + 1)
    if end <= start:
        raise HeadlightError(
            transport_words.TILE_OUT_OF_RANGE.format(name=f"{axis}1", value=end, low=start + 1, high=n)
        )
    return start, end


async def numbers(service: Service, run: Facts, selection: Selection, most: int) -> files.Numbers:
    """Exact values of the selection. Raises Refused above `most` cells, before anything is computed."""
    (q0, q1), (k0, k1) = region(run, selection)
    if (cells := (q1 - q0) * (k1 - k0)) > most:
        raise HeadlightError(filled(words.EXPORT_TOO_LARGE, rows=q1 - q0, columns=k1 - k0, cells=cells, most=most))
    of = transform_of(selection)
    found = await service.cells(run.key, of, (q0, q1), (k0, k1))
    groups, key_groups = transform.axes(run, of)
    queries, keys = run.tokens_of(selection.record)
    return files.Numbers(
        found.values,
        found.reasons,
        tuple(transform.label(queries, group) for group in groups[q0:q1]),
        tuple(transform.label(keys, group) for group in key_groups[k0:k1]),
        tuple(group.start for group in groups[q0:q1]),
        tuple(group.start for group in key_groups[k0:k1]),
        sink=_column_of(selection, key_groups[k0:k1]),
    )


def _column_of(selection: Selection, groups: Sequence[range]) -> int | None:
    """Which of these columns has the token that the colours leave out; None where none has, or nothing is left out."""
    if selection.apart is None or selection.unit != "weight":
        return None
    return next((column for column, group in enumerate(groups) if selection.apart in group), None)


async def writes(service: Service, run: Facts, selection: Selection) -> tuple[tuple[str, float], ...]:
    """By row of the selection the word that the model is about to write, and its probability; () where rows write none."""
    if not run.writes or run.site_of(selection.record).id == "encoder":
        return ()
    (q0, q1), _ = region(run, selection)
    groups, _ = transform.axes(run, transform_of(selection))
    ends = [group.stop - 1 for group in groups[q0:q1]]  # of a word, after its last piece
    found: list[tuple[str, float]] = []
    for start in range(0, len(ends), NEXT_AT_ONCE):
        words = await service.next_words(run.key, ends[start : start + NEXT_AT_ONCE], 1)
        found += [word.words[0] for word in words]
    return tuple(found)


def transform_of(selection: Selection) -> MapTransform:
    """The map that the selection is a part of."""
    s = selection
    return MapTransform(s.record, s.head, s.kind, s.members, s.hide, s.merged)


def size(run: Facts, selection: Selection) -> tuple[int, int]:
    """How many queries and keys the whole map has."""
    return transform.size(run, transform_of(selection))


def region(run: Facts, selection: Selection) -> tuple[tuple[int, int], tuple[int, int]]:
    """Queries q0..q1 and keys k0..k1 of the selection, ends excluded."""
    n_query, n_key = size(run, selection)
    return selection.rows or (0, n_query), selection.columns or (0, n_key)


def record_of(run: Facts, selection: Selection) -> RecordFacts:
    return run.records[selection.record]


def stack_of(run: Facts, selection: Selection) -> list[int]:
    """The records of the same site, by layer."""
    return list(run.site_of(selection.record).records)
