"""Lineage: the origins of the tensors of a pass, which tell self-attention from cross-attention; and CallPaths: the submodules
that the pass is in, which give an attention its name and layer."""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import signature
from types import FunctionType
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._ops import HigherOrderOperator
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from ..device import check_fits_or_retry
from ..errors import HeadlightError
from ..model.custom_mask import CustomMask, FusedCall, parse_custom_mask, with_all_axes
from ..model.rules import GivenBias, MaskRule, ScoreRule
from .attention import AttentionRecord, receipt_rows
from .shared_rows import Pool

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


_FUSED = F.scaled_dot_product_attention
SHOWN = 3  # names in a sentence


@contextmanager
def capture(module: nn.Module) -> Iterator[list[AttentionRecord]]:
    """Record every attention that `module` computes in this context, in order, named by the submodule that computes it.

    Records nn.MultiheadAttention, nn.TransformerEncoder and nn.Transformer (their fused fast path is off during the
    context; results agree to rounding), and every other caller of torch.nn.functional.scaled_dot_product_attention, with
    grouped-query attention and key padding. Not recorded: attention computed by hand, flex_attention, kernels of other
    packages. Weights are those before dropout. Other threads are not affected.

    `site` is "attn" if queries and keys come from one tensor, "cross_attn" if from two, and otherwise "unknown". `layer`
    is the index of the block in the module's list of blocks, or None. Records of one submodule are numbered by `call`.
    Keys and values that come again, such as the cache in each step of generate(), are stored once. Numbers in a mask hide
    a cell as in core.model.custom_mask.masked_values: −inf, the lowest of a dtype, −1e9 and −1e4 do.

    Raises Refused at the end if nothing was recorded, with the reason and the remedy, and warns if only some attentions
    were. Raises TooLarge if a record would not fit, and ValueError for nested tensors.
    """
    with _recorder(module) as recorder:
        yield recorder.records
    if not recorder.records:
        raise HeadlightError(_nothing_seen(module, recorder))
    if missed := recorder.written_out - {record.name for record in recorder.records}:
        seen = len(recorder.records)
        text = f"{_listed(missed)} attention out by hand and {'is' if len(missed) == 1 else 'are'} not among the {seen} records."
        warnings.warn(f"{text} {_cure(module)}", stacklevel=3)


@contextmanager
def written_out(module: nn.Module) -> Iterator[set[str]]:
    """The submodules that compute attention by hand in this context: a softmax of a product of two tensors."""
    with _recorder(module) as recorder:
        yield recorder.written_out


@contextmanager
def _recorder(module: nn.Module) -> Iterator[_Recorder]:
    """A recorder with hooks that track which submodule runs."""
    recorder = _Recorder(module)
    handles, leave = [], recorder.leave()
    for name, child in module.named_modules():
        handles.append(child.register_forward_pre_hook(recorder.enter(name), with_kwargs=True))
        handles.append(child.register_forward_hook(leave, always_call=True))
    try:
        with recorder:
            yield recorder
    finally:
        for handle in handles:
            handle.remove()


