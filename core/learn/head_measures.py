"""Measures of the heads of a model in training, averaged over problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from torch import Tensor

from ..model.hooks import Hook, hooked
from ..model.transformer import Transformer
from .tasks import Task, problems, solved

PROBLEMS = 64  # held out


@dataclass(frozen=True, eq=False)
class HeadMeasures:
    """Mean weights, each [layer, head]."""

    finds: Tensor  # on the source of the next symbol, over the answers
    back: Tensor  # on the previous position, over the problem
    ahead: Tensor  # on the next position, over the answers; 0 with a causal mask


@lru_cache(maxsize=16)
def unseen(task: Task) -> tuple[str, ...]:
    """Held-out problems, the default for measurements."""
    return tuple(problems(task, PROBLEMS, seed="unseen", held_out=True))


@torch.inference_mode()
def head_measures(
    task: Task, model: Transformer, chosen: Sequence[str], hooks: Mapping[str, Hook] | None = None
) -> HeadMeasures:
    """Mean weights of each head on these problems with their answers, with the hooks of a variant."""
    assert model.decoder is not None
    patterns: dict[int, Tensor] = {}

    layers = range(len(model.decoder.blocks))
    ids, counts = solved(task, chosen)
    with (
        hooked(model, dict(hooks or {})),
        hooked(model, {f"decoder.blocks.{i}.attn.hook_pattern": partial(patterns.__setitem__, i) for i in layers}),
    ):
        model.last_residual(ids)
    seen = torch.stack([patterns[i] for i in layers], 1)  # [problem, layer, head, query, key]
    finds, back, ahead = [], [], []
    for row, problem in enumerate(chosen):
        first = 1 if task.same_place else len(problem)
        n = int(counts[row].nonzero()[-1]) + 1  # tokens, the end of the answer included
        sources = task.sources(problem)
        finds += [seen[row, :, :, first + i, [1 + k for k in of]].sum(-1) for i, of in enumerate(sources)]
        back.append(torch.stack([seen[row, :, :, q, q - 1] for q in range(1, len(problem) + 1)]).mean(0))
        ahead += [seen[row, :, :, q, q + 1] for q in range(first, n - 1)]
    means = [torch.stack(some).mean(0) if some else torch.zeros(seen.shape[1:3]) for some in (finds, back, ahead)]
    return HeadMeasures(*means)
