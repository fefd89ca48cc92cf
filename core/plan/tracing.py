"""Trace the real Transformer on meta or fake tensors: every step, byte and FLOP."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop

from ..device import dtype_name
from ..errors import ConfigError
from ..model.config import ModelConfig
from ..model.custom_mask import FusedCall
from ..model.hooks import HeadHookPoint, HookPoint, hook_points, hooked
from ..model.transformer import Transformer, to_dtype
from .workload import Workload, as_workload, check_activations, check_lengths


class LiveBytes(TorchDispatchMode):
    """Counts every storage from its creation until it is freed: `live` now, `peak` at most, `peak_op` the operation of the peak.

    It agrees with PyTorch's CPU allocator except for the scratch space inside kernels. Use torch.no_grad(), not inference_mode(),
    under which compound operations are not decomposed, so that their intermediate tensors are missed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self.peak_op = ""
        self._seen: dict[int, int] = {}

    def track(self, *values: Any) -> None:
        """Count existing tensors, such as weights and inputs."""
        for value in tree_leaves(values):
            if isinstance(value, torch.Tensor):
                self._add(value, "given")

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for value in tree_leaves(out):
            if isinstance(value, torch.Tensor):
                self._add(value, str(func))
        return out

    def _add(self, tensor: torch.Tensor, op: str) -> None:
        storage = tensor.untyped_storage()
        address, n_bytes = storage._cdata, storage.nbytes()
        if address in self._seen:
            return
        self._seen[address] = n_bytes
        self.live += n_bytes
        if self.live > self.peak:
            self.peak, self.peak_op = self.live, op
        weakref.finalize(storage, self._free, address)

    def _free(self, address: int) -> None:
        self.live -= self._seen.pop(address, 0)


Ran = Literal["eager", "spelled_out", "flash"]


def ran(config: ModelConfig, workload: Workload) -> Ran:
    """The implementation used on this machine. A CPU has one fused kernel, and eager attention with a bias or window runs in steps."""
    if workload.attention in ("efficient", "flash"):
        return "flash"
    narrow = config.window is not None or config.position in ("alibi", "relative", "disentangled")
    return "spelled_out" if narrow or workload.attention == "spelled_out" else "eager"


def foretell(model: Transformer, ids: Tensor, target: Tensor | None, *, last: bool) -> Tensor:
    """Forward pass: the logits at every position, or with `last` the next-token probabilities of each text."""
    if not last or model.head is None:
        return model(ids, target)
    x = model.last_residual(ids, target)
    return model.head(x[:, -1:]).float().softmax(-1)


@contextmanager
def attending(model: Transformer, way: Ran, *, keep: bool = False) -> Iterator[list[Tensor]]:
    """Use this implementation of attention. With `keep`, the yielded list holds a decoder's keys and values, as a cache does."""
    cache: list[Tensor] = []
    hooks: dict[str, Any] = {}
    for name in hook_points(model):
        if keep and name.startswith("decoder") and name.endswith(("hook_k", "hook_v")):
            hooks[name] = cache.append
        if way == "spelled_out" and name.endswith("hook_scores"):
            hooks[name] = request_eager
    with hooked(model, hooks), _Textbook() if way == "eager" else nullcontext():
        yield cache


def request_eager(x: Any) -> None:
    """Hook that changes nothing. Its presence makes attention compute scores and weights as tensors."""


class _Textbook(TorchFunctionMode):
    """softmax(mask(q kᵀ · scale)) v instead of the fused kernel (Vaswani et al. 2017, equation 1)."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention:
            return func(*args, **kwargs)
        return _textbook_attention(FusedCall(*args, **kwargs))


def _textbook_attention(call: FusedCall) -> Tensor:
    q, k, v, attn_mask, _, is_causal, scale, enable_gqa = call
    assert scale is not None
    if enable_gqa and k.shape[1] != q.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.mT
    scores = scores * scale  # [batch, head, query, key]
    hidden = None
    if is_causal:
        hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).triu(1)
    elif attn_mask is not None:
        hidden = ~attn_mask
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    weights = scores.softmax(-1)
    del scores  # two maps at once, not three
    return weights @ v


@dataclass(frozen=True)
class TracedStep:
    """One operation. `view` is True if its result shares the memory of an existing tensor."""

    name: str  # of the hook point that it passes, or of the module and the operation
    op: str
    axes: tuple[str, ...]  # name of each dimension; "" if unknown
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    flops: int
    view: bool


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that autograd saves for the backward pass, and the module that saves it first."""

    module: str
    grad_fn: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int


