"""Train the task models, saving each along the way, so that attention can be watched while it is learnt.

    python -m scripts.train_tasks                   all of them, into models/
    python -m scripts.train_tasks copy sort         some of them (--list names them)
    python -m scripts.train_tasks --device cuda     on a GPU; the default is the CPU
    python -m scripts.train_tasks copy --steps 20 --out /somewhere      a trial

A run that is stopped goes on where it left off when it is started again. Each model becomes a folder:

    models/copy/                 the trained model: config.json, model.safetensors, tokenizer.json, card.md
    models/copy/curve.json       loss, accuracy and learning rate of every step
    models/copy/steps/00000/     the model after so many steps, the first one untrained; the variants have none
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from core import Loaded, ModelConfig, build, generate, load, save, trace
from core.checkpoints.own import write_whole
from core.errors import Refused
from core.model import Transformer
from core.tasks import TASKS, Task, problems, sample, tokenizer_for
from core.training import STATE, Batch, Recipe, TrainStep, evaluate, progress, train

ROOT = Path(__file__).resolve().parents[1]
N_POINTS = 12  # saved ones, step 0 and the last included
BATCH = 128
SAVE_EVERY = 200  # steps that a stopped run may lose
HELD_OUT = 1000  # problems that a card's numbers rest on
POINT_CHECK = 200  # problems that a saved point is tried on
LOOKED_AT = 100  # problems over which a head's attention is averaged

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
        return ModelConfig(**{"vocab_size": len(task.vocabulary), "n_ctx": task.n_ctx, **SHAPE, **self.changes})

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
        Plan("induction", "induction", "Finds a letter again and goes on from there.", {"position": "rotary"}, 2000),
        Plan("brackets", "brackets", "Closes the brackets that are open.", {}, 2000),
        # Lessons C6 and D6: the same task, data and recipe, and one thing changed. `copy` itself is Pre-LN with 4 × 16.
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
    points = save_points(recipe.steps) if plan.points else []
    curve: dict[int, TrainStep] = {}
    if (work / STATE).is_file():
        curve = read_curve(work)
    else:
        shutil.rmtree(folder / "steps", ignore_errors=True)
        if points:
            save_model(task, model, folder / "steps" / name_of(0))
    for done in train(model, lambda step: draw(task, seed, step), recipe, folder=work, save_every=save_every):
        curve[done.step] = done
        if done.step in points:
            save_model(task, model, folder / "steps" / name_of(done.step))
        if done.step % save_every == 0 or done.step == recipe.steps:
            write_curve(work, curve)
        yield done
    save_model(task, model, folder)
    write_curve(folder, curve)
    write_whole(folder / "card.md", card(plan, folder, recipe, curve[max(curve)], device).encode())
    shutil.rmtree(work)


def draw(task: Task, seed: int, step: int) -> Batch:
    return Batch(*sample(task, BATCH, seed=f"{seed}/{step}"))


def name_of(step: int) -> str:
    return f"{step:05}"


def save_model(task: Task, model: Transformer, folder: Path) -> None:
    """As float16 where the held-out answers come out the same from the rounded weights, else as float32."""
    ids, counts = sample(task, POINT_CHECK, seed="precision", held_out=True)
    dtype = torch.float16 if rounds_well(model, ids, counts) else torch.float32
    save(model, folder, tokenizer=tokenizer_for(task), pad_id=0, end_ids=(task.end_id,), dtype=dtype)


@torch.inference_mode()
def rounds_well(model: Transformer, ids: Tensor, counts: Tensor) -> bool:
    """Whether no arg-max of a token that counts changes when every weight is rounded to float16."""
    device = next(model.parameters()).device
    rounded = Transformer(model.config).to(device).eval()
    rounded.load_state_dict({name: value.half().float() for name, value in model.state_dict().items()})
    counted = counts[:, 1:].to(device)
    exact, near = (m(ids[:, :-1].to(device))[counted].argmax(-1) for m in (model, rounded))
    return torch.equal(exact, near)


# curves


def read_curve(folder: Path) -> dict[int, TrainStep]:
    path = folder / "curve.json"
    if not path.is_file():
        return {}
    columns = json.loads(path.read_text("utf-8"))
    return {row[0]: TrainStep(*row) for row in zip(*(columns[name] for name in COLUMNS), strict=True)}


COLUMNS = ("step", "loss", "accuracy", "learning_rate", "seconds")


def write_curve(folder: Path, curve: dict[int, TrainStep]) -> None:
    """A column for each field of TrainStep, in the order of the steps."""
    rows = [asdict(curve[step]) for step in sorted(curve)]
    columns = {name: [round(row[name], 7) for row in rows] for name in COLUMNS}
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "curve.json", (json.dumps(columns) + "\n").encode())


# cards


def solved(loaded: Loaded, task: Task, n: int) -> float:
    """The share of n held-out problems whose whole answer the model writes exactly, greedily."""
    asked = problems(task, n, seed="card", held_out=True)
    right = 0
    for start in range(0, n, BATCH):
        part = asked[start : start + BATCH]
        written = generate(loaded, part, max_tokens=task.n_ctx)
        right += sum(
            g.stopped == "end" and g.text == task.answer(problem) for g, problem in zip(written, part, strict=True)
        )
    return right / n


def looks_at_next(loaded: Loaded, task: Task, n: int) -> Tensor:
    """[layer, head]: the weight that lies on tokens equal to the one about to be written, mean over the answers of n problems.

    What a head does that fetches the answer from the problem: copying, reversing and induction all need one.
    """
    total, count = torch.zeros(loaded.config.n_decoder_layers, loaded.config.n_heads), 0
    for problem in problems(task, n, seed="heads", held_out=True):
        answer = task.answer(problem)
        ids = [task.vocabulary.index(s) for s in ("<s>", *problem, *answer)]
        queries = range(len(problem), len(problem) + len(answer))  # each writes the token behind it
        run_ = trace(loaded, ids=ids)
        same = torch.tensor([[key == ids[q + 1] for key in ids] for q in queries])
        for record in run_.attention:
            total[record.layer] += (record.pattern(None, queries) * same).sum((-1, -2))
        count += len(answer)
    return total / count


def card(plan: Plan, folder: Path, recipe: Recipe, last: TrainStep, device: str) -> str:
    """What the model is, what it was trained on and how, what it can do and what each head was measured to do."""
    task, loaded = TASKS[plan.task], load(folder)
    config = loaded.config
    loss, accuracy = evaluate(loaded.model, [Batch(*sample(task, HELD_OUT, seed="card", held_out=True))])
    whole = solved(loaded, task, HELD_OUT)
    shares = looks_at_next(loaded, task, LOOKED_AT)
    heads = "\n".join(
        f"| {layer} | " + " | ".join(f"{share:.2f}" for share in row) + " |"
        for layer, row in enumerate(shares.tolist())
    )
    example = problems(task, 1, seed="example", held_out=True)[0]
    points = sorted(path.name for path in (folder / "steps").glob("*")) if plan.points else []
    along = "\n".join(
        f"| {int(name)} | {solved(load(folder / 'steps' / name), task, POINT_CHECK):.1%} |" for name in points
    )
    where = torch.cuda.get_device_name() if device.startswith("cuda") else f"CPU ({platform.machine()})"
    return f"""# {plan.name}

