"""Moments of a run and leads over a twin: each by its rule, and none that the numbers do not give."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from core.learn.recorded_runs import ENDS, LEAST, LeadInterval, leads, milestones, reached, read
from core.learn.tasks import TASKS, head_measures, held_out
from core.learn.watched_training import VARIANTS, Frame, Spec, hooks_during, loaded, run


@dataclass(frozen=True)
class Seen:
    step: int
    given: tuple[float, ...] = (0.0,)
    loss: float = 1.0
    finds: tuple[tuple[float, ...], ...] = ((0.1, 0.1),)
    back: tuple[tuple[float, ...], ...] = ((0.1, 0.1),)


def rising(least: float, most: float, step: int, turn: int) -> float:
    return least + (most - least) * min(1, max(0, (step - turn) / 40))


FRAMES = [
    Seen(
        step,
        (rising(0.1, 1.0, step, 200),),
        2.0 - rising(0, 0.1, step, 120) - rising(0, 1.8, step, 190),
        ((rising(0.1, 0.9, step, 200), 0.1),),
        ((0.1, rising(0.1, 0.6, step, 240)),),
    )
    for step in range(0, 401, 10)
]


def test_each_moment_is_where_its_rule_says() -> None:
    found = {one.kind: one for one in milestones(FRAMES)}
    assert list(found) == ["start", "plateau", "finds", "right", "back", "done"]
    assert (found["finds"].layer, found["finds"].head, found["finds"].step) == (0, 0, 220)
    assert found["finds"].after == pytest.approx(0.5) and found["finds"].since == 180
    assert found["right"].step == reached(FRAMES) == 240
    assert (found["back"].head, found["back"].since, found["back"].step) == (1, 240, 280)
    assert found["plateau"].step - found["plateau"].since == 100 and found["plateau"].step < 220
    assert found["done"].step == 400 and found["done"].after == 1.0


def test_what_never_happens_is_no_moment() -> None:
    never = [replace(one, given=(0.2,), finds=((0.2,),), back=((0.3,),)) for one in FRAMES]
    assert {one.kind for one in milestones(never)} == {"start", "plateau", "done"}
    assert reached(never) is None and milestones(FRAMES[:1]) == []
    falls = [replace(FRAMES[-1], step=0), replace(FRAMES[-1], step=10, given=(0.5,))]
    assert reached(falls) is None, "it must stay there"


def test_a_run_without_measures_of_heads_has_the_other_moments() -> None:
    bare = [replace(one, finds=(), back=()) for one in FRAMES]
    assert [one.kind for one in milestones(bare)] == ["start", "plateau", "right", "done"]


def shares(*values: float) -> dict[int, float]:
    return {10 * i: value for i, value in enumerate(values)}


def test_a_lead_is_every_seed_over_every_seed_and_lasts() -> None:
    low, high = shares(0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1), shares(0, 0.2, 0.5, 0.5, 0.5, 0.5, 0.1)
    assert leads([high, high], [low, low]) == [LeadInterval(0, 10, 50)]
    assert leads([low, low], [high, high]) == [LeadInterval(1, 10, 50)]
    assert leads([high, low], [low, low]) == [], "one seed that overlaps is enough"
    assert leads([high], [low]) == [], "one seed says nothing of the spread"
    short = shares(0, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1)
    assert LEAST > 10 and leads([short, short], [low, low]) == []
    assert leads([high, high], [{0: 0.0, 10: 0.1, 50: 0.1}] * 2) == [LeadInterval(0, 10, 50)], (
        "only steps that all have"
    )


def test_measures_are_means_of_attention() -> None:
    spec = Spec("induction")
    kept = read(ENDS, spec)
    assert kept is not None
    task = TASKS["induction"]
    model = loaded(spec, kept[1][-1]).model
    found = head_measures(task, model, held_out(task))
    assert found.finds.shape == found.back.shape == (2, 4)
    assert float(found.finds.max()) > 0.9, "a head has found what comes next"
    assert 0.5 < float(found.back.max()) < 0.7 and float(found.ahead.abs().max()) == 0
    free = head_measures(task, model, held_out(task), hooks_during(Spec("induction", "nomask"), model))
    assert float(free.ahead.max()) > 0, "without a mask something is ahead"
    one = head_measures(task, model, held_out(task)[:1])
    assert not torch.allclose(one.finds, found.finds)


def test_a_run_with_frames_every_few_steps_writes_at_some_alone() -> None:
    spec = Spec("induction", steps=6)
    frames = [x for x in run(spec, every=2) if isinstance(x, Frame)]
    assert [x.step for x in frames] == [0, 2, 4, 6]
    assert [x.whole >= 0 for x in frames] == [True, False, False, True] == [bool(x.own) for x in frames]
    assert all(len(x.finds) == 2 and len(x.finds[0]) == 4 and x.loss > 1 for x in frames)


def test_post_ln_without_warm_up_changes_both() -> None:
    both = VARIANTS["postnow"]
    assert both.config == VARIANTS["postln"].config and both.warmup is VARIANTS["nowarmup"].warmup is False
    assert Spec("induction", "postnow").recipe.warmup == 0
