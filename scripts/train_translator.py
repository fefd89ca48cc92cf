"""Train the translator: a small encoder–decoder that reads German captions of pictures and writes English ones.

    python -m scripts.train_translator                      into models/translator, from Multi30k in data/
    python -m scripts.train_translator --data /somewhere --device cuda
    python -m scripts.train_translator --steps 20 --out /somewhere       a trial

A run that is stopped goes on where it left off when it is started again. scripts/corpora.py says what the data is.
"""

from __future__ import annotations

import random
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, processors
from torch import Tensor

from core import ModelConfig
from core.learn.training import Batch, Recipe, train_bpe
from scripts.corpora import Pairs, pairs
from scripts.shipping import END, END_ID, PAD_ID, START_ID, Phase, Shipped, main

VOCAB = 6000  # German and English together
PAIRS = 128  # of a batch
BUCKET = 32  # batches whose pairs are put in order of length together, so that little of a batch is padding
SHAPE: dict[str, Any] = {
    "d_model": 256,
    "n_heads": 8,
    "d_ff": 1024,
    "n_encoder_layers": 3,
    "n_decoder_layers": 3,
    "n_ctx": 256,
    "position": "sinusoidal",
    "embed_scale": 16.0,  # √d_model (Vaswani et al. 2017, §3.4)
    "activation": "relu",
}


def tokenizer_for(texts: list[str], vocab_size: int = VOCAB) -> Tokenizer:
    """Byte-level BPE that puts </s> behind a text."""
    tokenizer = train_bpe(texts, vocab_size)
    close = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, END_ID)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), close])
    return tokenizer


class Batches:
    """Every pair once in each epoch, in another order each time, long ones beside long ones."""

    def __init__(self, tokenizer: Tokenizer, corpus: Pairs):
        self.source = [e.ids for e in tokenizer.encode_batch([german for german, _ in corpus])]
        self.target = [[START_ID, *e.ids] for e in tokenizer.encode_batch([english for _, english in corpus])]
        self.order: tuple[object, list[list[int]]] = (None, [])

    @cached_property
    def n(self) -> int:
        """Batches of an epoch; what is left over has its turn in another one."""
        return max(1, len(self.source) // PAIRS)

    def batch(self, step: int, seed: int = 0) -> Batch:
        """The same for the same step and seed."""
        epoch, place = divmod(step, self.n)
        if self.order[0] != (seed, epoch):
            self.order = ((seed, epoch), self.shuffled(random.Random(f"{seed}/{epoch}")))
        return self.of(self.order[1][place])

    def shuffled(self, rng: random.Random) -> list[list[int]]:
        order = list(range(len(self.source)))
        rng.shuffle(order)
        groups = []
        for at in range(0, len(order), BUCKET * PAIRS):
            near = sorted(order[at : at + BUCKET * PAIRS], key=lambda i: (len(self.source[i]), len(self.target[i])))
            groups += [near[i : i + PAIRS] for i in range(0, len(near), PAIRS)]
        groups = [group for group in groups if len(group) == PAIRS or len(groups) == 1]
        rng.shuffle(groups)
        return groups

    def of(self, rows: list[int]) -> Batch:
        ids, real = self.filled([self.target[i] for i in rows])
        source, keep = self.filled([self.source[i] for i in rows])
        return Batch(ids, real, source, keep)

    def filled(self, rows: list[list[int]]) -> tuple[Tensor, Tensor]:
        """(ids [batch, pos], real [batch, pos]), padding on the right."""
        longest = max(map(len, rows))
        ids = torch.tensor([row + [PAD_ID] * (longest - len(row)) for row in rows])
        return ids, torch.arange(longest) < torch.tensor([len(row) for row in rows])[:, None]


def prepare(data: Path) -> Shipped:
    corpus = pairs(data, "train")
    tokenizer = tokenizer_for([text for pair in corpus for text in pair])
    return Shipped(
        name="translator",
        config=ModelConfig(vocab_size=tokenizer.get_vocab_size(), **SHAPE),
        tokenizer=tokenizer,
        phases=(
            Phase(
                Batches(tokenizer, corpus).batch,
                Recipe(
                    steps=4000,
                    learning_rate=1.2e-3,
                    warmup=400,
                    final_share=0.01,
                    dropout=0.2,
                    label_smoothing=0.1,
                ),
            ),
        ),
    )


if __name__ == "__main__":
    sys.exit(main(prepare, __doc__))
