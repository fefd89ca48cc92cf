"""HookPoint: a named point of the forward pass where a run can read or replace the tensor.

Hooks are not attached to the model. A run sets them in a context variable that every hook point reads, so any number of
threads can trace one shared model independently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn

Hook = Callable[[Any], Any]  # return None to read, a value to replace; clone a tensor before editing it


@dataclass(frozen=True, eq=False)
class ReadHook:
    """A hook that only reads; its return value is ignored. A run with it is not edited, and may be read in chunks."""

    read: Callable[[Any], object]

    def __call__(self, x: Any) -> None:
        self.read(x)


class HookPoint(nn.Module):
    """Returns its input unless a hook replaces it. Its name is its module path; `axes` names the dimensions that hooks see.

    They have the order of TransformerLens: q, k, v and z are [batch, pos, head, d_head], scores and pattern
    [batch, head, query, key]. With rotary positions hook_q and hook_k are after the rotation, as hook_rot_q and hook_rot_k
    in TransformerLens; hook_q_pre and hook_k_pre are before it.

    Points that are not `is_public` are left out of tables of a pass: their tensor is the result of an operation listed
    there, or is computed only for hooks.
    """

    def __init__(self, *axes: str, is_public: bool = True):
        super().__init__()
        self.axes, self.is_public = axes, is_public

    def __call__(self, x: Any) -> Any:
        # Decoding a token calls hundreds of hook points, and nn.Module.__call__ costs more than forward() here.
        if self._forward_hooks or self._forward_pre_hooks:
            return super().__call__(x)
        return self.forward(x)

    def forward(self, x: Any) -> Any:
        hooks = _hooks.get()
        hook = None if hooks is None else hooks.get(self)
        return x if hook is None else self.run_hook(hook, x)

    def run_hook(self, hook: Hook, x: Any) -> Any:
        out = hook(x)
        return x if out is None else out

    @property
    def has_hooks(self) -> bool:
        """True if the current run has a hook here. Attention is eager only then."""
        hooks = _hooks.get()
        return hooks is not None and self in hooks

    def extra_repr(self) -> str:
        return ", ".join(self.axes)


class HeadHookPoint(HookPoint):
    """A hook point of q, k, v or z, which attention computes as [batch, head, pos, d_head].

    Hooks receive and return a view of it with the position before the head; without a hook there is no view.
    """

    def run_hook(self, hook: Hook, x: Tensor) -> Tensor:
        # The view goes on even if it was only read, so that a hook can ask for its gradient.
        return super().run_hook(hook, x.transpose(1, 2)).transpose(1, 2)


_hooks: ContextVar[Mapping[HookPoint, Hook] | None] = ContextVar("hooks", default=None)

# Called before every layer of a stack, where a pass may pause for another one; callers of a model must not hold a lock.
between_layers: ContextVar[Callable[[], object] | None] = ContextVar("between_layers", default=None)


def hook_points(model: nn.Module) -> Mapping[str, HookPoint]:
    """Every hook point by its module path, such as `decoder.blocks.3.attn.hook_q`; cached per model."""
    points = _points.get(model)
    if points is None:
        found = {name: module for name, module in model.named_modules() if isinstance(module, HookPoint)}
        points = _points[model] = MappingProxyType(found)
    return points


# Cached because walking all modules takes as long as a small layer.
_points: WeakKeyDictionary[nn.Module, Mapping[str, HookPoint]] = WeakKeyDictionary()


def current_hooks() -> Mapping[HookPoint, Hook]:
    """The hooks of the current context; outer and inner hooks of one point are composed."""
    return _hooks.get() or {}


@contextmanager
def hooked(
    model: nn.Module, hooks: Mapping[str, Hook], *, outside: Mapping[HookPoint, Hook] | None = None
) -> Iterator[None]:
    """Run `hooks` at the named points of `model` in every forward pass of this context.

    Contexts nest: at one point the outer hook runs first, and the inner one receives its result. `outside`, from
    current_hooks() of an earlier context, replaces the hooks that are open now. Raises KeyError for unknown points.
    """
    points = hook_points(model)
    if unknown := sorted(hooks.keys() - points.keys()):
        raise KeyError(f"no such hook point: {', '.join(unknown)}")
    merged = dict(current_hooks() if outside is None else outside)
    for name, hook in hooks.items():
        point = points[name]
        merged[point] = compose_hooks(merged[point], hook) if point in merged else hook
    token = _hooks.set(merged)
    try:
        yield
    finally:
        _hooks.reset(token)


def compose_hooks(*hooks: Hook) -> Hook:
    """One hook that runs several in order, each on the result of the one before."""

    def run(x: Any) -> Any:
        for hook in hooks:
            out = hook(x)
            x = x if out is None else out
        return x

    return ReadHook(run) if all(isinstance(hook, ReadHook) for hook in hooks) else run
