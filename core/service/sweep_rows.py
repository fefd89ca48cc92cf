"""Sweeps in plain data: their requests, the rows that are streamed, and the batches of components, paths and pairs that give them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..errors import InterventionError, TextError
from ..model.config import ModelConfig
from ..patching.component_patching import (
    AttributionEstimates,
    Evidence,
    Patching,
    Verdict,
    attribution_patching,
    check_changed,
    patch_components,
    patching_of,
    run_order,
)
from ..patching.counterfactual import Component, To, counterfactual_of, first_difference
from ..patching.head_sweeps import Sweep, final_token_input, logit_diff_between, logit_diff_in
from ..patching.path_patching import PathEdge, begin_paths
from ..patching.sentence_pairs import Pair, checked, pair_tokens
from ..read.attribution import head_pushes
from ..run.predictions import allowed_scores, labels_of, next_token_constraints
from ..trace import Trace, trace

MAX_WATCHED = 6  # tokens whose log probabilities are sent for every component
MAX_WORDS = 12  # positions whose residual stream is patched: if there are more, those with the largest estimates


@dataclass(frozen=True, eq=False)
class SweepPart:
    """Rows of a sweep, from `first` on, out of `of`."""

    first: int
    of: int
    sweep: Sweep

    @property
    def n(self) -> int:
        return self.sweep.after.n_rows

    def rest(self, first: int) -> SweepPart:
        """The rows from row `first` of the whole sweep on."""
        sweep, at = self.sweep, first - self.first
        lengths = None if sweep.lengths is None else sweep.lengths[at:]
        cut = replace(sweep, places=sweep.places[at:], after=sweep.after[at:], lengths=lengths)
        return SweepPart(first, self.of, cut)


@dataclass(frozen=True)
class PatchRequest:
    """A logit difference, and what every component is set to. answer and alternative None are chosen as by logit_diff_between()."""

    other: str | None = None  # key of the counterfactual run, if there is one
    to: To = "other"
    position: int | None = None
    answer: int | None = None
    alternative: int | None = None


@dataclass(frozen=True, eq=False)
class PartEstimates:
    """The logit difference of a run, the estimated effect of every component on it, and the tokens that are watched."""

    position: int
    answer: int
    alternative: int
    watched: tuple[int, ...]  # the answer, the alternative, and the other most likely tokens of the run
    labels: dict[int, str]
    before: np.ndarray  # float32 [watched]: log p in the run itself
    there: np.ndarray | None  # float32 [watched]: in the counterfactual run
    heads: np.ndarray  # float32 [layer, head]: change of the logit difference in nats, as all estimates
    mlps: np.ndarray  # float32 [layer]
    resid: np.ndarray | None  # float32 [layer, token] of `tokens`; None without a counterfactual run
    tokens: tuple[int, ...]  # positions whose residual stream is a component
    of: int  # number of components to run
    acts: np.ndarray  # int64 [layer, head]: the position at which each head has its largest estimated effect


@dataclass(frozen=True, eq=False)
class PartRows:
    """Next-token predictions with one component changed per row, from `first` on, out of `of` rows."""

    first: int
    of: int
    parts: tuple[Component, ...]
    log_p: np.ndarray  # float32 [row, watched]
    top: np.ndarray  # int64 [row]: most likely token
    top_p: np.ndarray  # float32 [row]
    labels: dict[int, str]  # of the most likely tokens

    @property
    def n(self) -> int:
        return len(self.parts)

    def rest(self, first: int) -> PartRows:
        """The rows from row `first` of all on."""
        at = first - self.first
        return PartRows(first, self.of, self.parts[at:], self.log_p[at:], self.top[at:], self.top_p[at:], self.labels)


@dataclass(frozen=True)
class PartTests:
    """One head or MLP under each test: the change of the logit difference in nats, and the probability of the answer."""

    part: Component
    lead: float  # in the run itself
    names: tuple[To, ...]  # starts with "other" if there is a counterfactual run
    changes: tuple[float, ...]  # of the logit difference
    p: tuple[float, ...]  # of the answer, in each test
    verdict: Verdict


@dataclass(frozen=True)
class PathRequest:
    """Paths between heads, as (layer, head) of the last stack. `into` is the only receiver; None: all of them."""

    heads: tuple[tuple[int, int], ...]
    into: tuple[int, int] | None = None


@dataclass(frozen=True)
class PathEdges:
    """Paths between heads, from `first` on, out of `of`: see core.patch_paths()."""

    first: int
    of: int
    edges: tuple[PathEdge, ...]

    @property
    def n(self) -> int:
        return len(self.edges)

    def rest(self, first: int) -> PathEdges:
        """The edges from edge `first` of all on."""
        return PathEdges(first, self.of, self.edges[first - self.first :])


@dataclass(frozen=True, eq=False)
class HeadNotes:
    """Every head of the last stack: the token it attends to where it acts, and the answers that it promotes or suppresses."""

    # int64 [layer, head]: the key with the largest weight, except the first token unless that is the only visible one
    key: np.ndarray
    weight: np.ndarray  # float32 [layer, head]: of that key
    first: np.ndarray  # float32 [layer, head]: of the first token
    # float32 [layer, head, 2]: contribution to the answer and to the alternative, in nats; None if logits are not linear
    pushes: np.ndarray | None


@dataclass(frozen=True, eq=False)
class PairChanges:
    """One pair of sentences: how patching each head and MLP from the other text changes the logit difference."""

    pair: Pair
    words: tuple[str, str]  # the answer and its alternative
    leads: tuple[float, float]  # logit difference in the text and in the other, in nats
    heads: np.ndarray  # float32 [layer, head]
    mlps: np.ndarray  # float32 [layer]


@dataclass(frozen=True, eq=False)
class PairRows:
    """Pairs of a set, from `first` on, out of `of`."""

    first: int
    of: int
    pairs: tuple[PairChanges, ...]

    @property
    def n(self) -> int:
        return len(self.pairs)

    def rest(self, first: int) -> PairRows:
        """The pairs from pair `first` of all on."""
        return PairRows(first, self.of, self.pairs[first - self.first :])


# components


@dataclass(frozen=True, eq=False)
class EstimatedParts:
    """AttributionEstimates of all components, and the groups in which they run: the order of part_rows()."""

    estimates: PartEstimates
    groups: tuple[tuple[Component, ...], ...]


def estimate_and_order(run: Trace, other: Trace | None, request: PatchRequest) -> EstimatedParts:
    """Everything about the components that is known before they run. Raises as attribution_patching() and logit_diff_between()."""
    lead = logit_diff_between(run, other, request.answer, request.alternative, request.position)
    found = attribution_patching(run, other, lead.answer, lead.alternative, request.to, lead.position)
    likely = run.predictions([found.position], MAX_WATCHED).ids[0]
    watched = tuple(dict.fromkeys((lead.answer, lead.alternative, *likely)))[:MAX_WATCHED]
    tokens = patched_positions(run, other, found)
    groups = run_order(found, tokens)
    estimates = PartEstimates(
        position=found.position,
        answer=lead.answer,
        alternative=lead.alternative,
        watched=watched,
        labels=dict(zip(watched, labels_of(run.loaded, watched), strict=True)),
        before=log_p_of(run, found.position, watched),
        there=None if other is None else log_p_of(other, found.position, watched),
        heads=found.heads,
        mlps=found.mlps,
        resid=None if found.resid is None else found.resid[:, list(tokens)],
        tokens=tokens,
        of=sum(map(len, groups)),
        acts=found.acts,
    )
    return EstimatedParts(estimates, groups)


def patched_positions(run: Trace, other: Trace | None, found: AttributionEstimates) -> tuple[int, ...]:
    """Positions whose residual stream is patched: from the first difference on, and if there are many, those with the largest
    estimates.
    """
    if other is None or found.resid is None:
        return ()
    first = first_difference(final_token_input(run), final_token_input(other), found.position)
    tokens = range(first, found.position + 1)
    if len(tokens) <= MAX_WORDS:
        return tuple(tokens)
    strength = np.abs(found.resid).max(0)
    others = sorted(tokens[1:-1], key=lambda token: -strength[token])[: MAX_WORDS - 2]
    return tuple(sorted((first, found.position, *others)))


def log_p_of(run: Trace, position: int, watched: Sequence[int]) -> np.ndarray:
    """float32 [watched]: log p of these tokens after a position."""
    logits = run.activation("head.hook_logits", [position]).float()
    scores = allowed_scores(logits, next_token_constraints(run.loaded, final_token_input(run), [position]))
    return torch.log_softmax(scores, -1)[0, list(watched)].cpu().numpy()


@dataclass(frozen=True, eq=False)
class PartRuns:
    """Components to run in batches, in the order of their groups."""

    patching: Patching
    groups: tuple[tuple[Component, ...], ...]

    @property
    def n(self) -> int:
        return sum(map(len, self.groups))

    def batch(self, at: int, most: int) -> tuple[Component, ...]:
        """At most `most` components of one group, starting with component `at` of all."""
        for group in self.groups:
            if at < len(group):
                return group[at : at + min(most, self.patching.most())]
            at -= len(group)
        return ()

    def run(self, parts: tuple[Component, ...], first: int) -> PartRows:
        """The rows of these components. Call it in the queue of passes."""
        found = self.patching.run(parts, first)
        likely = tuple(dict.fromkeys(found.top.tolist()))
        labels = dict(zip(likely, labels_of(self.patching.counterfactual.run.loaded, likely), strict=True))
        return PartRows(found.first, self.n, found.parts, found.log_p, found.top, found.top_p, labels)


def begin_parts(
    run: Trace,
    other: Trace | None,
    request: PatchRequest,
    known: PartEstimates,
    groups: tuple[tuple[Component, ...], ...],
) -> PartRuns:
    """The runs of some components. Raises as patch_components()."""
    for part in (part for group in groups for part in group):
        check_changed(run, part, request.to)
    sides = counterfactual_of(run, other if request.to == "other" else None, request.to, known.position)
    return PartRuns(patching_of(sides, known.watched), groups)


def join_parts(found: Sequence[PartRows]) -> PartRows:
    """All rows in one record."""
    log_p, top, top_p = (np.concatenate([getattr(rows, name) for rows in found]) for name in ("log_p", "top", "top_p"))
    labels = {token: label for rows in found for token, label in rows.labels.items()}
    parts = tuple(part for rows in found for part in rows.parts)
    return PartRows(0, found[0].of, parts, log_p, top, top_p, labels)


def tests_of(run: Trace, other: Trace | None, request: PatchRequest, part: Component) -> PartTests:
    """A component zero-ablated, mean-ablated and, if there is another run, patched from it. Raises as patch_components()."""
    if part.kind == "resid":
        raise InterventionError(
            "The stream at a word is taken from another run; it has no silence and no mean of its own."
        )
    lead = logit_diff_between(run, other, request.answer, request.alternative, request.position)
    names: tuple[To, ...] = ("zero", "mean") if other is None else ("other", "zero", "mean")
    changes, p, before = dict[To, float](), list[float](), 0.0
    for to in names:
        (rows,) = patch_components(run, other, [part], [lead.answer, lead.alternative], to, lead.position)
        before = float(rows.before[0] - rows.before[1])
        changes[to] = float(rows.log_p[0, 0] - rows.log_p[0, 1]) - before
        p.append(float(np.exp(rows.log_p[0, 0])))
    evidence = Evidence(part, lead, before, changes["zero"], changes["mean"], changes.get("other"))
    return PartTests(part, before, names, tuple(changes.values()), tuple(p), evidence.verdict)


def notes_of(run: Trace, known: PartEstimates) -> HeadNotes:
    """The tokens that heads attend to where they act, and what their outputs add to the answer and to its alternative."""
    last = run.config.stacks[-1][0]
    records = [record for record in run.attention if (record.stack, record.site) == (last, "attn")]
    shape = known.acts.shape
    key, weight, first = np.zeros(shape, np.int64), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for layer, record in enumerate(records):
        for query in sorted(set(known.acts[layer].tolist())):
            heads = np.flatnonzero(known.acts[layer] == query)
            rows = torch.nan_to_num(record.pattern(heads.tolist(), [query]))[:, 0].cpu().numpy()  # [head, key]
            strongest = rows[:, 1 : query + 1].argmax(1) + 1 if query else np.zeros(len(heads), np.int64)
            key[layer, heads], first[layer, heads] = strongest, rows[:, 0]
            weight[layer, heads] = rows[np.arange(len(heads)), strongest]
    try:
        pushes = head_pushes(
            run.forward, run.index, final_token_input(run), known.position, [known.answer, known.alternative]
        )
    except TextError:  # the logits are not linear
        pushes = None
    return HeadNotes(key, weight, first, pushes)


# paths between heads


@dataclass(frozen=True, eq=False)
class PathRuns:
    """Paths to run in batches, `of` in all."""

    of: int
    batches: Iterator[tuple[PathEdge, ...]]


def begin_path_runs(run: Trace, other: Trace, request: PatchRequest, paths: PathRequest) -> PathRuns:
    """The runs of paths, once they are known to fit in memory. Raises as patch_paths()."""
    lead = logit_diff_between(run, other, request.answer, request.alternative, request.position)
    found = begin_paths(run, other, paths.heads, lead, receivers=None if paths.into is None else [paths.into])
    return PathRuns(found.n, found.batches())


# pairs of sentences


@dataclass(frozen=True)
class PairRequest:
    """A pair whose texts have equal lengths, and the tokens of its logit difference; None: the most likely ones."""

    pair: Pair
    answer: int | None
    alternative: int | None


def pair_requests(run: Trace, pairs: Sequence[Pair]) -> tuple[PairRequest, ...]:
    """The pairs, tokenized by the model of a run. Raises TextError with the line of the first one that cannot run."""
    loaded, requests = run.loaded, []
    if loaded.config.kind != "decoder" or loaded.model.head is None or not loaded.config.writes:
        raise TextError("Parts are taken from another sentence in language models that write; this model is none.")
    for i, pair in enumerate(checked(pairs)):
        requests.append(PairRequest(pair, *pair_tokens(loaded, pair, i)))
    return tuple(requests)


def parts_in(config: ModelConfig) -> tuple[Component, ...]:
    """Every head and MLP of the last stack, from the last layer down, because rows of late layers cost least."""
    n = config.stacks[-1][1]
    heads = range(config.n_heads)
    return tuple(
        part
        for layer in reversed(range(n))
        for part in (*(Component("head", layer, head) for head in heads), Component("mlp", layer, 0))
    )


@dataclass(frozen=True, eq=False)
class PairRuns:
    """One pair to run."""

    request: PairRequest
    words: tuple[str, str]
    leads: tuple[float, float]
    runs: PartRuns

    def changes(self, rows: Sequence[PartRows]) -> PairChanges:
        """The change of the logit difference by every head and MLP, from all rows."""
        config = self.runs.patching.counterfactual.run.config
        layers = config.stacks[-1][1]
        heads = np.zeros((layers, config.n_heads), np.float32)
        mlps = np.zeros(layers, np.float32)
        for part, log_p in ((part, log_p) for each in rows for part, log_p in zip(each.parts, each.log_p, strict=True)):
            change = log_p[0] - log_p[1] - self.leads[0]
            if part.kind == "head":
                heads[part.layer, part.at] = change
            else:
                mlps[part.layer] = change
        return PairChanges(self.request.pair, self.words, self.leads, heads, mlps)


def begin_pair(run: Trace, request: PairRequest, at: int) -> PairRuns:
    """Run both texts of a pair in the unedited model of a run. Errors name the pair; TooLarge is raised before any component runs."""
    try:
        own, other = (trace(run.loaded, text) for text in (request.pair.text, request.pair.other))
        lead = logit_diff_between(own, other, request.answer, request.alternative)
        watched = (lead.answer, lead.alternative)
        patching = patching_of(counterfactual_of(own, other, "other", None), watched)
    except (TextError, InterventionError) as error:
        raise TextError(f"{request.pair.label(at)}: {error}") from None
    answer, alternative = labels_of(run.loaded, watched)
    leads = (float(patching.before[0] - patching.before[1]), logit_diff_in(other, lead))
    return PairRuns(request, (answer, alternative), leads, PartRuns(patching, (parts_in(run.config),)))


def join_pairs(found: Sequence[PairRows]) -> PairRows:
    """All pairs in one record."""
    return PairRows(0, found[0].of, tuple(pair for rows in found for pair in rows.pairs))