{plan.note} A decoder of {config.n_decoder_layers} layers × {config.n_heads} heads × {config.d_head}, d_model {
        config.d_model
    },
{loaded.spec.n_params:,} parameters, {config.position} positions, {config.norm_order}-norm.

Example: `{example}` → `{task.answer(example)}`

## Data

Drawn by `core/tasks.py` ({
        task.title.lower()
    }), so there is no origin to credit; under this repository's licence. Held out:
every problem whose key has a CRC-32 divisible by 8, whatever the seed. Symbols: `{task.symbols}`.

## Training

{recipe.steps:,} steps of {BATCH} problems; AdamW (β {recipe.beta1}, {recipe.beta2}; weight decay {
        recipe.weight_decay
    }), learning rate
{recipe.learning_rate} after {recipe.warmup} steps of warm-up, then a cosine down to {
        recipe.final_share:.0%} of it; gradients clipped to {recipe.clip}; seed {recipe.seed}.
{where}, {last.seconds:.0f} seconds. `python -m scripts.train_tasks {plan.name}` trains it again.

## Measured on {HELD_OUT:,} held-out problems

| what | value |
|---|---|
| whole answers exactly right, greedy | {whole:.1%} |
| tokens right | {accuracy:.2%} |
| loss, nats per token | {loss:.4f} |
{
        f'''
Whole answers right along the way, on {POINT_CHECK} problems:

| step | right |
|---|---|
{along}
'''
        if along
        else ""
    }
## What the heads look at

The weight that lies on tokens equal to the one about to be written, mean over the answers of {
        LOOKED_AT
    } held-out problems:
1.00 is a head that always looks at what comes next.

| layer | {" | ".join(f"head {head}" for head in range(config.n_heads))} |
|---|{"---|" * config.n_heads}
{heads}

## Weaknesses

It knows its symbols and nothing else, and lengths only up to those of its training (at most {
        config.n_ctx
    } tokens in all).
"""


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
    missing = [name for name in PLANS if not (options.out / name / "card.md").is_file()]
    try:
        for name in options.names or missing:
            shown = -math.inf
            plan = PLANS[name]
            for done in run(plan, options.out, steps=options.steps, device=options.device, seed=options.seed):
                if time.monotonic() - shown > 5 or done.step == (options.steps or plan.steps):
                    print(f"{name:16} {progress(done, plan.recipe(options.steps, options.seed))}", flush=True)
                    shown = time.monotonic()
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
