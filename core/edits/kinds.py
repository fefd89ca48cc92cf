"""Kinds of edits: head outputs, scores, masks, positions and tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

import torch
from torch import Tensor

from ..errors import InterventionError
from ..model.custom_mask import Cells, Region, Spans
from ..model.hooks import Hook
from ..model.rules import MaskRule, ScoreRule
from ..model.transformer import Transformer
from .edit import (
    HIGHEST,
    AnyHead,
    AnyLayer,
    AnySite,
    AnyStack,
    Distances,
    Edit,
    Move,
    Number,
    OneHead,
    OneLayer,
    OneSite,
    OneStack,
    Paint,
    Places,
    Several,
    SingleCells,
    StackName,
    Whole,
    Word,
    attentions_of,
    check_head,
    one_stack_of,
    rule_hooks,
    stacks_of,
)


@dataclass(frozen=True, repr=False)
class Ablate(Edit, word="ablate"):
    """Ablate one head: its output z becomes zero, so that it adds nothing to the residual stream.

    With to="mean" its output at every position becomes the mean over the tokens of the text, without padding. In a decoder that mean
    depends on later tokens.
    """

    stack: OneStack
    layer: OneLayer
    head: OneHead
    site: OneSite = "attn"
    to: Annotated[Literal["zero", "mean"], Word({"zero": "zero", "mean": "mean"})] = "zero"

    @property
    def sees_ahead(self) -> bool:
        return self.to == "mean"

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        check_head(model, self.head)
        (attention,) = attentions_of(model, self.stack, self.layer, self.site)
        if self.to == "zero":
            return {f"{attention}.hook_z": _of_head(self.head, torch.zeros_like)}
        # The real tokens [batch, query] of the mask of this layer's self-attention. Passes in several threads may share the edit,
        # each with its own batch.
        batch = threading.local()

        def read_mask(rule: ScoreRule) -> None:
            batch.real = rule.mask.keep

        def mean(z: Tensor) -> Tensor:  # [batch, query, d_head]
            if batch.real is None:
                return z.mean(1, keepdim=True)
            counted = batch.real[..., None].to(z.dtype)
            return (z * counted).sum(1, keepdim=True) / counted.sum(1, keepdim=True)

        return {
            f"{self.stack}.blocks.{self.layer}.attn.hook_rule": read_mask,
            f"{attention}.hook_z": _of_head(self.head, mean),
        }


@dataclass(frozen=True, repr=False)
class ScaleHead(Edit, word="scale"):
    """Scale the output of one head by `factor`: 0 is zero ablation, 2 doubles it, -1 inverts it."""

    factor: Annotated[float, Number()]
    stack: OneStack
    layer: OneLayer
    head: OneHead
    site: OneSite = "attn"

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        check_head(model, self.head)
        (attention,) = attentions_of(model, self.stack, self.layer, self.site)
        return {f"{attention}.hook_z": _of_head(self.head, lambda z: z * self.factor)}


@dataclass(frozen=True, repr=False)
class NoScale(Edit, word="noscale"):
    """Remove the factor 1/√d_head, so that scores grow with d_head and the softmax saturates. None means all."""

    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return rule_hooks(self, model, lambda rule: replace(rule, scale=1.0))


@dataclass(frozen=True, repr=False)
class Temperature(Edit, word="temperature"):
    """Divide the scores by `value` before the softmax: below 1 sharpens, above 1 flattens. None means all."""

    value: Annotated[float, Number(above=0)]
    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return rule_hooks(self, model, lambda rule: replace(rule, temperature=rule.temperature * self.value))


def _of_head(head: int, change: Callable[[Tensor], Tensor]) -> Hook:
    """A hook of z [batch, query, head, d_head] that changes one head's [batch, query, d_head]."""

    def edit(z: Tensor) -> Tensor:
        changed = change(z[:, :, head])
        z = z.clone()
        z[:, :, head] = changed
        return z

    return edit


HIDES: Word = Word({"forbid": False, "allow": True})


@dataclass(frozen=True, repr=False)
class EditMask(Edit, word="mask"):
    """Hide cells of the mask (attention knockout), or make them visible, in one head, layer and stack or (None) in all.

    The cells are `queries` × `keys`, each an int, a range or several of them (None: all); or single `cells` (query, key); or all cells
    whose distance, key − query, is from the first to the last of `distances`: (1, None) is the future, (None, -3) all keys at least
    three positions back. Later edits override earlier ones, and this edit overrides the model's mask, padding, SetMask and Window.
    A query without visible keys has a row of zeros.
    """

    stack: AnyStack = None
    layer: AnyLayer = None
    queries: Annotated[int | range | Sequence[int | range] | None, Several("q")] = None
    keys: Annotated[int | range | Sequence[int | range] | None, Several("k")] = None
    allowed: Annotated[bool, HIDES] = False
    head: AnyHead = None
    site: OneSite = "attn"
    cells: Annotated[Sequence[tuple[int, int | range]], SingleCells()] = ()
    distances: Annotated[tuple[int | None, int | None] | None, Distances()] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        named = self.queries is not None or self.keys is not None
        if named + bool(self.cells) + (self.distances is not None) != 1:
            raise InterventionError(
                "An edit of the mask says which cells it means in one way: queries and keys, or single cells, or distances. "
                "Make two edits of it to say more."
            )

    @property
    def region(self) -> Region:
        """The cells to edit."""
        queries, keys, cells = cast(Spans, self.queries), cast(Spans, self.keys), cast(Cells, self.cells)
        return Region(self.allowed, self.head, queries, keys, cells, self.distances)

    @property
    def sees_ahead(self) -> bool:
        return self.region.allows_future

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        check_head(model, self.head)
        return rule_hooks(self, model, Paint((self.region,), model.config.n_heads))


