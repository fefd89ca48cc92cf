"""What is on the screen as files: its numbers as CSV and NPZ, and the caption and the code that every export carries.

Pure: a trace and a selection go in, text or bytes come out. Pictures and pages are made in the browser (figure.js,
export.js) from the same numbers; they ask here for the caption and the code.
"""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from app import lens, pack, words
from app.tables import quoted
from core import aggregate
from core.attention import AttentionRecord
from core.checkpoints import find
from core.errors import CheckpointError, Refused
from core.text import Tokens, visible
from core.trace import Trace

Scale = Literal["linear", "log", "row"]
Show = Literal["map", "lines", "heads"]

CSV_CELLS = 512 * 512  # a line for each cell: some 15 MB
NPZ_CELLS = 2048 * 2048  # 16 MiB of float32
NAMED = 8  # hidden tokens that a caption names
BLOCK_CELLS = 1 << 21  # worked out together, whole rows of them
RISKY = re.compile(r"^[=+\-@\t\r]")  # what a spreadsheet may take for the beginning of a formula
RISKY_INSIDE = re.compile(r"([,;\t])(?=[=+\-@])")  # the same where a line is cut into cells


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What part of a run is on the screen, and what was done to its numbers.

    rows and columns count tokens, or with `merged` the words that they make; hide and query always count tokens.
    """

    record: int  # in the order of the pass
    head: int = 0
    kind: lens.Kind = "head"
    members: tuple[tuple[int, int], ...] = ()  # (record, head) of a mean or max; none: all heads of the record
    hide: tuple[int, ...] = ()  # keys that are left out, the rest renormalised
    merged: bool = False  # sub-words put together
    rows: tuple[int, int] | None = None  # queries q0..q1, end excluded; None: all
    columns: tuple[int, int] | None = None  # keys k0..k1
    scale: Scale = "linear"  # of the colours
    show: Show = "map"  # as what; heads: all of them, this one outlined
    keep: int = 80  # percent of each row that lines carry
    metric: str = "maps"  # what the grid of all heads shows: small maps, or one number a head

    @property
    def unit(self) -> Literal["weight", "norm"]:
        return "norm" if self.kind == "value" else "weight"


@dataclass(frozen=True, eq=False)
class Numbers:
    """The cells of a selection: values and codes are [query, key], and each axis has labels and first positions."""

    values: np.ndarray  # float32
    codes: np.ndarray  # uint8: why a cell has no number, as in pack.REASONS or lens.HIDDEN; 0 where it has one
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    query_positions: tuple[int, ...]
    key_positions: tuple[int, ...]


# ---------------------------------------------------------------- a selection from the words of a URL


def selected(run: Trace, params: Mapping[str, str]) -> Selection:
    """The selection that URL parameters name. Raises Refused with a sentence for what this run does not have."""
    sites = {place.id: place for place in pack.places(run)}
    site = sites[one_of(params, "site", tuple(sites))]
    records = [run.attention[i] for i in site.records]
    layer = _number(params, "layer", len(records))
    head = _number(params, "head", records[0].n_heads)
    kind = one_of(params, "kind", lens.KINDS, "head")
    members = []
    for pair in filter(None, params.get("heads", "").split(",")):
        at, _, of = pair.partition(".")
        both = {"layer": at, "head": of}
        members.append((site.records[_number(both, "layer", len(records))], _number(both, "head", records[0].n_heads)))
    hide = [
        _number({"hide": part}, "hide", records[0].n_key) for part in filter(None, params.get("hide", "").split(","))
    ]
    show = one_of(params, "show", get_args(Show), "map")
    if len(set(hide)) == records[0].n_key:
        raise Refused(words.ROUTE_HIDES_ALL)
    if kind == "rollout" and records[0].site == "cross_attn":
        raise Refused(words.COMPONENT["rollout_cross"])
    selection = Selection(
        record=site.records[layer],
        head=head,
        kind=kind,
        members=tuple(members) if kind in ("mean", "max") or (show == "lines" and kind != "rollout") else (),
        hide=tuple(sorted(set(hide))),
        merged=one_of(params, "words", ("true", "false"), "false") == "true",
        scale=one_of(params, "scale", get_args(Scale), "linear"),
        show=show,
        metric=one_of(params, "metric", ("maps", *lens.METRICS), "maps"),
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
        raise Refused(words.EXPORT_UNKNOWN.format(name=name, allowed=", ".join(allowed), value=quoted(value or "")))
    return value


def _number(params: Mapping[str, str], name: str, size: int) -> int:
    value = params.get(name, "")
    if not (value.isascii() and value.isdecimal()) or len(value) > 9:
        raise Refused(words.TILE_NOT_A_NUMBER.format(name=name, value=value[:20]))
    if int(value) >= size:
        raise Refused(words.TILE_OUT_OF_RANGE.format(name=name, value=int(value), low=0, high=size - 1))
    return int(value)


def _span(params: Mapping[str, str], axis: str, n: int) -> tuple[int, int]:
    """q0..q1 or k0..k1, end excluded; all of them where nothing is said."""
    start = _number({axis: params.get(f"{axis}0", "0")}, axis, n)
    end = _number({axis: params.get(f"{axis}1", str(n))}, axis, n + 1)
    if end <= start:
        raise Refused(words.TILE_OUT_OF_RANGE.format(name=f"{axis}1", value=end, low=start + 1, high=n))
    return start, end


# ---------------------------------------------------------------- the numbers


def numbers(run: Trace, selection: Selection, most: int) -> Numbers:
    """Exact values of the selection. Raises Refused above `most` cells, before anything is worked out."""
    (q0, q1), (k0, k1) = region(run, selection)
    if (cells := (q1 - q0) * (k1 - k0)) > most:
        raise Refused(words.EXPORT_TOO_LARGE.format(rows=q1 - q0, columns=k1 - k0, cells=cells, most=most))
    picture = lens_of(run, selection, with_rollout=True)
    record = picture.attention
    values = np.empty((q1 - q0, k1 - k0), dtype=np.float32)
    step = max(1, BLOCK_CELLS // (record.n_key * max(len(group) for group in picture.queries)))
    for start in range(q0, q1, step):
        rows = range(start, min(q1, start + step))
        values[start - q0 : start - q0 + len(rows)] = picture.values(rows)[0][:, k0:k1].cpu().numpy()
    queries, keys = run.tokens_of(record)
    return Numbers(
        values,
        picture.codes(range(q0, q1), range(k0, k1)),
        tuple(label(queries, group) for group in picture.queries[q0:q1]),
        tuple(label(keys, group) for group in picture.keys[k0:k1]),
        tuple(group.start for group in picture.queries[q0:q1]),
        tuple(group.start for group in picture.keys[k0:k1]),
    )


def lens_of(run: Trace, selection: Selection, *, with_rollout: bool = False) -> lens.Lens:
    """The picture that the selection is a part of."""
    rollout = None
    if with_rollout and selection.kind == "rollout":
        rollout = aggregate.rollout([run.attention[i] for i in _stack(run, selection)], _record(run, selection).layer)
    s = selection
    return lens.Lens(run, s.record, s.head, s.kind, s.members, s.hide, s.merged, rollout)


def size(run: Trace, selection: Selection) -> tuple[int, int]:
    """How many queries and keys the whole map has."""
    whole = lens_of(run, selection)
    return len(whole.queries), len(whole.keys)


def region(run: Trace, selection: Selection) -> tuple[tuple[int, int], tuple[int, int]]:
    """Queries q0..q1 and keys k0..k1 of the selection, ends excluded."""
    n_query, n_key = size(run, selection)
    return selection.rows or (0, n_query), selection.columns or (0, n_key)


def label(tokens: Tokens, group: range) -> str:
    """What stands on the axis for a token, or for the tokens of a word."""
    if len(group) == 1:
        return tokens.labels[group.start]
    return visible(tokens.text[tokens.offsets[group[0]][0] : tokens.offsets[group[-1]][1]])


def _record(run: Trace, selection: Selection) -> AttentionRecord:
    return run.attention[selection.record]


def _stack(run: Trace, selection: Selection) -> list[int]:
    """The records of the same kind of attention, by layer."""
    record = _record(run, selection)
    return [i for i, r in enumerate(run.attention) if (r.stack, r.site) == (record.stack, record.site)]


# ---------------------------------------------------------------- the caption and the code


@cache
def version() -> str:
    """Headlight's own, from pyproject.toml: it runs from its folder and is never installed."""
    text = (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]["version"]


