"""Training of a small model on a toy task, with frames for the Train screen."""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..checkpoints import Loaded, ModelSpec, at_point
from ..checkpoints.from_config import build
from ..checkpoints.native_format import TokenIds, model_zip
from ..edits import DropCausalMask, DropPositions, Edit, NoScale, hooks_of
from ..errors import CheckpointError, HeadlightError
from ..model.config import ModelConfig
from ..model.hooks import Hook, hooked
from ..model.transformer import Transformer, to_dtype
from ..run.trace_record import one_line
from ..trace import trace
from .tasks import ECHO, TASKS, Task, head_measures, held_out, problem_of, problems, sample, solved, tokenizer_for
from .training import Batch, Recipe, RunState, TrainStep, gradient_lengths, make_optimiser, state_of, train

EVERY = 5  # steps between two states of a run; storing them takes 2 % of its time
MAX_RUNS = 4
MAX_BYTES = 128 << 20  # of all states; a run of 600 steps would take about 150 MiB, and keeps every tenth step


class States:
    """States of runs by the run's description, least recently used first. Callers copy a state before they use it. Not thread-safe."""

    def __init__(self, most_bytes: int = MAX_BYTES) -> None:
        self.most_bytes = most_bytes
        self._runs: OrderedDict[object, dict[int, RunState]] = OrderedDict()

    def keep(self, run: object, state: RunState) -> None:
        """Store a state of a run. If that exceeds the limit, every second state of the run with most states is dropped."""
        states = self._runs.setdefault(run, {})
        self._runs.move_to_end(run)
        states[state.step] = state
        while len(self._runs) > MAX_RUNS:
            self._runs.popitem(last=False)
        while self.nbytes > self.most_bytes:
            longest = max(self._runs.values(), key=len)
            for step in sorted(longest)[::2]:
                del longest[step]
            self._runs = OrderedDict((run, states) for run, states in self._runs.items() if states)

    def before(self, run: object, step: int) -> RunState | None:
        """The latest state of a run up to this step."""
        if run not in self._runs:
            return None
        self._runs.move_to_end(run)
        latest = max((at for at in self._runs[run] if at <= step), default=None)
        return None if latest is None else self._runs[run][latest]

    @property
    def nbytes(self) -> int:
        return sum(
            x.numel() * x.element_size()
            for states in self._runs.values()
            for state in states.values()
            for x in state.tensors.values()
        )


LIVE: dict[str, Task] = {"echo": ECHO, **TASKS}
STEPS, MAX_STEPS = 600, 2000
BATCH = 32
RATE, WARMUP = 3e-3, 100
FRAMES = 35  # of a run, including the first and the last
WRITES = 100  # steps between two frames with free-running answers, in a run with a frame every few steps
UNSEEN = 48  # held-out problems for the evaluation of a frame
SHAPE: dict[str, Any] = {"d_model": 64, "n_heads": 4, "d_ff": 256, "n_decoder_layers": 2}
POSITIONS = {"induction": "rotary"}  # for a task that depends on distances; otherwise learned positions


@dataclass(frozen=True)
class Variant:
    """One change of a run: of the config, of the recipe, or an edit in every step."""

    config: Mapping[str, Any] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    rate: float = 1.0  # times RATE
    warmup: bool = True
    residual: bool = True

    @property
    def from_step_0(self) -> bool:
        """True if its weights have another shape or meaning, so that it cannot continue from those of another run."""
        return bool(self.config)


VARIANTS: dict[str, Variant] = {
    "none": Variant(),
    **{f"heads{n}": Variant(config={"n_heads": n}) for n in (1, 2, 8, 16)},
    "postln": Variant(config={"norm_order": "post", "final_norm": False}),
    "postnow": Variant(config={"norm_order": "post", "final_norm": False}, warmup=False),
    "rate10": Variant(rate=10),
    "nowarmup": Variant(warmup=False),
    "nomask": Variant(edits=(DropCausalMask(),)),
    "nopositions": Variant(edits=(DropPositions(),)),
    "noscale": Variant(edits=(NoScale(),)),
    "noresidual": Variant(residual=False),
}


