"""Counterfactual: a run, and the values that its components are set to: those of another run, zero, or the mean over the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .. import memory
from ..errors import InterventionError, TextError
from ..model.hooks import hook_points
from ..model.text import Tokens
from ..run.forward_pass import Pass
from ..run.predictions import checked_positions, head_of
from ..run.trace import Trace
from .growing import SharedPrefix, can_grow, held_bytes, prefix_activations, shared_prefix_of
from .sweeps import check_lengths, check_same_model, final_token_input

To = Literal["other", "zero", "mean"]
COMPONENT_ENDS = ("attn.hook_z", "hook_mlp_out", "hook_resid_post")
ADVICE = "Try a shorter text, or a smaller model."


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """A run of one text, the position whose prediction is studied, and the source of the replacement values."""

    run: Trace
    forward: Pass  # of this text of the run
    position: int
    to: To
    prefix: SharedPrefix | None  # None: every row is an edited run of the whole text
    # Activations of the other run by hook point, without the batch axis; None if its text is in the prefix, or there is none.
    other_activations: Mapping[str, Tensor] | None

    @property
    def tokens(self) -> Tokens:
        """The text whose next token is studied."""
        return final_token_input(self.run)

    def replacements(
        self, own: Mapping[str, Tensor], other: Mapping[str, Tensor] | None = None
    ) -> Mapping[str, Tensor]:
        """Return what replaces the activations `own`, by hook point: for every token, or one value for all of them. `other` are the
        activations of a counterfactual text that ran in the same pass."""
        values = self.other_activations if self.other_activations is not None else other
        if values is not None:
            return values
        outputs = {point: x for point, x in own.items() if point.endswith(("attn.hook_z", "hook_mlp_out"))}
        if self.to == "zero":
            return {point: torch.zeros_like(x[..., :1, :]) for point, x in outputs.items()}
        return {point: self._mean(point, x) for point, x in outputs.items()}

    def _mean(self, point: str, x: Tensor) -> Tensor:
        """[..., pos, width] -> [..., 1, width], the mean over the tokens of the text without padding."""
        tokens = self.run.source if point.startswith("encoder") else self.tokens
        real = ~torch.tensor(tokens.padding[: x.shape[-2]], device=x.device)
        return x[..., real, :].mean(-2, keepdim=True)


def component_points(run: Trace) -> list[str]:
    """The hook points of all components of a run's model, in the order of the pass."""
    return [point for point in hook_points(run.loaded.model) if point.endswith(COMPONENT_ENDS)]


def counterfactual_of(run: Trace, other: Trace | None, to: To, position: int | None) -> Counterfactual:
    """Pair a run with the values that replace its activations. Raises as patch_components()."""
    _check_patchable(run, other, to, position)
    (at,) = checked_positions(final_token_input(run), None if position is None else [position])
    forward, other_forward = run.forward.of(run.index), None
    if other is not None and to == "other":
        _check_counterparts(run, other)
        other_forward = other.forward.of(other.index)
    (last_real,) = checked_positions(final_token_input(run), None)
    passes = [forward] if other_forward is None else [forward, other_forward]
    if not all(can_grow(each, at) for each in passes) or (to == "mean" and at != last_real):
        whole = None if other_forward is None else whole_activations(other_forward, run)
        return Counterfactual(run, forward, at, to, None, whole)
    return Counterfactual(run, forward, at, to, *_prefix_of(run, at, other, other_forward))


def _prefix_of(
    run: Trace, at: int, other: Trace | None, other_forward: Pass | None
) -> tuple[SharedPrefix, dict[str, Tensor] | None]:
    """The prefix of a run up to a position, with the counterfactual text; and the activations of the other run if its model is another.

    Other weights have other activations from the first token on, so a prefix is shared only within one model.
    """
    is_same_model = other is not None and other_forward is not None and other.loaded.model is run.loaded.model
    first = first_difference(run.source, other.source, at) if other is not None and is_same_model else 0
    needed = held_bytes(run.forward.of(run.index), at + 1 - first, first, sides=other_forward is not None)
    memory.admit_large(needed, run.loaded.device, f"Keeping every part of a text of {at + 1:,} tokens", ADVICE)
    prefix = shared_prefix_of(run, at, first)
    if other_forward is None:
        return prefix, None
    if is_same_model:
        return prefix.with_counterfactual(other_forward), None
    own_prefix = prefix.of_other_model(other_forward)
    return prefix, dict(prefix_activations(other_forward, own_prefix, component_points(run)).own)


def _check_patchable(run: Trace, other: Trace | None, to: To, position: int | None) -> None:
    """Raise Refused in its kinds unless components of the run can be replaced as requested."""
    run.require_model("what its parts give, which runs the model,")
    if to not in ("other", "zero", "mean"):
        raise InterventionError(f"A part is set to what it gives in the other run, to zero or to its mean, not {to!r}.")
    if to == "other" and other is None:
        raise TextError('Parts are taken from another run: give one as `other`, or choose to="zero" or to="mean".')
    if run.loaded.model.head is None or (run.config.kind == "encoder" and position is None):
        raise TextError(
            f"{run.spec.title} writes no next word, so there is no answer whose score a part could change. Try a language model"
            + ("." if run.loaded.model.head is None else ", or name the position of the word that it is to find.")
        )
    head_of(run.loaded)


def _check_counterparts(run: Trace, other: Trace) -> None:
    """Raise TextError unless both runs are of models of one shape and of texts of one length."""
    check_same_model(run, other)
    if run.config.d_model != other.config.d_model:
        raise TextError(
            "A part's output can be taken from a run of the same model alone; this other model is of another width."
        )
    check_lengths(run, other)


def whole_activations(forward: Pass, run: Trace) -> dict[str, Tensor]:
    """Return the outputs of all components in a pass over one whole text."""
    config, prompt = forward.loaded.config, forward.prompt
    each = config.n_heads * config.value_width * 2 + 2 * config.d_model  # a decoder with an encoder has two attentions
    lengths = (prompt.source_len, prompt.target_len)
    tokens = sum(n * length for (_, n), length in zip(config.stacks, lengths, strict=False))
    size = f"Keeping every part of a text of {prompt.source_len:,} tokens"
    memory.admit_large(tokens * each * forward.loaded.dtype.itemsize, forward.loaded.device, size, ADVICE)
    return forward.moments(component_points(run), lambda _, x: x[0].clone())


def first_difference(own: Tokens, other: Tokens, position: int) -> int:
    """Index of the first token that differs; `position` if none before it does."""
    pairs = zip(own.ids, other.ids, own.type_ids, other.type_ids, strict=True)
    return next((i for i, (a, b, c, d) in enumerate(pairs) if (a, c) != (b, d) and i < position), position)
