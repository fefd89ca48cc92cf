"""Sweeps over heads and attention edges, and the logit difference they are measured by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from .. import dataframes
from ..checkpoints import Loaded
from ..errors import InterventionError, TextError
from ..model.hooks import ReadHook, hook_points
from ..model.rules import row_blocks
from ..model.text import Tokens
from ..run.attention import AttentionRecord
from ..run.predictions import check_class, check_token, checked_positions, head_of, labels_of
from ..run.trace_record import TraceRecord
from .edited_runs import (
    RowAnswers,
    Rows,
    To,
    all_rows,
    class_names,
    has_classes,
    heads_of,
    in_batches,
    place_of,
    queries_of,
    rows_of,
    with_ablations,
    with_blocked_edges,
    with_patches,
)

Site = Literal["attn", "cross_attn"]
Where = Literal["all", "last"]
MAX_EDGES = 40  # tokens; in longer texts only the edges of one query are blocked, since all would be n²/2


@dataclass(frozen=True)
class AblateHeads:
    """Request of sweep_heads()."""

    to: To = "zero"
    position: int | None = None
    token: int | None = None
    groups: bool = False


@dataclass(frozen=True)
class BlockEdges:
    """Request of sweep_edges()."""

    site: Site = "attn"
    stack: str | None = None
    layer: int | None = None
    head: int | None = None
    query: int | None = None
    position: int | None = None
    token: int | None = None


class EdgeOptions(TypedDict, total=False):
    """Keyword arguments of sweep_edges(): fields of BlockEdges."""

    site: Site
    stack: str | None
    position: int | None
    token: int | None


@dataclass(frozen=True)
class PatchHeads:
    """Request of patch_heads(); `other` is the key of a run."""

    other: str
    where: Where = "all"
    position: int | None = None
    token: int | None = None


SweepRequest = AblateHeads | BlockEdges | PatchHeads


@dataclass(frozen=True)
class HeadPlace:
    """A head of the model, or a group of `n` heads from this one on that share keys and values."""

    stack: str
    layer: int
    site: Site
    head: int
    n: int = 1


@dataclass(frozen=True)
class EdgePlace:
    """An attention edge: a query, and the key that it may not attend to."""

    query: int
    key: int


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Effect of each of many edits on one answer, one row for each of `places`."""

    places: tuple[HeadPlace, ...] | tuple[EdgePlace, ...]
    before: RowAnswers  # one row: the run itself
    after: RowAnswers
    position: int | None  # of the prediction; None if the answer is the class or the vectors of the text
    watched: tuple[int, ...] = ()  # tokens or classes; the first is the answer
    labels: Mapping[int, str] = field(default_factory=dict)  # of every token or class in the rows
    single: tuple[int, ...] = ()  # queries with at most one visible key, whose edges are never blocked
    query: int | None = None  # the only query whose edges were blocked; None: all queries
    lengths: np.ndarray | None = (
        None  # float32 [row]: ‖z W_O‖ of each ablated head in the run itself; see _length_hooks()
    )

    def __repr__(self) -> str:
        answer = f"the prediction after token {self.position}"
        if self.position is None:
            answer = "the text's vectors" if self.after.distance is not None else "the text's class"
        edited = "heads" if self._of_heads else "edges"
        return f"<Sweep over {len(self.places)} {edited}: the effect of each on {answer}>"

    @property
    def _of_heads(self) -> bool:
        return not self.places or isinstance(self.places[0], HeadPlace)

    def to_frame(self) -> dataframes.DataFrame:
        """One row for each edit: its place, and the answer with it. The run's own answer is `before`. Needs pandas.

        A prediction has the logit and the probability of the answer, and the KL divergence from the run's prediction; the text's vector
        has its distance from the run's.
        """
        kind = HeadPlace if self._of_heads else EdgePlace
        columns: dict[str, Sequence[object]] = dataframes.columns_of(self.places, kind)
        if set(columns.get("n", ())) <= {1}:
            columns.pop("n", None)  # no groups
        for name in ("logit", "probability"):
            if (numbers := getattr(self.after, name)) is not None:
                columns[name] = numbers[:, 0].tolist()
        for name, numbers in (("kl", self.after.kl), ("distance", self.after.distance), ("length", self.lengths)):
            if numbers is not None:
                columns[name] = numbers.tolist()
        return dataframes.of_columns(columns)


