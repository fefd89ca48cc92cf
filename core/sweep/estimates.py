"""Attribution patching: the effect of every component on an answer, estimated from one forward and one backward pass.

Nanda 2023, "Attribution patching: activation patching at industrial scale"; Syed et al. 2023 (arXiv:2310.10348). The estimates are linear:
use them to order components, and patch_components() for the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from .. import frames, memory
from ..errors import TextError
from ..model.hooks import Hook, hooked
from ..run.forward_pass import Pass
from ..run.predictions import allowed_scores, check_token, following, head_of, labels_of
from ..run.prompt import model_inputs
from ..run.trace import Trace
from .growing import Activations, activations_of, decoder_of, joining_points
from .part import Component
from .sides import ADVICE, Counterfactual, To, component_points, counterfactual_of

N_STRONGEST = 10  # heads with the strongest estimates, which run first
THIRDS = 3


@dataclass(frozen=True, eq=False)
class AttributionEstimates:
    """Estimated change of the logit difference with each component replaced: gradient × change of the component.

    The logit difference is the logit of the answer minus that of the alternative, or log p of the answer if there is no alternative.
    `by_point` has all numbers: [head] for heads, [] for an MLP, [token] for the residual stream after a layer. The other arrays are those
    of the last stack.
    """

    to: To
    position: int
    answer: int
    alternative: int | None
    lead: float  # the logit difference in the run itself
    heads: np.ndarray  # float32 [layer, head]
    mlps: np.ndarray  # float32 [layer]
    resid: np.ndarray | None  # float32 [layer, token], the residual stream after each layer; None without another run
    by_point: Mapping[str, np.ndarray]
    last_stack: str
    acts: np.ndarray  # int64 [layer, head]: the token at which a head would change the logit difference most

    def of(self, part: Component) -> float:
        """The estimate of one component. Raises KeyError if it has none."""
        estimates = self.by_point[part.point(self.last_stack)]
        return float(estimates if part.kind == "mlp" else estimates[part.at])

    @property
    def parts(self) -> tuple[Component, ...]:
        """Every component with an estimate, in the order of the pass."""
        parts: list[Component] = []
        for point, numbers in self.by_point.items():
            stack, _, layer, *_ = point.split(".")
            if point.endswith("hook_mlp_out"):
                parts.append(Component("mlp", int(layer), 0, stack))
            elif point.endswith("hook_z"):
                site = "cross_attn" if ".cross_attn." in point else "attn"
                parts += [Component("head", int(layer), head, stack, site) for head in range(len(numbers))]
            else:
                parts += [Component("resid", int(layer), token, stack) for token in range(len(numbers))]
        return tuple(parts)

    def to_frame(self) -> frames.DataFrame:
        """One row for each component. Needs pandas."""
        parts = self.parts
        return frames.of_columns({**frames.columns_of(parts, Component), "estimate": [self.of(part) for part in parts]})


def attribution_patching(
    run: Trace,
    other: Trace | None,
    answer: int,
    alternative: int | None = None,
    to: To = "other",
    position: int | None = None,
) -> AttributionEstimates:
    """Estimate by how much each head, each MLP and the residual stream at each token changes the logit difference of `answer` over
    `alternative` after `position` (None: the last real token), if it is set to its value in the other run, to zero ("zero"), or to its mean
    over the text ("mean").

    First order: Σ over tokens of ∂(logit difference)/∂component · (replacement − component), float32, from one forward and one backward
    pass of the run, and a forward pass of the other. For an encoder–decoder `by_point` has all three kinds of heads. An estimate may
    have the wrong sign, so draw no conclusion from it. Raises as patch_components(), and TextError for an answer that may not follow.
    """
    counterfactual = counterfactual_of(run, other, to, position)
    return attribution_estimates(counterfactual, gradients_of(counterfactual, answer, alternative))


@dataclass(frozen=True, eq=False)
class Gradients:
    """One forward and one backward pass of a run, by hook point, without the batch axis."""

    answer: int
    alternative: int | None
    lead: float  # the logit difference
    activations: Activations  # at joining_points() if there is a prefix, otherwise at the components
    gradients: Mapping[str, Tensor]  # of the logit difference, at every component


def gradients_of(counterfactual: Counterfactual, answer: int, alternative: int | None = None) -> Gradients:
    """The gradients of the logit difference, by autograd. Raises TextError, TooLarge, and Outdated after a training."""
    forward, prefix, loaded = counterfactual.forward, counterfactual.prefix, counterfactual.run.loaded
    for token in (answer, alternative):
        check_token(loaded, token)
    n = len(counterfactual.tokens)
    tokens, keys = (n, n) if prefix is None else (prefix.n_computed * len(prefix.ids), counterfactual.position + 1)
    needed = backward_bytes(forward, max(tokens, forward.prompt.target_len), keys)
    memory.admit_large(needed, loaded.device, f"The backward pass of a run of {keys:,} tokens", ADVICE)
    parts = component_points(counterfactual.run)
    seen: dict[str, Tensor] = {}
    forward.weights.check()
    with ExitStack() as contexts:
        contexts.enter_context(torch.inference_mode(False))
        contexts.enter_context(torch.enable_grad())
        contexts.enter_context(hooked(loaded.model, {}, outside=forward.outside))
        contexts.enter_context(hooked(loaded.model, forward.edits))
        points = parts if prefix is None else joining_points(forward)
        contexts.enter_context(hooked(loaded.model, _gradient_hooks(forward, points, seen)))
        if prefix is None:
            final = loaded.model.last_residual(*model_inputs(forward.prompt, loaded.device))
            final = final[:, : counterfactual.position + 1]
        else:  # cloned, because tensors of inference mode cannot be saved for a backward pass
            prefix = replace(prefix, cached=tuple((k.clone(), v.clone()) for k, v in prefix.cached))
            final = prefix.run(decoder_of(forward))
        logits = head_of(loaded)(final[:1, -1:])[:, 0].float()
        lead = _logit_diff(counterfactual, logits, answer, alternative)
        if counterfactual.to != "other":
            parts = [point for point in parts if not point.endswith("hook_resid_post")]
        found = torch.autograd.grad(lead, [seen[point] for point in parts], allow_unused=True)
    forward.weights.check()  # a training may have changed them in the meantime
    gradients = {
        point: torch.zeros_like(seen[point].detach()[0]) if gradient is None else gradient[0]
        for point, gradient in zip(parts, found, strict=True)
    }
    return Gradients(answer, alternative, lead.item(), activations_of(seen, final), gradients)


def _gradient_hooks(forward: Pass, points: Sequence[str], seen: dict[str, Tensor]) -> dict[str, Hook]:
    """Hooks that store the tensors at `points` in `seen`, and require gradients from the embeddings on."""

    def begin(point: str, x: Tensor) -> Tensor:
        seen[point] = x.detach().requires_grad_()  # the embedding tables need no gradients
        return seen[point]

    hooks: dict[str, Hook] = {point: lambda x, point=point: seen.__setitem__(point, x) for point in points}
    embeddings = (f"{stack}.embed.hook_embed" for stack, _ in forward.loaded.config.stacks)
    return hooks | {point: partial(begin, point) for point in embeddings}


def _logit_diff(counterfactual: Counterfactual, logits: Tensor, answer: int, alternative: int | None) -> Tensor:
    """From logits [1, vocab]: that of the answer minus that of the alternative, or log p of the answer. Raises TextError for -inf."""
    loaded = counterfactual.run.loaded
    scores = allowed_scores(logits, following(loaded, counterfactual.tokens, [counterfactual.position]))[0]
    for token in (answer, alternative):
        if token is not None and bool(scores[token].isneginf()):
            (label,) = labels_of(loaded, [token])
            raise TextError(f"{label!r} may not follow this text, so its score cannot change. Choose another word.")
    return scores[answer] - scores[alternative] if alternative is not None else scores.log_softmax(-1)[answer]


def backward_bytes(forward: Pass, tokens: int, keys: int) -> int:
    """Upper bound of the activations, in bytes, that a forward pass of `tokens` tokens keeps for its backward pass; actual use is rarely
    more than half of it."""
    config, itemsize = forward.loaded.config, max(4, forward.loaded.dtype.itemsize)
    experts = config.n_experts_per_token * config.d_ff + config.d_shared
    hidden = max(config.d_ff, config.d_dense, experts if config.n_experts else 0)
    width = config.n_heads * (3 * config.d_head + 2 * config.value_width)
    has_maps = config.runs_in_steps or forward.is_eager or config.position != "rotary"
    maps = 4 * config.n_heads * keys if has_maps else keys
    layers = sum(n for _, n in config.stacks)
    each = 16 * config.d_model + 5 * width + 6 * hidden + maps
    prefix = 2 * keys * width
    return layers * (tokens * each + prefix) * itemsize + 6 * config.vocab_size * 4


def attribution_estimates(counterfactual: Counterfactual, gradients: Gradients) -> AttributionEstimates:
    """Gradient × change, of every component."""
    own, prefix = gradients.activations.own, counterfactual.prefix
    replacements = counterfactual.replacements(own, gradients.activations.other)
    n, first = len(counterfactual.tokens), 0 if prefix is None else prefix.first
    by_point: dict[str, np.ndarray] = {}
    acts: dict[str, np.ndarray] = {}
    for point, gradient in gradients.gradients.items():
        product = gradient.float() * (replacements[point].float() - own[point].float())  # [head or none, pos, width]
        each = product.sum(-1)
        if point.endswith("hook_resid_post"):
            numbers = each.cpu().numpy()
            after = n - first - len(numbers)  # tokens after the position
            by_point[point] = numbers if prefix is None else np.pad(numbers, (first, after))
        else:
            by_point[point] = each.sum(-1).cpu().numpy()
            acts[point] = each.abs().argmax(-1).cpu().numpy() + first
    last, n_layers = counterfactual.run.config.stacks[-1]

    def of_layers(end: str, numbers: Mapping[str, np.ndarray] = by_point) -> np.ndarray:
        return np.stack([numbers[f"{last}.blocks.{layer}.{end}"] for layer in range(n_layers)])

    return AttributionEstimates(
        to=counterfactual.to,
        position=counterfactual.position,
        answer=gradients.answer,
        alternative=gradients.alternative,
        lead=gradients.lead,
        heads=of_layers("attn.hook_z"),
        mlps=of_layers("hook_mlp_out"),
        resid=of_layers("hook_resid_post") if counterfactual.to == "other" else None,
        by_point=by_point,
        last_stack=last,
        acts=of_layers("attn.hook_z", acts),
    )


def run_order(estimates: AttributionEstimates, tokens: Sequence[int] = ()) -> tuple[tuple[Component, ...], ...]:
    """Group the last stack's components in the order to run them with patch_components(): the heads with the strongest estimates; the
    last third of the layers with MLPs, from the last layer down; the residual stream at `tokens`; and the other thirds. Without another
    run the first two layers come second, because estimates are least accurate there.
    """
    n_layers, n_heads = estimates.heads.shape
    strength = np.abs(estimates.heads).ravel()
    strongest = [divmod(int(i), n_heads) for i in np.argsort(-strength, kind="stable")[:N_STRONGEST]]

    def of_layers(layers: Sequence[int]) -> tuple[Component, ...]:
        parts: list[Component] = []
        for layer in layers:
            parts += [Component("head", layer, head) for head in range(n_heads) if (layer, head) not in strongest]
            parts.append(Component("mlp", layer))
        return tuple(parts)

    first = range(2) if estimates.to != "other" and n_layers > 2 else range(0)
    rest = [layer for layer in reversed(range(n_layers)) if layer not in first]
    size = -(-n_layers // THIRDS)
    thirds = [of_layers(rest[at : at + size]) for at in range(0, len(rest), size)]
    streams = tuple(Component("resid", layer, token) for layer in reversed(range(n_layers)) for token in tokens)
    heads = tuple(Component("head", layer, head) for layer, head in strongest)
    groups = (heads, of_layers(first), thirds[0], streams, *thirds[1:])
    return tuple(group for group in groups if group)
