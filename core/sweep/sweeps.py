"""Which head does an answer depend on, or which look, or which head of another run: one edit after the other, each by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from .. import frames
from ..errors import InterventionError, TextError
from ..model.hooks import ReadHook
from ..model.rules import row_blocks
from ..model.text import Tokens
from ..run.classes import check_class
from ..run.predictions import check_token, checked_positions, head_of, labels_of
from ..run.trace import Trace
from .ablations import (
    RowAnswers,
    Rows,
    To,
    class_names,
    cut,
    has_classes,
    heads_of,
    in_batches,
    patched,
    place_of,
    rows_of,
    silenced,
    together,
)

Site = Literal["attn", "cross_attn"]
Where = Literal["all", "last"]
MOST_LOOKS = 40  # tokens: in longer texts the looks of one query are cut, since all would be n²/2


@dataclass(frozen=True)
class SilenceHeads:
    """Asks for what sweep_heads() gives."""

    to: To = "zero"
    position: int | None = None
    token: int | None = None
    groups: bool = False


@dataclass(frozen=True)
class CutLooks:
    """Asks for what sweep_edges() gives."""

    site: Site = "attn"
    stack: str | None = None
    layer: int | None = None
    head: int | None = None
    query: int | None = None
    position: int | None = None
    token: int | None = None


@dataclass(frozen=True)
class PatchHeads:
    """Asks for what patch_heads() gives; `other` is the key of a run."""

    other: str
    where: Where = "all"
    position: int | None = None
    token: int | None = None


Asked = SilenceHeads | CutLooks | PatchHeads


@dataclass(frozen=True)
class HeadPlace:
    """A head of the model, or several that share keys and values: `n` from this one on."""

    stack: str
    layer: int
    site: Site
    head: int
    n: int = 1


@dataclass(frozen=True)
class LookPlace:
    """A query and the key that it may not look at."""

    query: int
    key: int


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """What each of many edits does by itself to one answer: a row for each of `places`."""

    places: tuple[HeadPlace, ...] | tuple[LookPlace, ...]
    before: RowAnswers  # one row: the run itself
    after: RowAnswers
    position: int | None  # after which the prediction is; None: it is about the classes or the vectors of the text
    watched: tuple[int, ...] = ()  # tokens or classes: the first is the answer
    labels: Mapping[int, str] = field(default_factory=dict)  # of every token or class that a row names
    single: tuple[int, ...] = ()  # queries with one key alone, or with none, which are never cut
    query: int | None = None  # the only query whose looks were cut; None: every one
    lengths: np.ndarray | None = (
        None  # float32 [row]: ‖z W_O‖ of each head that is silenced, in the run itself: see _lengths()
    )

    def __repr__(self) -> str:
        what = f"the prediction after token {self.position}"
        if self.position is None:
            what = "the text's vectors" if self.after.distance is not None else "the text's class"
        edited = "heads" if self._of_heads else "looks"
        return f"<Sweep over {len(self.places)} {edited}: what each changes of {what}>"

    @property
    def _of_heads(self) -> bool:
        return not self.places or isinstance(self.places[0], HeadPlace)

    def to_frame(self) -> frames.DataFrame:
        """A row for each edit: its place and how the answer is with it. The run's own answer is `before`. Needs pandas.

        Of a prediction there are the logit and the probability of the answer, and the KL divergence from the run's; of the
        text's vector, its distance from the run's.
        """
        columns: dict[str, Sequence[object]] = frames.columns_of(
            self.places, HeadPlace if self._of_heads else LookPlace
        )
        if set(columns.get("n", ())) <= {1}:
            columns.pop("n", None)  # each head by itself
        after = self.after
        for name, found in (("logit", after.logit), ("probability", after.probability)):
            if found is not None:
                columns[name] = found[:, 0].tolist()
        for name, found in (("kl", after.kl), ("distance", after.distance), ("length", self.lengths)):
            if found is not None:
                columns[name] = found.tolist()
        return frames.of_columns(columns)


@dataclass(frozen=True, eq=False)
class Sweeping:
    """A sweep that is to be run, a few rows at a time."""

    places: tuple[HeadPlace, ...] | tuple[LookPlace, ...]
    rows: Rows
    single: tuple[int, ...] = ()
    query: int | None = None
    lengths: np.ndarray | None = None

    def part(self, after: RowAnswers, first: int) -> Sweep:
        """Results of the rows from `first` on."""
        before = self.rows.before()
        named = {int(i) for x in (before.ids, after.ids) if x is not None for i in x.flat} | {*self.rows.watched}
        ids = sorted(named)
        loaded = self.rows.forward.loaded
        labels = labels_of(loaded, ids) if self.rows.position is not None or not ids else class_names(loaded, ids)
        places = self.places[first : first + after.n_rows]
        watched = self.rows.watched
        names = dict(zip(ids, labels, strict=True))
        lengths = None if self.lengths is None else self.lengths[first : first + after.n_rows]
        return Sweep(places, before, after, self.rows.position, watched, names, self.single, self.query, lengths)

    def finish(self, watch: Callable[[int, int], object]) -> Sweep:
        """All rows, one batch after the other."""
        done: list[RowAnswers] = []
        for outcome in in_batches(self.rows):
            done.append(outcome)
            watch(sum(part.n_rows for part in done), len(self.places))
        return self.part(together(done), 0)


def sweep_heads(
    run: Trace,
    to: To = "zero",
    position: int | None = None,
    token: int | None = None,
    watch: Callable[[int, int], object] = lambda done, of: None,
    groups: bool = False,
) -> Sweep:
    """Every head silenced in turn: what each alone changes of the prediction of `token` (None: the likeliest) after
    `position` (None: the last real token); for a classifier of the class `token`; for an encoder that is asked about no position,
    of the text's vectors.

    Silent is an output of zero, or with "mean" the mean of the head's outputs over the text. Michel et al. 2019. With `groups`,
    heads that share keys and values (grouped-query attention) are silenced together, a row for each group. The run's other
    edits hold in every row. Raises IndexError, TextError, TooLarge with both numbers, and Outdated after a training.
    """
    return begin_heads(run, SilenceHeads(to, position, token, groups)).finish(watch)


def sweep_edges(
    run: Trace,
    site: Site = "attn",
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    query: int | None = None,
    position: int | None = None,
    token: int | None = None,
    watch: Callable[[int, int], object] = lambda done, of: None,
) -> Sweep:
    """Every look, of a query at a key, cut in turn: in all layers and heads of a kind of attention, or in those that are named.

    stack None is the last one. A query that may look at one key alone is never cut. In texts of more than MOST_LOOKS tokens
    the looks of one query are cut: `query`, None for that of the position asked about, or the last. Raises as sweep_heads().
    """
    return begin_edges(run, CutLooks(site, stack, layer, head, query, position, token)).finish(watch)


def patch_heads(
    run: Trace,
    other: Trace,
    where: Where = "all",
    position: int | None = None,
    token: int | None = None,
    watch: Callable[[int, int], object] = lambda done, of: None,
) -> Sweep:
    """Every head in turn gives what it gave in the other run: which of them carries the difference between two texts?

    "all" takes its output at all tokens, which needs texts of equal length; "last" at the last token alone. Watched are the
    answer of the run and that of the other. Activation patching (Vig et al. 2020; Meng et al. 2022). Raises as
    sweep_heads(), and TextError for another model or length.
    """
    return begin_patches(run, other, where, position, token).finish(watch)


def begin_heads(run: Trace, asked: SilenceHeads) -> Sweeping:
    """The sweep of sweep_heads(), before it runs."""
    to, token = asked.to, asked.token
    if to not in ("zero", "mean"):
        raise InterventionError(f"A head is silenced to zero or to the mean, not {to!r}.")
    sizes = {r.name: r.n_heads // r.n_kv_heads if asked.groups else 1 for r in run.records}
    heads = [(name, head) for name, head in heads_of(run.forward) if head % sizes[name] == 0]
    alone = run.forward.of(run.index)
    edits = silenced(heads, to, alone.prompt, sizes)
    at = asked_position(run, asked.position, token)
    written: dict[str, Tensor] = {}
    looks = _lengths(run, at, sizes, written)
    rows = rows_of(alone, edits, at, token, looks=looks)
    places = tuple(HeadPlace(*place_of(name), head, sizes[name]) for name, head in heads)
    lengths = np.array([written[name][head // sizes[name]].item() for name, head in heads], np.float32)
    return Sweeping(places, rows, lengths=lengths)


def begin_edges(run: Trace, asked: CutLooks) -> Sweeping:
    """The sweep of sweep_edges(), before it runs."""
    site, stack, layer, head, query, token = asked.site, asked.stack, asked.layer, asked.head, asked.query, asked.token
    last = run.config.stacks[-1][0] if stack is None else stack
    records = [r for r in run.records if (r.stack, r.site) == (last, site) and layer in (None, r.layer)]
    if not records:
        raise InterventionError(f"This run has no such attention: {site} in layer {layer} of the {last}.")
    if head is not None and not 0 <= head < run.config.n_heads:
        raise InterventionError(f"There is no head {head}: this model's heads are 0 to {run.config.n_heads - 1}.")
    at = asked_position(run, asked.position, token)
    queries, keys = run.text(run.index).tokens_of(records[0].of(run.index))
    if query is None and max(len(queries), len(keys)) > MOST_LOOKS:
        query = at if at is not None and at < len(queries) else checked_positions(queries, None)[0]
    if query is not None:
        checked_positions(queries, [query])
    seen = torch.zeros(len(queries), len(keys), dtype=torch.bool)
    for record in records:
        mask = record.of(run.index).rule.mask
        columns = torch.arange(len(keys), device=record.device)
        for block in row_blocks(len(queries), len(keys) * mask.n_heads):
            lines = torch.arange(block.start, block.stop, device=record.device)
            allowed = mask.block(lines, columns)[0]  # [head or 1, query, key]
            own = allowed[head] if head is not None and len(allowed) > 1 else allowed.any(0)
            seen[block] |= own.cpu()
    seen[torch.tensor(queries.padding)] = False
    single = tuple(i for i, n in enumerate(seen.sum(-1).tolist()) if n < 2 and not queries.padding[i])
    cells = [(i, j) for i, j in seen.nonzero().tolist() if i not in single and query in (None, i)]
    if not cells:
        raise InterventionError(f"Query {query} may look at one token alone, which cannot be cut. Choose a later one.")
    edits = cut(cells, [record.name for record in records], head, run.config.n_heads)
    rows = rows_of(run.forward.of(run.index), edits, at, token)
    return Sweeping(tuple(LookPlace(i, j) for i, j in cells), rows, single, query)


def begin_patches(
    run: Trace, other: Trace, where: Where = "all", position: int | None = None, token: int | None = None
) -> Sweeping:
    """The sweep of patch_heads(), before it runs."""
    check_same_model(run, other)
    lengths = [(len(run.source), len(other.source))]
    if run.target is not None and other.target is not None:
        lengths.append((len(run.target), len(other.target)))
    if where == "all" and any(a != b for a, b in lengths):
        a, b = next(pair for pair in lengths if pair[0] != pair[1])
        raise TextError(
            f"These texts have {a:,} and {b:,} tokens, and a head's output is taken token by token. "
            "Give a sentence of the same length, or take the output at the last token alone."
        )
    heads = heads_of(run.forward)
    names = list(dict.fromkeys(name for name, _ in heads))
    found = other.forward.moments([f"{name}.hook_z" for name in names], lambda _, z: z[other.index].clone())
    whole = slice(None), slice(None)
    places = {name: whole if where == "all" else (_last(run, name), _last(other, name)) for name in names}
    edits = patched(heads, {name: found[f"{name}.hook_z"] for name in names}, places)
    at = asked_position(run, position, token)
    also: tuple[int, ...] = ()
    if at is not None:
        also = (other.predictions(k=1).ids[0][0],)
    elif has_classes(run.loaded) and has_classes(other.loaded):
        also = (int(other.class_logits().argmax()),)
    rows = rows_of(run.forward.of(run.index), edits, at, token, also)
    return Sweeping(tuple(HeadPlace(*place_of(name), head) for name, head in heads), rows)


def check_same_model(run: Trace, other: Trace) -> None:
    """Raises TextError for runs of two models whose heads, words or classes are not each other's."""
    mine, theirs = run.config, other.config
    mine_classes, their_classes = run.spec.classes, other.spec.classes
    if (mine.n_heads, mine.d_head, mine.stacks, mine.vocab_size) != (
        theirs.n_heads,
        theirs.d_head,
        theirs.stacks,
        theirs.vocab_size,
    ):
        raise TextError("A head's output can be taken from a run of the same model alone; this other model has others.")
    if mine_classes != their_classes:
        raise TextError(
            "A head's output can be taken from a run of the same model alone; this other model has other classes."
        )