def title(run: Trace, selection: Selection) -> str:
    """Which picture this is: "MiniLM-L6, self-attention, layer 3, head 1"."""
    record = run.attention[selection.record]
    site = words.SITES["cross" if record.site == "cross_attn" else record.stack][0]
    what = _map_name(run, selection)
    if selection.show == "heads":
        what = words.EXPORT_ALL_HEADS
        if selection.metric != "maps":
            what = words.EXPORT_METRIC_TITLE.format(metric=words.COMPONENT["metrics"][selection.metric][0])
    return f"{run.spec.title}, {site}, {what}"


def _map_name(run: Trace, selection: Selection) -> str:
    record = run.attention[selection.record]
    if selection.kind in ("head", "value") and selection.members:
        heads = ", ".join(f"{run.attention[i].layer}.{head}" for i, head in selection.members)
        return words.EXPORT_NAMES[f"{selection.kind}_lines"].format(heads=heads)
    if selection.kind in ("head", "value"):
        return words.EXPORT_NAMES[selection.kind].format(layer=record.layer, head=selection.head)
    if selection.kind == "rollout" or not selection.members:
        kind = "rollout" if selection.kind == "rollout" else f"{selection.kind}_layer"
        return words.EXPORT_NAMES[kind].format(layer=record.layer, n=record.n_heads)
    heads = ", ".join(f"{run.attention[i].layer}.{head}" for i, head in selection.members)
    return words.EXPORT_NAMES[selection.kind].format(heads=heads)


