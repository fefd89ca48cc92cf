"""Classes: a classifier's result for a text, from the last residual stream."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .. import frames
from ..checkpoints import Loaded
from ..errors import TextError
from ..model.classifier import Classifier, Kind
from .prompt import Prompt


@dataclass(frozen=True)
class Classes:
    """A classifier's result: a number per class, in the order of config.json's id2label.

    `kind` is "one" for a single label, "several" for multi-label, or "numbers" for a regression.
    """

    names: tuple[str, ...]
    kind: Kind
    logits: tuple[float, ...]  # for a regression its values
    probabilities: tuple[float, ...] | None  # softmax of the logits, sigmoids for several; None for a regression

    @property
    def likeliest(self) -> str | None:
        """The name of the class with the largest logit; None for a regression."""
        return None if self.probabilities is None else self.names[self.logits.index(max(self.logits))]

    def to_frame(self) -> frames.DataFrame:
        """A row per class. Requires pandas."""
        columns: dict[str, list[object]] = {"class": [*self.names], "logit": [*self.logits]}
        if self.probabilities is not None:
            columns["prob"] = [*self.probabilities]
        return frames.of_columns(columns)


def classifier_of(loaded: Loaded) -> Classifier:
    """The model's classification head. Raises TextError for a model that has none."""
    if loaded.classifier is None:
        raise TextError(
            f"{loaded.spec.title} has no classification head, so it sorts texts into no classes. Try a classifier."
        )
    return loaded.classifier


def class_logits(loaded: Loaded, x: Tensor, prompt: Prompt) -> Tensor:
    """Logits [row, class], float32, from the last residual [row, pos, d_model] of one text in several runs.

    Raises TextError for a text without the end token that the head reads, and for a target of another length.
    """
    head, title = classifier_of(loaded), loaded.spec.title
    (tokens,) = prompt.last_read
    if head.classes.reads == "end":
        (source,) = prompt.sources
        if len(source) != len(tokens):
            raise TextError(
                f"{title} reads its decoder where the text of {len(source):,} tokens ends, and the target has {len(tokens):,}. Leave the "
                "target out: the decoder then reads the text once more."
            )
        tokens = source
        if head.shape.end_id not in [i for i, hidden in zip(tokens.ids, tokens.padding, strict=True) if not hidden]:
            raise TextError(
                f"{title} reads the place of its end token, number {head.shape.end_id}, and this text has none. Put it at the end of the ids."
            )
    with torch.inference_mode():
        return head(x, tuple(tokens.ids), tuple(tokens.padding)).float()


def check_class(loaded: Loaded, number: int | None) -> None:
    """Raises TextError for an invalid class number."""
    n = len(classifier_of(loaded).classes.names)
    if number is not None and not 0 <= number < n:
        raise TextError(f"Class number {number} is none of {loaded.spec.title}, which has 0 to {n - 1}.")
