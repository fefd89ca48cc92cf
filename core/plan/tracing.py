"""The tracer: runs the real Transformer without allocating it, and writes down every step, byte and FLOP.

Closed forms are quick and tracing is true: the tests hold the first to the second. Tensors live on the meta device, or as
fake CPU tensors where the fused kernel is asked for, whose meta version takes another way than the real one.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_flop

from ..device import dtype_name
from ..errors import ConfigError
from ..model.config import ModelConfig
from ..model.hooks import HookPoint, hook_points, hooked
from ..model.transformer import Transformer, to_dtype
from .dtypes import check_activations, check_lengths
from .live_bytes import LiveBytes
from .workload import Workload


@dataclass(frozen=True)
class TracedStep:
    """One operation. `view` is True where it only looks at an existing tensor another way, which costs no bytes."""

    name: str  # the hook point it passes, or the module and the operation
    op: str
    axes: tuple[str, ...]  # what each dimension is; "" where it is unknown
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    flops: int
    view: bool


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that autograd keeps for the backward pass, and who keeps it first."""

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
    kept: int  # alive when the pass is over, beside the weights: the output, and what hooks kept
    peak: int
    peak_op: str

    @property
    def saved_bytes(self) -> int:
        return sum(tensor.bytes for tensor in self.saved)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"saved_bytes": self.saved_bytes}


def trace_shapes(
    config: ModelConfig,
    *,
    batch: int = 1,
    source_len: int,
    target_len: int = 0,
    dtype: object = "float32",
    training: bool = False,
    path: Literal["fused", "spelled_out"] = "spelled_out",
    padded: bool = False,
    loss: bool = True,
) -> TracedRun:
    """Run Transformer(config) on nothing, whatever its size. Scores and weights are steps of their own when spelled out.

    With `training` autograd's saved tensors are listed, and `loss` adds cross-entropy and the backward pass to FLOPs and
    peak. Raises ConfigError for lengths below 1.
    """
    check_lengths(config.kind, batch=batch, source_len=source_len, target_len=target_len)
    check_activations(dtype)
    if config.n_experts:
        raise ConfigError(
            "The steps of a mixture of experts depend on what its router chooses, so that they are not traced on nothing. Run a text."
        )
    work = Workload(batch=batch, source_len=source_len, target_len=target_len, training=training, padded=padded)
    model_dtype = getattr(torch, dtype_name(dtype))
    with ExitStack() as contexts:
        fused = path == "fused"
        contexts.enter_context(FakeTensorMode() if fused else torch.device("meta"))
        model = to_dtype(Transformer(config), model_dtype).eval()
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
    watched = {} if fused else {name: _look for name in hook_points(model) if name.endswith("hook_scores")}
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
            wrong = _loss(out)
            del out  # as a program that no longer needs its scores
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


def _loss(out: Tensor) -> Tensor:
    """Cross-entropy against some word at each position, as training computes it."""
    wanted = torch.zeros(out.shape[0] * out.shape[1], dtype=torch.long, device=out.device)
    return F.cross_entropy(out.flatten(0, 1), wanted)


def _look(x: Any) -> None:
    """Watching is enough to have attention spell itself out."""


class Flops(TorchDispatchMode):
    """Counts the FLOPs of matrix products, two for each multiply-add, by PyTorch's own formulas."""

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
            # torch's own table counts this kernel as nothing (pytorch issue 195460)
            q, k, v = (tensor.shape for tensor in args[:3])
            group = q[1] // k[1]
            self.total += sdpa_flop(q, (k[0], k[1] * group, *k[2:]), (v[0], v[1] * group, *v[2:]))
        return out


class Saved:
    """Lists what autograd keeps, each storage once, weights left out."""

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


# What a product turns the last dimension into, by the name of its module; d_model where it is not listed.
LAST_AXIS = {
    "q": "head × d_head",
    "k": "kv_head × d_head",
    "v": "kv_head × d_head",
    "up": "d_ff",
    "gate": "d_ff",
    "unembed": "vocab",
}
# What is looked up with indices that the model makes itself, and whose axes have no names.
TABLES = {"token_type": ("batch", "pos", "d_model"), "relative_bias": ("batch", "query", "key", "head")}
SHOWN = frozenset(
    "embedding linear layer_norm unflatten transpose repeat_interleave mT matmul invert masked_fill softmax flatten "  # noqa: SIM905
    "relu gelu silu scaled_dot_product_attention".split()
)
QUIET = frozenset(("add", "mul", "cat"))  # steps only where a name is given to them: sums, scaled scores, norms


