"""Lineage: the origins of the tensors of a pass, which tell self-attention from cross-attention; and CallPaths: the submodules
that the pass is in, which give an attention its name and layer."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

Site = Literal["attn", "cross_attn", "unknown"]

RESHAPES = ("reshape", "view")
PRODUCTS = ("matmul", "__matmul__", "bmm", "baddbmm", "einsum")
JOINS = (
    "cat",
    "concat",
    "concatenate",
    "stack",
    "hstack",
    "vstack",
)  # parameters in them are data, such as learned queries
WRITES = ("__setitem__",)  # they change their first argument and return nothing


class Origin:
    """How a tensor was computed. It references no tensor, so it keeps none alive."""

    __slots__ = ("at", "is_attention", "is_product", "is_projected", "parents", "shape_before")

    def __init__(self, at: int = -1, parents: tuple[Origin, ...] = ()) -> None:
        self.at = at  # number of the operation; −1: before the first
        self.parents = parents
        self.is_projected = False  # by parameters: a linear map, a convolution
        self.is_attention = False  # output of an attention, which mixes sequences: the search ends here
        self.is_product = False  # of two tensors that are not parameters, such as queries and keys
        self.shape_before: tuple[int, ...] | None = None  # of the tensor that it is a reshape of


class Lineage:
    """The origins of all tensors that torch functions returned since it was created."""

    def __init__(self, module: nn.Module) -> None:
        self.origins: Any = WeakIdKeyDictionary()  # Tensor -> Origin
        self.now = 0
        self.buffers = {id(x) for x in module.buffers()}  # tables that are added to any sequence

    def origin(self, x: Tensor) -> Origin:
        origin = self.origins.get(x)
        if origin is None:
            origin = self.origins[x] = Origin()
        return origin

    def made(self, func: Callable[..., Any], args: Any, kwargs: Any, out: Any) -> Origin | None:
        """Record the origin of the results of a function; None if it returned no tensor."""
        name = getattr(func, "__name__", "")
        results = tensors(args[:1]) if name in WRITES else tensors(out)
        if not results:
            return None
        given = tensors((args, kwargs))
        weights = [] if name in JOINS else [x for x in given if isinstance(x, nn.Parameter)]
        data = self._data(given, weights)
        floats = [x for x in data if x.is_floating_point()]
        origin = Origin(self.now, tuple(map(self.origin, data)))
        origin.is_projected = bool(floats) and any(x.ndim > 1 for x in weights)
        if name in PRODUCTS:
            origin.is_product = sum(x.ndim > 2 for x in floats) > 1
        elif name in RESHAPES:
            origin.shape_before = tuple(given[0].shape)
        self.now += 1
        for x in results:
            self.origins[x] = origin
        return origin

    def _data(self, given: list[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
        """The arguments that are neither parameters nor buffers; the first one if there are no others."""
        skipped = {id(x) for x in weights}
        return [x for x in given if id(x) not in skipped and id(x) not in self.buffers] or given[:1]

    def forget(self) -> None:
        """End of a pass: tensors that outlive it, such as a cache, become origins of their own."""
        for origin in self.origins.values():
            origin.at, origin.parents = -1, ()

    def site(self, query: Tensor, key: Tensor, since: Iterable[int], projected: bool = False) -> Site:
        """ "attn" if queries and keys come from one sequence, "cross_attn" if from two.

        `since` has the first operation of every submodule that the call is in, innermost first. The innermost submodule in
        which both were projected by parameters decides. If the keys come from no other tensor than the queries, it is
        self-attention. Two tensors are two sequences, unless the next outer submodule computed both from one. With
        `projected`, query and key are the tensors before the projection.
        """
        if _same_memory(query, key):
            return "attn"
        bounds = [*since, 0]
        for i, bound in enumerate(bounds):
            of_q, of_k = (self._sources(x, bound, projected) for x in (query, key))
            if not of_q or not of_k:
                continue
            if of_k <= of_q:
                return "attn"
            if of_k & of_q:
                return "unknown"
            around = bounds[min(i + 1, len(bounds) - 1)]
            of_q, of_k = (self._sources(x, around, projected) for x in (query, key))
            return "attn" if of_k and of_k == of_q else "cross_attn"
        if not projected:
            of_q, of_k = (self._sources(x, bounds[0], True) for x in (query, key))
            if of_q == of_k:
                return "attn"
        return "unknown"

    def is_written_out(self, x: Tensor, since: int) -> bool:
        """True if a softmax of x is attention computed by hand: x is a product of two tensors, perhaps scaled and masked."""
        queue, seen = [self.origin(x)], set()
        while queue:
            origin = queue.pop()
            if origin.is_product:
                return True
            if origin in seen or origin.at < since or origin.is_projected or origin.is_attention:
                continue
            seen.add(origin)
            queue += origin.parents
        return False

    def _sources(self, x: Tensor, since: int, projected: bool) -> set[Origin]:
        """Tensors from before operation `since`, and outputs of attentions, that were projected on their way to x.

        A tensor computed since from no other, such as position numbers, is not a sequence.
        """
        sources: set[Origin] = set()
        queue, seen = [(self.origin(x), projected)], set()
        while queue:
            origin, is_projected = item = queue.pop()
            if item in seen:
                continue
            seen.add(item)
            if origin.at >= since and not origin.is_attention:
                queue += [(parent, is_projected or origin.is_projected) for parent in origin.parents]
            elif is_projected:
                sources.add(origin)
        return sources


def _same_memory(query: Tensor, key: Tensor) -> bool:
    """True if the queries are the keys, or a view of some of them."""
    if query is key:
        return True
    if query.device != key.device or not query.numel() or not key.numel():
        return False
    (q_start, q_stop), (k_start, k_stop) = _memory(query), _memory(key)
    return k_start <= q_start and q_stop <= k_stop


def _memory(x: Tensor) -> tuple[int, int]:
    """Addresses of the first byte of a tensor and of the byte after the last."""
    last = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return x.data_ptr(), x.data_ptr() + (last + 1) * x.element_size()


@dataclass(frozen=True)
class BlockPlace:
    """The place of a block in a list of blocks."""

    container: str
    numbers: tuple[int, ...]  # its index; several if the same block is in the list several times
    n: int  # number of blocks in the list


@dataclass
class Visits:
    """The blocks of one list that a pass through the owner of the list has entered."""

    counts: Counter[str] = field(default_factory=Counter)
    last: str | None = None
    number: int | None = None  # layer of the last block
    shares: bool = False  # a block followed itself, so several layers share its weights
    left: list[weakref.ref[Tensor]] = field(default_factory=list)  # outputs of the last block

    def enter(self, name: str, place: BlockPlace, given: list[Tensor]) -> int | None:
        """The layer of this call of a block; None if unknown."""
        before, again = self.counts[name], name == self.last
        self.counts[name] += 1
        number, *later = place.numbers
        if later:
            number = place.numbers[before] if before < len(place.numbers) else None
        elif again or self.shares:
            # The next layer, if its input is the last one's output. Otherwise it may be the first layer of another text.
            self.shares = True
            goes_on = any(output() is x for output in self.left for x in given)
            number = self.number + 1 if goes_on and self.number is not None else None
        self.last, self.number = name, number
        return number


@dataclass
class Frame:
    """A submodule that the pass is in."""

    name: str
    since: int  # its first operation, by its number in the Lineage
    place: BlockPlace | None = None
    number: int | None = None  # its layer, if it is a block of a list
    counts: bool = False  # True if the number distinguishes it from other blocks
    visits: dict[str, Visits] = field(default_factory=dict)


class CallPaths:
    """The submodules that a pass is in, outermost first, maintained by hooks of all of them."""

    def __init__(self, module: nn.Module) -> None:
        self.places = dict(_places(module))
        self.outside = Frame("", 0)
        self.frames: list[Frame] = []
        self.entered = 0  # number of submodule calls

    @property
    def name(self) -> str:
        """Path of the innermost submodule; "" for the module itself, or outside of it."""
        return self.frames[-1].name if self.frames else ""

    def enter(self, name: str, given: Any, since: int) -> None:
        owner = self.frames[-1] if self.frames else self.outside
        frame = Frame(name, since, self.places.get(name))
        if frame.place is not None:
            visits = owner.visits.setdefault(frame.place.container, Visits())
            frame.number = visits.enter(name, frame.place, tensors(given))
            frame.counts = frame.place.n > 1 or visits.shares
        self.frames.append(frame)
        self.entered += 1

    def leave(self, returned: Any) -> None:
        frame = self.frames.pop()
        owner = self.frames[-1] if self.frames else self.outside
        if frame.place is not None:
            owner.visits[frame.place.container].left = [weakref.ref(x) for x in tensors(returned)]

    def layer(self, n_heads: int) -> int | None:
        """Number of the block that the pass is in, from 0; None outside of blocks and in blocks of blocks.

        A block is an element of an nn.ModuleList or nn.Sequential of several of its kind. A block that runs several times in
        a row, each time on its own output, counts as that many layers. A list of attentions with one head each may be heads
        or layers, so it does not count.
        """
        blocks = [frame for frame in self.frames if frame.place is not None]
        if n_heads == 1 and blocks and blocks[-1] is self.frames[-1] and blocks[-1].counts:
            blocks.pop()
        telling = [frame for frame in blocks if frame.counts]
        if len(telling) > 1 or not blocks:
            return None
        return (telling or blocks)[0].number


def tensors(value: Any) -> list[Tensor]:
    """The tensors in nested arguments or results."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [x for part in value for x in tensors(part)]


