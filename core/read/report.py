"""Exports of a trace: a summary in JSON, arrays, a page, a short text, and figures for a paper."""

from __future__ import annotations

import base64
import json
import math
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from io import StringIO
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import tokenizers
import torch
from torch import Tensor
from torch.nn.functional import adaptive_max_pool2d

from ..device import MiB, check_fits, free_bytes
from ..errors import TooLarge, missing_extra
from ..model.rules import row_blocks
from ..model.text import Tokens
from ..run.attention import AttentionRecord
from ..run.predictions import Classes
from ..run.trace_record import TraceRecord
from . import measures
from .findings import opening_head
from .measures import sink as sink_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..run.trace_record import TraceRecord


MEASURED_ROWS = 1024  # rows that measures of a longer head use, evenly spaced
NPZ_BYTES = 4 << 30
HTML_BYTES = 6 << 20  # of weights; larger runs get thumbnails of 64×64 instead


def summary(run: TraceRecord) -> dict[str, Any]:
    """Everything about a run but its maps, as plain JSON values. NaN and infinities become None.

    Of a batch, only the selected text.
    """
    run = run.text(run.index)
    found = {
        "model": {
            "id": run.spec.id,
            "title": run.spec.title,
            "family": run.spec.family,
            "revision": run.spec.revision,
            "sha256": run.spec.sha256,
            "parameters": run.spec.n_params,
            "unused_tensors": list(run.loaded.unused),
            "notices": list(run.loaded.notices),
        },
        "config": {"kind": run.config.kind, **asdict(run.config)},
        "versions": {
            "torch": torch.__version__,
            "tokenizers": tokenizers.__version__,
            "python": platform.python_version(),
        },
        "device": run.device,
        "dtype": run.dtype,
        "interventions": [repr(edit) for edit in run.interventions],
        "non_finite": None if run.non_finite is None else asdict(run.non_finite),
        "seconds": run.seconds,
        "bytes": {"predicted": run.predicted_bytes, "held": run.nbytes},
        "source": _token_lists(run.source),
        "target": None if run.target is None else _token_lists(run.target),
        "attention": [_attention_measures(run, record) for record in run.attention],
        "residual_norms": {name: norms.tolist() for name, norms in run.residual_norms.items()},
        "steps": [asdict(step) for step in run.steps],
        "notices": list(run.warnings),
        "predictions": None if run.loaded.model.head is None else asdict(run.predictions()),
    }
    if run.loaded.classifier is not None:
        found["classes"] = asdict(run.classes())
    return _plain(found)


