"""Numbers that are of no model and of no run, in plain data: three tokens, a batch, a reshape, binary digits and gradients."""

from __future__ import annotations

import math
from typing import Literal

from core.labs import worked_examples

WIDTH, HEADS = worked_examples.WIDTH, worked_examples.HEADS


def one_head() -> tuple[list[float], list[float], float]:
    """Of three tokens of four numbers: the first row of weights, the first column of V, and what they add up to."""
    one = worked_examples.one_head()
    return one.weights[0].tolist(), one.v[:, 0].tolist(), one.output[0, 0].item()


def wrong_softmaxes(row: int = 0) -> tuple[list[float], list[float], list[float]]:
    """Three mistakes in a row of the same three tokens: not divided; divided by d, not by √d; shares of the scores, without a softmax."""
    return worked_examples.wrong_softmaxes(worked_examples.one_head(), row)


def keys() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of a batch of keys, and of its .T."""
    k = worked_examples.batch().k
    return tuple(k.shape), tuple(worked_examples.reverse_axes(k).shape)


def landing(sentence: int, token: int, feature: int) -> tuple[int, int]:
    """(head, number) that a feature of a fused projection becomes."""
    way = worked_examples.follow((2, 4, 3 * HEADS * WIDTH), HEADS, (sentence, token, feature), parts=3)
    index = next(step.index for step in way if step.step == "transpose")  # sentence, head, token, number
    return index[1], index[3]


def flips(n: int) -> list[int]:
    """How often each binary digit changes from 0 to n − 1, the smallest first."""
    digits = worked_examples.binary_digits(n)
    return (digits[1:] != digits[:-1]).sum(0).tolist()


def left_of_gradient(width: int, steps: int) -> float:
    """The share of a gradient's length that is left so many steps back in a plain RNN with fresh weights."""
    return worked_examples.rnn_gradient_norms(width, steps)[-1]


def depth(norm: Literal["pre", "post", "none"], residual: bool) -> worked_examples.Depth:
    """Gradients and words through a fresh stack."""
    return worked_examples.through_depth(norm, residual)


def vectors(d_model: int) -> tuple[float, float, float]:
    """Lengths of a fresh word's vector, whose numbers have variance 1 ÷ d; of a row of sinusoids; and of the word's times √d."""
    word = worked_examples.random_token(d_model)
    return word, math.sqrt(d_model / 2), word * math.sqrt(d_model)