@dataclass(frozen=True)
class Spec:
    """Everything that a run depends on. Raises Refused for values out of range.

    The twin's change applies from step `fork` on; before it the run is the one without a twin.
    """

    task: str = "copy"
    twin: str = "none"
    seed: int = 0
    steps: int = STEPS
    fork: int = 0

    def __post_init__(self) -> None:
        if self.task not in LIVE:
            raise HeadlightError(f"There is no task {one_line(self.task, 40)!r}. There are: {', '.join(LIVE)}.")
        if self.twin not in VARIANTS:
            raise HeadlightError(f"There is no twin {one_line(self.twin, 40)!r}. There are: {', '.join(VARIANTS)}.")
        if not 1 <= self.steps <= MAX_STEPS:
            raise HeadlightError(f"A run has 1 to {MAX_STEPS:,} steps, and not {self.steps:,}.")
        if not 0 <= self.seed < 1 << 31:
            raise HeadlightError(f"A seed is a whole number from 0 to {(1 << 31) - 1:,}, and not {self.seed:,}.")
        if not 0 <= self.fork < self.steps:
            raise HeadlightError(
                f"A run of {self.steps:,} steps can fork at step 0 to {self.steps - 1:,}, and not at {self.fork:,}."
            )
        if self.fork and VARIANTS[self.twin].from_step_0:
            raise HeadlightError(
                "Heads and the order of the norm decide what the weights mean: such a twin starts at step 0."
            )

    @property
    def config(self) -> ModelConfig:
        task = LIVE[self.task]
        sizes: dict[str, Any] = {
            "vocab_size": len(task.vocabulary),
            "n_ctx": task.n_ctx,
            "position": POSITIONS.get(self.task, "learned"),
            **SHAPE,
            **VARIANTS[self.twin].config,
        }
        return ModelConfig(**sizes)

    @property
    def recipe(self) -> Recipe:
        twin = VARIANTS[self.twin]
        return Recipe(
            steps=self.steps,
            learning_rate=RATE * twin.rate,
            warmup=min(WARMUP, self.steps // 4) if twin.warmup else 0,
            seed=self.seed,
            mixed=False,
        )

    @property
    def alone(self) -> Spec:
        """The same run without the twin's change."""
        return replace(self, twin="none", fork=0)


Weights = tuple[tuple[float, ...], ...]  # [layer][head]


@dataclass(frozen=True, eq=False)
class Point:
    """One step of the curve: loss in nats per token, and accuracy, of its batch."""

    step: int
    loss: float
    accuracy: float


@dataclass(frozen=True, eq=False)
class Frame:
    """Weights and measures at one step."""

    step: int
    weights: Mapping[str, Tensor]  # float16 by name; float32 if float16 cannot represent them
    given: tuple[float, ...]  # teacher-forced accuracy at each place of the answer, on unseen problems
    own: tuple[float, ...]  # the same when the model reads its own output
    whole: (
        int  # number of UNSEEN problems answered exactly in free running; -1, and no `own`, if that was not evaluated
    )
    gradients: tuple[float, ...]  # gradient norm of each layer, before clipping; () at step 0
    loss: float = math.nan  # on the unseen problems, in nats per symbol of the answer
    finds: Weights = ()  # [layer][head] of each, over unseen problems: see head_measures.HeadMeasures
    back: Weights = ()
    ahead: Weights = ()


def frame_steps(spec: Spec) -> list[int]:
    """The steps of a run that have frames: dense at first, when most changes happen, and the last step."""
    return sorted({spec.fork + round((spec.steps - spec.fork) * (i / (FRAMES - 1)) ** 1.7) for i in range(FRAMES)})


def run(
    spec: Spec, start: RunState | None = None, states: States | None = None, every: int = 0
) -> Iterator[Point | Frame | None]:
    """Yield the points and frames of a run in the order of their steps; the frame of a step comes after its point.

    The frame of step 0 comes after the first point, because evaluating a model takes as long as ten steps and would delay the curve. A run
    with a fork starts from `start`, the state of the run without a twin at that step; by default that state is computed first, with None
    for each of its steps. A loss that is not finite ends the run with its point.

    `states` stores some states of a run without a twin, and a fork starts from the last of them before it. The results are the same with
    and without them, bit for bit. With `every` there is a frame every so many steps instead of at frame_steps(), with free-running
    answers only every WRITES steps, since they take most of a frame's time.
    """
    if spec.fork and start is None:
        start = yield from _up_to(spec.alone, spec.fork, states)
    model, optimiser = _fresh(spec)
    wanted = set(range(spec.fork, spec.steps + 1, every)) if every else set(frame_steps(spec))
    for done in _steps(spec, model, optimiser, start):
        if spec == spec.alone:
            _keep(spec, model, optimiser, done.step, states)
        yield Point(done.step, done.loss, done.accuracy)
        if start is None and done.step == 1:
            yield _frame(spec, _fresh(spec)[0], 0, ())
        if not math.isfinite(done.loss):
            return
        if done.step in wanted:
            writes = not every or done.step % WRITES == 0 or done.step == spec.steps
            yield _frame(spec, model, done.step, gradient_lengths(model, done, spec.recipe), writes)


def _up_to(spec: Spec, step: int, states: States | None = None) -> Generator[None, None, RunState]:
    """Return the state of a run at a step, computed from the last stored one before it, and yield None for each step."""
    start = states.before(spec, step) if states is not None else None
    if start is not None and start.step == step:
        return start
    model, optimiser = _fresh(spec)
    for done in _steps(spec, model, optimiser, start):
        _keep(spec, model, optimiser, done.step, states)
        if done.step == step:
            break
        yield None
    return _state(model, optimiser, step)


def _keep(spec: Spec, model: Transformer, optimiser: torch.optim.Optimizer, step: int, states: States | None) -> None:
    if states is not None and step % EVERY == 0:
        states.keep(spec, _state(model, optimiser, step))


def _state(model: Transformer, optimiser: torch.optim.Optimizer, step: int) -> RunState:
    return RunState(step, {name: x.clone() for name, x in state_of(model, optimiser).items()})


def loaded(spec: Spec, frame: Frame) -> Loaded:
    """The model of a frame, without tokenizer. The edits of its twin are not part of it; see hooks_during()."""
    made = build(spec.config, spec.seed)
    made.model.load_state_dict({name: x.float() for name, x in frame.weights.items()})
    return made


NAME = re.compile(
    r"trained-(?P<task>[a-z]{1,20})-(?P<twin>[a-z0-9]{1,20})-(?P<seed>\d{1,10})(?:-from-(?P<fork>\d{1,4}))?", re.ASCII
)
TITLE = re.compile(
    r"Trained (?P<task>[a-z]{1,20})(?:, (?P<twin>[a-z0-9]{1,20})(?: from step (?P<fork>\d{1,4}))?)?, seed (?P<seed>\d{1,10})",
    re.ASCII,
)


def name_of(spec: Spec) -> str:
    """Model name of a run of STEPS steps: "trained-copy-nomask-0", or of a fork "trained-copy-nomask-0-from-210"."""
    return f"trained-{spec.task}-{spec.twin}-{spec.seed}" + (f"-from-{spec.fork}" if spec.fork else "")


def named(name: str) -> Spec | None:
    """Parse a name from name_of(), or a title; None for any other. Raises Refused if there can be no such run."""
    if (found := NAME.fullmatch(name) or TITLE.fullmatch(name)) is None:
        return None
    return Spec(found["task"], found["twin"] or "none", int(found["seed"]), STEPS, int(found["fork"] or 0))


def described(spec: Spec) -> ModelSpec:
    """A run as a model with a point for each frame: "trained-copy-nomask-0@210" is step 210."""
    task = LIVE[spec.task]
    problem = problems(task, 1, seed="watched", held_out=True)[0]
    twin = "" if spec.twin == "none" else f", {spec.twin}" + (f" from step {spec.fork}" if spec.fork else "")
    return ModelSpec(
        id=name_of(spec),
        title=f"Trained {spec.task}{twin}, seed {spec.seed}",
        family="headlight",
        source="trained",
        location="",
        licence="as this repository",
        note=f"A run of Train: {spec.steps} steps of {task.title} in batches of {BATCH}.",
        example=problem if task.same_place else problem + task.answer(problem),
        points=tuple((str(step), "") for step in frame_steps(spec)),
    )


def opened(spec: Spec, frame: Frame, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32) -> Loaded:
    """The model of a frame with its task's tokenizer, as from load(). The edits of its twin are not part of it."""
    task, made = LIVE[spec.task], loaded(spec, frame)
    own = described(spec)
    return replace(
        made,
        spec=replace(own if frame.step == spec.steps else at_point(own, str(frame.step)), n_params=made.spec.n_params),
        model=to_dtype(made.model, dtype).to(device),
        tokenizer=tokenizer_for(task),
        device=torch.device(device),
        dtype=dtype,
        end_ids=(task.end_id,),
    )


def trained(name: str, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32) -> Loaded:
    """Train the model of a name such as "trained-copy-nomask-0@210" again. It takes seconds and gives the same weights."""
    run_name, _, point = name.partition("@")
    spec = named(run_name)
    if spec is None:
        raise CheckpointError(f"{one_line(name, 60)!r} is no run of Train. Give a name such as {name_of(Spec())}@210.")
    step = int(point) if point.isdecimal() else spec.steps
    frame = next((frame for frame in run(spec) if isinstance(frame, Frame) and frame.step == step), None)
    if frame is None:
        known = ", ".join(map(str, frame_steps(spec)))
        raise CheckpointError(f"{described(spec).title} keeps no step {step}. It keeps {known}.")
    return opened(spec, frame, device, dtype)


def archive(spec: Spec, frame: Frame) -> bytes:
    """A zip of the model of a frame: config, weights, tokenizer, recipe, card. Unpacked, core.load() reads it."""
    task, twin = LIVE[spec.task], VARIANTS[spec.twin]
    recipe = {"run": asdict(spec), "step": frame.step, "batch": BATCH, **asdict(spec.recipe)}
    edits = ", ".join(map(repr, twin.edits)) or ("no residual connections" if not twin.residual else "")
    learnt = f" It learnt with {edits}, which this folder does not put in place." if edits else ""
    card = (
        f"# {task.title}, step {frame.step} of {spec.steps}\n\n"
        f"Trained on {frame.step * BATCH:,} problems with seed {spec.seed}.{learnt}\n"
        f"Writing freely, it answers {frame.whole} of {UNSEEN} problems that it was not trained on.\n"
    )
    dtype = next(iter(frame.weights.values())).dtype
    model, tokenizer = loaded(spec, frame).model, tokenizer_for(task)
    return model_zip(model, recipe, card, tokenizer=tokenizer, ids=TokenIds(end=(task.end_id,)), dtype=dtype)


def hooks_during(spec: Spec, model: Transformer) -> dict[str, Hook]:
    """The hooks of a twin, for every pass."""
    twin = VARIANTS[spec.twin]
    return {**hooks_of(model, twin.edits), **({} if twin.residual else no_residual(model))}


def no_residual(model: Transformer) -> dict[str, Hook]:
    """Hooks that remove the residual connections: the output of a sublayer replaces its input. For one pass at a time, in one thread."""
    assert model.decoder is not None
    hooks: dict[str, Hook] = {}
    for i in range(len(model.decoder.blocks)):
        stream: dict[str, Tensor] = {}

        def keep(x: Tensor, stream: dict[str, Tensor] = stream) -> None:
            stream["x"] = x

        def without_input(out: Tensor, stream: dict[str, Tensor] = stream) -> Tensor:
            return out - stream["x"]

        for before, after in (("resid_pre", "attn_out"), ("resid_mid", "mlp_out")):
            hooks[f"decoder.blocks.{i}.hook_{before}"] = keep
            hooks[f"decoder.blocks.{i}.hook_{after}"] = without_input
    return hooks


def _fresh(spec: Spec) -> tuple[Transformer, torch.optim.Optimizer]:
    model = build(spec.config, spec.seed).model
    return model, make_optimiser(model, spec.recipe)


def _steps(
    spec: Spec, model: Transformer, optimiser: torch.optim.Optimizer, start: RunState | None
) -> Iterator[TrainStep]:
    hooks = hooks_during(spec, model)
    return train(model, lambda step: batch(spec, step), spec.recipe, start=start, hooks=hooks, optimiser=optimiser)


def batch(spec: Spec, step: int) -> Batch:
    """The batch of a step: the same problems for every twin."""
    task = LIVE[spec.task]
    ids, counts = sample(task, BATCH, seed=f"{spec.seed}/{step}")
    return Batch(ids, counts, targets=ids if task.same_place else None)


# The evaluation of a frame.


@torch.inference_mode()
def _frame(spec: Spec, model: Transformer, step: int, gradients: tuple[float, ...], writes: bool = True) -> Frame:
    half = {name: p.detach().half() for name, p in model.state_dict().items()}
    fits = all(bool(x.isfinite().all()) for x in half.values())
    weights = half if fits else {name: p.detach().clone() for name, p in model.state_dict().items()}
    with hooked(model, hooks_during(spec, model)):
        given, own, whole, loss = _evaluated(spec, model, writes)
    seen = head_measures(LIVE[spec.task], model, held_out(LIVE[spec.task]), hooks_during(spec, model))
    measures = (tuple(tuple(map(float, row)) for row in x) for x in (seen.finds, seen.back, seen.ahead))
    return Frame(step, weights, given, own, whole, gradients, loss, *measures)


def _evaluated(
    spec: Spec, model: Transformer, writes: bool = True
) -> tuple[tuple[float, ...], tuple[float, ...], int, float]:
    """(teacher-forced accuracy by place, free-running accuracy by place, exact matches in free running, loss), on UNSEEN problems."""
    task = LIVE[spec.task]
    chosen, ids, counts = _unseen(spec.task)
    assert model.head is not None
    if task.same_place:
        logits = model.head(model.last_residual(ids))
        right = logits.argmax(-1) == ids
        given = _by_place(right, counts)
        return given, given, int((right | ~counts).all(-1).sum()), _loss(logits, ids, counts)
    logits, targets, wanted = model.head(model.last_residual(ids[:, :-1])), ids[:, 1:], counts[:, 1:]
    given, loss = _by_place(logits.argmax(-1) == targets, wanted), _loss(logits, targets, wanted)
    if not writes:
        return given, (), -1, loss
    written = free_running_answers(task, model, chosen, [len(task.answer(problem)) + 1 for problem in chosen])
    same = torch.zeros_like(wanted)
    for row, (problem, answer) in enumerate(zip(chosen, written, strict=True)):
        expected = ids[row, 1 + len(problem) :]
        actual = torch.full_like(expected, -1)
        n = min(len(answer), len(expected))
        actual[:n] = torch.tensor(answer[:n])
        same[row, len(problem) : len(problem) + len(expected)] = actual == expected
    return given, _by_place(same, wanted), int((same | ~wanted).all(-1).sum()), loss


def _loss(logits: Tensor, ids: Tensor, counts: Tensor) -> float:
    return float(F.cross_entropy(logits[counts].float(), ids[counts]))


@cache
def _unseen(task: str) -> tuple[tuple[str, ...], Tensor, Tensor]:
    """The problems on which every frame of a task is evaluated, and solved() of them."""
    chosen = tuple(problems(LIVE[task], UNSEEN, seed="unseen", held_out=True))
    return chosen, *solved(LIVE[task], chosen)


def _by_place(right: Tensor, counts: Tensor) -> tuple[float, ...]:
    """Accuracy at the first, second … place of the answer, over the problems that have one."""
    place = counts.cumsum(-1) - 1
    return tuple(float(right[counts & (place == i)].float().mean()) for i in range(int(place.max()) + 1))


@torch.inference_mode()
def free_running_answers(
    task: Task, model: Transformer, chosen: Sequence[str], most: Sequence[int] | None = None
) -> list[list[int]]:
    """Decode the answer to each problem greedily, up to an end token or the last position. Returns token ids.

    With `most`, the number of tokens needed of each, an answer may be cut after those: an untrained model writes no end token. Problems of
    one length form a batch. The pass is that of training, with its masks and without a cache, since a model without a causal
    mask reads every token again.
    """
    answers: dict[int, list[int]] = {}
    for length in sorted({len(problem) for problem in chosen}):
        rows = [i for i, problem in enumerate(chosen) if len(problem) == length]
        n = task.n_ctx if most is None else max(most[i] for i in rows)
        written = _greedy_answers(task, model, [chosen[i] for i in rows], n)
        answers.update(zip(rows, written, strict=True))
    return [answers[i] for i in range(len(chosen))]


def _greedy_answers(task: Task, model: Transformer, chosen: Sequence[str], most: int) -> list[list[int]]:
    """Answers of at most `most` tokens to problems of one length."""
    assert model.head is not None
    number = {symbol: i for i, symbol in enumerate(task.vocabulary)}
    ids = torch.tensor([[1, *(number[symbol] for symbol in problem)] for problem in chosen])
    n_prompt = ids.shape[1]
    longest = min(task.n_ctx, n_prompt + most)
    done = torch.zeros(len(chosen), dtype=torch.bool)
    while ids.shape[1] < longest and not bool(done.all()):
        after = model.head(model.last_residual(ids)[:, -1]).argmax(-1)
        done |= after == task.end_id
        ids = torch.cat([ids, after[:, None]], 1)
    answers = ids[:, n_prompt:].tolist()
    return [row[: row.index(task.end_id) + 1] if task.end_id in row else row for row in answers]


# One example at every frame.


@dataclass(frozen=True, eq=False)
class ExampleEvaluation:
    """Evaluation of one example by the model of a frame."""

    step: int
    pattern: Tensor  # [layer, head, query, key], with the answer given
    p: tuple[float, ...]  # of the right symbol at each place of the answer, including the end, teacher-forced
    best: tuple[str, ...]  # the most likely symbol there
    own: str  # the free-running answer
    finds: Tensor  # [layer, head]: mean weight on the sources of the next symbol
    ahead: Tensor  # [layer, head]: mean weight on the next position, where that symbol is


@dataclass(frozen=True)
class Example:
    """A problem with its answer, and the tokens that the model reads."""

    problem: str
    answer: str
    tokens: tuple[str, ...]  # <s>, problem, answer; [pos] of the maps
    first: int  # the query that predicts the first symbol of the answer
    is_unseen: bool  # not among the training problems of the run


def example(spec: Spec, typed: str) -> Example:
    """Parse a typed example. Raises Refused."""
    task = LIVE[spec.task]
    problem = problem_of(task, typed)
    answer = task.answer(problem)
    written = "" if task.same_place else answer
    first = 1 if task.same_place else len(problem)
    return Example(problem, answer, ("<s>", *problem, *written), first, problem not in learnt_from(spec))


def learnt_from(spec: Spec) -> frozenset[str]:
    """Every training problem of a run, BATCH of them in each step."""
    return _drawn(spec.task, spec.seed, spec.steps)


@lru_cache(maxsize=16)
def _drawn(task: str, seed: int, steps: int) -> frozenset[str]:
    return frozenset(p for step in range(steps) for p in problems(LIVE[task], BATCH, seed=f"{seed}/{step}"))


@torch.inference_mode()
def evaluate_example(spec: Spec, frame: Frame, of: Example) -> ExampleEvaluation:
    """Evaluate an example with the model of a frame: attention maps, predictions at each place, and the heads that attend to the sources."""
    task, made = LIVE[spec.task], loaded(spec, frame)
    model, number = made.model, {symbol: i for i, symbol in enumerate(task.vocabulary)}
    assert model.head is not None
    ids = [number[symbol] for symbol in of.tokens]
    with hooked(model, hooks_during(spec, model)):
        pattern = torch.stack([record.pattern() for record in trace(made, ids=ids).attention])
        p = model.head(model.last_residual(torch.tensor([ids]))[0]).float().softmax(-1)
        written = [] if task.same_place else free_running_answers(task, model, [of.problem])[0]
    expected = [number[symbol] for symbol in of.answer] + ([] if task.same_place else [task.end_id])
    places = range(of.first, of.first + len(expected))
    best = tuple(task.vocabulary[int(p[place].argmax())] for place in places)
    own = best if task.same_place else (task.vocabulary[i] for i in written if i != task.end_id)
    given = tuple(float(p[place, i]) for place, i in zip(places, expected, strict=True))
    return ExampleEvaluation(
        frame.step, pattern, given, best, "".join(own), *_source_weights(task, of, pattern, places)
    )


def _source_weights(task: Task, of: Example, pattern: Tensor, places: range) -> tuple[Tensor, Tensor]:
    """Mean weights [layer, head] of the queries at `places` on the sources of the next symbol, and on the next position."""
    sources = zip(places, task.sources(of.problem), strict=False)
    finds = torch.stack([pattern[..., q, [1 + i for i in keys]].sum(-1) for q, keys in sources]).mean(0)
    on_next = [pattern[..., q, q + 1] for q in places if q + 1 < len(of.tokens)]
    ahead = torch.stack(on_next).mean(0) if on_next else torch.zeros(pattern.shape[:2])
    return finds, ahead