def _plain(value: Any) -> Any:
    """Replace NaN and infinities by None, because JSON has neither."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def words(run: TraceRecord) -> str:
    """The run in a few lines, for a terminal. Of a batch, only the selected text."""
    run = run.text(run.index)
    tokens = run.source if run.target is None else run.target
    heads = sorted({record.n_heads for record in run.attention} or {run.config.n_heads})
    took = f"{run.seconds * 1000:.0f} ms on" if run.seconds else "on"
    lines = [
        f"{run.spec.title}: {run.config.kind}, {' to '.join(map(str, heads[:: max(1, len(heads) - 1)]))} heads in each of "
        + ", ".join(f"{n} {name} layers" for name, n in run.config.stacks),
        f"{len(run.source)} tokens: {' '.join(run.source.labels)}",
        f"{took} {run.device} in {run.dtype}; holds {run.nbytes / MiB:.1f} MiB",
    ]
    if (sentence := _non_finite_note(run)) is not None:
        return "\n".join([*lines, sentence])
    lines += [*run.loaded.notices, *run.warnings]
    if run.loaded.model.head is not None:
        found = run.predictions(k=5)
        likeliest = ", ".join(f"{s!r} {p:.1%}" for s, p in zip(found.strings[0], found.probs[0], strict=True))
        lines.append(f"after {tokens.labels[found.positions[0]]!r}: {likeliest}")
    if run.loaded.classifier is not None:
        lines.append(_classes_line(run.classes()))
    lines.append("strongest look of each attention (where no later token is seen: but for the first token and itself):")
    for record in run.attention:
        queries, keys = run.tokens_of(record)
        weight, head, query, key = _strongest_weight(record)
        looks = f"{queries.labels[query]!r} looks at {keys.labels[key]!r}"
        lines.append(f"  {record.name} head {head}: {looks}, {weight:.0%}")
    return "\n".join(lines)


def _classes_line(found: Classes) -> str:
    """The five most likely classes of a text, or the numbers of a regression."""
    if found.probabilities is None:
        return "numbers: " + ", ".join(f"{name!r} {x:.4g}" for name, x in zip(found.names, found.logits, strict=True))
    order = sorted(range(len(found.names)), key=lambda i: -found.logits[i])
    more = f" and {len(order) - 5} more" if len(order) > 5 else ""
    return "classes: " + ", ".join(f"{found.names[i]!r} {found.probabilities[i]:.1%}" for i in order[:5]) + more


def _strongest_weight(record: AttentionRecord) -> tuple[float, int, int, int]:
    """The largest weight of an attention, with its head, query and key.

    With a causal mask the first token and the token itself are left out: the first row has only one key, and the first token is the
    attention sink of most heads.
    """
    n, best = record.n_key, (-1.0, 0, 0, 0)
    is_causal = record.n_query == n > 2 and record.why_masked(query=0, key=1) == "future"
    for head in range(record.n_heads):
        weights = record.pattern(head)[0].clone()
        if is_causal:
            weights[:, 0] = 0
            weights.fill_diagonal_(0)
        at = int(weights.argmax())
        best = max(best, (weights.flatten()[at].item(), head, at // n, at % n))
    return best


def write_npz(run: TraceRecord, path: Path) -> None:
    """Every head's weights, [head, query, key] float32 under each attention's name, with tokens and ids.

    Raises TooLarge, with both numbers, above 4 GiB and above the free memory.
    """
    run = run.text(run.index)
    needed = sum(r.n_heads * r.n_query * r.n_key * 4 for r in run.attention)
    if needed > NPZ_BYTES:
        raise TooLarge(
            f"Every head's weights would be {needed / MiB:,.0f} MiB, and a file may hold {NPZ_BYTES / MiB:,.0f} MiB. "
            "Use a shorter text, or headlight.trace and pattern(heads, queries, keys) for the part you need."
        )
    check_fits(needed, free_bytes(torch.device("cpu")), "An archive of every head's weights")
    arrays: dict[str, Any] = {record.name: record.pattern().cpu().numpy() for record in run.attention}
    for what, tokens in (("source", run.source), ("target", run.target)):
        if tokens is not None:
            if min(tokens.ids) >= 0:  # runs from spellings have no ids
                arrays[f"{what}.ids"] = np.array(tokens.ids)
            arrays[f"{what}.labels"] = np.array(tokens.labels)
    with path.open("wb") as file:  # numpy would append .npz to a name
        np.savez_compressed(file, **arrays)


def html(run: TraceRecord) -> str:
    """Self-contained page with every head, which works offline. The text is included as data, never as markup."""
    run = run.text(run.index)
    page = (Path(__file__).parent / "report.html").read_text(encoding="utf-8")
    total = sum(r.n_heads * r.n_query * r.n_key * 2 for r in run.attention)
    records = []
    for record in run.attention:
        queries, keys = run.tokens_of(record)
        exact = total <= HTML_BYTES
        values = record.pattern() if exact else record.thumbnail(64).values
        records.append(
            {
                "name": record.name,
                "queries": list(queries.labels),
                "keys": list(keys.labels),
                "shape": list(values.shape),
                "exact": exact,
                "how": "every weight, to 1/65535" if exact else record.thumbnail(64, heads=0).how,
                "mask": _base64(np.packbits(~record.mask().cpu().numpy())) if exact else None,
                "values": _base64((values.nan_to_num(nan=0.0).clamp(0, 1) * 65535).round().cpu().numpy().astype("<u2")),
            }
        )
    captions = (
        f"{run.spec.title}, revision {run.spec.revision or 'as installed'}",
        f"torch {torch.__version__}, {run.device} {run.dtype}",
        _non_finite_note(run),
    )
    data = {
        "title": run.spec.title,
        "text": run.source.text,
        "caption": "; ".join(filter(None, captions)),
        "records": records,
    }
    # without "<" no text can close the script element or open another
    return page.replace("/*DATA*/null", json.dumps(data).replace("<", "\\u003c"))


def _non_finite_note(run: TraceRecord) -> str | None:
    """Where the first NaN or infinity of a run is; None if all numbers are finite."""
    found = run.non_finite
    if found is None:
        return None
    place = "" if found.layer is None else f" of layer {found.layer}"
    return f"numbers end at token {found.position}, in {found.what}{place} of the {found.stack}: {found.kind} from there on"


def _attention_measures(run: TraceRecord, record: AttentionRecord) -> dict[str, Any]:
    rows = torch.arange(0, record.n_query, max(1, math.ceil(record.n_query / MEASURED_ROWS)), device=record.device)
    heads = []
    for head in range(record.n_heads):
        pattern = record.pattern(head, rows)[0]
        has_keys = pattern.sum(-1) > 0
        is_self = record.site == "attn"
        heads.append(
            {
                "head": head,
                "entropy_bits": _mean(measures.entropy(pattern)[has_keys]),
                "distance": _mean(measures.distance(pattern, rows)[has_keys]) if is_self else None,
                "first_token_share": measures.sink_share(pattern).item(),
                "previous_token_share": measures.previous_token(pattern, rows).item() if is_self else None,
            }
        )
    return {
        "name": record.name,
        "stack": record.stack,
        "layer": record.layer,
        "site": record.site,
        "heads": heads,
        "kv_heads": record.n_kv_heads,
        "shape": [record.n_heads, record.n_query, record.n_key],
        "rows_measured": len(rows),
        "receipt": asdict(record.receipt()),
    }


def _token_lists(tokens: Tokens) -> dict[str, Any]:
    found = {
        "text": tokens.text,
        "labels": list(tokens.labels),
        "ids": list(tokens.ids) if min(tokens.ids, default=0) >= 0 else None,  # runs from spellings have no ids
        "strings": list(tokens.strings),
    }
    if tokens.is_chat:
        found |= {"roles": list(tokens.roles), "from_template": list(tokens.from_template)}
    return found


def _mean(x: Tensor) -> float | None:
    return x.mean().item() if len(x) else None


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(values.tobytes()).decode()


COLUMN, PAGE, TALLEST = 3.35, 6.9, 8.5  # inches: one of two columns, and the width and height of a page
FONT, MIN_FONT = 7.0, 5.0  # points: usual in print, and the smallest readable
LETTERS = 12  # of a token's label
# The app's colours on white paper. Each step is darker than the one before, so black-and-white copies keep the order.
SHADES = ("white", "#cfe0f2", "#7fb0dc", "#2f74b5", "#0b2f5c")
BAR = "#2f74b5"
HATCH, LEFT_OUT, GRID = "0.72", "0.85", "0.92"  # greys: masked cells, the sink, and lines between heads
PATHS = 20_000  # cells that are drawn as paths; larger maps become an image with a pixel for each cell
CELLS = 256  # per side of one head; longer maps are max-pooled, because printers lose thin lines
PIXELS, TILE = 2_000_000, 64  # of all heads together, and per side of one
ALL_BARS, BARS = 24, 12  # keys up to which a row shows all, and how many it shows of more
BOXES = "Last Resort"  # a font with a box for every character
STYLE = {"font.size": FONT, "axes.linewidth": 0.5, "hatch.linewidth": 0.3, "axes.titlesize": FONT}
SAVED = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "headlight"}
# names of the metadata for the title and the alternative text, by file format
METADATA = {"pdf": ("Title", "Subject"), "svg": ("Title", "Description"), "png": ("Title", "Description")}


def head_figure(
    run: TraceRecord, record: AttentionRecord, head: int, sink: bool = True, width: float = COLUMN
) -> Figure:
    """The weights of one head: queries down, keys across, hatched where masked.

    width is in inches. Without `sink` the attention sink of most heads is left out of the colours, and the figure says so. Raises
    IndexError for a head, ImportError without matplotlib.
    """
    record = record.of(run.index)
    _check_indices(record, head=head)
    weights = record.pattern(head)[0].float().nan_to_num(nan=0.0).cpu()  # [query, key]
    shown = weights.masked_fill(~record.mask(head=head).cpu(), torch.nan)
    sink_at = None if sink else _sink_key(run, record)
    if sink_at is not None:
        shown[:, sink_at] = torch.nan
    with _drawing(run, record) as (queries, keys):
        what = f"head {head}: {len(queries):,} queries down, {len(keys):,} keys across"
        high, wide = weights.shape
        tall = min(TALLEST, 0.75 + (width - 1.05) * high / wide)
        listed = _strongest_edges(weights, queries, keys, _sink_key(run, record))
        figure = _figure(_title(run, record, what), listed, width, tall)
        axes = figure.add_subplot()
        axes.patch.set(facecolor="white", hatch="////", edgecolor=HATCH, linewidth=0)
        picture = _draw_cells(axes, _patched(shown), max(1e-12, float(shown.nan_to_num(nan=0.0).max())), (high, wide))
        if sink_at is not None:
            axes.axvspan(sink_at, sink_at + 1, facecolor=LEFT_OUT, linewidth=0)
        room = min((width - 1.05) / wide, (tall - 0.75) / high) * 72  # points of a cell
        _label_axis(axes.xaxis, keys, room, "key", 90)
        _label_axis(axes.yaxis, queries, room, "query", 0)
        unit = "attention weight" if max(high, wide) <= CELLS else "largest attention weight of a patch"
        _add_colour_bar(figure, axes, picture, _unit(unit, keys, sink_at))
    return figure


def heads_figure(
    run: TraceRecord, records: Sequence[AttentionRecord], sink: bool = True, width: float | None = None
) -> Figure:
    """Every head of one kind of attention, layers down and heads across, each scaled to its own largest weight.

    width is in inches; None is a column for few heads and a page for many. Long texts are max-pooled. Raises ImportError without
    matplotlib.
    """
    records = [record.of(run.index) for record in records]
    most = max(record.n_heads for record in records)
    width = width or (COLUMN if most <= 12 else PAGE)
    side = min(TILE, max(4, math.isqrt(PIXELS // (len(records) * most))))
    sink_at = None if sink else _sink_key(run, records[0])
    high, wide = min(side, records[0].n_query), min(side, records[0].n_key)
    sheet = torch.full((len(records) * (high + 1) - 1, most * (wide + 1) - 1), torch.nan)
    for i, record in enumerate(records):
        for head, tile in enumerate(_tiles(record, (high, wide), sink_at)):
            top, left = i * (high + 1), head * (wide + 1)
            sheet[top : top + high, left : left + wide] = tile
    with _drawing(run, records[0]) as (_, keys):
        tall = min(TALLEST, 0.7 + (width - 0.95) * sheet.shape[0] / sheet.shape[1])
        what = f"all {sum(record.n_heads for record in records):,} heads: layers down, heads across"
        figure = _figure(_title(run, records[0], what, of_all=True), "", width, tall)
        axes = figure.add_subplot()
        axes.patch.set_facecolor(GRID)
        picture = _draw_cells(axes, sheet, 1.0, (sheet.shape[0], sheet.shape[1]))
        for axis, numbers, step, name in (
            (axes.xaxis, range(most), wide + 1, "head"),
            (axes.yaxis, [record.layer for record in records], high + 1, "layer"),
        ):
            shown = range(0, len(numbers), math.ceil(len(numbers) / 16))
            axis.set_ticks([i * step + (step - 1) / 2 for i in shown], labels=[str(numbers[i]) for i in shown])
            axis.set_label_text(name)
        axes.tick_params(length=0)
        _add_colour_bar(figure, axes, picture, _unit("weight, by the largest of its head", keys, sink_at))
    return figure


def row_figure(
    run: TraceRecord, record: AttentionRecord, head: int, query: int | None = None, width: float = COLUMN
) -> Figure:
    """Attention weights of one query, a bar for each key. Of many keys the strongest, in the order of the text, and the others as one bar.

    query None is the last real token. Raises IndexError for a head or a query, ImportError without matplotlib.
    """
    record = record.of(run.index)
    padding = run.tokens_of(record)[0].padding
    query = max((i for i, pads in enumerate(padding) if not pads), default=0) if query is None else query
    _check_indices(record, head=head, query=query)
    row = record.row(head, query).float().nan_to_num(nan=0.0).cpu()
    seen = record.mask(queries=[query], head=head)[0].cpu().nonzero()[:, 0]
    chosen = seen if len(seen) <= ALL_BARS else seen[row[seen].topk(BARS).indices.sort().values]
    values = row[chosen].tolist()
    with _drawing(run, record) as (queries, keys):
        names = [keys[i] if len(seen) <= ALL_BARS else f"{keys[i]} ({i})" for i in chosen.tolist()]
        if len(chosen) < len(seen):
            names.append(f"{len(seen) - len(chosen):,} others")
            values.append(float(row[seen].sum() - row[chosen].sum()))
        title = _title(run, record, f"head {head}: where “{queries[query]}” (token {query}) looks")
        listed = "; ".join(f"{name} {value:.2f}" for name, value in zip(names, values, strict=True))
        figure = _figure(title, listed, width, 0.6 + 0.145 * max(2, len(names)))
        axes = figure.add_subplot()
        axes.barh(range(len(names)), values, color=BAR, height=0.72)
        for at, value in enumerate(values):
            axes.annotate(
                f"{value:.2f}", (value, at), (2, 0), textcoords="offset points", va="center", fontsize=FONT - 1
            )
        axes.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, 1.15 * max([*values, 1e-6])))
        axes.set_yticks(range(len(names)), labels=names, parse_math=False)
        axes.tick_params(axis="y", length=0)
        masked = len(row) - len(seen)
        unit = f"weight that “{queries[query]}” gives" + (f"; {masked:,} keys are masked" if masked else "")
        axes.set_xlabel(unit, parse_math=False)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def resolve_head(run: TraceRecord, layer: int | None, head: int | None, site: str) -> tuple[AttentionRecord, int]:
    """The attention and the head; None for both selects those that the app opens on. Raises KeyError."""
    if layer is None and head is None:
        at, opened = opening_head(run)
        if run.attention[at].site == site:
            return run.attention[at], opened
    layers = [record.layer for record in run.attention if record.site == site and record.layer is not None]
    return run.attention.at(min(layers, default=0) if layer is None else layer, site), head or 0


def records_of_site(run: TraceRecord, site: str) -> list[AttentionRecord]:
    """The attentions of one kind in the last stack that has it. Raises KeyError."""
    stack = resolve_head(run, None, 0, site)[0].stack
    return [record for record in run.attention if (record.stack, record.site) == (stack, site)]


def _check_indices(record: AttentionRecord, **chosen: int) -> None:
    """Raises IndexError."""
    sizes = {"head": record.n_heads, "query": record.n_query}
    for name, value in chosen.items():
        if not 0 <= value < sizes[name]:
            raise IndexError(f"{record.name} has no {name} {value}: choose one of 0 to {sizes[name] - 1}.")


def _sink_key(run: TraceRecord, record: AttentionRecord) -> int | None:
    """The attention sink of at least half of the heads of this kind of attention, if there is one."""
    kind = (record.stack, record.site)
    found = sink_of([other.of(run.index) for other in run.attention if (other.stack, other.site) == kind])
    return found.key if found is not None and found.is_sink else None


def _tiles(record: AttentionRecord, size: tuple[int, int], sink_at: int | None) -> Iterator[Tensor]:
    """Each head's weights, max-pooled and divided by the largest of the head, [row, column]."""
    for heads in row_blocks(record.n_heads, record.n_query * record.n_key * 4):
        weights = record.pattern(range(heads.start, heads.stop)).float().nan_to_num(nan=0.0).cpu()
        if sink_at is not None:
            weights[:, :, sink_at] = 0
        tiles = adaptive_max_pool2d(weights, size)
        yield from tiles / tiles.amax((1, 2), keepdim=True).clamp_min(1e-12)


