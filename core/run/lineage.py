"""Lineage: the origins of the tensors of a pass, which say whether an attention's queries and keys are of one sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from .call_paths import tensors

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
)  # weights in them are data, as learned queries are
WRITES = ("__setitem__",)  # into their first argument, and return nothing


class Origin:
    """How a tensor came to be. It holds no tensor, so that nothing lives longer for it."""

    __slots__ = ("at", "is_attention", "is_product", "is_projected", "parents", "shape_before")

    def __init__(self, at: int = -1, parents: tuple[Origin, ...] = ()) -> None:
        self.at = at  # the number of the operation that made it; −1: before all
        self.parents = parents
        self.is_projected = False  # by weights: a linear map, a convolution
        self.is_attention = False  # the result of an attention mixes sequences: nothing is followed through it
        self.is_product = False  # of two tensors that are no weights, as of queries and keys
        self.shape_before: tuple[int, ...] | None = None  # where it is another tensor reshaped


class Lineage:
    """The origins of all tensors that torch's functions have made since it began to look."""

    def __init__(self, module: nn.Module) -> None:
        self.origins: Any = WeakIdKeyDictionary()  # Tensor -> Origin
        self.now = 0
        self.buffers = {id(x) for x in module.buffers()}  # tables that any sequence may be added to

    def origin(self, x: Tensor) -> Origin:
        found = self.origins.get(x)
        if found is None:
            found = self.origins[x] = Origin()
        return found

    def made(self, func: Callable[..., Any], args: Any, kwargs: Any, out: Any) -> Origin | None:
        """Note the results of a function. None where it made no tensor."""
        name = getattr(func, "__name__", "")
        results = tensors(args[:1]) if name in WRITES else tensors(out)
        if not results:
            return None
        given = tensors((args, kwargs))
        weights = [x for x in given if isinstance(x, nn.Parameter) and name not in JOINS]
        data = [x for x in given if not any(x is weight for weight in weights) and id(x) not in self.buffers] or given[
            :1
        ]
        origin = Origin(self.now, tuple(self.origin(x) for x in data))
        origin.is_projected = any(x.ndim > 1 for x in weights) and any(x.is_floating_point() for x in data)
        if name in PRODUCTS:
            origin.is_product = sum(x.ndim > 2 and x.is_floating_point() for x in data) > 1
        elif name in RESHAPES:
            origin.shape_before = tuple(given[0].shape)
        self.now += 1
        for x in results:
            self.origins[x] = origin
        return origin

    def forget(self) -> None:
        """A pass has ended: the tensors that outlive it, such as a cache, have no origin but themselves from now on."""
        for origin in self.origins.values():
            origin.at, origin.parents = -1, ()

    def site(self, query: Tensor, key: Tensor, since: Iterable[int], projected: bool = False) -> Site:
        """Whether queries and keys come from one sequence, `attn`, or from two, `cross_attn`.

        `since` are the first operations of the submodules that the call is in, innermost first. The innermost in which both
        were projected by weights decides, by the tensors that were projected. Keys from no other tensor than the queries:
        self-attention. Two tensors are two sequences, unless the submodule around made both from one. With `projected`,
        query and key are themselves the tensors that will be projected.
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
        """Whether a softmax of x is an attention written out: x is a product of two tensors, perhaps scaled and masked."""
        waiting, seen = [self.origin(x)], set()
        while waiting:
            origin = waiting.pop()
            if origin.is_product:
                return True
            if origin in seen or origin.at < since or origin.is_projected or origin.is_attention:
                continue
            seen.add(origin)
            waiting += origin.parents
        return False

    def _sources(self, x: Tensor, since: int, projected: bool) -> set[Origin]:
        """The tensors from before operation `since`, and the results of attentions, that were projected on their way to x.

        A tensor made since from no other, such as the numbers of positions, is no sequence.
        """
        found: set[Origin] = set()
        waiting, seen = [(self.origin(x), projected)], set()
        while waiting:
            origin, on_way = waiting.pop()
            if (origin, on_way) in seen:
                continue
            seen.add((origin, on_way))
            if origin.at < since or origin.is_attention:
                if on_way:
                    found.add(origin)
                continue
            waiting += [(parent, on_way or origin.is_projected) for parent in origin.parents]
        return found


def _same_memory(query: Tensor, key: Tensor) -> bool:
    """Whether the queries are the keys, or lie among them."""
    if query is key:
        return True
    if query.device != key.device or not query.numel() or not key.numel():
        return False
    (q_start, q_stop), (k_start, k_stop) = _memory(query), _memory(key)
    return k_start <= q_start and q_stop <= k_stop


def _memory(x: Tensor) -> tuple[int, int]:
    """The first byte of a tensor's numbers, and the one after the last."""
    last = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return x.data_ptr(), x.data_ptr() + (last + 1) * x.element_size()
