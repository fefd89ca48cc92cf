"""Training that is watched: a run follows from its description, a twin differs in one thing, and frames say what the model does."""

from __future__ import annotations

from dataclasses import asdict, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import torch

import core
from core.checkpoints.from_config import build
from core.errors import HeadlightError
from core.learn import watched_training
from core.learn.tasks import ECHO, TASKS, problem_of, problems
from core.learn.training import Batch, Recipe, RunState, predicted, train
from core.learn.watched_training import LIVE, MAX_RUNS, UNSEEN, VARIANTS, Frame, Point, Spec, States
from core.model.hooks import hooked


def curve(spec: Spec, steps: int) -> list[float]:
    """The losses of the first steps, without the frames behind them: each judges the model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watched_training, "frame_steps", lambda spec: [])
        points = (x for x in watched_training.run(spec) if isinstance(x, Point))
        return [point.loss for point in islice(points, steps)]


def ended(spec: Spec) -> tuple[Point, Frame]:
    """The last point and the last frame."""
    found = list(watched_training.run(spec))
    frames, points = [x for x in found if isinstance(x, Frame)], [x for x in found if isinstance(x, Point)]
    assert [x.step for x in frames] == watched_training.frame_steps(spec)
    assert [x.step for x in points] == list(range(1, spec.steps + 1))
    return points[-1], frames[-1]


def test_a_run_follows_from_its_description_and_its_twin_learns_from_the_same() -> None:
    plain = Spec(steps=8)
    assert curve(plain, 8) == curve(plain, 8)
    twin = Spec(steps=8, twin="nomask")
    assert curve(twin, 1) != curve(plain, 1)
    assert torch.equal(watched_training.batch(plain, 3).ids, watched_training.batch(twin, 3).ids)
    first = [next(x for x in watched_training.run(spec) if isinstance(x, Frame)) for spec in (plain, twin)]
    for name, weights in first[0].weights.items():
        assert torch.equal(weights, first[1].weights[name]), f"{name}: the same first weights"


def test_a_curve_begins_before_anything_is_judged_and_frames_judge_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    first, begun, after = islice(watched_training.run(Spec()), 3)
    assert isinstance(first, Point) and first.step == 1
    assert isinstance(begun, Frame) and isinstance(after, Frame) and (begun.step, after.step) == (0, 1)
    fresh = build(Spec().config, 0).model
    assert all(x.half().equal(begun.weights[name]) for name, x in fresh.state_dict().items())
    judged = watched_training._evaluated(Spec(), fresh)
    assert judged == (begun.given, begun.own, begun.whole, begun.loss)
    write = watched_training.free_running_answers
    monkeypatch.setattr(
        watched_training, "free_running_answers", lambda task, model, chosen, most: write(task, model, chosen)
    )
    assert watched_training._evaluated(Spec(), fresh) == judged, "what it writes behind its answer makes no difference"


@pytest.mark.thorough
def test_echo_needs_nobody_else() -> None:
    """The same letters at the same places: learnt at once, and right on its own since nothing is read that was written."""
    spec = Spec(task="echo", steps=120)
    last, frame = ended(spec)
    assert last.loss < 0.05 and frame.whole == UNSEEN and frame.given == frame.own
    seen = watched_training.evaluate_example(spec, frame, watched_training.example(spec, "fade"))
    assert seen.own == "fade" and seen.pattern.shape == (2, 4, 5, 5)
    assert min(seen.p) > 0.9 and len(seen.p) == 4


@pytest.mark.parametrize("twin", ["none", "nopositions"])
def test_a_fork_goes_on_from_the_state_at_its_step(twin: str) -> None:
    """Forked into itself a run is the same, bit for bit; into a twin it leaves the curve at that step."""
    plain = curve(Spec(steps=12), 12)
    forked = curve(Spec(steps=12, fork=7, twin=twin), 5)
    assert (forked == plain[7:]) == (twin == "none")


@pytest.mark.thorough
def test_a_state_can_be_gone_on_from_more_than_once() -> None:
    spec = Spec(steps=12)
    before = watched_training._up_to(spec, 7)
    while True:
        try:
            next(before)
        except StopIteration as end:
            start = end.value
            break
    forked = Spec(steps=12, fork=7)
    one, other = ([x.loss for x in watched_training.run(forked, start) if isinstance(x, Point)] for _ in range(2))
    assert one == other == curve(spec, 12)[7:]


def same(one: Point | Frame, other: Point | Frame) -> bool:
    """Bit for bit."""
    if isinstance(one, Point) or isinstance(other, Point):
        return asdict(one) == asdict(other)
    rest = [replace(frame, weights={}) for frame in (one, other)]
    return asdict(rest[0]) == asdict(rest[1]) and all(x.equal(other.weights[name]) for name, x in one.weights.items())


@pytest.mark.thorough
@pytest.mark.parametrize("twin", ["none", "nomask", "nowarmup"])
def test_a_fork_from_a_state_that_was_kept_is_the_same_run(twin: str) -> None:
    """And so is a second one from the same state, which the first one's learning has not changed."""
    spec, states = Spec(steps=24, fork=13, twin=twin), States()
    plain = [list(watched_training.run(spec.alone, states=kept)) for kept in (states, None)]
    assert all(map(same, *plain)) and len(plain[0]) == len(plain[1])
    kept = states.before(spec.alone, 13)
    assert kept is not None and kept.step == 10
    truth = [x for x in watched_training.run(spec) if x is not None]
    for _ in range(2):
        found = list(watched_training.run(spec, states=states))
        assert found.count(None) == 2, "steps 11 and 12; the one behind them is the fork's"
        forked = [x for x in found if x is not None]
        assert len(forked) == len(truth) and all(map(same, forked, truth))


