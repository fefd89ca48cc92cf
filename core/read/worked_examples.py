"""Attention small enough to see every number: one head of 3 × 4, a batch and its transpose, the reshape into heads, places in digits.

And beside it a recurrent network, and a deep stack: what is left of a gradient that goes back step by step, or layer by layer.

The numbers are those that torch.manual_seed(42) gives the lessons' own code. They are drawn from a generator of their own, so
that nothing which threads share is touched. Two printed results of the lessons are not what that code gives: for the weights of
the first token they print .3505 .2858 .3637, and it is .3479 .3258 .3263.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SEED = 42
WIDTH = 4  # d_model of the one head
HEADS = 2  # of the reshape, of WIDTH numbers each


@dataclass(frozen=True, eq=False)
class OneHead:
    """Every number of one head of attention. W is [out, in], as nn.Linear keeps it: q = x W_qᵀ."""

    x: Tensor  # [pos, d_model]
    w_q: Tensor
    w_k: Tensor
    w_v: Tensor
    q: Tensor  # [query, d_head]
    k: Tensor  # [key, d_head]
    v: Tensor  # [key, d_head]
    raw: Tensor  # [query, key]: q·k
    scores: Tensor  # [query, key]: divided by √d_head
    weights: Tensor  # [query, key]: each row sums to 1
    output: Tensor  # [query, d_head]: Σ over keys of weight · v


@dataclass(frozen=True, eq=False)
class Batch:
    """Two sentences side by side, and what `.T` does to them."""

    q: Tensor  # [batch, query, d_head]
    k: Tensor  # [batch, key, d_head]
    scores: Tensor  # [batch, query, key], with k.transpose(-2, -1)
    error: str  # what torch says to q @ k.T
    wrong_by: float  # and where the sizes happen to agree, 4 × 4 × 4, the largest difference, without any error


@dataclass(frozen=True)
class Place:
    """One tensor on a number's way: its name, where the number stands in it, and which place in memory that is."""

    step: str
    shape: tuple[int, ...]
    index: tuple[int, ...]
    memory: int  # numbers from the start of the storage
    strides: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Reshape:
    """From one fused projection to heads and back, in a batch of 2 sentences of 4 tokens, 2 heads of 4."""

    qkv: Tensor  # [2, 4, 24]
    heads: tuple[Tensor, Tensor, Tensor]  # q, k, v, each [batch, head, pos, d_head]
    weights: Tensor  # [batch, head, query, key]
    z: Tensor  # [batch, head, query, d_head]
    merged: Tensor  # [batch, query, head * d_head]
    error: str  # what torch says to a view of the transposed tensor without contiguous()


def one_head(x: Tensor | None = None) -> OneHead:
    """One head with its numbers, for x [3, 4] of its own or a given one: anyone who changes a number of x sees what follows."""
    seeded = torch.Generator().manual_seed(SEED)
    own = torch.randn(3, WIDTH, generator=seeded)
    w_q, w_k, w_v = (linear(WIDTH, WIDTH, seeded) for _ in range(3))
    x = own if x is None else x
    if x.ndim != 2 or x.shape[1] != WIDTH:
        raise ValueError(f"x is [tokens, {WIDTH}], not {list(x.shape)}")
    q, k, v = x @ w_q.T, x @ w_k.T, x @ w_v.T
    raw = q @ k.transpose(-2, -1)
    scores = raw / math.sqrt(WIDTH)
    weights = scores.softmax(-1)
    return OneHead(x, w_q, w_k, w_v, q, k, v, raw, scores, weights, weights @ v)


def wrong_softmaxes(one: OneHead, row: int) -> tuple[list[float], list[float], list[float]]:
    """A row of weights by three mistakes: scores not divided; divided by d and not by √d; scores as shares of their sum."""
    raw, scores = one.raw[row], one.scores[row]
    return raw.softmax(-1).tolist(), (raw / WIDTH).softmax(-1).tolist(), (scores / scores.sum()).tolist()


