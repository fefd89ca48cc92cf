"""Routing of a mixture of experts: the experts of each token, their weights, and the load of each expert."""

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
from .conditional_loss import tokens_read

CHOICE_BYTES = 8 + 4  # the expert's number and its weight
SCORE_BYTES = 3 * 4  # temporary, for each score: float32, its share, and the sort order


@dataclass(frozen=True, eq=False)
class Routing:
    """The choices of every router of one stack.

    A mixture's output is Σ weight · expert(x). The shared expert (`d_shared` of the config) is not in `chosen`.
    """

    stack: str
    layers: tuple[int, ...]  # first axis of the arrays; other layers may have an ordinary MLP
    n_experts: int
    chosen: np.ndarray  # int32 [layer, pos, choice], the expert with the largest weight first
    weights: np.ndarray  # float32 [layer, pos, choice]
    tokens: Tokens

    @property
    def load(self) -> np.ndarray:
        """Share of each expert in the choices of the text, [layer, expert] float32; 1/n for all n experts if balanced. Without padding."""
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
    """The experts of every token in every layer of a stack (None: the last one with experts), from one more pass with the run's edits.

    The weights are the final factors, after the router's softmax, sigmoid or scale (Shazeer et al. 2017, arXiv:1701.06538; the
    config's `router`). Raises TextError for a model or a stack without experts, TooLarge with the bytes needed and free, and Outdated
    after a training.
    """
    title = run.loaded.spec.title
    run.require_model("the choice of its routers")
    expert_layers = run.config.expert_layers
    if not expert_layers:
        raise TextError(f"{title} has one MLP in each layer, which all tokens take, and no experts to choose between.")
    stack = list(expert_layers)[-1] if stack is None else stack
    if stack not in expert_layers:
        raise TextError(f"{title} has no experts in a stack {stack!r}. It has some in: {', '.join(expert_layers)}.")
    layers, config, tokens = expert_layers[stack], run.config, tokens_read(run, stack)
    n, k = len(tokens), config.n_experts_per_token
    needed = len(layers) * n * k * CHOICE_BYTES + n * config.n_experts * SCORE_BYTES
    memory.admit_large(needed, run.loaded.device, f"The experts of {n:,} tokens in {len(layers)} layers")
    mixtures: dict[str, MixtureOfExperts] = {}
    for layer in layers:
        mixture = run.loaded.model.get_submodule(f"{stack}.blocks.{layer}.mlp")
        assert isinstance(mixture, MixtureOfExperts)
        mixtures[f"{stack}.blocks.{layer}.mlp.hook_router"] = mixture

    chosen: dict[str, Tensor] = {}

    def choose(point: str, scores: Tensor) -> Tensor:
        """Weights [pos, choice] of one layer, the largest first, from scores [batch, pos, expert]."""
        weights, numbers = mixtures[point].route(scores[run.index])
        weights, order = weights.float().sort(dim=-1, descending=True, stable=True)
        chosen[point] = numbers.gather(-1, order)
        return weights

    weights = run.forward.moments(mixtures, choose)
    return Routing(
        stack=stack,
        layers=layers,
        n_experts=config.n_experts,
        chosen=torch.stack([chosen[point] for point in mixtures]).int().cpu().numpy(),
        weights=torch.stack([weights[point] for point in mixtures]).cpu().numpy(),
        tokens=tokens,
    )