@dataclass(frozen=True, repr=False)
class AsPadding(Edit, word="aspadding"):
    """Treat some tokens as padding: no query attends to them, in any layer or head. Positions do not change.

    In an encoder-decoder the tokens are those of `stack`. Tokens of the encoder are hidden from cross-attention as well.
    """

    tokens: Annotated[int | range | Sequence[int | range], Several("t")]
    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        stack = one_stack_of(model, self.stack, "tokens")
        region = Region(allowed=False, keys=cast(Spans, self.tokens))
        paint = Paint((region,), model.config.n_heads)
        attentions = attentions_of(model, stack, None, "attn")
        if stack == "encoder" and model.decoder is not None:
            attentions += attentions_of(model, "decoder", None, "cross_attn")
        return {f"{name}.hook_rule": paint for name in attentions}


@dataclass(frozen=True, repr=False)
class SetMask(Edit, word="setmask"):
    """Replace the mask: "none" hides nothing, "causal" the future, "window" keys at a distance of `size` or more.

    A window remains causal if the mask is. Padding stays hidden. None means every layer, head or stack.
    """

    kind: Annotated[Literal["none", "causal", "window"], Word({"none": "none", "causal": "causal", "window": "window"})]
    size: Annotated[int | None, Whole(lowest=1)] = None
    stack: AnyStack = None
    layer: AnyLayer = None
    head: AnyHead = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.size is None) == (self.kind == "window"):
            raise InterventionError(
                "SetMask has a size where the kind is window, and only there: SetMask('window', 8), SetMask('causal')."
            )

    @property
    def sees_ahead(self) -> bool:
        return self.kind == "none"

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        if self.kind == "window":
            return _order_hooks(self, model, lambda causal, _: (causal, self.size))
        return _order_hooks(self, model, lambda *_: (self.kind == "causal", None))


@dataclass(frozen=True, repr=False)
class Window(Edit, word="window"):
    """Restrict each query to the last `size` tokens, itself included. Hidden keys stay hidden. None means every layer, head or stack."""

    size: Annotated[int, Whole(lowest=1)]
    stack: AnyStack = None
    layer: AnyLayer = None
    head: AnyHead = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return _order_hooks(
            self, model, lambda causal, window: (causal, self.size if window is None else min(window, self.size))
        )


@dataclass(frozen=True, repr=False)
class DropCausalMask(Edit, word="nocausal"):
    """Make the future visible to every query of the decoder, in one layer or (None) in all."""

    layer: AnyLayer = None

    @property
    def sees_ahead(self) -> bool:
        return True

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        if model.decoder is None:
            raise InterventionError("This model is an encoder: it has no causal mask to drop.")
        if not model.config.causal:
            raise InterventionError("This model's decoder reads both ways: it has no causal mask to drop.")

        def free(mask: MaskRule) -> MaskRule:
            orders = {head: (False, window) for head, (_, window) in mask.by_head.items()}
            return replace(mask, causal=False, by_head=orders)

        return _mask_hooks(attentions_of(model, "decoder", self.layer, "attn"), free)


@dataclass(frozen=True, repr=False)
class DropPadding(Edit, word="nopadding"):
    """Make padding visible like any other token, to show the purpose of the padding mask. Positions do not change."""

    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return rule_hooks(self, model, lambda rule: replace(rule, mask=replace(rule.mask, keep=None)))


@dataclass(frozen=True, repr=False)
class MaskAfterSoftmax(Edit, word="aftersoftmax"):
    """Apply the mask after the softmax, a common mistake: hidden weights become 0, and rows no longer sum to 1."""

    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    @property
    def sees_ahead(self) -> bool:
        return True  # hidden keys take part in the softmax

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return rule_hooks(self, model, lambda rule: replace(rule, mask_after_softmax=True))


@dataclass(frozen=True, repr=False)
class MaskFill(Edit, word="fill"):
    """Set hidden scores to a finite value instead of -inf. With -1e9 a query without visible keys attends to all keys equally."""

    value: Annotated[float, Number()] = -1e9
    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    @property
    def sees_ahead(self) -> bool:
        return True  # finite hidden scores have weights

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return rule_hooks(self, model, lambda rule: replace(rule, mask_value=self.value))


