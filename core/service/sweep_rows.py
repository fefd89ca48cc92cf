"""Parts of a run by estimate, in the order in which their runs come, and the rows of these runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..errors import InterventionError, Refused, TextError
from ..model.config import ModelConfig
from ..read.attribution import head_pushes
from ..read.swaps import same_length
from ..run.predictions import allowed_scores, following, labels_of
from ..run.trace import Trace, trace
from ..sweep.estimates import Estimates, estimate_parts, run_order
from ..sweep.evidence import Evidence, Verdict
from ..sweep.leads import lead_between, lead_in
from ..sweep.pairs import Pair, answer_token, checked
from ..sweep.part import Part
from ..sweep.parts import PartAnswers, Patching, check_changed, patch_parts, patching_of
from ..sweep.paths import PathEdge, begin_paths
from ..sweep.sides import To, first_difference, sides_of
from ..sweep.sweeps import Sweep, read_last


@dataclass(frozen=True, eq=False)
class SweepPart:
    """Rows of a sweep, from `first` on, of `of` in all."""

    first: int
    of: int
    sweep: Sweep

    @property
    def n(self) -> int:
        return self.sweep.after.n_rows

    def rest(self, first: int) -> SweepPart:
        """Its rows from row `first` of the whole sweep on."""
        sweep, at = self.sweep, first - self.first
        lengths = None if sweep.lengths is None else sweep.lengths[at:]
        cut = replace(sweep, places=sweep.places[at:], after=sweep.after[at:], lengths=lengths)
        return SweepPart(first, self.of, cut)


@dataclass(frozen=True)
class PatchRequest:
    """A lead, and what every part of a run is set to. answer and rival None are chosen as by lead_between()."""

    other: str | None = None  # the key of the other run; None where there is none
    to: To = "other"
    position: int | None = None
    answer: int | None = None
    rival: int | None = None


@dataclass(frozen=True, eq=False)
class PartEstimates:
    """The lead of a run, what moves it by estimate, and the words whose probabilities are told of every part."""

    position: int
    answer: int
    rival: int
    watched: tuple[int, ...]  # the answer, the rival, and the likeliest others of the run
    labels: dict[int, str]
    before: np.ndarray  # float32 [watched]: log p in the run itself
    there: np.ndarray | None  # float32 [watched]: in the other run
    heads: np.ndarray  # float32 [layer, head], in nats of the lead, as all estimates
    mlps: np.ndarray  # float32 [layer]
    resid: np.ndarray | None  # float32 [layer, token] of `tokens`; None where nothing is taken from another run
    tokens: tuple[int, ...]  # whose stream is a part
    of: int  # how many parts there are to run
    acts: np.ndarray  # int64 [layer, head]: the token at which each head would move the lead most, by estimate


@dataclass(frozen=True, eq=False)
class PartRows:
    """The next word with each of some parts changed by itself, from `first` on of `of` rows in all."""

    first: int
    of: int
    parts: tuple[Part, ...]
    log_p: np.ndarray  # float32 [row, watched]
    top: np.ndarray  # int64 [row]: the likeliest token
    top_p: np.ndarray  # float32 [row]
    labels: dict[int, str]  # of the likeliest tokens

    @property
    def n(self) -> int:
        return len(self.parts)

    def rest(self, first: int) -> PartRows:
        """Its rows from row `first` of all on."""
        at = first - self.first
        return PartRows(first, self.of, self.parts[at:], self.log_p[at:], self.top[at:], self.top_p[at:], self.labels)


@dataclass(frozen=True)
class PartTests:
    """One head or MLP under each test: what it does to the lead, in nats, and what becomes of the answer."""

    part: Part
    lead: float  # in the run itself
    names: tuple[To, ...]  # "other" first, where there is another run
    changes: tuple[float, ...]  # of the lead
    p: tuple[float, ...]  # of the answer, in each test
    verdict: Verdict


@dataclass(frozen=True)
class PathRequest:
    """The heads that paths lie between, as (layer, head) of the last stack. `into` is the one receiver, None where all of them are."""

    heads: tuple[tuple[int, int], ...]
    into: tuple[int, int] | None = None


@dataclass(frozen=True)
class PathEdges:
    """Paths between heads, from `first` on of `of` in all: see core.patch_paths()."""

    first: int
    of: int
    edges: tuple[PathEdge, ...]

    @property
    def n(self) -> int:
        return len(self.edges)

    def rest(self, first: int) -> PathEdges:
        """Its edges from edge `first` of all on."""
        return PathEdges(first, self.of, self.edges[first - self.first :])


@dataclass(frozen=True, eq=False)
class HeadNotes:
    """Every head of the last stack: the token that it reads where it acts, and the words that it pushes up and down after the asked one."""

    key: (
        np.ndarray
    )  # int64 [layer, head]: the token that it reads most, but for the first one unless that is all it may read
    weight: np.ndarray  # float32 [layer, head]: how much of its attention that has
    first: np.ndarray  # float32 [layer, head]: how much the first token has
    pushes: (
        np.ndarray | None
    )  # float32 [layer, head, 2]: in nats, the answer and the rival; None where logits are not linear


@dataclass(frozen=True, eq=False)
class PairChanges:
    """One pair of sentences: by how much each head and MLP, taken from the other text, changes the lead of the answer."""

    pair: Pair
    words: tuple[str, str]  # the answer and its rival
    leads: tuple[float, float]  # of the answer over its rival, in the text and in the other, in nats
    heads: np.ndarray  # float32 [layer, head]
    mlps: np.ndarray  # float32 [layer]


@dataclass(frozen=True, eq=False)
class PairRows:
    """Pairs of a set, from `first` on, of `of` in all."""

    first: int
    of: int
    pairs: tuple[PairChanges, ...]

    @property
    def n(self) -> int:
        return len(self.pairs)

    def rest(self, first: int) -> PairRows:
        """Its pairs from pair `first` of all on."""
        return PairRows(first, self.of, self.pairs[first - self.first :])


WATCHED = 6  # words
MOST_WORDS = 12  # tokens whose stream is a part: of more, those that may move the lead most


@dataclass(frozen=True, eq=False)
class Ordered:
    """Estimates, and the groups that parts run in."""

    estimates: PartEstimates
    groups: tuple[tuple[Part, ...], ...]


def ordered(run: Trace, other: Trace | None, asked: PatchRequest) -> Ordered:
    """All that is told before any part runs. Raises as estimate_parts() and lead_between()."""
    lead = lead_between(run, other, asked.answer, asked.rival, asked.position)
    found = estimate_parts(run, other, lead.answer, lead.rival, asked.to, lead.position)
    likeliest = run.predictions([found.position], WATCHED).ids[0]
    watched = tuple(dict.fromkeys((lead.answer, lead.rival, *likeliest)))[:WATCHED]
    tokens = tokens_of(run, other, found)
    groups = run_order(found, tokens)
    estimates = PartEstimates(
        found.position,
        lead.answer,
        lead.rival,
        watched,
        dict(zip(watched, labels_of(run.loaded, watched), strict=True)),
        log_p_of(run, found.position, watched),
        None if other is None else log_p_of(other, found.position, watched),
        found.heads,
        found.mlps,
        None if found.resid is None else found.resid[:, list(tokens)],
        tokens,
        sum(map(len, groups)),
        found.acts,
    )
    return Ordered(estimates, groups)


def tokens_of(run: Trace, other: Trace | None, found: Estimates) -> tuple[int, ...]:
    """The tokens whose stream is taken from the other run: from the first that differs on, of many the strongest by estimate."""
    if other is None or found.resid is None:
        return ()
    first = first_difference(read_last(run), read_last(other), found.position)
    tokens = range(first, found.position + 1)
    if len(tokens) <= MOST_WORDS:
        return tuple(tokens)
    strength = np.abs(found.resid).max(0)
    others = sorted(tokens[1:-1], key=lambda token: -strength[token])[: MOST_WORDS - 2]
    return tuple(sorted((first, found.position, *others)))


def log_p_of(run: Trace, position: int, watched: Sequence[int]) -> np.ndarray:
    """float32 [watched]: log p of these tokens after a position."""
    logits = run.value("head.hook_logits", [position]).float()
    scores = allowed_scores(logits, following(run.loaded, read_last(run), [position]))
    return torch.log_softmax(scores, -1)[0, list(watched)].cpu().numpy()


@dataclass(frozen=True, eq=False)
class PartRuns:
    """Parts that are to run, in their order, a batch at a time."""

    patching: Patching
    groups: tuple[tuple[Part, ...], ...]

    @property
    def n(self) -> int:
        return sum(map(len, self.groups))

    def batch(self, at: int, most: int) -> tuple[Part, ...]:
        """At most so many parts from one on, all of one group."""
        for group in self.groups:
            if at < len(group):
                return group[at : at + min(most, self.patching.most())]
            at -= len(group)
        return ()

    def run(self, parts: tuple[Part, ...], first: int) -> PartRows:
        """Their rows. In a turn."""
        return rows_of(self, self.patching.run(parts, first))


def begin_parts(
    run: Trace, other: Trace | None, asked: PatchRequest, known: PartEstimates, groups: tuple[tuple[Part, ...], ...]
) -> PartRuns:
    """The runs of some parts. Raises as patch_parts()."""
    for part in (part for group in groups for part in group):
        check_changed(run, part, asked.to)
    sides = sides_of(run, other if asked.to == "other" else None, asked.to, known.position)
    return PartRuns(patching_of(sides, known.watched), groups)


def rows_of(runs: PartRuns, found: PartAnswers) -> PartRows:
    """The same in plain data, with names."""
    likeliest = tuple(dict.fromkeys(found.top.tolist()))
    labels = labels_of(runs.patching.sides.run.loaded, likeliest)
    return PartRows(
        found.first,
        runs.n,
        found.parts,
        found.log_p,
        found.top,
        found.top_p,
        dict(zip(likeliest, labels, strict=True)),
    )


def together(found: Sequence[PartRows]) -> PartRows:
    """All rows, in one."""
    log_p, top, top_p = (np.concatenate([getattr(rows, name) for rows in found]) for name in ("log_p", "top", "top_p"))
    labels = {token: label for rows in found for token, label in rows.labels.items()}
    parts = tuple(part for rows in found for part in rows.parts)
    return PartRows(0, found[0].of, parts, log_p, top, top_p, labels)


def tests_of(run: Trace, other: Trace | None, asked: PatchRequest, part: Part) -> PartTests:
    """A part silent, at its mean and, where there is another run, taken from it. Raises as patch_parts()."""
    if part.kind == "resid":
        raise InterventionError(
            "The stream at a word is taken from another run; it has no silence and no mean of its own."
        )
    lead = lead_between(run, other, asked.answer, asked.rival, asked.position)
    names: tuple[To, ...] = ("zero", "mean") if other is None else ("other", "zero", "mean")
    changes, p, before = dict[To, float](), list[float](), 0.0
    for to in names:
        (rows,) = patch_parts(run, other, [part], [lead.answer, lead.rival], to, lead.position)
        before = float(rows.before[0] - rows.before[1])
        changes[to] = float(rows.log_p[0, 0] - rows.log_p[0, 1]) - before
        p.append(float(np.exp(rows.log_p[0, 0])))
    found = Evidence(part, lead, before, changes["zero"], changes["mean"], changes.get("other"))
    return PartTests(part, before, names, tuple(changes.values()), tuple(p), found.verdict)


@dataclass(frozen=True, eq=False)
class PathRuns:
    """Paths that are to run, a batch at a time."""

    of: int
    batches: Iterator[tuple[PathEdge, ...]]


def begin_path_runs(run: Trace, other: Trace, asked: PatchRequest, paths: PathRequest) -> PathRuns:
    """The runs of paths, which memory is admitted for. Raises as patch_paths()."""
    lead = lead_between(run, other, asked.answer, asked.rival, asked.position)
    found = begin_paths(run, other, paths.heads, lead, receivers=None if paths.into is None else [paths.into])
    return PathRuns(found.n, found.batches())


def notes_of(run: Trace, known: PartEstimates) -> HeadNotes:
    """The tokens that heads read where they act, by their own weights, and what their outputs add to the answer and to its rival."""
    last = run.config.stacks[-1][0]
    records = [record for record in run.attention if (record.stack, record.site) == (last, "attn")]
    shape = known.acts.shape
    key, weight, first = np.zeros(shape, np.int64), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for layer, record in enumerate(records):
        for query in sorted(set(known.acts[layer].tolist())):
            heads = np.flatnonzero(known.acts[layer] == query)
            rows = torch.nan_to_num(record.pattern(heads.tolist(), [query]))[:, 0].cpu().numpy()  # [head, key]
            read = rows[:, 1 : query + 1].argmax(1) + 1 if query else np.zeros(len(heads), np.int64)
            key[layer, heads], first[layer, heads] = read, rows[:, 0]
            weight[layer, heads] = rows[np.arange(len(heads)), read]
    watched = [known.answer, known.rival]
    try:
        pushes = head_pushes(run.forward, run.index, read_last(run), known.position, watched)
    except TextError:  # of a model whose logits bend
        pushes = None
    return HeadNotes(key, weight, first, pushes)


@dataclass(frozen=True)
class PairRequest:
    """A pair whose texts have one length, and the tokens that it is asked about; None: the likeliest."""

    pair: Pair
    answer: int | None
    rival: int | None


def asked_pairs(run: Trace, pairs: Sequence[Pair]) -> tuple[PairRequest, ...]:
    """The pairs, read by the model of a run. Raises TextError with the line of the first that cannot run."""
    loaded, found = run.loaded, []
    if loaded.config.kind != "decoder" or loaded.model.head is None or not loaded.config.writes:
        raise TextError("Parts are taken from another sentence in language models that write; this model is none.")
    for i, pair in enumerate(checked(pairs)):
        try:
            same_length(loaded.tokens(pair.text), loaded.tokens(pair.other))
            answer, rival = (answer_token(loaded, word) for word in (pair.answer, pair.rival))
        except Refused as error:
            raise TextError(f"{pair.called(i)}: {error}") from None
        found.append(PairRequest(pair, answer, rival))
    return tuple(found)


def parts_in(config: ModelConfig) -> tuple[Part, ...]:
    """Every head and MLP of the last stack, from the last layer down: rows of late layers cost least."""
    n = config.stacks[-1][1]
    heads = range(config.n_heads)
    return tuple(
        part
        for layer in reversed(range(n))
        for part in (*(Part("head", layer, head) for head in heads), Part("mlp", layer, 0))
    )


@dataclass(frozen=True, eq=False)
class PairRuns:
    """One pair that is to run."""

    asked: PairRequest
    words: tuple[str, str]
    leads: tuple[float, float]
    runs: PartRuns

    def changes(self, rows: Sequence[PartRows]) -> PairChanges:
        """The change of the lead by every head and MLP, of all the rows."""
        config = self.runs.patching.sides.run.config
        layers = config.stacks[-1][1]
        heads = np.zeros((layers, config.n_heads), np.float32)
        mlps = np.zeros(layers, np.float32)
        for part, log_p in ((part, log_p) for each in rows for part, log_p in zip(each.parts, each.log_p, strict=True)):
            change = log_p[0] - log_p[1] - self.leads[0]
            if part.kind == "head":
                heads[part.layer, part.at] = change
            else:
                mlps[part.layer] = change
        return PairChanges(self.asked.pair, self.words, self.leads, heads, mlps)


def opened_pair(run: Trace, asked: PairRequest, at: int) -> PairRuns:
    """Both texts run, by the model of a run as it is. Raises Refused in its kinds, which names the pair, TooLarge among them before any part
    runs."""
    try:
        own, other = (trace(run.loaded, text) for text in (asked.pair.text, asked.pair.other))
        lead = lead_between(own, other, asked.answer, asked.rival)
        watched = (lead.answer, lead.rival)
        patching = patching_of(sides_of(own, other, "other", None), watched)
    except (TextError, InterventionError) as error:
        raise TextError(f"{asked.pair.called(at)}: {error}") from None
    answer, rival = labels_of(run.loaded, watched)
    leads = (float(patching.before[0] - patching.before[1]), lead_in(other, lead))
    return PairRuns(asked, (answer, rival), leads, PartRuns(patching, (parts_in(run.config),)))


def pairs_together(found: Sequence[PairRows]) -> PairRows:
    """All pairs, in one."""
    return PairRows(0, found[0].of, tuple(pair for rows in found for pair in rows.pairs))