def _patched(weights: Tensor) -> Tensor:
    """Max-pooled weights [row, column], at most CELLS per side; nan where the whole patch is nan."""
    size = (min(CELLS, weights.shape[0]), min(CELLS, weights.shape[1]))
    found = adaptive_max_pool2d(weights.nan_to_num(nan=-1.0)[None], size)[0]
    return found.masked_fill(found < 0, torch.nan)


def _title(run: TraceRecord, record: AttentionRecord, what: str, of_all: bool = False) -> str:
    site = "cross-attention" if record.site == "cross_attn" else "self-attention"
    layer = "" if of_all or record.layer is None else f"layer {record.layer}, "
    return f"{run.spec.title}, {record.stack} {site}, {layer}{what}"


def _strongest_edges(weights: Tensor, queries: Sequence[str], keys: Sequence[str], sink_at: int | None) -> str:
    """The three largest weights of rows with two or more keys, without those on the attention sink."""
    chosen = weights.masked_fill(weights.max(1, keepdim=True).values > 1 - 1e-6, 0)
    if sink_at is not None:
        chosen[:, sink_at] = 0
    found = chosen.flatten().topk(min(3, chosen.numel()))
    looks = []
    for value, at in zip(found.values.tolist(), found.indices.tolist(), strict=True):
        query, key = divmod(int(at), weights.shape[1])
        looks.append(f"“{queries[query]}” looks at “{keys[key]}”, {value:.2f}")
    rests = (
        ""
        if sink_at is None
        else f". Heads rest on “{keys[sink_at]}”: it gets {float(weights[:, sink_at].mean()):.2f} here"
    )
    return f"Strongest: {'; '.join(looks)}{rests}"


