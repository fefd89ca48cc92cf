"""Train the task models, saving each along the way, so that attention can be watched while it is learnt.

    python -m scripts.train_tasks                   all of them, into models/
    python -m scripts.train_tasks copy sort         some of them (--list names them)
    python -m scripts.train_tasks --device cuda     on a GPU; the default is the CPU
    python -m scripts.train_tasks copy --steps 20 --out /somewhere      a trial

A run that is stopped goes on where it left off when it is started again. Each model becomes a folder:

    models/copy/                 the trained model: config.json, model.safetensors, tokenizer.json
    models/copy/curve.json.gz    loss, accuracy and learning rate of every step
    models/copy/steps/00000/     the model after so many steps, from the untrained one to the last before the end; the variants have none
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from core import ModelConfig, build
from core.checkpoints import save_model
from core.checkpoints.native_format import TokenIds
from core.errors import HeadlightError
from core.learn.tasks import TASKS, Task, sample, tokenizer_for
from core.learn.training import STATE, Batch, Recipe, TrainStep, progress, train
from core.model.transformer import Transformer
from scripts.curves import read_curve, write_curve
from scripts.shipping import STORED, name_of, write_facts

ROOT = Path(__file__).resolve().parents[1]
N_POINTS = 12  # along a training, step 0 and the finished model included
BATCH = 128
SAVE_EVERY = 200  # steps that a stopped run may lose

# Learned positions where the place decides, rotary ones where the distance and the letter do.
SHAPE: dict[str, Any] = {"d_model": 48, "n_heads": 4, "d_ff": 192, "n_decoder_layers": 2, "position": "learned"}
COPY: dict[str, Any] = {"d_model": 64, "d_ff": 256}


@dataclass(frozen=True)
class Plan:
    """One model to train: a task, what its config adds to SHAPE, how long, and whether points along the way are kept."""

    name: str
    task: str
    note: str
    changes: dict[str, Any] = field(default_factory=dict)
    steps: int = 1500
    points: bool = True

    def config(self) -> ModelConfig:
        task = TASKS[self.task]
        fields: dict[str, Any] = {"vocab_size": len(task.vocabulary), "n_ctx": task.n_ctx, **SHAPE, **self.changes}
        return ModelConfig(**fields)

    def recipe(self, steps: int | None, seed: int) -> Recipe:
        n = steps or self.steps
        return Recipe(steps=n, learning_rate=3e-3, warmup=min(100, n // 4), seed=seed, mixed=False)


PLANS: dict[str, Plan] = {
    plan.name: plan
    for plan in (
        Plan("copy", "copy", "Writes what it has read: 4 heads of 16.", COPY),
        Plan("reverse", "reverse", "Writes backwards what it has read."),
        Plan("sort", "sort", "Writes letters in the order of the alphabet."),
        Plan("addition", "addition", "Adds two numbers, lowest digit first.", {"d_model": 64, "d_ff": 256}, 3000),
        Plan("induction", "induction", "Finds a letter again and continues from there.", {"position": "rotary"}, 2000),
        Plan("brackets", "brackets", "Closes the brackets that are open.", {}, 2000),
        # The same task, data and recipe, and one thing changed. `copy` itself is Pre-LN with 4 × 16.
        Plan("copy-post-ln", "copy", "As copy, with Post-LN.", COPY | {"norm_order": "post"}, points=False),
        *(
            Plan(
                f"copy-heads-{n}", "copy", f"As copy, with {n} × {64 // n} heads.", COPY | {"n_heads": n}, points=False
            )
            for n in (1, 2, 8, 16)
        ),
    )
}


def save_points(steps: int, n: int = N_POINTS) -> list[int]:
    """0, then ever wider apart up to the last step: most of what there is to see happens early."""
    first = max(1, steps // 150)
    wide = [round(first * (steps / first) ** (i / (n - 2))) for i in range(n - 1)]
    return sorted({0, *(min(step, steps) for step in wide), steps})


def run(
    plan: Plan,
    out: Path,
    *,
    steps: int | None = None,
    device: str = "cpu",
    seed: int = 0,
    save_every: int = SAVE_EVERY,
) -> Iterator[TrainStep]:
    """Train one model into out/<name>, yielding every step; goes on with what is there."""
    task, recipe, folder = TASKS[plan.task], plan.recipe(steps, seed), out / plan.name
    work = folder / "training"
    model = build(plan.config(), seed, device=device).model
    points = save_points(recipe.steps)[:-1] if plan.points else []  # the last is the model itself
    curve: dict[int, TrainStep] = {}
    if (work / STATE).is_file():
        curve = read_curve(work)
    else:
        shutil.rmtree(folder / "steps", ignore_errors=True)
        if points:
            save(task, model, folder / "steps" / name_of(0))
    for done in train(model, lambda step: draw(task, seed, step), recipe, folder=work, save_every=save_every):
        curve[done.step] = done
        if done.step in points:
            save(task, model, folder / "steps" / name_of(done.step))
        if done.step % save_every == 0 or done.step == recipe.steps:
            write_curve(work, curve)
        yield done
    save(task, model, folder)
    write_curve(folder, curve)
    write_facts(folder, [recipe], device, curve[max(curve)].seconds)
    shutil.rmtree(work)


def draw(task: Task, seed: int, step: int) -> Batch:
    return Batch(*sample(task, BATCH, seed=f"{seed}/{step}"))


def save(task: Task, model: Transformer, folder: Path) -> None:
    save_model(model, folder, tokenizer=tokenizer_for(task), ids=TokenIds(end=(task.end_id,)), dtype=STORED)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="models to train; none: all that are not there yet")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--out", type=Path, default=ROOT / "models")
    parser.add_argument("--steps", type=int, help="instead of each model's own number")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(f"{plan.name:16} {plan.note}" for plan in PLANS.values()))
        return 0
    if unknown := [name for name in options.names if name not in PLANS]:
        print(f"There is no task model {unknown[0]!r}. Choose from {', '.join(PLANS)}.", file=sys.stderr)
        return 2
    # Named ones are trained anew; an unfinished one goes on either way.
    torch.set_num_threads(1)  # on a CPU, models of this size lose more by sharing than they gain
    missing = [name for name in PLANS if not (options.out / name / "recipe.json").is_file()]
    try:
        for name in options.names or missing:
            shown = -math.inf
            plan = PLANS[name]
            for done in run(plan, options.out, steps=options.steps, device=options.device, seed=options.seed):
                if time.monotonic() - shown > 5 or done.step == (options.steps or plan.steps):
                    print(f"{name:16} {progress(done, options.steps or plan.steps)}", flush=True)
                    shown = time.monotonic()
    except HeadlightError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