class Steps(TorchFunctionMode):
    """Writes down the operations that shape the pass, with the name of the module they happen in and of their axes."""

    def __init__(self, model: nn.Module, flops: Flops) -> None:
        super().__init__()
        self.model, self.flops = model, flops
        self.rows: list[TracedStep] = []
        self.stack: list[str] = []
        self._counted = 0
        self._quiet: TracedStep | None = None
        self._last: weakref.ref[Tensor] | None = None  # weak: a tracer that held tensors would change their peak

    @property
    def module(self) -> str:
        return self.stack[-1] if self.stack else ""

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Hooks on a model of our own, which no one shares: they say which module is at work."""
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
        """A module without parts, such as a norm, names what it made after itself."""
        name = self.stack.pop()
        if isinstance(out, Tensor) and not isinstance(module, nn.Identity) and not any(module.children()):
            self._name_last(name, _get_axes(out), out)

    def _pass_by(self, name: str, point: nn.Module, args: Any, out: Any) -> None:
        """A hook point names the tensor that was just made, and its axes."""
        assert isinstance(point, HookPoint)
        if not isinstance(out, Tensor):
            return
        _set_axes(out, point.axes)
        if not self._name_last(name, point.axes, out):
            # Two tensors may be made before the first of them is named, as rotary queries and keys are.
            seen = getattr(out, "has_row", False) or out._is_view()
            self._add(name, "", out, view=seen)

    def _name_last(self, name: str, axes: tuple[str, ...], out: Tensor) -> bool:
        """Give the last step its name, if `out` is what it made and no hook point has named it yet."""
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
        given = [a for a in args if isinstance(a, Tensor)]
        # The result of an operation in place is no tensor more, and no view: the step that made it stays.
        in_place = bool(given) and out is given[0]
        if isinstance(out, Tensor) and out.ndim and not in_place and (op in SHOWN or op in QUIET):
            part = self.module.rsplit(".", 1)[-1]
            made = _axes(op, given, args, out, LAST_AXIS.get(part, "d_model"))
            _set_axes(out, TABLES.get(part, made) if op == "embedding" else made)
            view = bool(given) and out.untyped_storage()._cdata == given[0].untyped_storage()._cdata
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


def _axes(op: str, given: list[Tensor], args: tuple[Any, ...], out: Tensor, last: str) -> tuple[str, ...]:
    """The names of the dimensions of `out`, from those of the tensors it is made of."""
    named = [(_get_axes(tensor), tuple(tensor.shape)) for tensor in given]
    axes = list(named[0][0]) if named else []
    if not axes:
        pass
    elif op == "invert":
        axes = ["batch", "head", "query", "key"]
    elif op == "embedding":
        axes = [*axes, "d_model"]
    elif op == "linear":
        axes = [*axes[:-1], last]
    elif op == "unflatten":
        axes = [*axes[:-1], *axes[-1].split(" × ")]
    elif op == "flatten":
        axes = [*axes[:2], " × ".join(axes[2:])] if args[1:] == (2,) else []
    elif op == "transpose":
        axes[args[1]], axes[args[2]] = axes[args[2]], axes[args[1]]
    elif op == "repeat_interleave":
        axes = ["head" if axis == "kv_head" else axis for axis in axes]
    elif op == "mT":
        axes = [*axes[:-2], axes[-1], axes[-2]]
    elif op == "matmul":
        axes = [*axes[:-1], named[1][0][-1]]
    else:
        axes = next((list(found) for found, shape in named if shape == tuple(out.shape) and any(found)), axes)
    return tuple(axes) if len(axes) == out.ndim else ("",) * out.ndim


def _set_axes(tensor: Tensor, axes: tuple[str, ...]) -> None:
    tensor.axes = axes  # type: ignore[attr-defined]


def _get_axes(tensor: Tensor) -> tuple[str, ...]:
    return getattr(tensor, "axes", ("",) * tensor.ndim)
