"""Worked examples: small computations of attention by hand, projections, and gradients with and without the residual."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..checkpoints.from_config import build
from ..device import pick_device
from ..learn.training import PlainAttention
from ..learn.watched_training import no_residual
from ..model.config import ModelConfig
from ..model.hooks import Hook, hooked
from ..model.transformer import Block, Transformer

SEED = 42
WIDTH = 4  # d_model of the single head
HEADS = 2  # in the reshape, of WIDTH numbers each


@dataclass(frozen=True, eq=False)
class OneHead:
    """Every number of one head of attention. W is [out, in] as in nn.Linear: q = x W_qᵀ."""

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
    """A batch of two sentences, and the effect of `.T` on it."""

    q: Tensor  # [batch, query, d_head]
    k: Tensor  # [batch, key, d_head]
    scores: Tensor  # [batch, query, key], with k.transpose(-2, -1)
    error: str  # PyTorch's message for q @ k.T
    wrong_by: float  # largest difference for 4 × 4 × 4, where the sizes agree and PyTorch raises no error


@dataclass(frozen=True)
class Place:
    """One step of a number through the reshape: the tensor, the number's index in it, and its address in memory."""

    step: str
    shape: tuple[int, ...]
    index: tuple[int, ...]
    memory: int  # numbers from the start of the storage
    strides: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Reshape:
    """From a fused projection to heads and back, in a batch of 2 sentences of 4 tokens with 2 heads of 4."""

    qkv: Tensor  # [2, 4, 24]
    heads: tuple[Tensor, Tensor, Tensor]  # q, k, v, each [batch, head, pos, d_head]
    weights: Tensor  # [batch, head, query, key]
    z: Tensor  # [batch, head, query, d_head]
    merged: Tensor  # [batch, query, head * d_head]
    error: str  # PyTorch's message for a view of the transposed tensor without contiguous()


def one_head(x: Tensor | None = None) -> OneHead:
    """One head with its numbers, for the lessons' x [3, 4] or a given one."""
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
    """A row of weights with three mistakes: undivided scores, scores divided by d instead of √d, and scores as shares of their sum."""
    raw, scores = one.raw[row], one.scores[row]
    return raw.softmax(-1).tolist(), (raw / WIDTH).softmax(-1).tolist(), (scores / scores.sum()).tolist()


def batch() -> Batch:
    """Two sentences of 3 tokens, and 4 of 4 for the mistake that raises no error.

    transpose(-2, -1) transposes each sentence; .T reverses all axes of the batch.
    """
    seeded = torch.Generator().manual_seed(SEED)
    x = torch.randn(2, 3, WIDTH, generator=seeded)
    w_q, w_k = linear(WIDTH, WIDTH, seeded), linear(WIDTH, WIDTH, seeded)
    q, k = x @ w_q.T, x @ w_k.T
    error = _error_of(lambda: q @ reverse_axes(k))
    square = torch.randn(4, 4, WIDTH, generator=torch.Generator().manual_seed(SEED))
    sq, sk = square @ w_q.T, square @ w_k.T
    wrong_by = (sq @ sk.transpose(-2, -1) - sq @ reverse_axes(sk)).abs().max().item()
    return Batch(q, k, q @ k.transpose(-2, -1), error, wrong_by)


def reverse_axes(x: Tensor) -> Tensor:
    """x.T: all axes in reverse order, without PyTorch's warning for more than two."""
    return x.permute(*reversed(range(x.ndim)))


def _error_of(work: Callable[[], Tensor]) -> str:
    """PyTorch's message for work that fails."""
    try:
        return f"no error: {list(work().shape)}"
    except RuntimeError as error:
        return str(error)


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
    error = _error_of(lambda: back.view(2, 4, width))
    return Reshape(qkv, (q, k, v), weights, z, back.contiguous().view(2, 4, width), error)


