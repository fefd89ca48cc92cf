"""What the scripts that train on a corpus share: the loop with its line of progress, and the folder that ships."""

from __future__ import annotations

import argparse
import json
import math
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch
from tokenizers import Tokenizer

from core import ModelConfig, build
from core.checkpoints import save_model
from core.checkpoints.native_format import TokenIds, write_whole
from core.errors import HeadlightError
from core.learn.training import Batch, Recipe, TrainStep, progress, train
from scripts.corpora import DATA, ROOT
from scripts.curves import read_curve, write_curve

PAD, START, END = "<pad>", "<s>", "</s>"
PAD_ID, START_ID, END_ID = 0, 1, 2  # train_bpe gives them the first ids, in this order
SAVE_EVERY = 200  # steps that a stopped run may lose
STORED = torch.int8  # how every model that ships is stored: see save_model()


@dataclass(frozen=True, eq=False)
class Phase:
    """A part of a training with a learning rate of its own."""

    batches: Callable[[int, int], Batch]  # (step, seed) → what is learnt then
    recipe: Recipe
    first: int = 0  # where its batches begin


@dataclass(frozen=True, eq=False)
class Shipped:
    """A model to be trained: its shape, its words, and what it reads and how, one phase after the other."""

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    phases: tuple[Phase, ...]

    @property
    def steps(self) -> int:
        return sum(phase.recipe.steps for phase in self.phases)


def run(shipped: Shipped, out: Path, *, device: str = "cpu", save_every: int = SAVE_EVERY) -> Iterator[TrainStep]:
    """Train into out/<name>, yielding every step; goes on with what is there."""
    folder = out / shipped.name
    work = folder / "training"
    model = build(shipped.config, shipped.phases[0].recipe.seed, device=device).model
    curve = read_curve(work)
    before, seconds = 0, 0.0  # steps of the phases that are over, and how long they took
    for number, phase in enumerate(shipped.phases):
        batches = partial(drawn, phase)
        for done in train(model, batches, phase.recipe, folder=work / str(number), save_every=save_every):
            done = replace(done, step=before + done.step, seconds=seconds + done.seconds)
            curve[done.step] = done
            if done.step % save_every == 0 or done.step == before + phase.recipe.steps:
                write_curve(work, curve)
            yield done
        before += phase.recipe.steps
        seconds = curve[before].seconds
    save_model(
        model,
        folder,
        tokenizer=shipped.tokenizer,
        ids=TokenIds(pad=PAD_ID, start=START_ID if shipped.config.kind == "encoder-decoder" else None, end=(END_ID,)),
        dtype=STORED,
    )
    write_curve(folder, curve)
    write_facts(folder, [phase.recipe for phase in shipped.phases], device, seconds)
    shutil.rmtree(work)


def drawn(phase: Phase, step: int) -> Batch:
    return phase.batches(phase.first + step, phase.recipe.seed)


def write_facts(folder: Path, recipes: list[Recipe], device: str, seconds: float) -> None:
    """recipe.json: what a card says of the training beside what can be measured."""
    where = torch.cuda.get_device_name() if device.startswith("cuda") else f"CPU ({platform.machine()})"
    facts = {"phases": [asdict(recipe) for recipe in recipes], "hardware": where, "seconds": round(seconds)}
    write_whole(folder / "recipe.json", (json.dumps(facts, indent=2) + "\n").encode())


def steps(folder: Path) -> int:
    """How many steps a finished model was trained for, over all phases."""
    facts = json.loads((folder / "recipe.json").read_text("utf-8"))
    return sum(phase["steps"] for phase in facts["phases"])


def name_of(step: int) -> str:
    """The folder of a point along a training."""
    return f"{step:05}"


def shortened(phase: Phase, steps: int | None, seed: int) -> Phase:
    """A phase of so many steps, where a number is asked for, and from that seed."""
    n = steps or phase.recipe.steps
    return replace(phase, recipe=replace(phase.recipe, steps=n, warmup=min(phase.recipe.warmup, n // 4), seed=seed))


def main(prepare: Callable[[Path], Shipped], doc: str | None, arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder that holds the corpora")
    parser.add_argument("--out", type=Path, default=ROOT / "models")
    parser.add_argument("--steps", type=int, help="of each phase, instead of its own number")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="train anew what is there")
    parser.add_argument("--threads", type=int, help="of the CPU; none: as many as torch finds")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    try:
        shipped = prepare(options.data)
        if (options.out / shipped.name / "model.safetensors").is_file() and not options.again:
            print(f"{shipped.name} is trained already; --again trains it anew.")
            return 0
        shipped = replace(
            shipped, phases=tuple(shortened(phase, options.steps, options.seed) for phase in shipped.phases)
        )
        n_params = sum(p.numel() for p in build(shipped.config).model.parameters())
        print(f"{shipped.name}: {n_params:,} parameters, {options.device}", flush=True)
        shown = -math.inf
        for done in run(shipped, options.out, device=options.device):
            if time.monotonic() - shown > 10 or done.step == shipped.steps:
                print(f"{shipped.name:16} {progress(done, shipped.steps)}", flush=True)
                shown = time.monotonic()
    except HeadlightError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
