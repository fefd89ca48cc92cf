"""still(): a static picture of one head for notebooks, as HTML with an SVG; without scripts, and with all text escaped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from html import escape
from typing import Self

import torch
from torch import Tensor

from .. import dataframes
from ..checkpoints import Loaded, ModelSpec
from ..device import dtype_name
from ..edits import Intervention
from ..model.config import ModelConfig
from ..model.hooks import hook_points
from ..model.text import Tokens
from .attention import AttentionRecord
from .forward_pass import Pass
from .predictions import Classes, Predictions, checked_positions, class_logits, classifier_of, head_of, top_k_tokens
from .recorder import Attentions, NonFinite, PositionRecord, TensorStep, activation, first_non_finite, held_bytes
from .request import Prompt, notices

MAX_TOKENS = 48  # along each axis; of a longer text the first ones are shown
LABEL_CHARS = 12
SHADES = 16  # of one colour
BLUE = "#2f74b5"  # of weights on every screen; visible on white and on dark notebooks
PURPLE = "#86479c"  # of negative numbers
MAX_WEIGHT = 1.05  # a weight of 1 after rounding
CELL, LABEL = 14, 92  # pixels


def still(title: str, record: AttentionRecord, head: int, queries: Sequence[str], keys: Sequence[str]) -> str:
    """Weights of one head, queries down and keys across, with the strongest ones in words below. At most 100 kB.

    Numbers that are not weights, because they are below 0 or above 1, are scaled to the largest one; negative ones are purple.
    """
    rows, columns = min(MAX_TOKENS, record.n_query), min(MAX_TOKENS, record.n_key)
    weights = record.pattern(head, range(rows), range(columns))[0].nan_to_num(nan=0.0).cpu()
    more = rows < record.n_query or columns < record.n_key
    what = f"{record.name}, head {head}: {record.n_query:,} queries down, {record.n_key:,} keys across"
    what += f"; the first {rows} and {columns} are shown" if more else ""
    width, height = LABEL + columns * CELL, LABEL + rows * CELL
    marks = [
        *(_label(LABEL - 6, LABEL + i * CELL + CELL - 4, queries[i]) for i in range(rows)),
        *(_label(LABEL + j * CELL + CELL - 4, LABEL - 6, keys[j], turned=True) for j in range(columns)),
        *_cells(weights),
        f'<rect x="{LABEL}" y="{LABEL}" width="{columns * CELL}" height="{rows * CELL}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>',
    ]
    return (
        f'<figure style="margin:0"><figcaption>{escape(title)}<br/>{escape(what)}</figcaption>'
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(what)}" font-family="sans-serif" font-size="11" fill="currentColor">{"".join(marks)}</svg>'
        f"<p>{_strongest(weights, queries, keys)}</p>{_table(weights, queries, keys)}</figure>"
    )


def _label(x: int, y: int, label: str, turned: bool = False) -> str:
    short = label if len(label) <= LABEL_CHARS else label[: LABEL_CHARS - 1] + "…"
    if turned:
        return f'<text transform="translate({x},{y}) rotate(-90)">{escape(short)}</text>'
    return f'<text x="{x}" y="{y}" text-anchor="end">{escape(short)}</text>'


def _cells(weights: Tensor) -> list[str]:
    """One path for each shade, from white for 0 to blue for 1, and to purple for −1."""
    shares = weights / max(1.0, float(weights.abs().max()))
    shades = (shares.abs() * SHADES).ceil().int()
    paths = []
    for colour, side in ((BLUE, shares > 0), (PURPLE, shares < 0)):
        for shade in range(1, SHADES + 1):
            cells = ((shades == shade) & side).nonzero().tolist()
            # Less than half a shade stays white, so that a row of equal weights shows nothing.
            if shade == 1:
                cells = [(i, j) for i, j in cells if abs(shares[i, j]) * SHADES >= 0.5]
            if cells:
                d = "".join(f"M{LABEL + j * CELL} {LABEL + i * CELL}h{CELL}v{CELL}h-{CELL}z" for i, j in cells)
                paths.append(f'<path d="{d}" fill="{colour}" fill-opacity="{shade / SHADES:.2f}"/>')
    return paths


def _amount(value: float, weights: Tensor, places: int = 0) -> str:
    """A weight as a percentage; if these are not weights, the number itself."""
    is_share = float(weights.min()) >= 0 and float(weights.max()) <= MAX_WEIGHT
    return f"{value:.{places}%}" if is_share else f"{value:.3g}"


def _strongest(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> str:
    top = weights.flatten().topk(min(3, weights.numel()))
    edges = []
    for value, at in zip(top.values.tolist(), top.indices.tolist(), strict=True):
        query, key = divmod(int(at), weights.shape[1])
        edges.append(f"“{one_line(queries[query])}” looks at “{one_line(keys[key])}”, {_amount(value, weights)}")
    return escape("Strongest: " + "; ".join(edges) + ".")


def _table(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> str:
    """The strongest key of every query, for screen readers."""
    largest = weights.max(-1)
    rows = "".join(
        f"<tr><td>{escape(one_line(queries[i]))}</td><td>{escape(one_line(keys[int(key)]))}</td><td>{_amount(weight, weights, 1)}</td></tr>"
        for i, (weight, key) in enumerate(zip(largest.values.tolist(), largest.indices.tolist(), strict=True))
    )
    head = "<tr><th>Token</th><th>Looks most at</th><th>Weight</th></tr>"
    return f"<details><summary>As a table</summary><table>{head}{rows}</table></details>"


def one_line(text: str, most: int = 60) -> str:
    """A text for a repr: on one line, at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