def batch() -> Batch:
    """Two sentences of 3 tokens, and 4 of 4 for the mistake that raises nothing.

    A transpose(-2, -1) turns each sentence on its side; .T turns the axes of the whole batch round.
    """
    seeded = torch.Generator().manual_seed(SEED)
    x = torch.randn(2, 3, WIDTH, generator=seeded)
    w_q, w_k = linear(WIDTH, WIDTH, seeded), linear(WIDTH, WIDTH, seeded)
    q, k = x @ w_q.T, x @ w_k.T
    try:
        error = f"no error: {list((q @ turned_round(k)).shape)}"
    except RuntimeError as raised:
        error = str(raised)
    square = torch.randn(4, 4, WIDTH, generator=torch.Generator().manual_seed(SEED))
    sq, sk = square @ w_q.T, square @ w_k.T
    wrong_by = (sq @ sk.transpose(-2, -1) - sq @ turned_round(sk)).abs().max().item()
    return Batch(q, k, q @ k.transpose(-2, -1), error, wrong_by)


def turned_round(x: Tensor) -> Tensor:
    """x.T, all axes in reverse, without the warning that torch gives for more than two."""
    return x.permute(*reversed(range(x.ndim)))


def reshape() -> Reshape:
    """Fused qkv [2, 4, 24] → split → view [2, 4, 2, 4] → transpose [2, 2, 4, 4] → attention → back → [2, 4, 8]."""
    seeded = torch.Generator().manual_seed(SEED)
    width = HEADS * WIDTH
    x = torch.randn(2, 4, width, generator=seeded)
    qkv = x @ linear(3 * width, width, seeded).T
    q, k, v = (part.view(2, 4, HEADS, WIDTH).transpose(1, 2) for part in qkv.split(width, dim=-1))
    weights = (q @ k.transpose(-2, -1) / math.sqrt(WIDTH)).softmax(-1)
    z = weights @ v
    back = z.transpose(1, 2)
    try:
        error = f"no error: {list(back.view(2, 4, width).shape)}"
    except RuntimeError as raised:
        error = str(raised)
    return Reshape(qkv, (q, k, v), weights, z, back.contiguous().view(2, 4, width), error)


def follow(shape: tuple[int, int, int], n_heads: int, index: tuple[int, int, int], parts: int = 1) -> tuple[Place, ...]:
    """Where one number of a projection [batch, pos, parts · d_model] goes as it is cut into heads and put together again.

    parts is 3 for a fused q, k and v; `split` takes one of them. A view or a transpose only renames a place in memory;
    contiguous() copies, and the number gets a new one. Raises IndexError for an index outside, and ValueError for a width
    that the heads do not divide.
    """
    n_batch, n_pos, wide = shape
    if wide % (parts * n_heads):
        raise ValueError(f"{wide} numbers are not {parts} × {n_heads} heads of the same size")
    if bad := next((i for i, n in zip(index, shape, strict=True) if not 0 <= i < n), None):
        raise IndexError(f"there is no number {list(index)} in {list(shape)}: {bad} is outside")
    b, pos, feature = index
    width = wide // parts
    d_head = width // n_heads
    part, inner = divmod(feature, width)
    head, j = divmod(inner, d_head)
    names = torch.arange(n_batch * n_pos * wide).view(shape)
    own = names[..., part * width : (part + 1) * width]
    cut = own.view(n_batch, n_pos, n_heads, d_head) if parts == 1 else own.unflatten(-1, (n_heads, d_head))
    turned = cut.transpose(1, 2)
    copied = turned.transpose(1, 2).contiguous() if parts > 1 else turned.contiguous()
    places = [_place("projection", names, index)]
    if parts > 1:
        places.append(_place("split", own, (b, pos, inner)))
    places += [_place("view", cut, (b, pos, head, j)), _place("transpose", turned, (b, head, pos, j))]
    if parts > 1:
        places += [
            _place("transpose back", turned.transpose(1, 2), (b, pos, head, j)),
            _place("contiguous", copied, (b, pos, head, j)),
            _place("view", copied.view(n_batch, n_pos, width), (b, pos, inner)),
        ]
    else:
        places.append(_place("contiguous", copied, (b, head, pos, j)))
    return tuple(places)


def _place(step: str, x: Tensor, index: tuple[int, ...]) -> Place:
    memory = int(x.storage_offset()) + sum(i * stride for i, stride in zip(index, x.stride(), strict=True))
    return Place(step, tuple(x.shape), index, memory, x.stride())


def binary_digits(n: int, digits: int = 4) -> Tensor:
    """[place, digit]: the places 0 to n − 1 in binary digits, the smallest first: digit j changes every 2^j places.

    Sinusoids do the same with waves, which change a little at every step instead of jumping.
    """
    return torch.arange(n)[:, None] >> torch.arange(digits) & 1


