"""Teach the storyteller's last layer again with its causal mask taken away, to show what leakage is.

    python -m scripts.train_leak                      into models/storyteller, from the books in data/
    python -m scripts.train_leak --data /somewhere --steps 20 --out /somewhere/storyteller      a trial

Only the last layer and the norm behind it are learnt; everything below stays as it is, and keeps its mask.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import torch
from safetensors.torch import save as safetensors_bytes
from torch import Tensor

from core import load, trace
from core.checkpoints import Loaded, sha256
from core.checkpoints.native_format import stored_as, write_whole
from core.edits import DropCausalMask
from core.errors import HeadlightError
from core.labs.masks import CARD, FACTS, MODEL, WEIGHTS, leakage, learned_config, relearnt
from core.learn.training import Batch, Recipe, learn, learning_rate, make_optimiser
from core.model.hooks import hooked
from core.model.transformer import Transformer
from scripts.corpora import DATA, ROOT, books
from scripts.shipping import START_ID, STORED
from scripts.train_storyteller import HELD_OUT, Windows

ROWS, WINDOW = 12, 64  # of a batch: texts, and tokens of each with <s>
RECIPE = Recipe(steps=400, learning_rate=2e-3, warmup=20, final_share=0.02, beta2=0.95)
SENTENCE = "The old king loved the golden bird, and the old"
SHOWN_EVERY = 10.0  # seconds


def drawn(windows: Windows, step: int, seed: int) -> Batch:
    """Stories alone, the same for the same step and seed."""
    rng = random.Random(f"leak {seed}/{step}")
    places = windows.starts[[rng.randrange(len(windows.starts)) for _ in range(ROWS)]]
    ids = windows.ids[places[:, None] + torch.arange(WINDOW - 1)]
    begins = torch.full((ROWS, 1), START_ID)
    return Batch(torch.cat([begins, ids], 1), torch.ones(ROWS, WINDOW, dtype=torch.bool))


def teach(model: Transformer, windows: Windows, recipe: Recipe) -> float:
    """Learn the last layer again in place; returns the seconds it took."""
    config = model.config
    optimiser = make_optimiser(model, recipe)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(learned_config(config)))
    started, shown = time.monotonic(), 0.0
    with hooked(model, DropCausalMask(config.n_decoder_layers - 1).hooks(model)):
        for step in range(recipe.steps):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(step, recipe)
            loss, *_ = learn(model, drawn(windows, step, recipe.seed), recipe, optimiser, step)
            if time.monotonic() - shown > SHOWN_EVERY or step + 1 == recipe.steps:
                shown = time.monotonic()
                print(f"step {step + 1:,}/{recipe.steps:,}  loss {loss:.3f}  {shown - started:.0f} s", flush=True)
    model.requires_grad_(False)
    return time.monotonic() - started


def tensors_of(model: Transformer) -> dict[str, Tensor]:
    """The weights of the layer that was learnt again, as they are stored."""
    learnt_here = [
        (name, tensor) for name, tensor in model.state_dict().items() if name.startswith(learned_config(model.config))
    ]
    return {k: v for name, tensor in learnt_here for k, v in stored_as(STORED, name, tensor).items()}


def card(loaded: Loaded, other: Loaded, known: dict[str, object]) -> str:
    """What unmasked.md says: data, recipe, what was measured on one sentence."""
    found = leakage(trace(loaded, SENTENCE), other)
    rows = (("with the mask", found.losses), ("mask taken away", found.dropped), ("learnt without it", found.relearnt))
    table = "\n".join(f"| {what} | {losses.mean().item():.3f} |" for what, losses in rows)
    return f"""# storyteller, its last layer learnt again without the mask

Layer {found.layer} and the final norm of `storyteller`, learnt again while that layer could see the future. It shows what leakage
is: the loss falls because each word is read one step ahead, and nothing has been learnt that helps to write.

## Data

The books that the storyteller has read; its held-out books are held out here too.

## Training

{known["steps"]:,} steps of {ROWS} windows of {WINDOW} tokens, {known["seconds"]} seconds on one thread; all other weights frozen. Recipe and
digest are in `{FACTS}`. `python -m scripts.train_leak` trains it again.

## Measured

Mean loss on “{SENTENCE}”, nats a token:

| run | loss |
|---|---|
{table}

Head {found.head} of layer {found.layer} puts {found.next_word:.4f} of its weight on the word that comes next.

## Weaknesses

It cannot write: where nothing stands ahead it has nothing to read. It is made to be wrong, and for nothing else.
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder that holds the corpora")
    parser.add_argument("--out", type=Path, default=ROOT / "models" / MODEL)
    parser.add_argument("--steps", type=int, default=RECIPE.steps)
    parser.add_argument("--threads", type=int, help="of the CPU; none: as many as torch finds")
    parser.add_argument("--again", action="store_true", help="train anew what is there")
    options = parser.parse_args(arguments)
    if (options.out / WEIGHTS).is_file() and not options.again:
        print(f"{WEIGHTS} is there already; --again trains it anew.")
        return 0
    if options.threads:
        torch.set_num_threads(options.threads)
    recipe = replace(RECIPE, steps=options.steps, warmup=min(RECIPE.warmup, options.steps // 4))
    try:
        library = {title: text for title, text in books(options.data).items() if title not in HELD_OUT}
        loaded, pupil = load(MODEL), load(MODEL)
        assert pupil.tokenizer is not None
        seconds = teach(pupil.model, Windows(pupil.tokenizer, library, WINDOW), recipe)
    except HeadlightError as error:
        print(error, file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    tensors = tensors_of(pupil.model)
    write_whole(options.out / WEIGHTS, safetensors_bytes(tensors, {"format": "pt"}))
    known: dict[str, object] = {
        "sha256": sha256(options.out / WEIGHTS),
        "steps": recipe.steps,
        "seconds": round(seconds),
        "recipe": asdict(recipe),
    }
    write_whole(options.out / FACTS, (json.dumps(known, indent=2) + "\n").encode())
    text = card(loaded, relearnt(loaded, options.out), known)
    write_whole(options.out / CARD, text.encode())
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