@dataclass(frozen=True, eq=False)
class Sweeping:
    """A sweep to be run, a few rows at a time."""

    places: tuple[HeadPlace, ...] | tuple[EdgePlace, ...]
    rows: Rows
    single: tuple[int, ...] = ()
    query: int | None = None
    lengths: np.ndarray | None = None

    def part(self, after: RowAnswers, first: int) -> Sweep:
        """Results of the rows from `first` on."""
        rows, before = self.rows, self.rows.before()
        ids = sorted({int(i) for x in (before.ids, after.ids) if x is not None for i in x.flat} | {*rows.watched})
        loaded = rows.forward.loaded
        labels = labels_of(loaded, ids) if rows.position is not None or not ids else class_names(loaded, ids)
        part = slice(first, first + after.n_rows)
        return Sweep(
            places=self.places[part],
            before=before,
            after=after,
            position=rows.position,
            watched=rows.watched,
            labels=dict(zip(ids, labels, strict=True)),
            single=self.single,
            query=self.query,
            lengths=None if self.lengths is None else self.lengths[part],
        )

    def finish(self, watch: Callable[[int, int], object]) -> Sweep:
        """Run all rows in batches."""
        return self.part(all_rows(self.rows, watch), 0)


def sweep_heads(
    run: TraceRecord,
    to: To = "zero",
    position: int | None = None,
    token: int | None = None,
    watch: Callable[[int, int], object] = lambda done, of: None,
    groups: bool = False,
) -> Sweep:
    """Ablate every head in turn, and measure the effect on the prediction of `token` (None: the most likely) after `position` (None: the
    last real token); for a classifier on the class `token`; for an encoder without a position on the text's vectors.

    An ablated head outputs zero, or with "mean" the mean of its outputs over the text (Michel et al. 2019). With `groups`, heads that
    share keys and values (grouped-query attention) are ablated together, one row for each group. The run's other edits apply to every
    row. Raises IndexError, TextError, TooLarge with both numbers, and Outdated after a training.
    """
    return begin_heads(run, AblateHeads(to, position, token, groups)).finish(watch)


def sweep_edges(
    run: TraceRecord,
    layer: int | None = None,
    head: int | None = None,
    query: int | None = None,
    *,
    watch: Callable[[int, int], object] = lambda done, of: None,
    **options: Unpack[EdgeOptions],
) -> Sweep:
    """Block every attention edge, from a query to a key, in turn: in all layers and heads of one kind of attention, or in the given ones.

    The options are the other fields of BlockEdges: `site` ("attn"), `stack` (None: the last one), and `position` and `token` as for
    sweep_heads(). The edge of a query with only one visible key is never blocked. In texts of more than MAX_EDGES tokens only the
    edges of one query are blocked: `query`, None for the position under study, or the last. Raises as sweep_heads().
    """
    return begin_edges(run, BlockEdges(layer=layer, head=head, query=query, **options)).finish(watch)


def patch_heads(
    run: TraceRecord,
    other: TraceRecord,
    where: Where = "all",
    position: int | None = None,
    token: int | None = None,
    watch: Callable[[int, int], object] = lambda done, of: None,
) -> Sweep:
    """Replace the output of every head in turn by its output in the other run, to find the heads that carry the difference of two texts.

    "all" replaces the output at all tokens, which needs texts of equal length; "last" only at the last token. The answer of the run and
    that of the other are watched. Activation patching (Vig et al. 2020; Meng et al. 2022). Raises as sweep_heads(), and TextError for
    another model or length.
    """
    return begin_patches(run, other, where, position, token).finish(watch)