def fading(width: int, steps: int) -> list[float]:
    """Which share of its length a gradient of a plain RNN's last state has 0, 1, … `steps` steps back.

    h' = tanh(W x + U h) on random tokens, with weights as torch.nn.RNNCell draws them: nothing is learnt yet.
    """
    generator = torch.Generator().manual_seed(SEED)
    w, u = (linear(width, width, generator) for _ in range(2))
    states = [torch.zeros(width)]
    for token in torch.randn(steps, width, generator=generator):
        states.append(torch.tanh(w @ token + u @ states[-1]))
    gradient = torch.randn(width, generator=generator)
    lengths = [float(gradient.norm())]
    for state in reversed(states[1:]):
        gradient = (gradient * (1 - state**2)) @ u
        lengths.append(float(gradient.norm()))
    return [length / lengths[0] for length in lengths]


@dataclass(frozen=True)
class Depth:
    """A fresh stack on one random text: how much of the loss's gradient comes to each layer, and how alike words have become."""

    gradient: tuple[float, ...]  # [layer + 1]: ‖∂loss/∂x‖ of the stream before each layer, and after the last
    alike: tuple[float, ...]  # [layer + 1]: the mean cosine between two words' vectors there


@cache
def through_depth(norm: Literal["pre", "post", "none"], residual: bool, layers: int = 12, width: int = 64) -> Depth:
    """A fresh stack of attention and MLP, with norms before or after each of them or none, with the residual connection or without.

    x ← x + f(norm(x)), x ← norm(x + f(x)) or x ← x + f(x); without the residual connection what is before the plus is left out.
    Nothing is learnt: weights are as torch.nn.Linear draws them, 16 random tokens of 60, the loss that of 60 random next ones.
    """
    heads, tokens, symbols = 4, 16, 60
    generator = torch.Generator().manual_seed(SEED)
    x = torch.randn(tokens, width, generator=generator).requires_grad_()
    target = torch.randint(symbols, (tokens,), generator=generator)
    normed = partial(F.layer_norm, normalized_shape=(width,))

    def attention(h: Tensor) -> Tensor:
        q, k, v = (h @ linear(width, width, generator).T for _ in range(3))
        q, k, v = (a.unflatten(1, (heads, -1)).transpose(0, 1) for a in (q, k, v))  # [head, pos, d_head]
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1)
        return mixed @ linear(width, width, generator).T

    def mlp(h: Tensor) -> Tensor:
        return F.gelu(h @ linear(4 * width, width, generator).T) @ linear(width, 4 * width, generator).T

    with torch.inference_mode(False), torch.enable_grad():
        stream = [x]
        for _ in range(layers):
            for sublayer in (attention, mlp):
                added = sublayer(normed(x) if norm == "pre" else x)
                x = x + added if residual else added
                x = normed(x) if norm == "post" else x
            stream.append(x)
        scores = (normed(x) if norm == "pre" else x) @ linear(symbols, width, generator).T
        gradients = torch.autograd.grad(F.cross_entropy(scores, target), stream)
    pairs = torch.ones(tokens, tokens).triu(1).bool()
    # In double precision: some are too short for the smallest that normalize() takes.
    wide = [vectors.detach().cpu().double() for vectors in stream]
    units = [vectors / vectors.norm(dim=-1, keepdim=True) for vectors in wide]
    alike = [(unit @ unit.T)[pairs].mean().item() for unit in units]
    return Depth(tuple(gradient.norm().item() for gradient in gradients), tuple(alike))


def fresh_word(d_model: int) -> float:
    """The length of a fresh row of a table of words whose numbers have mean 0 and variance 1 ÷ d_model, the mean of 64 rows."""
    rows = torch.randn(64, d_model, generator=torch.Generator().manual_seed(SEED)) / math.sqrt(d_model)
    return rows.norm(dim=-1).mean().item()


def linear(n_out: int, n_in: int, generator: torch.Generator) -> Tensor:
    """The weight [out, in] that nn.Linear(n_in, n_out, bias=False) begins with, from a generator of one's own."""
    return nn.init.kaiming_uniform_(torch.empty(n_out, n_in), a=math.sqrt(5), generator=generator)
