"""Every head silenced in turn, many in one pass: what each alone does to a prediction, or to the vector of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from . import memory
from .errors import TextError
from .hooks import Hook, hook_points
from .passes import Pass
from .predictions import head_of, strings_of
from .prompt import Prompt
from .text import Tokens

BATCH_BYTES = 256 << 20  # what the passes of several silenced heads may need at once, unless one alone needs more


@dataclass(frozen=True)
class HeadEffect:
    """What silencing one head alone changes; its value without the head less its value with it. None where it is not asked for."""

    stack: str
    layer: int
    site: Literal["attn", "cross_attn"]
    head: int
    logit: float | None = None
    probability: float | None = None
    kl: float | None = None  # KL divergence of the prediction without the head from the run's, in nats
    distance: float | None = None  # 1 − cosine of the text's two vectors


@dataclass(frozen=True)
class HeadEffects:
    """Of a prediction: which, and what the run gives it. Of a text's vector (the mean over its tokens): all None."""

    heads: tuple[HeadEffect, ...]  # in the order of the pass
    position: int | None = None
    token: int | None = None
    string: str | None = None
    logit: float | None = None
    probability: float | None = None


def ablate_each(
    forward: Pass,
    text: int,
    tokens: Tokens,
    position: int | None,
    token: int | None,
    watch: Callable[[int, int], object],
) -> HeadEffects:
    """The effect of every head on the prediction behind `position`, or with None on the text's vector: see Trace.ablate_each."""
    loaded = forward.loaded
    alone = replace(forward, prompt=forward.prompt.of(text))
    heads = [
        (point.removesuffix(".hook_z"), head)
        for point in hook_points(loaded.model)
        if point.endswith(".hook_z")
        for head in range(loaded.config.n_heads)
    ]
    each = alone.transient()
    together = max(1, min(len(heads), min(BATCH_BYTES, memory.free_bytes(loaded.device) // 2) // each))
    what = f"Silencing a head in a run of {alone.prompt.source_len:,} tokens"
    memory.admit_large(together * each, loaded.device, what)
    real = ~torch.tensor(tokens.padding, device=loaded.device)

    def read(final: Tensor) -> Tensor:
        """[batch, pos, d_model] -> logits [batch, vocab], or vectors [batch, d_model], float32."""
        if position is None:
            return final[:, real].float().mean(1)
        return head_of(loaded)(final[:, position][:, None])[:, 0].float()

    forward.weights.check()
    with torch.inference_mode():
        plain = read(alone.run())[0]
        if position is not None and token is None:
            token = int(plain.argmax())
        effects: list[HeadEffect] = []
        for start in range(0, len(heads), together):
            some = heads[start : start + together]
            copies = replace(alone, prompt=_copies(alone.prompt, len(some)))
            cut = read(copies.run(_silenced(some)))
            effects += _effects(some, plain, cut, token)
            watch(len(effects), len(heads))
    forward.weights.check()  # a training may go on beside this
    if token is None:
        return HeadEffects(tuple(effects))
    (string,) = strings_of(loaded, [token])
    probability = plain.softmax(-1)[token].item()
    return HeadEffects(tuple(effects), position, token, string, plain[token].item(), probability)


def check_token(forward: Pass, token: int | None) -> None:
    """Raises TextError for a number that is not in the vocabulary."""
    n, title = forward.loaded.config.vocab_size, forward.loaded.spec.title
    if token is not None and not 0 <= token < n:
        raise TextError(f"Token number {token} is not in the vocabulary of {title}, which has 0 to {n - 1}.")


def _copies(prompt: Prompt, n: int) -> Prompt:
    """A prompt of one text, n times."""
    return Prompt(prompt.sources * n, None if prompt.targets is None else prompt.targets * n)


def _silenced(heads: Sequence[tuple[str, int]]) -> dict[str, Hook]:
    """Hooks that silence heads[i] in row i of the batch."""
    rows: dict[str, list[tuple[int, int]]] = {}
    for row, (name, head) in enumerate(heads):
        rows.setdefault(name, []).append((row, head))

    def zero(cells: list[tuple[int, int]], z: Tensor) -> Tensor:
        z = z.clone()
        for row, head in cells:
            z[row, head] = 0
        return z

    return {f"{name}.hook_z": partial(zero, cells) for name, cells in rows.items()}


def _effects(heads: Sequence[tuple[str, int]], plain: Tensor, cut: Tensor, token: int | None) -> list[HeadEffect]:
    """plain [vocab or d_model] of the run, cut [head, vocab or d_model] without each."""
    columns: dict[str, list[float]]
    if token is None:
        columns = {"distance": (1 - F.cosine_similarity(cut, plain[None], dim=-1)).tolist()}
    else:
        before, after = plain.log_softmax(-1), cut.log_softmax(-1)
        columns = {
            "logit": (cut[:, token] - plain[token]).tolist(),
            "probability": (after[:, token].exp() - before[token].exp()).tolist(),
            "kl": F.kl_div(after, before[None].expand_as(after), reduction="none", log_target=True).sum(-1).tolist(),
        }
    effects = []
    for i, (name, head) in enumerate(heads):
        stack, _, layer, site = name.split(".")
        numbers = {what: values[i] for what, values in columns.items()}
        effects.append(HeadEffect(stack, int(layer), "attn" if site == "attn" else "cross_attn", head, **numbers))
    return effects