@pytest.mark.thorough
def test_a_fork_leaves_the_states_on_its_way_for_the_next() -> None:
    states, spec = States(), Spec(steps=40, fork=25, twin="nomask")
    next(x for x in watched_training.run(spec, states=states) if x is not None)
    found = [getattr(states.before(spec.alone, step), "step", None) for step in (4, 9, 10, 19, 39)]
    assert found == [None, 5, 10, 15, 25], "of the run without the twin, and of the fork itself none"
    again = list(watched_training.run(replace(spec, fork=20), states=states))
    assert None not in again, "it begins at a state that is there"


def test_states_are_bounded_and_go_from_the_run_that_has_most() -> None:
    size = 4 * 100
    states = States(most_bytes=8 * size)
    for step in range(10, 70, 10):
        states.keep("a", RunState(step, {"x": torch.zeros(100)}))
    for step in (10, 20):
        states.keep("b", RunState(step, {"x": torch.zeros(100)}))
    assert states.nbytes == 8 * size
    states.keep("b", RunState(30, {"x": torch.zeros(100)}))
    assert states.nbytes == 6 * size

    def there(run: str) -> list[int]:
        found = (states.before(run, step) for step in range(10, 70, 10))
        return sorted({state.step for state in found if state is not None})

    assert (there("a"), there("b")) == ([20, 40, 60], [10, 20, 30])
    for run in range(MAX_RUNS):
        states.keep(run, RunState(10, {"x": torch.zeros(1)}))
    assert states.before("a", 60) is None and states.before("b", 60) is None
    for step in range(10, 10_000, 10):
        states.keep("long", RunState(step, {"x": torch.zeros(100)}))
        assert states.nbytes <= 8 * size
    last = states.before("long", 10_000)
    assert last is not None and last.step > 9_000
    states.keep("huge", RunState(10, {"x": torch.zeros(10_000)}))
    assert states.nbytes <= 8 * size


def test_a_rate_too_high_ends_the_run_with_the_step_that_left_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VARIANTS, "rate10", watched_training.Variant(rate=1e30, warmup=False))
    found = list(watched_training.run(Spec(twin="rate10", steps=30)))
    assert isinstance(found[-1], Point) and not torch.tensor(found[-1].loss).isfinite()
    assert all(torch.tensor(x.loss).isfinite() for x in found[:-1] if isinstance(x, Point))


def test_without_residuals_a_layer_gives_only_what_its_sublayers_write() -> None:
    made = build(Spec(twin="noresidual").config, 0)
    seen = {}
    watch = {
        f"decoder.blocks.0.hook_{name}": (lambda x, name=name: seen.__setitem__(name, x.clone()))
        for name in ("resid_mid", "resid_post")
    }
    ids = torch.tensor([[1, 3, 4, 5]])
    with (
        torch.inference_mode(),
        hooked(made.model, watched_training.no_residual(made.model)),
        hooked(made.model, watch),
    ):
        made.model.last_residual(ids)
        block: Any = made.model.get_submodule("decoder.blocks.0")
        alone = block.mlp_out_norm(block.mlp(block.mlp_norm(seen["resid_mid"])))
    torch.testing.assert_close(seen["resid_post"], alone)


def test_gradients_are_those_of_each_layer() -> None:
    spec = Spec(steps=3)
    model = build(spec.config, 0).model
    steps = train(model, lambda step: watched_training.batch(spec, step), Recipe(steps=3, mixed=False, clip=0.05))
    done = next(steps)
    found = watched_training.gradient_lengths(model, done, Recipe(steps=3, clip=0.05))
    assert len(found) == 2 and all(0.05 < length < done.gradient for length in found)