def caption(run: Trace, selection: Selection, today: date) -> str:
    """Everything that a reader of the picture needs to know about it, in one line."""
    spec = run.spec
    revision = (
        f"revision {spec.revision[:12]}" if spec.revision else f"sha256 {spec.sha256[:12]}" if spec.sha256 else ""
    )
    parts = [title(run, selection) + (f" ({revision})" if revision else "")]
    if selection.show == "heads":
        metric = words.COMPONENT["metrics"][selection.metric][0]
        grid = words.EXPORT_GRID if selection.metric == "maps" else words.EXPORT_METRIC.format(metric=metric)
        parts += [grid, words.EXPORT_OUTLINED.format(head=_map_name(run, replace(selection, kind="head")))]
    else:
        parts += _treatment(run, selection)
    if run.interventions:
        parts.append(words.EXPORT_EDITED.format(edits=", ".join(map(repr, run.interventions))))
    scale = selection.scale if selection.show == "map" else selection.show
    scale = "metric" if selection.show == "heads" and selection.metric != "maps" else scale
    parts.append(words.EXPORT_SCALES[scale].format(keep=selection.keep))
    parts.append(f"{run.device} {run.dtype}")
    parts.append(f"Headlight {version()}, torch {torch.__version__}")
    parts.append(today.isoformat())
    return " · ".join(" ".join(part.split()) for part in parts)


def _treatment(run: Trace, selection: Selection) -> list[str]:
    """What the numbers are, and what was done to them."""
    parts = [words.EXPORT_UNITS[selection.unit]]
    if selection.show == "map":
        parts[0] += words.EXPORT_AXES
    if selection.hide:
        labels = run.tokens_of(run.attention[selection.record])[1].labels
        names = ", ".join(f"{labels[i]} ({i})" for i in selection.hide[:NAMED])
        names += f" and {len(selection.hide) - NAMED} more" if len(selection.hide) > NAMED else ""
        parts.append(words.EXPORT_HIDDEN[selection.unit].format(tokens=names))
    if selection.merged:
        parts.append(words.EXPORT_MERGED)
    if selection.show == "map" and (selection.rows is not None or selection.columns is not None):
        (n_query, n_key), ((q0, q1), (k0, k1)) = size(run, selection), region(run, selection)
        parts.append(words.EXPORT_REGION.format(q0=q0, q1=q1 - 1, k0=k0, k1=k1 - 1, n=n_query, m=n_key))
    return parts


def file_name(run: Trace, selection: Selection) -> str:
    """A name for the file, of letters that every system allows: "minilm-l6-layer-3-head-1"."""
    kind = "" if selection.kind == "head" else f"-{selection.kind}"
    record = run.attention[selection.record]
    head = f"-head-{selection.head}" if selection.kind in ("head", "value") else ""
    title = re.sub(r"[^a-z0-9]+", "-", run.spec.title.lower()).strip("-") or "model"
    cross = "-cross" if record.site == "cross_attn" else ""
    if selection.show == "heads":
        return f"{title}{cross}-all-heads"
    lines = "-lines" if selection.show == "lines" else ""
    return f"{title}{cross}-layer-{record.layer}{head}{kind}{lines}"