@dataclass(frozen=True, eq=False, repr=False)
class TraceRecord:
    """One run of a model, viewed from one text of the batch: the first, or the one selected with text(i), which does
    not copy. core.trace.Trace adds figures, attribution and ablation.

    run["encoder.blocks.3.attn"] is the record of that attention; run["encoder.blocks.3.hook_resid_post"] is the
    activation at that hook point.
    """

    loaded: Loaded
    sources: tuple[Tokens, ...]
    targets: tuple[Tokens, ...] | None
    records: tuple[AttentionRecord, ...]
    position_records: tuple[PositionRecord, ...]
    steps: tuple[TensorStep, ...]
    norms: dict[str, Tensor]  # hook point (residual stream or sublayer output) -> ‖x‖ [batch, pos]
    last_residual: Callable[[Tensor], Tensor]  # positions [pos] -> [batch, pos, d_model]
    forward: Pass  # the forward pass, which can be rerun
    seconds: float
    text_index: int | None = None  # index of the selected text; None until text(i) is called
    predicted_bytes: int = 0
    chunks: int = 1  # number of chunks in which the text was processed

    @property
    def interventions(self) -> tuple[Intervention, ...]:
        return self.forward.interventions

    @property
    def config(self) -> ModelConfig:
        return self.loaded.config

    @property
    def spec(self) -> ModelSpec:
        return self.loaded.spec

    @property
    def device(self) -> str:
        return str(self.loaded.device)

    @property
    def dtype(self) -> str:
        return dtype_name(self.loaded.dtype)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about this run, for example unmasked padding."""
        return notices(self.loaded, Prompt(self.sources, self.targets))

    @property
    def texts(self) -> int:
        """Number of texts in the batch."""
        return len(self.sources)

    @property
    def source(self) -> Tokens:
        return self.sources[self.index]

    @property
    def target(self) -> Tokens | None:
        return None if self.targets is None else self.targets[self.index]

    @property
    def index(self) -> int:
        return self.text_index or 0

    @cached_property
    def attention(self) -> Attentions:
        """All attention records in forward order; attention.at(layer, site) selects one.

        In a batch, records have a text axis.
        """
        if self.text_index is None and self.texts > 1:
            return Attentions(self.records)
        return Attentions(record.of(self.index) for record in self.records)

    def __getitem__(self, name: str) -> AttentionRecord | Tensor:
        """The attention record with this module path, or the activation at this hook point (see activation()).

        Raises KeyError, which suggests the closest name.
        """
        record = next((record for record in self.attention if record.name == name), None)
        if record is not None:
            return record
        if name not in (points := hook_points(self.loaded.model)):
            near = get_close_matches(str(name), [*(record.name for record in self.records), *points], 1)
            meant = (
                f"Is {near[0]} meant?"
                if near
                else "run.attention and headlight.hook_points(model) say which there are."
            )
            raise KeyError(f"there is no attention and no hook point {name!r}. {meant}")
        return self.activation(name)

    def to_frame(self) -> dataframes.DataFrame:
        """The steps of the pass as a pandas DataFrame, one row per step."""
        return dataframes.of_records(self.steps, TensorStep)

    def __repr__(self) -> str:
        read = f"{len(self.source)} token{'s' * (len(self.source) != 1)}"
        read += f" and {len(self.target)}" if self.target is not None else ""
        of = "" if self.texts == 1 else f", the first of {self.texts} texts"
        of = of if self.text_index is None else f", text {self.index} of {self.texts}"
        n = len(self.interventions)
        edits = f", {n} edit{'s' * (n > 1)}" if n else ""
        return (
            f"<Trace of {one_line(self.spec.title, 40)}: {read}{of}, {one_line(self.source.text)!r}; {len(self.records)} attentions "
            f"of {self.config.n_heads} heads{edits}; {self.dtype} on {self.device}, {self.seconds * 1000:.0f} ms>"
            + "".join(f"\n{warning}" for warning in self.warnings)
        )

    @property
    def positions(self) -> tuple[PositionRecord, ...]:
        """Position records, one per stack."""
        return tuple(replace(record, text=self.index) for record in self.position_records)

    @property
    def residual_norms(self) -> dict[str, Tensor]:
        """‖x‖ [pos] of the residual stream and of each sublayer output, by hook point in forward order."""
        return {name: norms[self.index] for name, norms in self.norms.items()}

    @property
    def non_finite(self) -> NonFinite | None:
        """Where the first NaN or infinity of this text appeared; None if all values are finite.

        Derived from the norms that every run stores, so it is free. A non-finite value inside a sublayer is reported
        where the sublayer adds to the residual stream.
        """
        padding: dict[str, tuple[bool, ...]] = {
            stack: self._tokens_of_stack(stack).padding for stack, _ in self.config.stacks
        }
        return first_non_finite(self.residual_norms, padding)

    def _tokens_of_stack(self, stack: str) -> Tokens:
        return self.source if stack == "encoder" or self.target is None else self.target

    @property
    def nbytes(self) -> int:
        """Bytes that the trace holds, excluding the model."""
        kept = sum(record.nbytes + held_bytes(record.values) + held_bytes(record.edited_z) for record in self.records)
        norms = {id(t): t.nbytes for t in self.norms.values()}  # the same tensor can appear under two names
        return kept + sum(norms.values()) + held_bytes(self.last_residual)

    def text(self, index: int) -> Self:
        """A view of this run for another text of the batch."""
        if not 0 <= index < self.texts:
            raise IndexError(f"text {index} of a batch of {self.texts}")
        return replace(self, text_index=index)

    def tokens_of(self, record: AttentionRecord) -> tuple[Tokens, Tokens]:
        """(query tokens, key tokens) of a record; for cross-attention, target and source."""
        if record.stack == "encoder" or self.targets is None:
            return self.sources[record.text], self.sources[record.text]
        queries = self.targets[record.text]
        return queries, self.sources[record.text] if record.site == "cross_attn" else queries

    def predictions(self, positions: Sequence[int] | None = None, k: int = 10) -> Predictions:
        """The k most likely next tokens at each position, in descending order; None means the last token that is not
        padding.

        Logits are computed only for these positions. Raises TextError for models without an LM head.
        """
        head_of(self.loaded)
        chosen = checked_positions(self.predicting_tokens, positions)
        self.forward.weights.check()
        x = self.final_residual(chosen)
        predictions = top_k_tokens(self.loaded, x, self.predicting_tokens, chosen, k)
        self.forward.weights.check()  # training may be running concurrently
        return predictions

    def classes(self) -> Classes:
        """Output of a classifier: one value per class. Raises TextError for models without a classification head."""
        answers = classifier_of(self.loaded).classes
        self.forward.weights.check()
        logits = self.class_logits()
        probabilities = answers.probabilities(logits)
        chances = None if probabilities is None else tuple(probabilities.tolist())
        return Classes(answers.names, answers.kind, tuple(logits.tolist()), chances)

    def class_logits(self) -> Tensor:
        """Logits [class] of the classification head in float32. Raises TextError for models without one."""
        prompt = Prompt((self.source,), None if self.target is None else (self.target,))
        return class_logits(self.loaded, self.final_residual(range(len(self.predicting_tokens)))[None], prompt)[0]

    def final_residual(self, positions: Sequence[int] | Tensor) -> Tensor:
        """Final residual stream at these positions of this text, [pos, d_model]: the input of the LM head."""
        return self.last_residual(torch.as_tensor(positions, device=self.loaded.device))[self.index]

    @property
    def predicting_tokens(self) -> Tokens:
        """The tokens after which the model predicts: the target, or the source if there is none."""
        return self.source if self.target is None else self.target

    def activation(self, point: str, positions: Sequence[int] | None = None) -> Tensor:
        """Activation at a hook point for this text: the axes of the point without batch, in the dtype of the run.

        `positions` selects along the pos, query or key axis (None: all). core.hook_points(model) lists the names.
        Stored activations are returned directly; scores and pattern are computed from q and k in float32; anything else
        takes another forward pass with the same edits, which stops at the hook point. Raises KeyError for an unknown
        point or one without a tensor, IndexError for a position, TooLarge with the bytes needed and free, and Outdated
        if the model was trained since.
        """
        return activation(self.forward, self.attention, self.last_residual, point, self.index, positions)

    def require_model(self, what: str) -> None:
        """Raises Refused for a run whose model cannot be rerun or looked into; `what` is what cannot be read from it."""
