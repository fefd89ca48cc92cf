"""Path patching: the change of one head reaches one input of a later head, or the answer, and all else is held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from torch import Tensor

from ..errors import InterventionError, TooLarge
from ..memory import admit_large
from ..model.hooks import Hook, hook_points
from ..run.forward_pass import Pass
from ..run.trace import Trace
from .ablations import Edits, Rows, heads_of, place_of, rows_of
from .leads import Head, Lead, attention_of, check_pair, checked_head, lead_between
from .sweeps import HeadPlace

Input = Literal["q", "k", "v", "out"]
Mlps = Literal["held", "free"]

MOST_PATHS = 1_000  # runs of one question: about 25 heads
ROWS = 8  # paths of one batch, so that a caller who stops waits for no more; larger ones are slower on a processor
ADVICE = "Choose fewer heads, or a shorter text."

Named = tuple[str, int]  # an attention by its module path, and a head


@dataclass(frozen=True)
class PathEdge:
    """One path from a head to one input of a later head, or to the answer, and how far it moves the lead."""

    sender: HeadPlace | None  # None: everything before the receiver, whose whole input is then the other run's
    receiver: HeadPlace | None  # None: the answer itself
    input: Input  # of the receiver: query, key or value; "out" is the stream that the answer is read from
    change: float  # of the lead, in nats
    mlps: Mlps  # whether MLPs between sender and receiver are held


@dataclass(frozen=True)
class _Path:
    sender: Named | None
    receiver: Named | None
    input: Input


@dataclass(frozen=True, eq=False)
class Paths:
    """The paths of one question, before they run; `steps` runs them."""

    run: Trace
    other: Trace
    lead: Lead
    mlps: Mlps
    senders: tuple[Named, ...]  # in the order of the pass
    paths: tuple[_Path, ...]  # those to the answer first, then by receiver, in the order of the pass

    @property
    def n(self) -> int:
        """How many edges there will be; each is a run."""
        return len(self.paths)

    def steps(self) -> Iterator[PathEdge]:
        """Every edge as soon as its batch has run: paths to the answer first, then those into the last heads, back to the first.

        Raises Outdated after a training.
        """
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[tuple[PathEdge, ...]]:
        """The same, a batch of runs at a time; one that only looks at what a sender brings has no edges."""
        forward, wanted = self.run.forward.of(self.run.index), {p.receiver for p in self.paths if p.receiver}
        inputs = _Inputs(self, forward)
        rows = rows_of(forward, inputs.edits(), self.lead.position, self.lead.answer, (self.lead.rival,))
        before = self.lead.of(rows.before())[0]
        direct = {}
        if self.senders:
            inputs.read()
            yield ()
            for start, stop in _batches(rows):
                found = self.lead.of(rows.run(start, stop)) - before
                direct.update(zip(self.senders[start:stop], found.tolist(), strict=True))
                yield ()
        yield tuple(
            self._edge(path, direct[path.sender]) for path in self.paths if path.receiver is None and path.sender
        )
        if not wanted:
            return
        inputs.of_the_other(wanted)
        yield ()
        into = [path for path in self.paths if path.receiver]
        stacks: list[str] = [name for name, _ in forward.loaded.config.stacks]
        places = [place_of(path.receiver[0]) for path in into if path.receiver]
        rows = replace(
            rows,
            begins=tuple((stacks.index(stack), layer) for stack, layer, _ in places),
            edits=_received(into, inputs.seen, self.run.config.n_heads),
        )
        for start, stop in reversed(_batches(rows)):
            changes = self.lead.of(rows.run(start, stop)) - before
            yield tuple(self._edge(path, float(x)) for path, x in zip(into[start:stop], changes, strict=True))

    def _edge(self, path: _Path, change: float) -> PathEdge:
        return PathEdge(_place(path.sender), _place(path.receiver), path.input, change, self.mlps)


def patch_paths(
    run: Trace,
    other: Trace,
    heads: Sequence[Head],
    lead: Lead | None = None,
    *,
    receivers: Sequence[Head] | None = None,
    mlps: Mlps = "held",
) -> Iterator[PathEdge]:
    """Path patching (Wang et al. 2022, arXiv:2211.00593, §3.1; Goldowsky-Dill et al. 2023, arXiv:2304.05969) between heads.

    For each pair of heads, the earlier one gives what it gave in the other run. With `mlps` "held", every other head and every
    MLP between them gives what it gave in `run`, so that the change reaches the later head along the residual stream alone;
    with "free", MLPs answer to it and other heads do not. Of the later head one input takes what arrives: its query, its keys
    or its values. The other two, and the other heads of its layer, stay; then all later layers answer. Where heads share keys
    and values (GQA), the ones that arrive reach this query head alone, and the others of its group keep theirs.

    Edges, in the order of Paths.steps(): from every head to the answer ("out"), all else held; from every head to q, k and v of every
    later one; and from None, everything before it, to q, k and v of each head, which are then those of the other run. `change` is that of the `lead`, which
    lead_between() makes of two tokens or classes (None: of the likeliest of both runs), in nats. `receivers` are the later heads, the same ones unless
    they are named. A generator: to stop it, take no more of it.

    Raises TextError for another model or another length, InterventionError for a head that the model lacks, TooLarge for more than
    MOST_PATHS edges, all before anything runs; TooLarge with the bytes needed and free, and Outdated.
    """
    return begin_paths(run, other, heads, lead, receivers=receivers, mlps=mlps).steps()


def begin_paths(
    run: Trace,
    other: Trace,
    heads: Sequence[Head],
    lead: Lead | None = None,
    *,
    receivers: Sequence[Head] | None = None,
    mlps: Mlps = "held",
) -> Paths:
    """The question of patch_paths(), before it runs."""
    if mlps not in get_args(Mlps):
        raise InterventionError(f"MLPs between two heads are held or free, not {mlps!r}.")
    check_pair(run, other)
    known = {head: i for i, head in enumerate(heads_of(run.forward))}
    senders = sorted({_named(run, head) for head in heads}, key=known.__getitem__)
    to = senders if receivers is None else sorted({_named(run, head) for head in receivers}, key=known.__getitem__)
    if not senders and not to:
        raise InterventionError("Paths lie between heads. Name at least one.")
    last = run.config.stacks[-1][0]
    paths = [_Path(sender, None, "out") for sender in senders if receivers is None and place_of(sender[0])[0] == last]
    for receiver in to:
        for part in ("q", "k", "v"):
            found = [s for s in senders if _reaches(s[0], receiver[0], part)]
            paths += [_Path(sender, receiver, part) for sender in (None, *found)]
    if len(paths) > MOST_PATHS:
        raise TooLarge(
            f"Paths between these heads would be {len(paths):,} runs, and {MOST_PATHS:,} are the most at once. Choose fewer heads."
        )
    _admit(run, len(paths), senders, mlps)
    return Paths(run, other, lead or lead_between(run, other), mlps, tuple(senders), tuple(paths))


def _place(named: Named | None) -> HeadPlace | None:
    return None if named is None else HeadPlace(*place_of(named[0]), named[1])


def _named(run: Trace, head: Head) -> Named:
    """Raises InterventionError."""
    place = checked_head(run.loaded, head)
    return attention_of(place), place.head


def _reaches(sender: str, receiver: str, part: Input) -> bool:
    """Whether the stream leads from one attention to an input of another while all other attentions are held."""
    (s_stack, s_layer, s_site), (stack, layer, site) = place_of(sender), place_of(receiver)
    if s_stack != stack:
        return s_stack == "encoder" and site == "cross_attn" and part != "q"
    later = (s_layer, s_site == "cross_attn") < (layer, site == "cross_attn")
    return later and (site == "attn" or part == "q")


class _Inputs:
    """The input that every path brings to its receiver, seen in runs in which a sender alone changes: one row for each sender."""

    def __init__(self, question: Paths, forward: Pass):
        self.question, self.forward = question, forward
        self.seen: dict[_Path, Tensor] = {}  # [pos, d_head]
        self.held: dict[str, Tensor] = {}  # hook point of a sublayer's output -> [pos, d_model]
        self.z: dict[str, Tensor] = {}  # attention of a sender -> [head, query, d_head], of the other run

    def read(self) -> None:
        """Read what is held, and what the senders gave in the other run."""
        other, names = self.question.other, _attentions(self.question.senders)
        self.held = self.forward.moments(_held_points(self.forward, self.question.mlps), lambda _, x: x[0].clone())
        z = other.forward.moments([f"{name}.hook_z" for name in names], lambda _, x: x[other.index].clone())
        self.z = {name: z[f"{name}.hook_z"] for name in names}

    def of_the_other(self, receivers: set[Named]) -> None:
        """Read the inputs of the receivers in the other run."""
        other = self.question.other
        wanted = [path for path in self.question.paths if path.sender is None and path.receiver in receivers]
        points = list(dict.fromkeys(f"{path.receiver[0]}.hook_{path.input}" for path in wanted if path.receiver))
        for point, x in other.forward.moments(points, lambda _, x: x[other.index].clone()).items():
            for path in wanted:
                if path.receiver and f"{path.receiver[0]}.hook_{path.input}" == point:
                    self.seen[path] = x[self._own(path.receiver[1], x)].clone()

    def edits(self) -> Edits:
        """Row i has sender i changed and all else held, and leaves what comes to the receivers in `seen`."""
        return Edits("Patching a path", tuple(name for name, _ in self.question.senders), self._hooks)

    def _hooks(self, start: int, stop: int) -> Mapping[str, Hook]:
        senders, hooks = self.question.senders[start:stop], dict[str, Hook]()
        for point in self.held:
            layer, _, kind = point.rpartition(".")
            site = {"hook_attn_out": "attn", "hook_cross_out": "cross_attn"}.get(kind)
            own = [row for row, (name, _) in enumerate(senders) if name == f"{layer}.{site}"]
            hooks[point] = partial(self._hold, point, own)
        for name in self.z:
            rows = [(row, head) for row, (attention, head) in enumerate(senders) if attention == name]
            hooks[f"{name}.hook_z"] = partial(self._send, name, rows)
        wanted: dict[str, list[tuple[int, _Path]]] = {}
        for path in self.question.paths:
            if path.receiver and path.sender in senders:
                row = senders.index(path.sender)
                wanted.setdefault(f"{path.receiver[0]}.hook_{path.input}", []).append((row, path))
        return hooks | {point: partial(self._look, paths) for point, paths in wanted.items()}

    def _hold(self, point: str, own: list[int], x: Tensor) -> Tensor:  # [row, pos, d_model]
        plain = self.held[point]
        if x.shape[1] != len(plain):  # after the last attention only the position that is asked about is computed
            plain = plain[self.question.lead.position][None]
        held = plain.expand_as(x).clone()
        own = [row for row in own if row < len(x)]
        held[own] = x[own]
        return held

    def _send(self, name: str, rows: list[tuple[int, int]], z: Tensor) -> Tensor:  # [row, head, query, d_head]
        z = z.clone()
        for row, head in rows:
            z[row, head] = self.z[name][head]
        return z

    def _look(self, paths: list[tuple[int, _Path]], x: Tensor) -> None:  # [row, head or kv_head, pos, d_head]
        for row, path in paths:
            assert path.receiver is not None
            self.seen[path] = x[row, self._own(path.receiver[1], x[row])].clone()

    def _own(self, head: int, x: Tensor) -> int:
        """Which of the heads, or groups of heads, of x [head or kv_head, pos, d_head] is a query head's."""
        return head // (self.forward.loaded.config.n_heads // len(x))