def snippet(run: Trace, selection: Selection) -> str:
    """Python that gives the numbers of this selection, as `weights` [query, key]."""
    record = run.attention[selection.record]
    lines = ["import torch", "", "import core"]
    if selection.show != "heads" and selection.kind not in ("head", "value"):
        lines.append("from core import aggregate")
    elif selection.show != "heads" and selection.kind == "value":
        lines.append("from core.aggregate import value_weighted")
    lines += ["", _load_line(run), _trace_line(run)]
    if selection.show == "heads":
        lines.append(
            f"weights = [run.attention[i].pattern() for i in {_stack(run, selection)}]  # of each layer: [head, query, key]"
        )
        return "\n".join(lines[2:]) + "\n"
    at, n = selection.record, selection.head
    if selection.kind in ("head", "value") and selection.members:
        get = (
            "run.attention[i].pattern(head)[0]"
            if selection.kind == "head"
            else "value_weighted(run.attention[i], head)"
        )
        lines.append(
            f"weights = torch.stack([{get} for i, head in {list(selection.members)}])  # [which head, query, key]"
        )
    elif selection.kind == "head":
        lines.append(f"weights = run.attention[{at}].pattern({n})[0]  # {record.name}, head {n}: [query, key]")
    elif selection.kind == "value":
        lines.append(
            f"weights = value_weighted(run.attention[{at}], {n})  # {record.name}, head {n}: [query, key] norms"
        )
    elif selection.kind == "rollout":
        stack = [i for i, r in enumerate(run.attention) if (r.stack, r.site) == (record.stack, record.site)]
        lines.append(
            f"weights = aggregate.rollout([run.attention[i] for i in {stack}], {record.layer})  # [query, key]"
        )
    else:
        name = "mean" if selection.kind == "mean" else "maximum"
        if selection.members:
            heads = ", ".join(f"(run.attention[{i}], {head})" for i, head in selection.members)
            lines.append(f"heads = [{heads}]")
        else:
            lines.append(f"heads = [(run.attention[{at}], head) for head in range({record.n_heads})]  # {record.name}")
        lines.append(f"weights = aggregate.{name}(heads)  # [query, key]")
    if selection.hide:
        lines.append(f"weights[:, {list(selection.hide)}] = 0  # hidden keys")
        if selection.unit == "weight":
            lines.append("weights = torch.nan_to_num(weights / weights.sum(-1, keepdim=True))  # rows sum to 1 again")
    if selection.merged:
        whole = lens_of(run, selection)
        queries, keys = ([list(group) for group in groups] for groups in (whole.queries, whole.keys))
        lines += [
            f"keys = {keys}  # the tokens of each word: what they get is added up",
            "weights = torch.stack([weights[:, group].sum(-1) for group in keys], -1)",
            f"queries = {queries}  # what they give is averaged",
            "weights = torch.stack([weights[group].mean(0) for group in queries])",
        ]
    if selection.show == "map" and (selection.rows is not None or selection.columns is not None):
        rows, columns = (
            ":" if part is None else f"{part[0]}:{part[1]}" for part in (selection.rows, selection.columns)
        )
        lines.append(f"weights = weights[{rows}, {columns}]  # the part on the screen")
    if not any("torch." in line for line in lines[1:]):
        lines = lines[2:]
    return "\n".join(lines) + "\n"


def _load_line(run: Trace) -> str:
    """core.load of this very model."""
    spec = run.spec
    if spec.source == "built":
        return f"model = ...  # {spec.title}: core.build(config), {spec.note or 'random weights'}"
    if spec.source == "folder":  # where it lies on the server is nobody's business
        arguments = [literal(f"path/to/{Path(spec.location).name}")]
    else:
        arguments = [literal(spec.id)]
        if spec.revision and _is_hub_name(spec.id):
            arguments.append(f"revision={literal(spec.revision)}")
    if run.device != "cpu":
        arguments.append(f"device={literal(run.device)}")
    if run.dtype != "float32":
        arguments.append(f"dtype=torch.{run.dtype}")
    return f"model = core.load({', '.join(arguments)})"


def _is_hub_name(name: str) -> bool:
    try:
        return find(name).source == "hub"
    except CheckpointError:
        return False


def _trace_line(run: Trace) -> str:
    arguments = ["model", literal(run.source.text)]
    if run.target is not None and run.target.text:
        arguments.append(f"target={literal(run.target.text)}")
    if run.interventions:
        arguments.append(f"interventions=[{', '.join(f'core.{edit!r}' for edit in run.interventions)}]")
    return f"run = core.trace({', '.join(arguments)})"


def literal(text: str) -> str:
    """The text as Python writes it, with nothing in it that a spreadsheet could take for a formula once a line is cut."""
    return re.sub(r"([,;])([=+\-@])", lambda m: f"{m[1]}\\x{ord(m[2]):02x}", repr(text))