def _places(module: nn.Module) -> Iterator[tuple[str, BlockPlace]]:
    """(path, place) of each submodule that is a block of exactly one list."""
    names = {child: name for name, child in module.named_modules()}
    places: dict[str, BlockPlace | None] = {}
    for container, name in names.items():
        if isinstance(container, nn.ModuleList | nn.Sequential):
            for block in dict.fromkeys(container):
                place = _place(name, container, list(container), block)
                if place is not None:  # a block of two lists has no number
                    places[names[block]] = None if names[block] in places else place
    return ((name, place) for name, place in places.items() if place is not None)


def _place(container: str, owner: nn.Module, blocks: list[nn.Module], block: nn.Module) -> BlockPlace | None:
    kinds = [type(other) for other in blocks]
    same = tuple(i for i, other in enumerate(blocks) if other is block)
    if isinstance(owner, nn.Sequential):  # which may begin with an embedding and end with a head
        alike = [i for i, kind in enumerate(kinds) if kind is type(block)]
        is_stack = len(alike) in (len(blocks), alike[-1] - alike[0] + 1) and (len(alike) > 1 or len(blocks) == 1)
        return BlockPlace(container, tuple(i - alike[0] for i in same), len(alike)) if is_stack else None
    if len(blocks) > 1 and len(set(kinds)) == len(kinds):
        return None  # the parts of a block, one of each kind
    return BlockPlace(container, same, len(blocks))