def _unit(unit: str, keys: Sequence[str], sink_at: int | None) -> str:
    return unit if sink_at is None else f"{unit}, “{keys[sink_at]}” left out"


def _label_axis(axis: Any, names: Sequence[str], room: float, what: str, turned: int) -> None:
    """Token labels if they fit next to the cells, else positions."""
    if room >= MIN_FONT:
        axis.set_ticks([i + 0.5 for i in range(len(names))], labels=names, parse_math=False)
        axis.set_tick_params(rotation=turned, labelsize=min(FONT, room), length=0)
        axis.set_label_text(what)
    else:
        axis.set_major_locator(import_module("matplotlib.ticker").MaxNLocator(8, integer=True))
        axis.set_label_text(f"position of the {what}")


@dataclass(frozen=True)
class FontCoverage:
    """The font families that a text needs, and the characters that no installed font has."""

    families: tuple[str, ...]
    missing: frozenset[str]

    def label(self, token: str) -> str:
        """A token's label, with U+… for characters that no font has."""
        text = "".join(f"U+{ord(letter):04X}" if letter in self.missing else letter for letter in token)
        return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


def font_coverage(text: str) -> FontCoverage:
    """matplotlib's own font, and installed fonts with the characters that it lacks."""
    manager = import_module("matplotlib.font_manager")
    families = ["DejaVu Sans"]
    missing = {letter for letter in set(text) if ord(letter) not in _characters_of(manager.findfont("DejaVu Sans"))}
    others = (font for font in manager.fontManager.ttflist if not font.name.startswith(BOXES))
    for font in sorted(others, key=lambda font: (font.style != "normal", font.weight != 400, font.name)):
        if not missing:
            break
        if had := {letter for letter in missing if ord(letter) in _characters_of(font.fname)}:
            families.append(font.name)
            missing -= had
    return FontCoverage(tuple(families), frozenset(missing))


