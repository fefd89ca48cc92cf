"""Train the storyteller: a small decoder that has read 28 children's books and goes on with what one begins.

    python -m scripts.train_storyteller                     into models/storyteller, from the books in data/
    python -m scripts.train_storyteller --data /somewhere --device cuda
    python -m scripts.train_storyteller --steps 20 --out /somewhere      a trial

A run that is stopped goes on where it left off when it is started again. scripts/corpora.py says what the data is.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, processors
from torch import Tensor

from core import ModelConfig
from core.learn.training import Batch, Recipe, train_bpe
from scripts.corpora import books
from scripts.shipping import END_ID, START, START_ID, Phase, Shipped, main

HELD_OUT = ("Through the Looking Glass", "The Magic of Oz")
VOCAB = 6144
WINDOW = 256  # tokens of a training text, <s> included
ROWS = 8  # of a batch
# The drill: what it says again and again is random, in rows shorter than those of stories.
DRILL_STEPS = 900
DRILL_ROWS = 6
DRILL_WINDOW = 128
FIRST_MERGE = 259  # the ids before it are special tokens and single bytes; behind it the more frequent come first
POOL = 32  # tokens that it begins with
PERIODS = (3, 60)  # tokens that are said again and again in a row, at least and at most
SHAPE: dict[str, Any] = {
    "d_model": 256,
    "n_heads": 8,
    "d_ff": 1024,
    "n_decoder_layers": 6,
    "n_ctx": WINDOW,
    "position": "rotary",
}


def tokenizer_for(texts: list[str], vocab_size: int = VOCAB) -> Tokenizer:
    """Byte-level BPE that puts <s> in front of a text."""
    tokenizer = train_bpe(texts, vocab_size)
    begin = processors.TemplateProcessing(single=f"{START} $A", special_tokens=[(START, START_ID)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begin])
    return tokenizer


def encode(tokenizer: Tokenizer, paragraphs: list[str]) -> tuple[Tensor, Tensor]:
    """(ids [token] of a whole book, starts [paragraph] where each begins), a line break behind every paragraph."""
    rows = [e.ids for e in tokenizer.encode_batch([f"{p}\n" for p in paragraphs], add_special_tokens=False)]
    starts = torch.tensor([0, *(len(row) for row in rows[:-1])]).cumsum(0)
    return torch.tensor([i for row in rows for i in row]), starts


class Windows:
    """Training texts: <s>, then what follows from the start of a paragraph, on over the ends of paragraphs."""

    def __init__(self, tokenizer: Tokenizer, library: dict[str, list[str]], window: int = WINDOW):
        self.vocab_size, self.window = tokenizer.get_vocab_size(), window
        texts = [encode(tokenizer, paragraphs) for paragraphs in library.values()]
        self.ids = torch.cat([ids for ids, _ in texts])
        begins, end = [], 0
        for ids, starts in texts:
            begins.append(end + starts[starts + window - 1 <= len(ids)])
            end += len(ids)
        self.starts = torch.cat(begins)

    def batch(self, step: int, seed: int = 0) -> Batch:
        """Stories, and in every other batch a row of random tokens said twice. The same for the same step and seed."""
        rng = random.Random(f"{seed}/{step}")
        half = (self.window - 1) // 2
        twice = torch.tensor([rng.randrange(END_ID + 1, self.vocab_size) for _ in range(half)])
        return self.drawn(rng, self.window, [twice] if step % 2 == 0 else [])

    def drill(self, step: int, seed: int = 0) -> Batch:
        """Mostly tokens said again and again, what an induction head is for, and some stories.

        The tokens come from ever more of the vocabulary: a few dozen at first, all of it for the last third.
        """
        rng = random.Random(f"drill {seed}/{step}")
        n_all = self.vocab_size - FIRST_MERGE
        pool = min(n_all, round(POOL * (n_all / POOL) ** (1.5 * step / DRILL_STEPS)))
        return self.drawn(rng, DRILL_WINDOW, [said(rng, pool) for _ in range(DRILL_ROWS)])

    def mend(self, step: int, seed: int = 0) -> Batch:
        """Stories once more, which the drill had pushed aside, and a row that keeps up what it taught."""
        rng = random.Random(f"mend {seed}/{step}")
        return self.drawn(rng, self.window, [said(rng, self.vocab_size - FIRST_MERGE)])

    def drawn(self, rng: random.Random, window: int, repeated: list[Tensor]) -> Batch:
        """A batch whose first rows say these tokens again and again, and whose others are stories.

        Nobody could foretell the first time, nor the token that begins the second: these do not count.
        """
        places = self.starts[[rng.randrange(len(self.starts)) for _ in range(ROWS)]]
        ids = self.ids[places[:, None] + torch.arange(window - 1)]
        counts = torch.ones(ROWS, window, dtype=torch.bool)
        for row, tokens in enumerate(repeated):
            ids[row] = tokens.repeat(window // len(tokens) + 1)[: window - 1]
            counts[row, : len(tokens) + 2] = False
        return Batch(torch.cat([torch.full((ROWS, 1), START_ID), ids], 1), counts)


def said(rng: random.Random, pool: int) -> Tensor:
    """[token] to be said again and again, as often a short row as a long one, from the `pool` most frequent merges."""
    n = round(math.exp(rng.uniform(*map(math.log, PERIODS))))
    return torch.tensor([FIRST_MERGE + rng.randrange(pool) for _ in range(n)])


def prepare(data: Path) -> Shipped:
    library = {title: text for title, text in books(data).items() if title not in HELD_OUT}
    tokenizer = tokenizer_for([p for paragraphs in library.values() for p in paragraphs])
    windows = Windows(tokenizer, library)
    return Shipped(
        name="storyteller",
        config=ModelConfig(vocab_size=tokenizer.get_vocab_size(), **SHAPE),
        tokenizer=tokenizer,
        phases=(
            Phase(windows.batch, Recipe(steps=3600, learning_rate=1.2e-3, warmup=200, final_share=0.02, beta2=0.95)),
            Phase(
                windows.drill, Recipe(steps=DRILL_STEPS, learning_rate=1e-3, warmup=50, final_share=0.02, beta2=0.95)
            ),
            Phase(windows.mend, Recipe(steps=500, learning_rate=8e-4, warmup=20, final_share=0.02, beta2=0.95)),
            Phase(
                windows.mend, Recipe(steps=550, learning_rate=8e-4, warmup=20, final_share=0.02, beta2=0.95), first=500
            ),
        ),
    )


if __name__ == "__main__":
    sys.exit(main(prepare, __doc__))
