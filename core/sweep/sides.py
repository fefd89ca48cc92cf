"""Two sides of a comparison: a run, and what each of its parts gives instead: as in another run, nothing, or its mean."""

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
from .growing import Stem, can_grow, held_bytes, stem_moments, stem_of
from .sweeps import check_same_model, read_last

To = Literal["other", "zero", "mean"]
PART_ENDS = ("attn.hook_z", "hook_mlp_out", "hook_resid_post")
ADVICE = "Try a shorter text, or a smaller model."


@dataclass(frozen=True, eq=False)
class Sides:
    """A run of one text, the token whose next word is asked about, and the source of what its parts give instead."""

    run: Trace
    forward: Pass  # of the run's text alone
    position: int
    to: To
    stem: Stem | None  # None: every row is an edited run of the whole text
    theirs: (
        Mapping[str, Tensor] | None
    )  # by hook point, what passed in the other run, without the batch; None where it is in the stem

    @property
    def tokens(self) -> Tokens:
        """The text whose next word is asked about."""
        return read_last(self.run)

    def given(self, own: Mapping[str, Tensor], beside: Mapping[str, Tensor] | None = None) -> Mapping[str, Tensor]:
        """By hook point, what each part gives instead of `own`: of every token, or one for all of them. `beside` is what passed in a
        text that ran beside the run."""
        theirs = self.theirs if self.theirs is not None else beside
        if theirs is not None:
            return theirs
        found = {point: x for point, x in own.items() if point.endswith(("attn.hook_z", "hook_mlp_out"))}
        if self.to == "zero":
            return {point: torch.zeros_like(x[..., :1, :]) for point, x in found.items()}
        return {point: self._mean(point, x) for point, x in found.items()}

    def _mean(self, point: str, x: Tensor) -> Tensor:
        """[..., pos, width] -> [..., 1, width], over the tokens of the text without padding."""
        tokens = self.run.source if point.startswith("encoder") else self.tokens
        real = ~torch.tensor(tokens.padding[: x.shape[-2]], device=x.device)
        return x[..., real, :].mean(-2, keepdim=True)

    @property
    def part_points(self) -> list[str]:
        """The hook points of all parts, in the order of the pass."""
        return [point for point in hook_points(self.run.loaded.model) if point.endswith(PART_ENDS)]


def sides_of(run: Trace, other: Trace | None, to: To, position: int | None) -> Sides:
    """The two sides of a comparison. Raises as patch_parts()."""
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
    (at,) = checked_positions(read_last(run), None if position is None else [position])
    forward = run.forward.of(run.index)
    theirs = None
    if other is not None and to == "other":
        check_same_model(run, other)
        if run.config.d_model != other.config.d_model:
            raise TextError(
                "A part's output can be taken from a run of the same model alone; this other model is of another width."
            )
        check_lengths(run, other)
        theirs = other.forward.of(other.index)
    last_real = checked_positions(read_last(run), None)[0]
    grows = can_grow(forward, at) and (theirs is None or can_grow(theirs, at)) and (to != "mean" or at == last_real)
    # Another model's first tokens are other vectors, so that nothing is shared with it.
    same = other is not None and theirs is not None and other.loaded.model is run.loaded.model
    first = first_difference(run.source, other.source, at) if other is not None and same else 0
    if not grows:
        return Sides(run, forward, at, to, None, None if theirs is None else whole_moments(theirs, run))
    memory.admit_large(
        held_bytes(forward, at + 1 - first, first, sides=theirs is not None),
        run.loaded.device,
        f"Keeping every part of a text of {at + 1:,} tokens",
        ADVICE,
    )
    stem = stem_of(run, at, first)
    if theirs is None:
        return Sides(run, forward, at, to, stem, None)
    if same:
        return Sides(run, forward, at, to, stem.beside(theirs), None)
    points = [point for point in hook_points(run.loaded.model) if point.endswith(PART_ENDS)]
    return Sides(run, forward, at, to, stem, stem_moments(theirs, stem.of(theirs), points).own)


def whole_moments(forward: Pass, run: Trace) -> dict[str, Tensor]:
    """The numbers that every part gives in a pass over one whole text."""
    config, prompt = forward.loaded.config, forward.prompt
    each = config.n_heads * config.value_width * 2 + 2 * config.d_model  # two attentions of a decoder with an encoder
    tokens = sum(
        n * length for (_, n), length in zip(config.stacks, (prompt.source_len, prompt.target_len), strict=False)
    )
    size = f"Keeping every part of a text of {prompt.source_len:,} tokens"
    memory.admit_large(tokens * each * forward.loaded.dtype.itemsize, forward.loaded.device, size, ADVICE)
    points = [point for point in hook_points(run.loaded.model) if point.endswith(PART_ENDS)]
    return forward.moments(points, lambda _, x: x[0].clone())


def check_lengths(run: Trace, other: Trace) -> None:
    """Raises TextError for texts whose tokens do not stand opposite each other."""
    pairs = [(run.source, other.source)]
    if run.target is not None and other.target is not None:
        pairs.append((run.target, other.target))
    for mine, theirs in pairs:
        a, b = (sum(not padding for padding in tokens.padding) for tokens in (mine, theirs))
        if a != b:
            raise TextError(
                f"These texts have {a:,} and {b:,} tokens, and each part is taken token by token. Write a text of {a:,} "
                'tokens, or take what heads give at the last token alone (patch_heads with "last").'
            )
        if mine.padding != theirs.padding:
            raise TextError(
                "These texts are padded at different places, so their tokens do not stand opposite each other. Run each by itself."
            )


def first_difference(mine: Tokens, theirs: Tokens, position: int) -> int:
    """The first token that is another one; the one asked about where none is."""
    pairs = zip(mine.ids, theirs.ids, mine.type_ids, theirs.type_ids, strict=True)
    return next((i for i, (a, b, c, d) in enumerate(pairs) if (a, c) != (b, d) and i < position), position)
