"""Classifier: a head that maps the final residual stream of a text to a score for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import build_norm
from .config import ModelConfig

Kind = Literal["one", "several", "numbers"]
Reads = Literal["first", "last", "mean", "late", "end"]

ACTIVATIONS = {"tanh": torch.tanh, "gelu": F.gelu, "relu": F.relu}


@dataclass(frozen=True)
class ClassNames:
    """The names of the classes in order, and the interpretation of the scores.

    one      exactly one class applies: a softmax gives the probabilities
    several  the classes are independent: a sigmoid gives each probability
    numbers  regression: the scores are the result, without probabilities

    `reads` tells which tokens of the last layer the head reads:

    first  the first token, [CLS]             mean  the mean over the tokens of the text
    last   the last token except for padding  late  the same mean, after the dense layer of the head
    end    in a decoder that reads the shifted source again: the position of the last end token of the source
    """

    names: tuple[str, ...]
    kind: Kind = "one"
    reads: Reads = "first"

    def probabilities(self, logits: Tensor) -> Tensor | None:
        """Probabilities for logits [..., class]; None for a regression."""
        if self.kind == "numbers":
            return None
        return logits.softmax(-1) if self.kind == "one" else logits.sigmoid()

    def divergence(self, before: Tensor, after: Tensor) -> Tensor:
        """KL of the answers `after` [row, class] from `before` [class], both logits, in nats [row].

        Of several classes it is the sum over them: each is right or not by itself.
        """
        if self.kind == "one":
            p, q = before.log_softmax(-1), after.log_softmax(-1)
            return (p.exp() * (p - q)).sum(-1)
        yes = before.sigmoid() * (F.logsigmoid(before) - F.logsigmoid(after))
        no = (-before).sigmoid() * (F.logsigmoid(-before) - F.logsigmoid(-after))
        return (yes + no).sum(-1)


@dataclass(frozen=True)
class ClassifierShape:
    """The parts of a classification head."""

    classes: ClassNames
    activation: Literal["", "tanh", "gelu", "relu"] = ""  # of the dense layer; "": there is none
    norm: bool = False  # after the dense layer
    bias: bool = True  # of the last layer
    pad_id: int | None = None  # last: a token that does not count as the end of a text, even if it is not masked
    end_id: int | None = None  # end: the token whose position is read
    begins: Literal["start", "last"] = (
        "start"  # end: first token of the decoder: its start token, or the source's last (mBART)
    )


class Classifier(nn.Module):
    """[dense, activation, norm and] a linear layer over classes (BERT's, RoBERTa's, Llama's heads in transformers)."""

    def __init__(self, shape: ClassifierShape, config: ModelConfig):
        super().__init__()
        self.shape = shape
        self.dense = nn.Linear(config.d_model, config.d_model) if shape.activation else None
        self.norm = build_norm(config, config.d_model) if shape.norm else None
        self.out = nn.Linear(config.d_model, len(shape.classes.names), bias=shape.bias)

    @property
    def classes(self) -> ClassNames:
        return self.shape.classes

    def place(self, ids: tuple[int, ...], padding: tuple[bool, ...]) -> int | None:
        """The position that is read; None for the mean over all.

        `ids` are those of the source if its end is read. Raises ValueError if it has no end token.
        """
        real = [i for i, hidden in enumerate(padding) if not hidden]
        if self.classes.reads == "first":
            return real[0]
        if self.classes.reads == "end":
            end = next((i for i in reversed(real) if ids[i] == self.shape.end_id), None)
            if end is None:
                raise ValueError(f"no token {self.shape.end_id} in a text whose end is read")
            return end
        if self.classes.reads == "last":
            return next((i for i in reversed(real) if ids[i] != self.shape.pad_id), real[0])
        return None

    def forward(self, x: Tensor, ids: tuple[int, ...], padding: tuple[bool, ...]) -> Tensor:
        """The final residual stream [row, pos, d_model] of one text, from several runs -> [row, class]. Padding is ignored."""
        at = self.place(ids, padding)
        x = x[:, [i for i, hidden in enumerate(padding) if not hidden] if at is None else at]
        x = x.mean(1) if self.classes.reads == "mean" else x
        if self.dense is not None:
            x = ACTIVATIONS[self.shape.activation](self.dense(x))
        x = x if self.norm is None else self.norm(x)
        return self.out(x.mean(1) if self.classes.reads == "late" else x)