@pytest.mark.parametrize("task", LIVE.values(), ids=list(LIVE))
def test_an_answer_follows_from_its_sources(task) -> None:
    closes = {"(": ")", "[": "]", "{": "}"}
    for problem in problems(task, 20, seed=5):
        answer, sources = task.answer(problem), task.sources(problem)
        assert len(sources) == len(answer)
        if task.name == "addition":
            assert [len(s) for s in sources] == [2, 2, 2, 2]
            assert all(problem[i].isdecimal() for s in sources for i in s)
            continue
        for symbol, (place,) in zip(answer, sources, strict=True):
            assert closes.get(problem[place], problem[place]) == symbol


@pytest.mark.parametrize(
    "name, typed", [("copy", "feed back"), ("copy", "feedback="), ("addition", "123+456"), ("brackets", "([{}")]
)
def test_a_problem_is_read_as_it_is_typed(name: str, typed: str) -> None:
    problem = problem_of(TASKS[name], typed)
    assert problem == "".join(typed.split()).rstrip("=") + "="
    assert TASKS[name].answer(problem)


@pytest.mark.parametrize(
    "name, typed, said",
    [
        ("copy", "zebra", "'z'"),
        ("copy", "", "one letter"),
        ("copy", "abcdefghijklmnop", "23"),
        ("addition", "12+345", "three digits"),
        ("addition", "123+", "three digits"),
        ("induction", "abc|c", "not the last"),
        ("induction", "aba|a", "different"),
        ("brackets", "(]", "closes"),
        ("brackets", "()", "open"),
        ("echo", "abcdefghijk", "12"),
    ],
)
def test_a_problem_that_is_none_is_refused_with_an_example(name: str, typed: str, said: str) -> None:
    task = LIVE[name]
    with pytest.raises(HeadlightError, match=said) as refusal:
        problem_of(task, typed)
    example = str(refusal.value).rsplit("Try ", 1)[1]
    assert problem_of(task, example) == example


@pytest.mark.parametrize(
    "wrong",
    [
        {"task": "x"},
        {"twin": "x"},
        {"steps": 0},
        {"steps": 10**6},
        {"seed": -1},
        {"fork": 600},
        {"fork": 3, "twin": "heads8"},
    ],
)
def test_a_description_that_cannot_be_is_refused(wrong: dict) -> None:
    with pytest.raises(HeadlightError):
        Spec(**wrong)


def test_an_example_says_whether_it_was_learnt_from_and_finds_add_up() -> None:
    spec = Spec(steps=2)
    frame = next(x for x in watched_training.run(spec) if isinstance(x, Frame))
    of = watched_training.example(spec, "cab")
    seen = watched_training.evaluate_example(spec, frame, of)
    assert of.tokens == ("<s>", *"cab=cab") and of.answer == "cab" and of.first == 4
    torch.testing.assert_close(seen.pattern.sum(-1), torch.ones(2, 4, 8))
    by_hand = torch.stack([seen.pattern[:, :, 4 + i, 1 + i] for i in range(3)]).mean(0)
    torch.testing.assert_close(seen.finds, by_hand)
    assert float(seen.ahead.max()) == 0, "a causal mask hides the place ahead"
    assert len(seen.p) == len(seen.best) == 4


def test_targets_are_learnt_at_their_own_places() -> None:
    model = build(Spec(task="echo").config, 0).model
    ids = torch.tensor([[1, 3, 4, 2, 0]])
    counts = torch.tensor([[False, True, True, False, False]])
    with torch.inference_mode():
        logits, targets = predicted(model, Batch(ids, counts, targets=ids))
    assert logits.shape == (2, len(ECHO.vocabulary)) and targets.tolist() == [3, 4]


def test_a_frame_is_a_model_that_loads(tmp_path: Path) -> None:
    spec = Spec(task="sort", steps=2)
    frame = next(x for x in watched_training.run(spec) if isinstance(x, Frame))
    ZipFile(BytesIO(watched_training.archive(spec, frame))).extractall(tmp_path)
    found = core.load(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "card.md",
        "config.json",
        "model.safetensors",
        "recipe.json",
        "tokenizer.json",
    }
    of = watched_training.example(spec, "cab")
    run = core.trace(found, "cab=abc")
    torch.testing.assert_close(
        run.attention[1].pattern(), watched_training.evaluate_example(spec, frame, of).pattern[1]
    )


def test_whether_an_example_is_learnt_from_is_looked_up() -> None:
    """train.md: the watched word is not among the 19,200."""
    assert watched_training.example(Spec(), "feedback").is_unseen
    learnt = problems(TASKS["copy"], watched_training.BATCH, seed="0/3")[0]
    assert not watched_training.example(Spec(), learnt).is_unseen
    batch = watched_training.batch(Spec(), 3).ids[0]
    symbols = "".join(TASKS["copy"].vocabulary[i] for i in batch.tolist() if i > 2)
    assert symbols.startswith(learnt), "the problems are those of the batches"