class _Recorder(TorchFunctionMode):
    """Observes every torch function of this thread while the context is open."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.records: list[AttentionRecord] = []
        self.written_out: set[str] = set()  # submodules that compute attention by hand
        self.thread = threading.get_ident()
        self.paths = CallPaths(module)
        self.lineage = Lineage(module)
        self.calls: Counter[str] = Counter()  # by submodule
        self.sites: dict[str, Site] = {}  # of the latest attention of each submodule
        self.pools: dict[tuple[Any, ...], Pool] = {}
        self.given: CustomMask | None = None  # the latest mask, which the layers of a model share
        self.look = _uncompiled(self.look)

    def enter(self, name: str) -> Callable[..., None]:
        def pre_hook(_module: nn.Module, args: Any, kwargs: Any) -> None:
            if threading.get_ident() == self.thread:
                self.paths.enter(name, (args, kwargs), self.lineage.now)

        return _uncompiled(pre_hook)

    def leave(self) -> Callable[..., None]:
        def hook(_module: nn.Module, _args: Any, output: Any) -> None:
            if threading.get_ident() == self.thread:
                self.paths.leave(output)
                if not self.paths.frames:
                    self.lineage.forget()

        return _uncompiled(hook)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(func, HigherOrderOperator):  # flex_attention, which is compiled as a whole
            return func(*args, **(kwargs or {}))
        return self.look(func, args, kwargs or {})

    def look(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is _FUSED:
            call = FusedCall(*args, **kwargs)
            out = func(*args, **kwargs)
            self.record(call, out, self.lineage.site(call.query, call.key, self._since()))
        elif func is F.multi_head_attention_forward:
            out = self.multi_head(func, args, kwargs)
        else:
            out = func(*args, **kwargs)
            if getattr(func, "__name__", "") == "softmax" and self.paths.frames:
                scores = args[0] if args else kwargs["input"]
                if scores.ndim > 2 and self.lineage.is_written_out(scores, self.paths.frames[-1].since):
                    self.written_out.add(self.paths.name)
            self.lineage.made(func, args, kwargs, out)
            return out
        origin = self.lineage.made(func, args, kwargs, out)
        if origin is not None:
            origin.is_attention = True
        return out

    def multi_head(self, func: Any, args: Any, kwargs: Any) -> Any:
        """torch's own attention with its projections. It runs with this mode off, so its inner call is replaced instead."""
        bound = signature(func).bind(*args, **kwargs).arguments
        query, key = bound["query"], bound["key"]
        site = self.lineage.site(query, key, self._since(), projected=True)
        if site == "cross_attn" and query.shape == key.shape and torch.equal(query, key):
            site = "attn"

        def fused(*args: Any, **kwargs: Any) -> Tensor:
            out = _FUSED(*args, **kwargs)
            self.record(FusedCall(*args, **kwargs), out, site)
            return out

        seen = _with_fused(func, fused)
        if not bound.get("need_weights", True):
            return seen(*args, **kwargs)
        # With need_weights it does not call the fused function. It runs once more without, for the record, and without dropout,
        # which would draw random numbers. The caller receives the result of the original call.
        seen(**{**bound, "need_weights": False, "training": False})
        return func(*args, **kwargs)

    def record(self, call: FusedCall, out: Tensor, site: Site) -> None:
        """Record one call and its result as copies, since q, k and v are often views of one projection.

        Raises TooLarge if the copies would not fit.
        """
        with torch.inference_mode(False), torch.no_grad():
            self._record(call, out, site)

    def _record(self, call: FusedCall, out: Tensor, site: Site) -> None:
        if call.query.is_nested or call.key.is_nested:
            raise ValueError(
                "capture cannot record nested tensors; build nn.TransformerEncoder with enable_nested_tensor=False"
            )
        if call.dropout_p:  # a receipt compares with the result without dropout
            out = _FUSED(*call[:4], 0.0, call.is_causal, scale=call.scale, enable_gqa=call.enable_gqa)
        call, out = _unpacked(call, out, self.lineage.origin(call.query).shape_before)
        # The leading axes of all arguments broadcast to those of the result.
        out = _with_heads(out)
        leading, n_heads = tuple(out.shape[:-3]), out.shape[-3]
        batch = torch.Size(leading).numel()
        query = _with_heads(call.query)
        key, value = _same_heads(_with_heads(call.key), _with_heads(call.value), n_heads, call.enable_gqa)
        n_query, n_key = query.shape[-2], key.shape[-2]
        q = query.expand(*leading, n_heads, -1, -1).reshape(batch, n_heads, *query.shape[-2:])
        rows = out[..., receipt_rows(n_query).to(out.device), :].reshape(batch, n_heads, -1, out.shape[-1])
        mask, is_new = self._mask(call.attn_mask, leading)

        name, n_records = self.paths.name, len(self.records)
        pools = [self._pool(name, what, x) for what, x in (("k", key), ("v", value))]
        lookups = [pool.seek(x.detach()) for pool, x in zip(pools, (key, value), strict=True)]
        size = sum(x.nbytes for x in (q, rows, *lookups)) + (mask.values.nbytes if mask and is_new else 0)
        check_fits_or_retry(size, query.device, f"What attention number {n_records} keeps", "Capture a shorter input.")
        if mask is not None and is_new:
            self.given = mask = replace(mask, values=mask.values.detach().clone())
        k, v = (pool.keep(lookup, leading) for pool, lookup in zip(pools, lookups, strict=True))
        if site == "unknown" and lookups[0].is_known:  # keys of an earlier step
            site = self.sites.get(name, site)
        self.sites[name] = site
        record = AttentionRecord(
            name or f"call {n_records}",
            "module",
            self.paths.layer(n_heads),
            site,
            q.detach().clone(memory_format=torch.contiguous_format),
            k,
            v,
            _score_rule(call, mask, n_heads, n_query, n_key),
            call=self.calls[name],
            returned=rows.detach().clone(),
        )
        self.records.append(record)
        self.calls[name] += 1

    def _since(self) -> list[int]:
        """The first operation of every submodule that the pass is in, innermost first."""
        return [frame.since for frame in reversed(self.paths.frames)]

    def _mask(self, attn_mask: Tensor | None, leading: tuple[int, ...]) -> tuple[CustomMask | None, bool]:
        """The mask of a call, and whether it differs from the last call's."""
        if attn_mask is None:
            return None, False
        values, last = with_all_axes(attn_mask), self.given
        if last is None or not _equal(last.values, values):
            return parse_custom_mask(values, leading), True
        return last if last.leading == leading else replace(last, leading=leading), False

    def _pool(self, name: str, what: str, x: Tensor) -> Pool:
        """The store of such keys or values of this submodule."""
        return self.pools.setdefault((name, what, x.shape[-3], x.shape[-1], x.dtype, x.device), Pool())