@dataclass(frozen=True)
class TracedRun:
    """Bytes and FLOPs of one pass. `peak` includes the weights; `saved` is empty for inference."""

    steps: tuple[TracedStep, ...]
    flops: int  # of the forward pass
    backward_flops: int
    saved: tuple[SavedTensor, ...]
    parameters: int
    weights: int
    kept: int  # bytes besides the weights that are alive after the pass: the output, and tensors stored by hooks
    peak: int
    peak_op: str

    @property
    def saved_bytes(self) -> int:
        return sum(tensor.bytes for tensor in self.saved)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"saved_bytes": self.saved_bytes}


def trace_shapes(
    config: ModelConfig,
    workload: Workload | None = None,
    *,
    path: Literal["fused", "spelled_out"] = "spelled_out",
    loss: bool = True,
    **options: Any,
) -> TracedRun:
    """Run Transformer(config) without data on a workload, or on one whose fields `options` name.

    On the path "spelled_out" scores and weights are separate steps. With `training`, the saved tensors of autograd are listed, and `loss` adds cross-entropy and the backward pass to the FLOPs and
    the peak. Raises ConfigError for lengths below 1.
    """
    work = as_workload(workload, options)
    check_lengths(config.kind, batch=work.batch, source_len=work.source_len, target_len=work.target_len)
    check_activations(work.dtype)
    if config.n_experts:
        raise ConfigError(
            "The steps of a mixture of experts depend on what its router chooses, so that they are not traced on nothing. Run a text."
        )
    fused = path == "fused"
    with FakeTensorMode() if fused else torch.device("meta"):
        model = to_dtype(Transformer(config), getattr(torch, dtype_name(work.dtype))).eval()
        return _run(model, work, fused=fused, loss=loss)


def _run(model: Transformer, work: Workload, *, fused: bool, loss: bool) -> TracedRun:
    def empty(n: int, dtype: torch.dtype) -> Tensor | None:
        if not n:
            return None
        x = torch.zeros(work.batch, n, dtype=dtype)
        _set_axes(x, ("batch", "pos"))
        return x

    live, flops = LiveBytes(), Flops()
    steps = Steps(model, flops)
    live.track(*model.parameters(), *model.buffers())
    weights = live.live
    saved = Saved(model, steps)
    watched = {} if fused else {name: request_eager for name in hook_points(model) if name.endswith("hook_scores")}
    ids, target_ids = empty(work.source_len, torch.long), empty(work.target_len, torch.long)
    keep = empty(work.source_len, torch.bool) if work.padded else None
    target_keep = empty(work.target_len, torch.bool) if work.padded else None
    with ExitStack() as contexts:
        contexts.enter_context(nullcontext() if work.training else torch.no_grad())
        for context in (
            live,
            flops,
            hooked(model, watched),
            steps.watch(),
            saved.watch() if work.training else nullcontext(),
        ):
            contexts.enter_context(context)
        out = model(ids, target_ids, keep, target_keep)
    kept, forward = live.live - weights, flops.total
    if work.training and loss:
        with live, flops:
            wanted = torch.zeros(out.shape[0] * out.shape[1], dtype=torch.long, device=out.device)
            wrong = F.cross_entropy(out.flatten(0, 1), wanted)
            del out, wanted  # a training loop does not keep them either
            wrong.backward()
    n_parameters = sum(p.numel() for p in model.parameters())
    return TracedRun(
        tuple(steps.rows),
        forward,
        flops.total - forward,
        tuple(saved.found.values()),
        n_parameters,
        weights,
        kept,
        live.peak,
        live.peak_op,
    )