# ---------------------------------------------------------------- files


def csv_lines(found: Numbers, about: Sequence[str], unit: str) -> Iterator[str]:
    """A table with a line for each cell (RFC 4180), below lines of comment that start with #; a row of the map at a time."""
    for text in about:
        for line in text.splitlines():
            yield "# " + RISKY_INSIDE.sub(r"\1 ", line) + "\r\n" if line.strip() else "#\r\n"
    yield f"query_position,query,key_position,key,{unit},masked\r\n"
    keys = [f"{at},{cell(name)}" for at, name in zip(found.key_positions, found.keys, strict=True)]
    for q, name in enumerate(found.queries):
        query = f"{found.query_positions[q]},{cell(name)}"
        row = zip(keys, found.values[q].tolist(), found.codes[q].tolist(), strict=True)
        # Nine digits: every float32 comes back as it was.
        yield "".join(f"{query},{key},{value:.9g},{_reason(code)}\r\n" for key, value, code in row)


def _reason(code: int) -> str:
    return words.EXPORT_HIDDEN_CELL if code == lens.HIDDEN else pack.REASONS[code]


def cell(text: str) -> str:
    """A label as a quoted field. One that looks like a formula gets an apostrophe in front: a spreadsheet must not run it."""
    text = text.replace('"', '""')
    return f'"\'{text}"' if RISKY.match(text) else f'"{text}"'


def npz(found: Numbers, caption: str, alt: str, snippet: str, unit: str) -> bytes:
    """The same as arrays for numpy: the values under the name of their unit, [query, key] float32."""
    out = io.BytesIO()
    arrays: dict[str, np.ndarray] = {
        unit: found.values,
        "masked": (found.codes > 0) & (found.codes != lens.HIDDEN),
        "queries": np.array(found.queries),
        "keys": np.array(found.keys),
        "query_positions": np.array(found.query_positions),
        "key_positions": np.array(found.key_positions),
        "caption": np.array(caption),
        "alt": np.array(alt),
        "snippet": np.array(snippet),
    }
    np.savez_compressed(out, allow_pickle=False, **arrays)
    return out.getvalue()


# ---------------------------------------------------------------- the page that works offline

IMPORT = re.compile(r"^import\s+(\w+|\{[^}]*\})\s+from\s+\"\./([\w.]+)\";\n", re.MULTILINE)
NAMED_EXPORT = re.compile(r"^export ((?:async function|function|class|const|let)\s+(\w+))", re.MULTILINE)
DEFAULT_EXPORT = re.compile(r"^export default (?=function \()", re.MULTILINE)
LEFT_OVER = re.compile(r"^\s*(?:import|export)\b(?!\()", re.MULTILINE)


@cache
def bundle(modules: tuple[tuple[str, str], ...], entry: str) -> str:
    """ES modules, (file name, source) each, as one script without imports that runs `entry`.

    Every module becomes a function that returns what it exports, in an order in which each finds what it imports. Raises
    ValueError for an import or export that this does not understand, and for modules that import each other in a ring.
    """
    sources = dict(modules)
    done: list[str] = []
    script = ['"use strict";', "const modules = {};"]

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in done:
            return
        if name in above:
            raise ValueError(f"modules import each other in a ring: {' → '.join((*above, name))}")
        source = sources[name]
        for imported in IMPORT.finditer(source):
            add(imported[2], (*above, name))
        names = [found[2] for found in NAMED_EXPORT.finditer(source)]
        if DEFAULT_EXPORT.search(source):
            names.append("default: byDefault")
        body = DEFAULT_EXPORT.sub("const byDefault = ", NAMED_EXPORT.sub(r"\1", IMPORT.sub(_as_constants, source)))
        if left := LEFT_OVER.search(body):
            raise ValueError(f"{name}: bundle does not know {body[left.start() :].strip().splitlines()[0]!r}")
        script.append(f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(names)} }};\n}})();')
        done.append(name)

    add(entry, ())
    return "\n".join(script)


def _as_constants(found: re.Match[str]) -> str:
    """import { a, b as c } from "./x.js" -> const { a, b: c } = modules["x.js"]"""
    names = (
        re.sub(r"(\w+)\s+as\s+(\w+)", r"\1: \2", found[1]) if found[1].startswith("{") else f"{{ default: {found[1]} }}"
    )
    return f'const {names} = modules["{found[2]}"];\n'