@cache
def _characters_of(path: str) -> frozenset[int]:
    return frozenset(import_module("matplotlib.ft2font").FT2Font(path).get_charmap())


@cache
def paper_figure() -> type[Figure]:
    """A matplotlib figure that notebooks show as vectors and that embeds fonts and metadata in every file.

    Raises ImportError, naming the extra to install, if matplotlib is missing.
    """
    try:
        matplotlib, plain = import_module("matplotlib"), import_module("matplotlib.figure")
    except ImportError as error:
        raise ImportError(missing_extra("plot()", "matplotlib", "plot")) from error

    class PaperFigure(plain.Figure):
        caption = alt = ""

        def savefig(self, fname: Any, **options: Any) -> None:
            kind = options.get("format") or PurePath(str(getattr(fname, "name", fname))).suffix[1:].lower()
            if kind in METADATA:
                texts = dict(zip(METADATA[kind], (self.caption, self.alt), strict=True))
                options["metadata"] = {**texts, **(options.get("metadata") or {})}
            with matplotlib.rc_context(SAVED):
                super().savefig(fname, **options)

        def _repr_svg_(self) -> str:
            written = StringIO()
            self.savefig(written, format="svg")
            return written.getvalue()

    return PaperFigure


@contextmanager
def _drawing(run: TraceRecord, record: AttentionRecord) -> Iterator[tuple[list[str], list[str]]]:
    """Apply the style of a paper figure; yields the labels of queries and keys that the fonts can display."""
    paper_figure()
    labels = [tokens.labels for tokens in run.tokens_of(record)]
    known = font_coverage("".join(label for some in labels for label in some))
    with import_module("matplotlib").rc_context({**STYLE, "font.family": list(known.families)}):
        queries, keys = ([known.label(label) for label in some] for some in labels)
        yield queries, keys