def asked_position(run: Trace, position: int | None, token: int | None) -> int | None:
    """After which token a prediction is asked for; None where it is about the text's classes or vectors. Raises IndexError,
    TextError."""
    if has_classes(run.loaded) and position is None:
        check_class(run.loaded, token)
        return None
    check_token(run.loaded, token)
    named = position is not None or token is not None
    if named:
        head_of(run.loaded)
    if not named and (run.loaded.model.head is None or not run.config.writes):
        return None
    return checked_positions(read_last(run), None if position is None else [position])[0]


def read_last(run: Trace) -> Tokens:
    """The text whose words the last stack predicts."""
    return run.source if run.target is None else run.target


def _last(run: Trace, name: str) -> slice:
    """The last real query of an attention."""
    tokens = run.source if name.startswith("encoder") else read_last(run)
    (at,) = checked_positions(tokens, None)
    return slice(at, at + 1)


def _lengths(
    run: Trace, position: int | None, sizes: Mapping[str, int], found: dict[str, Tensor]
) -> dict[str, ReadHook]:
    """Looks that leave in `found` how long a vector each head [head] of an attention writes into the stream, before a norm after
    it: after the position that is asked about; where none is, and in the encoder of two stacks, the mean over the tokens of the
    text. `sizes` are {attention: how many heads are counted as one}."""
    prompt = run.forward.prompt.of(run.index)
    last = run.config.stacks[-1][0]

    def norms(name: str, x: Tensor) -> None:  # [1, pos, head, d_model]
        each = x[0].float().unflatten(1, (-1, sizes[name])).sum(2).norm(dim=-1)
        if position is not None and name.startswith(last):
            found[name] = each[position].cpu()
            return
        read = prompt.sources if name.startswith("encoder") or prompt.targets is None else prompt.targets
        found[name] = each[~torch.tensor(read[0].padding, device=each.device)].mean(0).cpu()

    return {f"{name}.hook_result": ReadHook(partial(norms, name)) for name in sizes}