def _attentions(heads: Iterable[Named]) -> list[str]:
    return list(dict.fromkeys(name for name, _ in heads))


def _held_points(forward: Pass, mlps: Mlps) -> list[str]:
    ends = (".hook_attn_out", ".hook_cross_out", *([".hook_mlp_out"] if mlps == "held" else []))
    return [point for point in hook_points(forward.loaded.model) if point.endswith(ends)]


def _admit(run: Trace, n_paths: int, senders: Sequence[Named], mlps: Mlps) -> None:
    """Raises TooLarge, with both numbers, where what is held of both runs has no room."""
    prompt, config = run.forward.prompt, run.config
    n, width = max(prompt.source_len, prompt.target_len), max(config.d_head, config.value_width)
    streams = len(_held_points(run.forward, mlps)) * config.d_model
    each = streams + (n_paths + len(_attentions(senders)) * config.n_heads) * width
    needed = n * each * run.loaded.dtype.itemsize
    admit_large(needed, run.loaded.device, f"Holding the other parts of a run of {n:,} tokens", ADVICE)


def _received(paths: Sequence[_Path], inputs: Mapping[_Path, Tensor], n_heads: int) -> Edits:
    """Row i has in its receiver, and in no other head, the input that its path brings."""

    def hooks(start: int, stop: int) -> Mapping[str, Hook]:
        by_attention: dict[str, list[tuple[int, _Path]]] = {}
        for row, path in enumerate(paths[start:stop]):
            assert path.receiver is not None
            by_attention.setdefault(path.receiver[0], []).append((row, path))
        found: dict[str, Hook] = {}
        for name, rows in by_attention.items():
            shared = any(path.input != "q" for _, path in rows)
            for part in ("q", "k", "v") if shared else ("q",):
                found[f"{name}.hook_{part}"] = partial(
                    _replaced, [r for r in rows if r[1].input == part], inputs, n_heads
                )
        return found

    return Edits("Patching a path", tuple(path.receiver[0] for path in paths if path.receiver), hooks)


def _replaced(rows: list[tuple[int, _Path]], inputs: Mapping[_Path, Tensor], n_heads: int, x: Tensor) -> Tensor:
    """x [row, head or kv_head, pos, d_head] as [row, head, pos, d_head], with one head of each of these rows replaced."""
    x = x.repeat_interleave(n_heads // x.shape[1], dim=1)  # always a copy
    for row, path in rows:
        assert path.receiver is not None
        x[row, path.receiver[1]] = inputs[path]
    return x


def _batches(rows: Rows) -> list[tuple[int, int]]:
    """Raises TooLarge where not even one row fits."""
    most = min(rows.most(), ROWS)
    return [(start, min(rows.n, start + most)) for start in range(0, rows.n, most)]
