"""Attribution patching: what every part of a model would change of an answer, estimated from one forward and one backward pass.

Nanda 2023, "Attribution patching: activation patching at industrial scale"; Syed et al. 2023 (arXiv:2310.10348). Tangents: an estimate
gives an order, and a run of its own gives the number (patch_parts).
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
from .growing import Passed, decoder_of, passed_of, stem_points
from .part import Part
from .sides import ADVICE, Sides, To, sides_of

FIRST = 10  # of the strongest estimates, whose runs come first
THIRDS = 3


@dataclass(frozen=True, eq=False)
class Estimates:
    """How much the lead would change with each part by itself set to something else: slope × change of the part.

    The lead is the logit of the answer less that of the rival, or log p of the answer where there is no rival. `by_point` has all
    numbers: of heads [head], of an MLP [], of the stream after a layer [token]. The others are those of the last stack.
    """

    to: To
    position: int
    answer: int
    rival: int | None
    lead: float  # in the run itself
    heads: np.ndarray  # float32 [layer, head]
    mlps: np.ndarray  # float32 [layer]
    resid: (
        np.ndarray | None
    )  # float32 [layer, token], of the stream after each layer; None where nothing is taken from another run
    by_point: Mapping[str, np.ndarray]
    last_stack: str
    acts: np.ndarray  # int64 [layer, head]: the token at which a head would change the lead most

    def of(self, part: Part) -> float:
        """The estimate of one part. Raises KeyError for one that has none."""
        found = self.by_point[part.point(self.last_stack)]
        return float(found if part.kind == "mlp" else found[part.at])

    @property
    def parts(self) -> tuple[Part, ...]:
        """Every part with an estimate, in the order of the pass."""
        found: list[Part] = []
        for point, numbers in self.by_point.items():
            stack, _, layer, *_ = point.split(".")
            if point.endswith("hook_mlp_out"):
                found.append(Part("mlp", int(layer), 0, stack))
            elif point.endswith("hook_z"):
                site = "cross_attn" if ".cross_attn." in point else "attn"
                found += [Part("head", int(layer), head, stack, site) for head in range(len(numbers))]
            else:
                found += [Part("resid", int(layer), token, stack) for token in range(len(numbers))]
        return tuple(found)

    def to_frame(self) -> frames.DataFrame:
        """A row for each part. Needs pandas."""
        parts = self.parts
        return frames.of_columns({**frames.columns_of(parts, Part), "estimate": [self.of(part) for part in parts]})


def estimate_parts(
    run: Trace,
    other: Trace | None,
    answer: int,
    rival: int | None = None,
    to: To = "other",
    position: int | None = None,
) -> Estimates:
    """The change of the lead by each head, each MLP and the stream at each token, of `answer` over `rival` after `position`
    (None: the last real token), if it gave what it gave in the other run, nothing ("zero"), or its mean over the text ("mean").

    To first order: Σ over tokens of ∂lead/∂part · (the part instead − the part), float32, from one forward and one backward pass of
    the run, and a forward pass of the other. Of an encoder and a decoder `by_point` has all three kinds of heads. An estimate may
    have the wrong sign: state no fact from it. Raises as patch_parts(), and TextError for an answer that may not follow.
    """
    sides = sides_of(run, other, to, position)
    return estimates_of(sides, slopes_of(sides, answer, rival))


@dataclass(frozen=True, eq=False)
class Slopes:
    """One forward and one backward pass of a run. By hook point, without the batch."""

    answer: int
    rival: int | None
    lead: float
    passed: Passed  # all that rows of patch_parts() join at, or the parts alone
    slopes: Mapping[str, Tensor]  # of the lead, at every part


def slopes_of(sides: Sides, answer: int, rival: int | None = None) -> Slopes:
    """The derivatives of the lead, by autograd. Raises TextError, TooLarge, and Outdated after a training."""
    forward, stem, loaded = sides.forward, sides.stem, sides.run.loaded
    for token in (answer, rival):
        check_token(loaded, token)
    tokens = len(sides.tokens) if stem is None else stem.n_computed * len(stem.ids)
    keys = len(sides.tokens) if stem is None else sides.position + 1
    what = f"The backward pass of a run of {keys:,} tokens"
    memory.admit_large(
        backward_bytes(forward, max(tokens, forward.prompt.target_len), keys), loaded.device, what, ADVICE
    )
    seen: dict[str, Tensor] = {}
    points = sides.part_points if stem is None else stem_points(forward)

    def begin(point: str, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()  # the tables before it need no gradients
        seen[point] = x
        return x

    def look(point: str, x: Tensor) -> None:
        seen[point] = x

    watched: dict[str, Hook] = {point: partial(look, point) for point in points}
    watched |= {
        point: partial(begin, point) for point in (f"{stack}.embed.hook_embed" for stack, _ in loaded.config.stacks)
    }
    forward.weights.check()
    with ExitStack() as contexts:
        contexts.enter_context(torch.inference_mode(False))
        contexts.enter_context(torch.enable_grad())
        contexts.enter_context(hooked(loaded.model, {}, outside=forward.outside))
        contexts.enter_context(hooked(loaded.model, forward.edits))
        contexts.enter_context(hooked(loaded.model, watched))
        if stem is None:
            final = loaded.model.last_residual(*model_inputs(forward.prompt, loaded.device))[:, : sides.position + 1]
        else:  # clones, since nothing that comes from inference can be kept for a backward pass
            stem = replace(stem, known=tuple((k.clone(), v.clone()) for k, v in stem.known))
            final = stem.run(decoder_of(forward))
        lead = lead_of(sides, head_of(loaded)(final[:1, -1:])[:, 0].float(), answer, rival)
        parts = [point for point in sides.part_points if sides.to == "other" or not point.endswith("hook_resid_post")]
        found = torch.autograd.grad(lead, [seen[point] for point in parts], allow_unused=True)
    forward.weights.check()  # a training may run meanwhile
    slopes = {
        point: torch.zeros_like(seen[point].detach()[0]) if slope is None else slope[0]
        for point, slope in zip(parts, found, strict=True)
    }
    return Slopes(answer, rival, lead.item(), passed_of(seen, final), slopes)


def lead_of(sides: Sides, logits: Tensor, answer: int, rival: int | None) -> Tensor:
    """From logits [1, vocab]: that of the answer less that of the rival, or log p of the answer. Raises TextError for -inf."""
    what = following(sides.run.loaded, sides.tokens, [sides.position])
    scores = allowed_scores(logits, what)[0]
    for token in (answer, rival):
        if token is not None and bool(scores[token].isneginf()):
            (label,) = labels_of(sides.run.loaded, [token])
            raise TextError(f"{label!r} may not follow this text, so its score cannot change. Choose another word.")
    return scores[answer] - scores[rival] if rival is not None else scores.log_softmax(-1)[answer]


def backward_bytes(forward: Pass, tokens: int, keys: int) -> int:
    """Bytes that a forward pass of so many tokens keeps for its backward pass at most, for activations alone; rarely more than
    half of it is."""
    config, by = forward.loaded.config, max(4, forward.loaded.dtype.itemsize)
    experts = config.n_experts_per_token * config.d_ff + config.d_shared
    hidden = max(config.d_ff, config.d_dense, experts if config.n_experts else 0)
    width = config.n_heads * (3 * config.d_head + 2 * config.value_width)
    maps = (
        4 * config.n_heads * keys if config.runs_in_steps or forward.is_eager or config.position != "rotary" else keys
    )
    layers = sum(n for _, n in config.stacks)
    each = 16 * config.d_model + 5 * width + 6 * hidden + maps
    prefix = 2 * keys * width
    return layers * (tokens * each + prefix) * by + 6 * config.vocab_size * 4


def estimates_of(sides: Sides, found: Slopes) -> Estimates:
    """Slope × change, of every part."""
    own, loaded = found.passed.own, sides.run.loaded
    given = sides.given(own, found.passed.theirs)
    n, first = len(sides.tokens), 0 if sides.stem is None else sides.stem.first
    by_point: dict[str, np.ndarray] = {}
    acts: dict[str, np.ndarray] = {}
    for point, slope in found.slopes.items():
        product = slope.float() * (given[point].float() - own[point].float())  # [head or none, pos, width]
        each = product.sum(-1)
        if point.endswith("hook_resid_post"):
            numbers = each.cpu().numpy()
            after = n - first - len(numbers)  # tokens after the one that is asked about
            by_point[point] = numbers if sides.stem is None else np.pad(numbers, (first, after))
        else:
            by_point[point] = each.sum(-1).cpu().numpy()
            acts[point] = each.abs().argmax(-1).cpu().numpy() + first
    last, n_layers = loaded.config.stacks[-1]

    def of_layers(end: str, numbers: Mapping[str, np.ndarray] = by_point) -> np.ndarray:
        return np.stack([numbers[f"{last}.blocks.{layer}.{end}"] for layer in range(n_layers)])

    return Estimates(
        sides.to,
        sides.position,
        found.answer,
        found.rival,
        found.lead,
        of_layers("attn.hook_z"),
        of_layers("hook_mlp_out"),
        of_layers("hook_resid_post") if sides.to == "other" else None,
        by_point,
        last,
        of_layers("attn.hook_z", acts),
    )


def run_order(found: Estimates, tokens: Sequence[int] = ()) -> tuple[tuple[Part, ...], ...]:
    """The groups that the last stack's parts are run in, for patch_parts(): the strongest heads by their estimates; the last third of
    the layers with MLPs, from the last down; the stream at `tokens`; and the other thirds. Without another run, the first two
    layers come second, because estimates are worst there.
    """
    n_layers, n_heads = found.heads.shape
    strength = np.abs(found.heads).ravel()
    strongest = [divmod(int(i), n_heads) for i in np.argsort(-strength, kind="stable")[:FIRST]]
    groups = [tuple(Part("head", layer, head) for layer, head in strongest)]
    done = set(strongest)

    def of_layers(layers: Sequence[int]) -> tuple[Part, ...]:
        parts: list[Part] = []
        for layer in layers:
            parts += [Part("head", layer, head) for head in range(n_heads) if (layer, head) not in done]
            parts.append(Part("mlp", layer))
        return tuple(parts)

    first = range(2) if found.to != "other" and n_layers > 2 else range(0)
    left = [layer for layer in reversed(range(n_layers)) if layer not in first]
    size = -(-n_layers // THIRDS)
    thirds = [of_layers(left[at : at + size]) for at in range(0, len(left), size)]
    words = tuple(Part("resid", layer, token) for layer in reversed(range(n_layers)) for token in tokens)
    groups += [of_layers(first), thirds[0], words, *thirds[1:]]
    return tuple(group for group in groups if group)