def _figure(caption: str, listed: str, width: float, height: float) -> Any:
    figure: Any = paper_figure()(figsize=(width, height), layout="constrained")
    figure.caption, figure.alt = caption, f"{caption}. {listed}" if listed else caption
    return figure


def _draw_cells(axes: Any, values: Tensor, top: float, size: tuple[int, int]) -> Any:
    """Cells [row, column] in shades from 0 to `top` on an area of this height and width, the first row on top; nan stays empty."""
    colours = import_module("matplotlib.colors").LinearSegmentedColormap.from_list("weights", SHADES)
    cells, (high, wide) = values.numpy(), size
    shades = {"cmap": colours, "vmin": 0, "vmax": top}
    if values.numel() <= PATHS:
        rows, columns = (torch.linspace(0, end, n + 1).numpy() for end, n in zip(size, values.shape, strict=True))
        picture = axes.pcolormesh(columns, rows, cells, **shades, edgecolors="face", linewidth=0.1)
    else:
        picture = axes.imshow(cells, **shades, extent=(0, wide, high, 0), interpolation="none")
    axes.set(xlim=(0, wide), ylim=(high, 0), aspect="equal")
    axes.xaxis.set_label_position("top")
    axes.xaxis.tick_top()
    return picture


def _add_colour_bar(figure: Any, axes: Any, picture: Any, unit: str) -> None:
    """The colour bar; afterwards the figure's height is cut to its content."""
    bar = figure.colorbar(picture, ax=axes, shrink=0.8, aspect=0.8 * figure.get_figheight() / 0.08, pad=0.02)
    bar.outline.set_linewidth(0.5)
    bar.solids.set(rasterized=False, edgecolor="face")
    bar.ax.set_ylabel(unit, parse_math=False)
    figure.draw_without_rendering()
    figure.set_figheight(min(figure.get_figheight(), figure.get_tightbbox().height + 0.1))