def begin_heads(run: TraceRecord, request: AblateHeads) -> Sweeping:
    """Prepare sweep_heads()."""
    if request.to not in ("zero", "mean"):
        raise InterventionError(f"A head is silenced to zero or to the mean, not {request.to!r}.")
    sizes = {r.name: r.n_heads // r.n_kv_heads if request.groups else 1 for r in run.records}
    heads = [(name, head) for name, head in heads_of(run.forward) if head % sizes[name] == 0]
    forward = run.forward.of(run.index)
    edits = with_ablations(heads, request.to, forward.prompt, sizes)
    at = resolve_position(run, request.position, request.token)
    lengths: dict[str, Tensor] = {}
    rows = rows_of(forward, edits, at, request.token, watchers=_length_hooks(run, at, sizes, lengths))
    places = tuple(HeadPlace(*place_of(name), head, sizes[name]) for name, head in heads)
    by_row = np.array([lengths[name][head // sizes[name]].item() for name, head in heads], np.float32)
    return Sweeping(places, rows, lengths=by_row)


def begin_edges(run: TraceRecord, request: BlockEdges) -> Sweeping:
    """Prepare sweep_edges()."""
    records, head = _requested_attentions(run, request), request.head
    at = resolve_position(run, request.position, request.token)
    queries, keys = run.text(run.index).tokens_of(records[0])
    query = request.query
    if query is None and max(len(queries), len(keys)) > MAX_EDGES:
        query = at if at is not None and at < len(queries) else checked_positions(queries, None)[0]
    if query is not None:
        checked_positions(queries, [query])
    visible = _visible_edges(records, head, queries, len(keys))
    single = tuple(i for i, n in enumerate(visible.sum(-1).tolist()) if n < 2 and not queries.padding[i])
    cells = [(i, j) for i, j in visible.nonzero().tolist() if i not in single and query in (None, i)]
    if not cells:
        raise InterventionError(f"Query {query} may look at one token alone, which cannot be cut. Choose a later one.")
    edits = with_blocked_edges(cells, [record.name for record in records], head, run.config.n_heads)
    rows = rows_of(run.forward.of(run.index), edits, at, request.token)
    return Sweeping(tuple(EdgePlace(i, j) for i, j in cells), rows, single, query)


def _requested_attentions(run: TraceRecord, request: BlockEdges) -> list[AttentionRecord]:
    """The records of this text whose edges are blocked. Raises InterventionError."""
    site, layer, head = request.site, request.layer, request.head
    stack = run.config.stacks[-1][0] if request.stack is None else request.stack
    records = [r for r in run.records if (r.stack, r.site) == (stack, site) and layer in (None, r.layer)]
    if not records:
        raise InterventionError(f"This run has no such attention: {site} in layer {layer} of the {stack}.")
    if head is not None and not 0 <= head < run.config.n_heads:
        raise InterventionError(f"There is no head {head}: this model's heads are 0 to {run.config.n_heads - 1}.")
    return [record.of(run.index) for record in records]


def _visible_edges(records: Sequence[AttentionRecord], head: int | None, queries: Tokens, n_keys: int) -> Tensor:
    """bool [query, key]: True where a head (None: any head) of any of these attentions sees the key. False for padded queries."""
    visible = torch.zeros(len(queries), n_keys, dtype=torch.bool)
    for record in records:
        mask = record.rule.mask
        columns = torch.arange(n_keys, device=record.device)
        for block in row_blocks(len(queries), n_keys * mask.n_heads):
            rows = torch.arange(block.start, block.stop, device=record.device)
            allowed = mask.block(rows, columns)[0]  # [head or 1, query, key]
            of_head = allowed[head] if head is not None and len(allowed) > 1 else allowed.any(0)
            visible[block] |= of_head.cpu()
    visible[torch.tensor(queries.padding)] = False
    return visible


def begin_patches(
    run: TraceRecord, other: TraceRecord, where: Where = "all", position: int | None = None, token: int | None = None
) -> Sweeping:
    """Prepare patch_heads()."""
    check_same_model(run, other)
    unequal = [(a, b) for a, b in ((len(a), len(b)) for a, b in _text_pairs(run, other)) if a != b]
    if where == "all" and unequal:
        a, b = unequal[0]
        raise TextError(
            f"These texts have {a:,} and {b:,} tokens, and a head's output is taken token by token. "
            "Give a sentence of the same length, or take the output at the last token alone."
        )
    heads = heads_of(run.forward)
    z = head_outputs(other, (name for name, _ in heads))
    whole = slice(None), slice(None)
    places = {name: whole if where == "all" else (_last_query(run, name), _last_query(other, name)) for name in z}
    edits = with_patches(heads, z, places)
    at = resolve_position(run, position, token)
    also: tuple[int, ...] = ()
    if at is not None:
        also = (other.predictions(k=1).ids[0][0],)
    elif has_classes(run.loaded) and has_classes(other.loaded):
        also = (int(other.class_logits().argmax()),)
    rows = rows_of(run.forward.of(run.index), edits, at, token, also)
    return Sweeping(tuple(HeadPlace(*place_of(name), head) for name, head in heads), rows)


def _text_pairs(run: TraceRecord, other: TraceRecord) -> list[tuple[Tokens, Tokens]]:
    """The source texts of both runs, and their targets if both have one."""
    pairs = [(run.source, other.source)]
    return pairs if run.target is None or other.target is None else [*pairs, (run.target, other.target)]


def head_outputs(run: TraceRecord, attentions: Iterable[str]) -> dict[str, Tensor]:
    """z [head, query, d_head] of a run by attention, each of which is listed once."""
    points = list(dict.fromkeys(f"{name}.hook_z" for name in attentions))
    seen = run.forward.moments(points, lambda _, z: z[run.index].transpose(0, 1).clone()) if points else {}
    return {point.removesuffix(".hook_z"): z for point, z in seen.items()}


def check_same_model(run: TraceRecord, other: TraceRecord) -> None:
    """Raise TextError if the models of both runs differ in their heads, vocabulary or classes."""
    own, theirs = ((c.n_heads, c.d_head, c.stacks, c.vocab_size) for c in (run.config, other.config))
    if own != theirs:
        raise TextError("A head's output can be taken from a run of the same model alone; this other model has others.")
    if run.spec.classes != other.spec.classes:
        raise TextError(
            "A head's output can be taken from a run of the same model alone; this other model has other classes."
        )


def check_lengths(run: TraceRecord, other: TraceRecord) -> None:
    """Raise TextError if the tokens of both texts do not correspond one to one."""
    for own, theirs in _text_pairs(run, other):
        a, b = (sum(not padding for padding in tokens.padding) for tokens in (own, theirs))
        if a != b:
            raise TextError(
                f"These texts have {a:,} and {b:,} tokens, and each part is taken token by token. Write a text of {a:,} "
                'tokens, or take what heads give at the last token alone (patch_heads with "last").'
            )
        if own.padding != theirs.padding:
            raise TextError(
                "These texts are padded at different places, so their tokens do not stand opposite each other. Run each by itself."
            )


def resolve_position(run: TraceRecord, position: int | None, token: int | None) -> int | None:
    """The position of the prediction under study; None if the answer is the class or the vectors of the text. Raises IndexError and
    TextError."""
    if has_classes(run.loaded) and position is None:
        check_class(run.loaded, token)
        return None
    check_token(run.loaded, token)
    if position is not None or token is not None:
        head_of(run.loaded)
    elif run.loaded.model.head is None or not run.config.writes:
        return None
    return checked_positions(final_token_input(run), None if position is None else [position])[0]


def final_token_input(run: TraceRecord) -> Tokens:
    """The text whose tokens the last stack predicts."""
    return run.source if run.target is None else run.target


def _last_query(run: TraceRecord, name: str) -> slice:
    """The last real query of an attention."""
    tokens = run.source if name.startswith("encoder") else final_token_input(run)
    (at,) = checked_positions(tokens, None)
    return slice(at, at + 1)


def _length_hooks(
    run: TraceRecord, position: int | None, sizes: Mapping[str, int], lengths: dict[str, Tensor]
) -> dict[str, ReadHook]:
    """Hooks that store in `lengths` the norm of the vector that each head [head] of an attention writes into the residual stream, before
    a norm after the attention: at `position`, or as the mean over the tokens of the text for None and in the encoder of two stacks.
    `sizes` are the sizes of head groups by attention."""
    prompt = run.forward.prompt.of(run.index)
    last = run.config.stacks[-1][0]

    def store(name: str, x: Tensor) -> None:  # [1, pos, head, d_model]
        norms = x[0].float().unflatten(1, (-1, sizes[name])).sum(2).norm(dim=-1)
        if position is not None and name.startswith(last):
            lengths[name] = norms[position].cpu()
            return
        real = ~torch.tensor(queries_of(prompt, name).padding, device=norms.device)
        lengths[name] = norms[real].mean(0).cpu()

    return {f"{name}.hook_result": ReadHook(partial(store, name)) for name in sizes}


Given = Literal["other", "zero", "mean"]
Head = HeadPlace | tuple[int, int]  # (layer, head) of the last stack's self-attention


@dataclass(frozen=True)
class LogitDiff:
    """An answer and an alternative: tokens after a position, or (None) classes of the text."""

    answer: int
    alternative: int
    position: int | None

    def of(self, rows: RowAnswers) -> np.ndarray:
        """float32 [row], of rows that watch the answer and then the alternative."""
        assert rows.logit is not None
        return rows.logit[:, 0] - rows.logit[:, 1]


def logit_diff_between(
    run: TraceRecord,
    other: TraceRecord | None = None,
    answer: int | None = None,
    alternative: int | None = None,
    position: int | None = None,
) -> LogitDiff:
    """The logit difference that measures a change of `run`.

    `answer` None: the most likely token of the run. `alternative` None: the most likely of the other run, or the second of this one if there
    is no other run or both have the same answer. Raises TextError for a model that answers with a vector, for invalid tokens, and
    for an answer against itself; IndexError for a position.
    """
    at = resolve_position(run, position, answer)
    if at is not None:
        check_token(run.loaded, alternative)
    elif has_classes(run.loaded):
        check_class(run.loaded, alternative)
    else:
        raise TextError(
            f"{run.spec.title} answers with a vector, so no word leads over another. Choose a model that predicts words or classes."
        )
    own = _top_two(run, at)
    answer = own[0] if answer is None else answer
    if alternative is None:
        others = [] if other is None else _top_two(other, None if position is None else at)[:1]
        alternative = next((token for token in (*others, *own) if token != answer), None)
    if alternative is None or alternative == answer:
        raise TextError("An answer has no lead over itself. Give another alternative.")
    return LogitDiff(answer, alternative, at)


def check_pair(run: TraceRecord, other: TraceRecord) -> None:
    """Raise TextError unless both runs are of one model and have the same number of tokens, as patching needs."""
    check_same_model(run, other)
    check_lengths(run, other)


def checked_head(loaded: Loaded, head: Head) -> HeadPlace:
    """Resolve a head. Raises InterventionError if the model lacks it."""
    if not isinstance(head, HeadPlace):
        layer, number = head
        head = HeadPlace(loaded.config.stacks[-1][0], layer, "attn", number)
    if f"{attention_of(head)}.hook_z" not in hook_points(loaded.model):
        layers = " and ".join(f"0 to {n - 1} of the {stack}" for stack, n in loaded.config.stacks)
        raise InterventionError(
            f"This model has no {head.site} in layer {head.layer} of the {head.stack}: its layers are {layers}."
        )
    if not 0 <= head.head < loaded.config.n_heads:
        raise InterventionError(
            f"There is no head {head.head}: this model's heads are 0 to {loaded.config.n_heads - 1}."
        )
    return head


def heads_in(loaded: Loaded) -> list[HeadPlace]:
    """Every head of the model in the order of the pass."""
    names = [point.removesuffix(".hook_z") for point in hook_points(loaded.model) if point.endswith(".hook_z")]
    return [HeadPlace(*place_of(name), head) for name in names for head in range(loaded.config.n_heads)]


def attention_of(head: HeadPlace) -> str:
    """The module path of its attention."""
    return f"{head.stack}.blocks.{head.layer}.{head.site}"


def _top_two(run: TraceRecord, position: int | None) -> tuple[int, ...]:
    """The two most likely tokens after a position (None: the last), or classes."""
    if position is None and has_classes(run.loaded):
        return tuple(run.class_logits().topk(2).indices.tolist())
    return run.predictions(None if position is None else [position], k=2).ids[0]


def logit_diff_in(run: TraceRecord, lead: LogitDiff) -> float:
    """The value of the same logit difference in another run."""
    at = lead.position
    logits = run.class_logits() if at is None else run.activation("head.hook_logits", [at])[0].float()
    return float(logits[lead.answer] - logits[lead.alternative])


def logit_diff_changes(
    run: TraceRecord, other: TraceRecord | None, heads: Sequence[HeadPlace], lead: LogitDiff, to: Given = "other"
) -> tuple[np.ndarray, float]:
    """Return the change of the logit difference, float32 [head], when each head outputs what it output in the other run, zero, or its mean
    over the tokens of the text; and the logit difference of the run itself.

    Raises TextError for another model or length, TooLarge with both numbers, and Outdated after a training.
    """
    forward = run.forward.of(run.index)
    order = {head: i for i, head in enumerate(heads_of(forward))}
    named = [(attention_of(head), head.head) for head in heads]
    unique = sorted(set(named), key=order.__getitem__)
    if to == "other":
        if other is None:
            raise TextError("There is no other sentence to take a head from. Give one.")
        check_pair(run, other)
        z = head_outputs(other, (name for name, _ in unique))
        edits = with_patches(unique, z, dict.fromkeys(z, (slice(None), slice(None))))
    else:
        edits = with_ablations(unique, to, forward.prompt)
    rows = rows_of(forward, edits, lead.position, lead.answer, (lead.alternative,))
    before = float(lead.of(rows.before())[0])
    after = [lead.of(part) for part in in_batches(rows)] if unique else []
    changes = dict(zip(unique, np.concatenate(after) - before, strict=True)) if after else {}
    return np.array([changes[head] for head in named], np.float32), before