class Flops(TorchDispatchMode):
    """Counts the FLOPs of matrix products by PyTorch's formulas, two for each multiply-add."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        packet = func._overloadpacket
        if packet in flop_registry:
            self.total += flop_registry[packet](*args, **kwargs, out_val=out)
        elif packet is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu:
            # PyTorch's registry lacks this kernel (pytorch issue 195460)
            q, k, v = (tensor.shape for tensor in args[:3])
            group = q[1] // k[1]
            self.total += sdpa_flop(q, (k[0], k[1] * group, *k[2:]), (v[0], v[1] * group, *v[2:]))
        return out


class Saved:
    """Lists the storages that autograd saves, each once, without the weights."""

    def __init__(self, model: nn.Module, steps: Steps) -> None:
        self.weights = {p.untyped_storage()._cdata for p in (*model.parameters(), *model.buffers())}
        self.steps = steps
        self.found: dict[int, SavedTensor] = {}

    @contextmanager
    def watch(self) -> Iterator[None]:
        with torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor):
            yield

    def _pack(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in self.weights and storage._cdata not in self.found:
            grad_fn = tensor.grad_fn.name() if tensor.grad_fn is not None else "leaf"
            shape, dtype = tuple(tensor.shape), dtype_name(tensor.dtype)
            self.found[storage._cdata] = SavedTensor(self.steps.module, grad_fn, shape, dtype, storage.nbytes())
        return tensor


# Last axis of a product by the name of its module; d_model for the others.
LAST_AXIS = {
    "q": "head × d_head",
    "k": "kv_head × d_head",
    "v": "kv_head × d_head",
    "up": "d_ff",
    "gate": "d_ff",
    "unembed": "vocab",
}
# Axes of lookups whose indices are computed by the model and have no axis names.
TABLES = {"token_type": ("batch", "pos", "d_model"), "relative_bias": ("batch", "query", "key", "head")}
SHOWN = frozenset(
    "embedding linear layer_norm unflatten transpose repeat_interleave mT matmul invert masked_fill softmax flatten "  # noqa: SIM905
    "relu gelu silu scaled_dot_product_attention".split()
)
QUIET = frozenset(
    ("add", "mul", "cat")
)  # recorded only if a hook point or module names them: sums, scaled scores, norms


class Steps(TorchFunctionMode):
    """Records the operations that determine the shapes of the pass, with the names of their modules and axes."""

    def __init__(self, model: nn.Module, flops: Flops) -> None:
        super().__init__()
        self.model, self.flops = model, flops
        self.rows: list[TracedStep] = []
        self.stack: list[str] = []
        self._counted = 0
        self._quiet: TracedStep | None = None
        self._last: weakref.ref[Tensor] | None = None  # weak: a strong reference would change the peak

    @property
    def module(self) -> str:
        return self.stack[-1] if self.stack else ""

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Hooks that report the running module. The model belongs to this trace, so nothing else is affected."""
        handles = []
        for name, module in self.model.named_modules():
            if isinstance(module, HookPoint):
                if module.is_public:
                    handles.append(module.register_forward_hook(partial(self._pass_by, name)))
            else:
                handles.append(module.register_forward_pre_hook(partial(self._enter, name)))
                handles.append(module.register_forward_hook(self._leave))
        try:
            with self:
                yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, name: str, module: nn.Module, args: Any) -> None:
        self.stack.append(name)

    def _leave(self, module: nn.Module, args: Any, out: Any) -> None:
        """The output of a module without children, such as a norm, gets the name of the module."""
        name = self.stack.pop()
        if isinstance(out, Tensor) and not isinstance(module, nn.Identity) and not any(module.children()):
            self._name_last(name, _get_axes(out), out)

    def _pass_by(self, name: str, point: nn.Module, args: Any, out: Any) -> None:
        """A hook point names the newest tensor and its axes."""
        assert isinstance(point, HookPoint)
        if not isinstance(out, Tensor):
            return
        by_head = isinstance(point, HeadHookPoint)  # hooks see it with the position before the head
        _set_axes(out, _swapped(point.axes, 1, 2) if by_head else point.axes)
        if not self._name_last(name, point.axes, out):
            # Two tensors may exist before the first of them is named, as with rotary queries and keys.
            seen = getattr(out, "has_row", False) or out._is_view()
            self._add(name, "", out, view=seen)
        if by_head:
            self.rows[-1] = replace(self.rows[-1], axes=point.axes, shape=_swapped(tuple(out.shape), 1, 2))

    def _name_last(self, name: str, axes: tuple[str, ...], out: Tensor) -> bool:
        """Name the last step if `out` is its result and no hook point has named it yet."""
        if self._last is None or self._last() is not out:
            return False
        row = self._quiet or self.rows[-1]
        if ".hook_" in row.name:
            return False
        if self._quiet is None:
            self.rows.pop()
        self._quiet = None
        self.rows.append(replace(row, name=name, axes=axes))
        out.has_row = True  # type: ignore[attr-defined]
        return True

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        op = getattr(func, "__name__", "")
        op = "mT" if op == "__get__" and func.__self__ is Tensor.mT else op.strip("_")
        inputs = [a for a in args if isinstance(a, Tensor)]
        # An in-place operation creates neither a tensor nor a view: the step of its input remains.
        in_place = bool(inputs) and out is inputs[0]
        if isinstance(out, Tensor) and out.ndim and not in_place and (op in SHOWN or op in QUIET):
            part = self.module.rsplit(".", 1)[-1]
            axes = _axes(op, inputs, args, out, LAST_AXIS.get(part, "d_model"))
            _set_axes(out, TABLES.get(part, axes) if op == "embedding" else axes)
            view = bool(inputs) and out.untyped_storage()._cdata == inputs[0].untyped_storage()._cdata
            step = "mask" if op == "invert" else op
            self._add(f"{self.module}.{step}", op, out, view=view)
        return out

    def _add(self, name: str, op: str, out: Tensor, *, view: bool) -> None:
        n_bytes, flops = out.numel() * out.element_size(), self.flops.total - self._counted
        row = TracedStep(name, op, _get_axes(out), tuple(out.shape), dtype_name(out.dtype), n_bytes, flops, view)
        self._quiet = row if op in QUIET else None
        if self._quiet is None:
            self.rows.append(row)
            self._counted = self.flops.total
            out.has_row = True  # type: ignore[attr-defined]
        self._last = weakref.ref(out)