def follow(shape: tuple[int, int, int], n_heads: int, index: tuple[int, int, int], parts: int = 1) -> tuple[Place, ...]:
    """Track one number of a projection [batch, pos, parts · d_model] through the split into heads and back.

    parts is 3 for a fused q, k and v; `split` takes one of the three. A view or a transpose does not move a number in memory;
    contiguous() copies it. Raises IndexError for an index outside, and ValueError for a width that is not divisible by the heads.
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
    by_head = own.unflatten(-1, (n_heads, d_head))
    transposed = by_head.transpose(1, 2)
    places = [_place("projection", names, index)]
    if parts > 1:
        places.append(_place("split", own, (b, pos, inner)))
    places += [_place("view", by_head, (b, pos, head, j)), _place("transpose", transposed, (b, head, pos, j))]
    if parts == 1:
        return (*places, _place("contiguous", transposed.contiguous(), (b, head, pos, j)))
    merged = by_head.contiguous()
    return (
        *places,
        _place("transpose back", by_head, (b, pos, head, j)),
        _place("contiguous", merged, (b, pos, head, j)),
        _place("view", merged.view(n_batch, n_pos, width), (b, pos, inner)),
    )


def _place(step: str, x: Tensor, index: tuple[int, ...]) -> Place:
    memory = int(x.storage_offset()) + sum(i * stride for i, stride in zip(index, x.stride(), strict=True))
    return Place(step, tuple(x.shape), index, memory, x.stride())


def binary_digits(n: int, digits: int = 4) -> Tensor:
    """Positions 0 to n − 1 in binary, [position, digit], the smallest digit first: digit j changes every 2^j positions.

    Sinusoids do the same with waves, which change smoothly instead of jumping.
    """
    return torch.arange(n)[:, None] >> torch.arange(digits) & 1


def rnn_gradient_norms(width: int, steps: int) -> list[float]:
    """Gradient norms of the last state of an untrained RNN 0, 1, … `steps` steps back, relative to the first.

    h' = tanh(W x + U h) on random tokens, with the initial weights of torch.nn.RNNCell.
    """
    generator = torch.Generator().manual_seed(SEED)
    w, u = (linear(width, width, generator) for _ in range(2))
    states = [torch.zeros(width)]
    for token in torch.randn(steps, width, generator=generator):
        states.append(torch.tanh(w @ token + u @ states[-1]))
    gradient = torch.randn(width, generator=generator)
    norms = [float(gradient.norm())]
    for state in reversed(states[1:]):
        gradient = (gradient * (1 - state**2)) @ u
        norms.append(float(gradient.norm()))
    return [norm / norms[0] for norm in norms]


@dataclass(frozen=True)
class Depth:
    """An untrained stack on one random text: gradient and similarity of the tokens' vectors by layer."""

    gradient: tuple[float, ...]  # [layer + 1]: ‖∂loss/∂x‖ of the stream before each layer, and after the last
    alike: tuple[float, ...]  # [layer + 1]: mean cosine between two tokens' vectors


