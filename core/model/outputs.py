"""Outputs of a model: classification heads, and constraints on the next token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

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


class TokenConstraint(NamedTuple):
    """The allowed next tokens of one text: only `forced` if it is not empty, else all but `banned`."""

    forced: tuple[int, ...]
    banned: frozenset[int]


FREE = TokenConstraint((), frozenset())


@dataclass(frozen=True)
class NextTokenRule:
    """Constraints on the next token, set by the author of a published model.

    The fields have the meaning of the keys of generation_config.json in transformers. Lengths include the prompt, and are those of the
    decoder. A forced token takes precedence over a banned one. The scores of disallowed tokens become -inf before the softmax, so that
    the probabilities of the others sum to 1.
    """

    never: tuple[int, ...] = ()  # suppress_tokens, and single tokens of bad_words_ids
    never_after: tuple[
        tuple[int, ...], ...
    ] = ()  # bad_words_ids: the last of several tokens must not follow the others
    never_first: tuple[int, ...] = ()  # begin_suppress_tokens: banned as the first new token
    first: int | None = None  # forced_bos_token_id: follows a text of one token
    last: tuple[int, ...] = ()  # forced_eos_token_id: one of them is the last token of a text of maximum length
    fewest: int = 0  # min_length: tokens before the end
    fewest_new: int = 0  # min_new_tokens: new tokens before the end
    no_repeat: int = 0  # no_repeat_ngram_size: no n-gram of this size occurs twice
    end_ids: tuple[int, ...] = ()  # end tokens, for the two minimum lengths

    @property
    def is_free(self) -> bool:
        """True if every token is always allowed."""
        lists = (self.never, self.never_after, self.never_first, self.last)
        numbers = (self.fewest, self.fewest_new, self.no_repeat)
        return self.first is None and not any(lists) and not any(numbers)

    def following(
        self, text: Sequence[int], lengths: Sequence[int], n_prompt: int, n_most: int | None = None
    ) -> list[TokenConstraint]:
        """The allowed tokens after the first n tokens of a text, for each n of `lengths`, in rising order.

        The prompt has n_prompt tokens, and the text ends after n_most (None: unlimited).
        """
        if self.is_free:
            return [FREE] * len(lengths)
        return [self._after(text, n, repeats, n_prompt, n_most) for n, repeats in self._repeats(text, lengths)]

    def _repeats(self, text: Sequence[int], lengths: Sequence[int]) -> Iterator[tuple[int, frozenset[int]]]:
        """For each length, the tokens that would repeat an n-gram of `no_repeat` tokens."""
        size = self.no_repeat
        seen: dict[tuple[int, ...], set[int]] = {}
        read = 0  # tokens whose n-grams are in `seen`
        for n in lengths:
            if not size:
                yield n, frozenset()
                continue
            for end in range(max(read, size - 1), n):
                seen.setdefault(tuple(text[end - size + 1 : end]), set()).add(text[end])
            read = n
            last = tuple(text[n - size + 1 : n]) if n >= size - 1 else None
            yield n, frozenset() if last is None else frozenset(seen.get(last, ()))

    def _after(
        self, text: Sequence[int], n: int, repeats: frozenset[int], n_prompt: int, n_most: int | None
    ) -> TokenConstraint:
        if self.last and n_most is not None and n == n_most - 1:
            return TokenConstraint(self.last, frozenset())
        if self.first is not None and n == 1:
            return TokenConstraint((self.first,), frozenset())
        banned = {*self.never, *repeats}
        # A token that is forced after one token does not count as the first new token.
        if n == (n_prompt if n_prompt > 1 or self.first is None else n_prompt + 1):
            banned.update(self.never_first)
        if n < self.fewest or n - n_prompt < self.fewest_new:
            banned.update(self.end_ids)
        for run in self.never_after:
            before = len(run) - 1
            if n >= before and tuple(text[n - before : n]) == run[:-1]:
                banned.add(run[-1])
        return TokenConstraint((), frozenset(banned))


ANYTHING = NextTokenRule()


def mask_disallowed(logits: Tensor, following: Sequence[TokenConstraint]) -> Tensor:
    """[row, vocab] -> the same with -inf for disallowed tokens of each row.

    A single forced token keeps its score. Several have 0 each, as in the published code. A row without allowed tokens is all -inf.
    """
    if all(constraint == FREE for constraint in following):
        return logits
    masked = logits.clone()
    for row, (forced, banned) in enumerate(following):
        if forced:
            own = logits[row, list(forced)] if len(forced) == 1 else 0.0
            masked[row] = -torch.inf
            masked[row, list(forced)] = own
        elif banned:
            masked[row, sorted(banned)] = -torch.inf
    return masked
