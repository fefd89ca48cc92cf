"""Edits of the mask: regions of cells, causal masks and windows, padding, and the way hidden scores are masked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

from ..errors import InterventionError
from ..model.hooks import Hook
from ..model.mask_edits import Cells, Region, Spans
from ..model.rules import MaskRule
from ..model.transformer import Transformer
from .edit import Edit, Paint, attentions_of, check_head, one_stack_of, rule_hooks
from .fields import AnyHead, AnyLayer, AnySite, AnyStack, Distances, Number, OneSite, Several, SingleCells, Whole, Word

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