_Axes = tuple[str, ...]
T = TypeVar("T")
# operation -> (axes of its first tensor, its arguments, last axis of a product, axes of its last tensor) -> axes of its result
_AXES_AFTER: dict[str, Callable[[_Axes, tuple[Any, ...], str, _Axes], _Axes]] = {
    "invert": lambda axes, args, last, other: ("batch", "head", "query", "key"),
    "embedding": lambda axes, args, last, other: (*axes, "d_model"),
    "linear": lambda axes, args, last, other: (*axes[:-1], last),
    "unflatten": lambda axes, args, last, other: (*axes[:-1], *axes[-1].split(" × ")),
    "flatten": lambda axes, args, last, other: (*axes[:2], " × ".join(axes[2:])) if args[1:] == (2,) else (),
    "transpose": lambda axes, args, last, other: _swapped(axes, args[1], args[2]),
    "repeat_interleave": lambda axes, args, last, other: tuple("head" if a == "kv_head" else a for a in axes),
    "mT": lambda axes, args, last, other: _swapped(axes, -1, -2),
    "matmul": lambda axes, args, last, other: (*axes[:-1], other[-1]),
}


def _swapped(axes: tuple[T, ...], first: int, second: int) -> tuple[T, ...]:
    swapped = list(axes)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    return tuple(swapped)


def _axes(op: str, inputs: list[Tensor], args: tuple[Any, ...], out: Tensor, last: str) -> _Axes:
    """The names of the dimensions of `out`, derived from those of its inputs."""
    axes = _get_axes(inputs[0]) if inputs else ()
    if axes and op in _AXES_AFTER:
        axes = _AXES_AFTER[op](axes, args, last, _get_axes(inputs[-1]))
    elif axes:
        named = ((_get_axes(tensor), tensor.shape) for tensor in inputs)
        axes = next((candidate for candidate, shape in named if shape == out.shape and any(candidate)), axes)
    return axes if len(axes) == out.ndim else ("",) * out.ndim


def _set_axes(tensor: Tensor, axes: tuple[str, ...]) -> None:
    tensor.axes = axes  # type: ignore[attr-defined]


def _get_axes(tensor: Tensor) -> tuple[str, ...]:
    return getattr(tensor, "axes", ("",) * tensor.ndim)