@cache
def through_depth(norm: Literal["pre", "post", "none"], residual: bool, layers: int = 12, width: int = 64) -> Depth:
    """An untrained stack of attention and MLP: with norms before, after or without them, with or without the residual connection.

    x ← x + f(norm(x)), x ← norm(x + f(x)) or x ← x + f(x); without the residual connection the term before the plus is dropped.
    Weights are the initial ones of torch.nn.Linear, for 16 random tokens of 60 with random next tokens.
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
    # In float64, because some norms are below the epsilon of normalize().
    wide = [vectors.detach().cpu().double() for vectors in stream]
    units = [vectors / vectors.norm(dim=-1, keepdim=True) for vectors in wide]
    alike = [(unit @ unit.T)[pairs].mean().item() for unit in units]
    return Depth(tuple(gradient.norm().item() for gradient in gradients), tuple(alike))


def random_token(d_model: int) -> float:
    """Mean norm of 64 random token vectors whose numbers have mean 0 and variance 1 ÷ d_model."""
    rows = torch.randn(64, d_model, generator=torch.Generator().manual_seed(SEED)) / math.sqrt(d_model)
    return rows.norm(dim=-1).mean().item()


def linear(n_out: int, n_in: int, generator: torch.Generator) -> Tensor:
    """Initial weight [out, in] of nn.Linear(n_in, n_out, bias=False), from a separate generator."""
    return nn.init.kaiming_uniform_(torch.empty(n_out, n_in), a=math.sqrt(5), generator=generator)


ROUNDS = 9
MAX_PRODUCT_FLOPS = 4e9  # a fraction of a second on one CPU core
MAX_WEIGHTS = 1 << 26


@dataclass(frozen=True)
class ProjectionBenchmark:
    """Median times of ROUNDS alternating rounds, and the largest difference between the two results."""

    fused: float  # ms
    separate: float  # ms
    difference: float
    rows: int  # tokens that were multiplied
    of: int  # tokens that were requested
    device: str


def benchmark_projections(
    d_model: int, widths: tuple[int, int, int], rows: int, device: torch.device | None = None
) -> ProjectionBenchmark:
    """Time x W_qkv against x W_Q, x W_K and x W_V, for random float32 x [rows, d_model] and outputs of `widths` numbers (q, k, v).

    W_qkv is the three matrices stacked, like `nn.MultiheadAttention.in_proj_weight`. Large sizes use fewer rows. Raises ValueError
    for matrices that are too large.
    """
    numbers = d_model * sum(widths)
    if numbers > MAX_WEIGHTS:
        raise ValueError(f"tables of {d_model:,} × {sum(widths):,}")
    used = min(rows, max(1, int(MAX_PRODUCT_FLOPS // (2 * numbers))))
    device = device or pick_device()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(used, d_model, generator=generator).to(device)
    tables = [(torch.randn(width, d_model, generator=generator) / d_model**0.5).to(device) for width in widths]
    joined = torch.cat(tables)

    def fused() -> tuple[Tensor, ...]:
        return F.linear(x, joined).split(widths, -1)

    def separate() -> tuple[Tensor, ...]:
        return tuple(F.linear(x, table) for table in tables)

    with torch.inference_mode():
        difference = max((a - b).abs().max().item() for a, b in zip(fused(), separate(), strict=True))
        times = [(_seconds_of(fused, device), _seconds_of(separate, device)) for _ in range(ROUNDS)]
    one, three = (1000 * statistics.median(each) for each in zip(*times, strict=True))
    return ProjectionBenchmark(one, three, difference, used, rows, device.type)


def _seconds_of(work: Callable[[], object], device: torch.device) -> float:
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


Norm = Literal["pre", "post", "none"]
SYMBOLS, COPIED, BATCH = 60, 16, 8  # the task: rows of random symbols, each repeated once
PATH_WIDTH, PATH_HEADS = 128, 4


@dataclass(frozen=True, eq=False)
class ResidualPath:
    """One backward pass through an untrained stack on the task of repeating a row of symbols."""

    norm: Norm  # before each sublayer, after each addition, or nowhere
    residual: bool
    gradients: np.ndarray  # float64 [layer + 1]: ‖∂loss/∂x‖ of the stream before every layer, and after the last
    alike: np.ndarray  # float64 [layer + 1]: mean cosine between the vectors of two tokens of one text


def residual_gradients(n_layers: int = 24, seed: int = 0) -> tuple[ResidualPath, ...]:
    """All combinations of norm and residual connection. Takes seconds on a CPU. Raises ConfigError for n_layers below 1."""
    return tuple(
        residual_path(norm, residual, n_layers, seed) for residual in (True, False) for norm in ("pre", "post", "none")
    )


def residual_path(norm: Norm, residual: bool, n_layers: int = 24, seed: int = 0) -> ResidualPath:
    """One combination. The weights are those of core.build for this seed.

    It computes in float64 with eager attention. Without norms the scores become so large that the softmax has only one key. A fused
    kernel in float32 recomputes the weights from the logarithm of their sum, and then has a gradient of 10¹⁰ instead of 32.
    """
    config = ModelConfig(
        d_model=PATH_WIDTH,
        n_heads=PATH_HEADS,
        d_ff=4 * PATH_WIDTH,
        n_decoder_layers=n_layers,
        vocab_size=SYMBOLS,
        n_ctx=2 * COPIED,
        position="learned",
        norm_order="post" if norm == "post" else "pre",
    )
    model = build(config, seed).model.cpu().double()
    assert model.decoder is not None and model.head is not None
    if norm == "none":
        without_norms(model)
    generator = torch.Generator().manual_seed(seed)
    row = torch.randint(SYMBOLS, (BATCH, COPIED), generator=generator)
    ids = torch.cat([row, row], 1)  # [batch, pos]
    streams: list[Tensor] = []

    def begin(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()  # the embedding tables need no gradient
        return keep(x)

    def keep(x: Tensor) -> Tensor:
        x.retain_grad()
        streams.append(x)
        return x

    points = [f"decoder.blocks.{i}.hook_resid_post" for i in range(n_layers)]
    hooks: dict[str, Hook] = {} if residual else no_residual(model)
    hooks |= {"decoder.embed.hook_embed": begin, **dict.fromkeys(points, keep)}
    with torch.enable_grad(), hooked(model, hooks), PlainAttention():
        logits = model.head(model.last_residual(ids[:, :-1]))[:, COPIED - 1 :]  # [batch, 16, vocab]
        F.cross_entropy(logits.flatten(0, 1), ids[:, COPIED:].flatten()).backward()
    gradients = torch.stack([x.grad.norm() for x in streams if x.grad is not None])
    alike = torch.stack([mean_cosine(x.detach()) for x in streams])
    return ResidualPath(norm, residual, gradients.numpy(), alike.numpy())


def mean_cosine(x: Tensor) -> Tensor:
    """Mean cosine between two different positions of a text, over all texts of x [batch, pos, d_model]."""
    units = F.normalize(x, dim=-1)
    n = units.shape[1]
    cosines = units @ units.mT  # [batch, pos, pos]
    return (cosines.sum((-2, -1)) - n).mean() / (n * (n - 1))


def without_norms(model: Transformer) -> None:
    """Remove all norms from a model's layers. The final norm stays, so that logits keep their size."""
    assert model.decoder is not None
    for block in model.decoder.blocks:
        assert isinstance(block, Block)
        block.attn_norm = block.mlp_norm = nn.Identity()
