"""Edits of the mask: single looks, whole keys and windows by hand, another order for all, padding, and where the mask comes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

from ..errors import InterventionError
from ..model.hooks import Hook
from ..model.mask_edits import Cells, Region, Spans
from ..model.rules import MaskRule
from ..model.transformer import Transformer
from .edit import Edit, Paint, attentions_of, check_head, one_stack_of
from .fields import AnyHead, AnyLayer, AnySite, AnyStack, Distances, Number, OneSite, Several, SingleCells, Whole, Word

HIDES: Word = Word({"forbid": False, "allow": True})


@dataclass(frozen=True, repr=False)
class EditMask(Edit, word="mask"):
    """Let some queries look at some keys, or forbid it, in one head, layer and stack or (None) in all of them.

    Which cells: `queries` × `keys`, each an int, a range or several of them, where None means every one; or single `cells`
    (query, key); or every cell whose distance, key − query, lies from the first to the last of `distances`: (1, None) is the
    future, (None, -3) what is three or more back. A later edit wins where two overlap, and a mask edited by hand lies over the
    model's own, over padding, and over SetMask and Window. A query that may look at nothing has a row of zeros.
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
        """The cells that are meant."""
        queries, keys, cells = cast(Spans, self.queries), cast(Spans, self.keys), cast(Cells, self.cells)
        return Region(self.allowed, self.head, queries, keys, cells, self.distances)

    @property
    def sees_ahead(self) -> bool:
        return self.region.allows_future

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        check_head(model, self.head)
        paint = Paint((self.region,), model.config.n_heads)
        return {f"{name}.hook_rule": paint for name in attentions_of(model, self.stack, self.layer, self.site)}


@dataclass(frozen=True, repr=False)
class AsPadding(Edit, word="aspadding"):
    """Treat some tokens as padding: no query looks at them, in any layer or head. Positions stay as they are.

    In an encoder-decoder the tokens are those of `stack`, and the decoder does not look at the encoder's either.
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
    """Another order of who sees whom: none hides nothing, causal hides the future, window what is `size` or more away.

    A window keeps to the past where the mask so far does. Padding stays hidden. None means every layer, head or stack.
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
    """Let each query look no further than `size` tokens, itself counted; what is hidden already stays hidden.

    None means every layer, head or stack.
    """

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
    """Let every query of the decoder look at the future as well, in one layer or (None) in all."""

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
    """Let padding be looked at like any other token, to see what the padding mask is for. Positions stay as they are."""

    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        names = attentions_of(model, self.stack, self.layer, self.site)
        return _mask_hooks(names, lambda mask: replace(mask, keep=None))


@dataclass(frozen=True, repr=False)
class MaskAfterSoftmax(Edit, word="aftersoftmax"):
    """Put the mask after the softmax, where it does not belong: hidden weights become 0, and rows no longer sum to 1."""

    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    @property
    def sees_ahead(self) -> bool:
        return True  # what is hidden has its share of the softmax first

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        names = attentions_of(model, self.stack, self.layer, self.site)
        return {f"{name}.hook_rule": lambda rule: replace(rule, mask_after_softmax=True) for name in names}


@dataclass(frozen=True, repr=False)
class MaskFill(Edit, word="fill"):
    """Give hidden scores a finite value instead of -inf: with -1e9 a query that may see nothing looks at all keys alike."""

    value: Annotated[float, Number()] = -1e9
    stack: AnyStack = None
    layer: AnyLayer = None
    site: AnySite = None

    @property
    def sees_ahead(self) -> bool:
        return True  # a hidden score that is finite has a weight

    def hooks(self, model: Transformer) -> Mapping[str, Hook]:
        names = attentions_of(model, self.stack, self.layer, self.site)
        return {f"{name}.hook_rule": lambda rule: replace(rule, mask_value=self.value) for name in names}


def _order_hooks(
    edit: SetMask | Window, model: Transformer, change: Callable[[bool, int | None], tuple[bool, int | None]]
) -> Mapping[str, Hook]:
    """Hooks that change (causal, window) of the self-attentions that an edit means: of one head, or of all of them."""
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