def _score_rule(call: FusedCall, mask: CustomMask | None, n_heads: int, n_query: int, n_key: int) -> ScoreRule:
    """Mask, bias and scale of one call."""
    hidden = mask if mask is not None and mask.hides else None
    bias = GivenBias(mask) if mask is not None and mask.adds else None
    scale = call.query.shape[-1] ** -0.5 if call.scale is None else call.scale
    return ScoreRule(MaskRule(n_heads, n_query, n_key, causal=call.is_causal, custom=hidden), scale, bias)


def _uncompiled(function: Any) -> Any:
    """The function, excluded from torch.compile. Before anything is compiled, importing the compiler would take seconds."""
    return torch.compiler.disable(function) if "torch._dynamo" in sys.modules else function


def _with_heads(x: Tensor) -> Tensor:
    """[..., head, n, d], with one head if there was no such axis."""
    return x if x.ndim > 2 else x[None]


def _same_heads(key: Tensor, value: Tensor, n_heads: int, grouped: bool) -> tuple[Tensor, Tensor]:
    """Keys and values [..., kv_head, key, d_head] with the same number of heads."""
    if key.shape[-3] == value.shape[-3]:
        return key, value
    if grouped:
        return tuple(x.repeat_interleave(n_heads // x.shape[-3], dim=-3) for x in (key, value))  # type: ignore[return-value]
    return tuple(x.expand(*x.shape[:-3], n_heads, -1, -1) for x in (key, value))  # type: ignore[return-value]


def _unpacked(call: FusedCall, out: Tensor, before: tuple[int, ...] | None) -> tuple[FusedCall, Tensor]:
    """Undo a reshape of grouped-query attention that turns the heads of a group into queries of one head.

    transformers does this for a single query with a mask. `before` is the shape of the queries before the reshape, if that
    was the last operation on them.
    """
    q, k, mask = call.query, call.key, call.attn_mask
    if q.ndim != 4 or k.ndim != 4 or q.shape[2] == 1 or q.shape[1] != k.shape[1]:
        return call, out
    batch, kv_heads, group, _ = q.shape
    if before is None or before != (batch, kv_heads * group, 1, q.shape[3]) or call.is_causal:
        return call, out
    if mask is not None and mask.ndim == 4 and mask.shape[-2] == group:
        mask = mask.expand(-1, kv_heads, -1, -1).reshape(mask.shape[0], kv_heads * group, 1, mask.shape[-1])
    call = call._replace(query=q.reshape(before), attn_mask=mask, enable_gqa=True)
    return call, out.reshape(batch, kv_heads * group, 1, out.shape[-1])


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.device == b.device and a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


def _with_fused(func: Any, fused: Callable[..., Tensor]) -> Callable[..., Any]:
    """A copy of torch's function that calls `fused`; torch.nn.functional does not change."""
    names = vars(F) | {"scaled_dot_product_attention": fused}
    own = FunctionType(func.__code__, names, func.__name__, func.__defaults__, func.__closure__)
    own.__kwdefaults__ = func.__kwdefaults__
    return own


def _nothing_seen(module: nn.Module, recorder: _Recorder) -> str:
    """Why there are no records, and the remedy."""
    kind = type(module).__name__
    if not recorder.paths.entered:
        return f"Nothing was recorded: this {kind} did not run in this thread while the capture was open. Call it inside the with block."
    if recorder.written_out:
        why = f"{_listed(recorder.written_out)} attention out by hand, and only"
    else:
        why = f"this {kind} ran without calling it. Only"
    called = "calls of torch.nn.functional.scaled_dot_product_attention are seen."
    return f"Nothing was recorded: {why} {called} {_cure(module)}"


def _listed(names: set[str]) -> str:
    shown = sorted(
        names, key=lambda name: [(part.isdigit(), int(part) if part.isdigit() else part) for part in name.split(".")]
    )
    text = ", ".join(name or "the module itself" for name in shown[:SHOWN])
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    return f"{text}{more} {'writes' if len(shown) == 1 else 'write'}"


def _cure(module: nn.Module) -> str:
    """How to make this module call the fused function; for transformers models, by their config and class."""
    for part in module.modules():
        chosen = getattr(getattr(part, "config", None), "_attn_implementation", None)
        if isinstance(chosen, str):
            if getattr(part, "_supports_sdpa", True) is False:
                return (
                    f'The cure would be attn_implementation="sdpa", which {type(part).__name__} does not have in transformers '
                    f'(it runs as "{chosen}"). headlight.wrap(model, tokenizer) records it as it is, where its code calls '
                    "transformers' attention functions; where headlight.load reads its family, headlight.trace shows its attention."
                )
            if chosen != "sdpa":
                return (
                    f'It was loaded with attn_implementation="{chosen}": load it with attn_implementation="sdpa", or call '
                    'set_attn_implementation("sdpa") on it first. headlight.wrap(model, tokenizer) records it as it is.'
                )
            return f'{type(part).__name__} has attn_implementation="sdpa" already, so its code has no such call in this place.'
    return (
        'Have it call that function; a model of transformers does with attn_implementation="sdpa", one of timm with '
        "fused attention switched on."
    )
