"""The experts that each token took: what the routers of a mixture of experts chose in a run, and how much each expert did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .. import frames, memory
from ..errors import TextError
from ..model.text import Tokens
from ..model.transformer import MixtureOfExperts
from ..run.trace import Trace
from ..run.wrapped import Wrapped, cannot

KEPT = 8 + 4  # bytes of one choice: the expert's number and its weight
SCORED = 3 * 4  # bytes of one score on its way: float32, its share, and the order of the largest


@dataclass(frozen=True, eq=False)
class Routing:
    """The choices of every router of one stack.

    chosen and weights are [layer, pos, choice], the expert with the largest weight first; `layers` numbers their first axis,
    because some layers may have one MLP for all tokens. A token leaves the mixture as Σ weight · expert(x); an expert that all
    tokens take (`d_shared` of the config) is not among the chosen.
    """

    stack: str
    layers: tuple[int, ...]
    n_experts: int
    chosen: np.ndarray  # int32
    weights: np.ndarray  # float32
    tokens: Tokens

    @property
    def load(self) -> np.ndarray:
        """The share of the text's choices that each expert got, [layer, expert], float32; each layer adds up to 1.

        With n experts and an even load each has 1/n. Padding is not counted.
        """
        chosen = self.chosen[:, ~np.array(self.tokens.padding)].reshape(len(self.layers), -1)
        counts = [np.bincount(layer, minlength=self.n_experts) for layer in chosen]
        return np.array(counts, np.float32) / np.float32(chosen.shape[1])

    def to_frame(self) -> frames.DataFrame:
        """A row for each choice: layer, position, token, expert, weight. Needs pandas."""
        n_layers, n, k = self.chosen.shape
        labels = [str(label) for label in self.tokens.labels]
        return frames.of_columns(
            {
                "layer": [layer for layer in self.layers for _ in range(n * k)],
                "pos": [i for _ in range(n_layers) for i in range(n) for _ in range(k)],
                "token": [label for _ in range(n_layers) for label in labels for _ in range(k)],
                "expert": self.chosen.flatten().tolist(),
                "weight": self.weights.flatten().tolist(),
            }
        )


def routing(run: Trace, stack: str | None = None) -> Routing:
    """The experts that every token took in every layer of a stack (None: the last that has any), from one more pass.

    The weights are those that the pass multiplied with, after the router's own rule: a softmax of all experts before or after
    the best are taken, a sigmoid of each, a scale (Shazeer et al. 2017, arXiv:1701.06538; the config's `router`). Edits of the
    run count. Raises TextError for a model or a stack without experts, TooLarge with the bytes needed and free, and Outdated
    after a training.
    """
    title = run.loaded.spec.title
    if isinstance(run.loaded, Wrapped):
        cannot("the choice of its routers")
    there = run.config.expert_layers
    if not there:
        raise TextError(f"{title} has one MLP in each layer, which all tokens take, and no experts to choose between.")
    stack = list(there)[-1] if stack is None else stack
    if stack not in there:
        raise TextError(f"{title} has no experts in a stack {stack!r}. It has some in: {', '.join(there)}.")
    layers, config = there[stack], run.config
    tokens = run.source if stack == "encoder" or run.target is None else run.target
    n, k = len(tokens), config.n_experts_per_token
    needed = len(layers) * n * k * KEPT + n * config.n_experts * SCORED
    memory.admit_large(needed, run.loaded.device, f"The experts of {n:,} tokens in {len(layers)} layers")
    mixtures: dict[str, MixtureOfExperts] = {}
    for layer in layers:
        found = run.loaded.model.get_submodule(f"{stack}.blocks.{layer}.mlp")
        assert isinstance(found, MixtureOfExperts)
        mixtures[f"{stack}.blocks.{layer}.mlp.hook_router"] = found

    chosen: dict[str, Tensor] = {}

    def part(point: str, scores: Tensor) -> Tensor:
        """[pos, choice] of one layer, in the order of the weights; scores are [batch, pos, expert]."""
        weights, numbers = mixtures[point].routed(scores[run.index])
        weights, order = weights.float().sort(dim=-1, descending=True, stable=True)
        chosen[point] = numbers.gather(-1, order)
        return weights

    weights = run.forward.moments(mixtures, part)
    return Routing(
        stack,
        layers,
        config.n_experts,
        torch.stack([chosen[point] for point in mixtures]).int().cpu().numpy(),
        torch.stack([weights[point] for point in mixtures]).cpu().numpy(),
        tokens,
    )
