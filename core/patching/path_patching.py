"""Path patching between heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from torch import Tensor

from ..device import check_fits_or_retry
from ..errors import InterventionError, TooLarge
from ..model.hooks import Hook, hook_points
from ..run.forward_pass import Pass
from ..run.trace_record import TraceRecord
from .edited_runs import Edits, Rows, by_attention, heads_of, place_of, rows_of
from .head_sweeps import (
    Head,
    HeadPlace,
    LogitDiff,
    attention_of,
    check_pair,
    checked_head,
    head_outputs,
    logit_diff_between,
)

Input = Literal["q", "k", "v", "out"]
Mlps = Literal["held", "free"]

MAX_PATHS = 1_000  # runs of one question: about 25 heads
MAX_ROWS = 8  # paths of one batch, so that a caller who stops waits for no more; larger batches are slower on a CPU
SHORTER_ADVICE = "Choose fewer heads, or a shorter text."

Named = tuple[str, int]  # module path of an attention, and a head


@dataclass(frozen=True)
class PathEdge:
    """One path from a head to one input of a later head, or to the answer, and its effect on the logit difference."""

    sender: HeadPlace | None  # None: everything before the receiver, whose whole input is then that of the other run
    receiver: HeadPlace | None  # None: the answer itself
    input: Input  # of the receiver: query, key or value; "out" is the residual stream that the answer is read from
    change: float  # of the logit difference, in nats
    mlps: Mlps  # whether MLPs between sender and receiver are frozen ("held")


@dataclass(frozen=True)
class _Path:
    sender: Named | None
    receiver: Named | None
    input: Input


@dataclass(frozen=True, eq=False)
class Paths:
    """The paths of one question; `steps` runs them."""

    run: TraceRecord
    other: TraceRecord
    lead: LogitDiff
    mlps: Mlps
    senders: tuple[Named, ...]  # in the order of the pass
    paths: tuple[_Path, ...]  # those to the answer first, then by receiver, in the order of the pass

    @property
    def n(self) -> int:
        """Number of edges; each is a run."""
        return len(self.paths)

    def steps(self) -> Iterator[PathEdge]:
        """Every edge as soon as its batch has run: paths to the answer first, then those into the last heads, back to the first.

        Raises Outdated after a training.
        """
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[tuple[PathEdge, ...]]:
        """The same, one batch of runs at a time; a batch that only reads the inputs of receivers has no edges."""
        forward = self.run.forward.of(self.run.index)
        inputs = _Inputs(self, forward)
        rows = rows_of(forward, inputs.edits(), self.lead.position, self.lead.answer, (self.lead.alternative,))
        before = self.lead.of(rows.before())[0]
        direct: dict[Named | None, float] = {}
        if self.senders:
            inputs.read()
            yield ()
            for start, stop in _batches(rows):
                changes = self.lead.of(rows.run(start, stop)) - before
                direct.update(zip(self.senders[start:stop], changes.tolist(), strict=True))
                yield ()
        yield tuple(self._edge(path, direct[path.sender]) for path in self.paths if path.receiver is None)
        into = [path for path in self.paths if path.receiver]
        if not into:
            return
        inputs.read_other(into)
        yield ()
        stacks: list[str] = [name for name, _ in forward.loaded.config.stacks]
        edits = _with_replaced_inputs(into, inputs.seen, self.run.config.n_heads)
        begins = tuple((stacks.index(stack), layer) for stack, layer, _ in map(place_of, edits.attentions))
        rows = replace(rows, begins=begins, edits=edits)
        for start, stop in reversed(_batches(rows)):
            changes = self.lead.of(rows.run(start, stop)) - before
            yield tuple(self._edge(path, float(x)) for path, x in zip(into[start:stop], changes, strict=True))

    def _edge(self, path: _Path, change: float) -> PathEdge:
        return PathEdge(_place(path.sender), _place(path.receiver), path.input, change, self.mlps)


def patch_paths(
    run: TraceRecord,
    other: TraceRecord,
    heads: Sequence[Head],
    lead: LogitDiff | None = None,
    *,
    receivers: Sequence[Head] | None = None,
    mlps: Mlps = "held",
) -> Iterator[PathEdge]:
    """Path patching (Wang et al. 2022, arXiv:2211.00593, §3.1; Goldowsky-Dill et al. 2023, arXiv:2304.05969) between heads.

    For each pair of heads, the output of the earlier one is that of the other run. With `mlps` "held", every other head and every MLP
    between them is frozen to its output in `run`, so the change reaches the later head only along the residual stream; with "free",
    MLPs respond to it and other heads do not. One input of the later head receives the change: its query, its keys or its values. The other
    two, and the other heads of its layer, are frozen; then all later layers respond. If heads share keys and values (GQA), only this
    query head receives the changed ones.

    Edges, in the order of Paths.steps(): from every head to the answer ("out"), everything else frozen; from every head to q, k and v of
    every later one; and from None, everything before it, to q, k and v of each head, which are then those of the other run. `change` is
    that of `lead`, the logit difference of two tokens or classes from logit_diff_between() (None: the most likely of both runs), in nats.
    `receivers` are the later heads (None: `heads`). To stop the generator, stop reading from it.

    Raises TextError for another model or another length, InterventionError for a head that the model lacks, TooLarge for more than
    MAX_PATHS edges, all before anything runs; TooLarge with the bytes needed and free, and Outdated.
    """
    return begin_paths(run, other, heads, lead, receivers=receivers, mlps=mlps).steps()


def begin_paths(
    run: TraceRecord,
    other: TraceRecord,
    heads: Sequence[Head],
    lead: LogitDiff | None = None,
    *,
    receivers: Sequence[Head] | None = None,
    mlps: Mlps = "held",
) -> Paths:
    """Prepare patch_paths()."""
    if mlps not in get_args(Mlps):
        raise InterventionError(f"MLPs between two heads are held or free, not {mlps!r}.")
    check_pair(run, other)
    order = {head: i for i, head in enumerate(heads_of(run.forward))}

    def sorted_heads(heads: Sequence[Head]) -> list[Named]:
        places = [checked_head(run.loaded, head) for head in heads]
        return sorted({(attention_of(place), place.head) for place in places}, key=order.__getitem__)

    senders = sorted_heads(heads)
    targets = senders if receivers is None else sorted_heads(receivers)
    if not senders and not targets:
        raise InterventionError("Paths lie between heads. Name at least one.")
    last = run.config.stacks[-1][0]
    to_answer = [sender for sender in senders if receivers is None and place_of(sender[0])[0] == last]
    paths = [
        *(_Path(sender, None, "out") for sender in to_answer),
        *(path for receiver in targets for path in _paths_into(receiver, senders)),
    ]
    if len(paths) > MAX_PATHS:
        raise TooLarge(
            f"Paths between these heads would be {len(paths):,} runs, and {MAX_PATHS:,} are the most at once. Choose fewer heads."
        )
    _admit_paths(run, len(paths), senders, mlps)
    return Paths(run, other, lead or logit_diff_between(run, other), mlps, tuple(senders), tuple(paths))


def _paths_into(receiver: Named, senders: Sequence[Named]) -> list[_Path]:
    inputs: tuple[Input, ...] = ("q", "k", "v")
    return [
        _Path(sender, receiver, name)
        for name in inputs
        for sender in (None, *senders)
        if sender is None or _reaches(sender[0], receiver[0], name)
    ]


def _place(named: Named | None) -> HeadPlace | None:
    return None if named is None else HeadPlace(*place_of(named[0]), named[1])


def _reaches(sender: str, receiver: str, name: Input) -> bool:
    """True if the residual stream leads from one attention to an input of another while all other attentions are frozen."""
    (s_stack, s_layer, s_site), (stack, layer, site) = place_of(sender), place_of(receiver)
    if s_stack != stack:
        return s_stack == "encoder" and site == "cross_attn" and name != "q"
    later = (s_layer, s_site == "cross_attn") < (layer, site == "cross_attn")
    return later and (site == "attn" or name == "q")


class _Inputs:
    """The input that every path brings to its receiver, read in runs in which only one sender changes: one row for each sender."""

    def __init__(self, question: Paths, forward: Pass):
        self.question, self.forward = question, forward
        self.seen: dict[_Path, Tensor] = {}  # [pos, d_head]
        self.frozen: dict[str, Tensor] = {}  # hook point of a sublayer's output -> [pos, d_model]
        self.z: dict[str, Tensor] = {}  # attention of a sender -> [head, query, d_head], of the other run

    def read(self) -> None:
        """Read the frozen outputs, and the outputs of the senders in the other run."""
        self.frozen = self.forward.moments(_frozen_points(self.forward, self.question.mlps), lambda _, x: x[0].clone())
        self.z = head_outputs(self.question.other, (name for name, _ in self.question.senders))

    def read_other(self, paths: Sequence[_Path]) -> None:
        """Read the inputs of paths without a sender in the other run."""
        other, wanted = self.question.other, dict[str, list[_Path]]()
        for path in paths:
            if path.sender is None and path.receiver:
                wanted.setdefault(f"{path.receiver[0]}.hook_{path.input}", []).append(path)
        for point, x in other.forward.moments(list(wanted), lambda _, x: x[other.index].clone()).items():
            self._store([(0, path) for path in wanted[point]], x[None])

    def edits(self) -> Edits:
        """Row i has sender i changed and everything else frozen, and stores the inputs of the receivers in `seen`."""
        return Edits("Patching a path", tuple(name for name, _ in self.question.senders), self._hooks)

    def _hooks(self, start: int, stop: int) -> Mapping[str, Hook]:
        senders, hooks = self.question.senders[start:stop], dict[str, Hook]()
        for point in self.frozen:
            layer, _, kind = point.rpartition(".")
            site = {"hook_attn_out": "attn", "hook_cross_out": "cross_attn"}.get(kind)
            own = [row for row, (name, _) in enumerate(senders) if name == f"{layer}.{site}"]
            hooks[point] = partial(self._freeze, point, own)
        cells = by_attention(senders)
        hooks |= {f"{name}.hook_z": partial(self._patch_sender, name, cells.get(name, [])) for name in self.z}
        wanted: dict[str, list[tuple[int, _Path]]] = {}
        for path in self.question.paths:
            if path.receiver and path.sender in senders:
                row = senders.index(path.sender)
                wanted.setdefault(f"{path.receiver[0]}.hook_{path.input}", []).append((row, path))
        return hooks | {point: partial(self._store, paths) for point, paths in wanted.items()}

    def _freeze(self, point: str, own: list[int], x: Tensor) -> Tensor:  # [row, pos, d_model]
        plain = self.frozen[point]
        if x.shape[1] != len(plain):  # after the last attention only the position under study is computed
            plain = plain[self.question.lead.position][None]
        frozen = plain.expand_as(x).clone()
        own = [row for row in own if row < len(x)]
        frozen[own] = x[own]
        return frozen

    def _patch_sender(self, name: str, rows: list[tuple[int, int]], z: Tensor) -> Tensor:  # [row, query, head, d_head]
        z = z.clone()
        for row, head in rows:
            z[row, :, head] = self.z[name][head]
        return z

    def _store(self, paths: list[tuple[int, _Path]], x: Tensor) -> None:  # [row, pos, head or kv_head, d_head]
        group = self.forward.loaded.config.n_heads // x.shape[2]  # query heads of each head in x
        for row, path in paths:
            assert path.receiver is not None
            self.seen[path] = x[row, :, path.receiver[1] // group].clone()


def _frozen_points(forward: Pass, mlps: Mlps) -> list[str]:
    ends = (".hook_attn_out", ".hook_cross_out", *([".hook_mlp_out"] if mlps == "held" else []))
    return [point for point in hook_points(forward.loaded.model) if point.endswith(ends)]


def _admit_paths(run: TraceRecord, n_paths: int, senders: Sequence[Named], mlps: Mlps) -> None:
    """Raise TooLarge, with both numbers, if the stored activations of both runs do not fit."""
    prompt, config = run.forward.prompt, run.config
    n, width = max(prompt.source_len, prompt.target_len), max(config.d_head, config.value_width)
    streams = len(_frozen_points(run.forward, mlps)) * config.d_model
    each = streams + (n_paths + len({name for name, _ in senders}) * config.n_heads) * width
    needed = n * each * run.loaded.dtype.itemsize
    check_fits_or_retry(needed, run.loaded.device, f"Holding the other parts of a run of {n:,} tokens", SHORTER_ADVICE)


def _with_replaced_inputs(paths: Sequence[_Path], inputs: Mapping[_Path, Tensor], n_heads: int) -> Edits:
    """Row i has the input of its path in its receiver, and in no other head."""

    def hooks(start: int, stop: int) -> Mapping[str, Hook]:
        by_receiver: dict[str, list[tuple[int, _Path]]] = {}
        for row, path in enumerate(paths[start:stop]):
            assert path.receiver is not None
            by_receiver.setdefault(path.receiver[0], []).append((row, path))
        hooks: dict[str, Hook] = {}
        for attention, rows in by_receiver.items():
            shared = any(path.input != "q" for _, path in rows)
            for name in ("q", "k", "v") if shared else ("q",):
                some = [row for row in rows if row[1].input == name]
                hooks[f"{attention}.hook_{name}"] = partial(_with_inputs, some, inputs, n_heads)
        return hooks

    return Edits("Patching a path", tuple(path.receiver[0] for path in paths if path.receiver), hooks)


def _with_inputs(rows: list[tuple[int, _Path]], inputs: Mapping[_Path, Tensor], n_heads: int, x: Tensor) -> Tensor:
    """x [row, pos, head or kv_head, d_head] as [row, pos, head, d_head], with one head of each of these rows replaced."""
    x = x.repeat_interleave(n_heads // x.shape[2], dim=2)  # always a copy
    for row, path in rows:
        assert path.receiver is not None
        x[row, :, path.receiver[1]] = inputs[path]
    return x


def _batches(rows: Rows) -> list[tuple[int, int]]:
    """Raises TooLarge if not even one row fits."""
    most = min(rows.most(), MAX_ROWS)
    return [(start, min(rows.n, start + most)) for start in range(0, rows.n, most)]