def _order_hooks(
    edit: SetMask | Window, model: Transformer, change: Callable[[bool, int | None], tuple[bool, int | None]]
) -> Mapping[str, Hook]:
    """Hooks that change (causal, window) of the selected self-attentions, of one head or of all."""
    check_head(model, edit.head)

    def ordered(mask: MaskRule) -> MaskRule:
        if edit.head is not None:
            order = change(*mask.by_head.get(edit.head, (mask.causal, mask.window)))
            return replace(mask, by_head={**mask.by_head, edit.head: order})
        causal, window = change(mask.causal, mask.window)
        orders = {head: change(*order) for head, order in mask.by_head.items()}
        return replace(mask, causal=causal, window=window, by_head=orders)

    return _mask_hooks(attentions_of(model, edit.stack, edit.layer, "attn"), ordered)


def _mask_hooks(attentions: list[str], change: Callable[[MaskRule], MaskRule]) -> Mapping[str, Hook]:
    return {f"{name}.hook_rule": lambda rule: replace(rule, mask=change(rule.mask)) for name in attentions}


@dataclass(frozen=True, repr=False)
class DropPositions(Edit, word="nopositions"):
    """Remove the positions of one stack or (None) of all. Masks do not change.

    Learned and sinusoidal vectors are not added. Rotary, ALiBi and relative positions all become 0, so that all distances are 0.
    """

    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        stacks = stacks_of(model, self.stack)
        if model.config.has_position_table:
            return {f"{stack}.embed.hook_position": torch.zeros_like for stack in stacks}
        return {f"{stack}.hook_positions": Move(torch.zeros_like) for stack in stacks}


@dataclass(frozen=True, repr=False)
class ShufflePositions(Edit, word="shuffle"):
    """Shuffle the positions of the real tokens, in the same way for texts of the same length. Masks, and with them padding, do not change."""

    seed: Annotated[int, Whole()] = 0
    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        def shuffle(places: Tensor) -> Tensor:
            generator = torch.Generator().manual_seed(self.seed)
            return places[torch.randperm(len(places), generator=generator).to(places.device)]

        return _move_hooks(model, self.stack, shuffle)


@dataclass(frozen=True, repr=False)
class SetPositions(Edit, word="positions"):
    """Set the position of every real token: places[i] is that of the i-th. Positions may repeat.

    The run raises InterventionError for a text with another number of tokens, or a position beyond a learned table.
    """

    places: Annotated[Sequence[int | range], Places()]
    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        stack = one_stack_of(model, self.stack, "positions")

        def given(places: Tensor) -> Tensor:
            if len(places) != len(self.places):
                raise InterventionError(
                    f"{len(self.places)} positions are given, and the text has {len(places)} tokens. Give one for each."
                )
            return torch.tensor(self.places, device=places.device, dtype=places.dtype)

        return _move_hooks(model, stack, given)


@dataclass(frozen=True, repr=False)
class ShiftPositions(Edit, word="shift"):
    """Shift every token by `by` positions, as if other text preceded it. Negative values shift back.

    The run raises InterventionError for positions beyond a learned or sinusoidal table.
    """

    by: Annotated[int, Whole(lowest=-HIGHEST)]
    stack: AnyStack = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return _move_hooks(model, self.stack, lambda places: places + self.by)


def _move_hooks(model: Transformer, stack: StackName | None, to: Callable[[Tensor], Tensor]) -> Mapping[str, Hook]:
    def checked(places: Tensor) -> Tensor:  # [token]
        moved = to(places)
        n = model.config.n_ctx
        if model.config.has_position_table and not (int(moved.min()) >= 0 and int(moved.max()) < n):
            raise InterventionError(
                f"These positions go from {int(moved.min())} to {int(moved.max())}, and the model's table has 0 to {n - 1}. "
                "Stay within it, or choose a model with rotary or relative positions."
            )
        return moved

    return {f"{name}.hook_positions": Move(checked) for name in stacks_of(model, stack)}


@dataclass(frozen=True, repr=False)
class SwapWords(Edit, word="swap"):
    """Swap two tokens of a stack, at the indices `first` and `second`.

    All activations are those of a run on the swapped ids. Positions and masks do not change, and labels, ids and losses of the run are
    those of the original text. Only the embeddings are swapped, so that a model that derives positions from ids (RoBERTa) is not
    affected otherwise.

    Raises InterventionError for two equal indices, and in the run for an index beyond the text.
    """

    first: Annotated[int, Whole("a")]
    second: Annotated[int, Whole("b")]
    stack: AnyStack = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first == self.second:
            raise InterventionError(f"SwapWords has the place {self.first} twice: give two tokens, SwapWords(1, 3).")

    @property
    def sees_ahead(self) -> bool:
        return True

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        return {f"{one_stack_of(model, self.stack, 'words')}.embed.hook_token": self._swapped}

    def _swapped(self, x: Tensor) -> Tensor:  # [batch, pos, d_embed]
        n, last = x.shape[1], max(self.first, self.second)
        if n == 1 and last > 0:
            return x  # the next token in generation, after the swap
        if last >= n:
            raise InterventionError(f"There is no token {last} to swap: this text has tokens 0 to {n - 1}.")
        order = torch.arange(n, device=x.device)
        order[[self.first, self.second]] = order[[self.second, self.first]]
        return x[:, order]
