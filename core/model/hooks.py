"""HookPoint: a named place in the forward pass where a run may look at, or replace, what flows by.

Nothing is ever attached to a model. A run sets its hooks in a context variable, every hook point looks there, and so
any number of threads trace one shared model side by side without seeing each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

Hook = Callable[[Any], Any]  # return None to look, a value to replace; clone a tensor before editing it


@dataclass(frozen=True, eq=False)
class ReadHook:
    """A hook that changes nothing, whatever it returns: a run with it is not an edited one. It may be shown a text in pieces."""

    read: Callable[[Any], object]

    def __call__(self, x: Any) -> None:
        self.read(x)


class HookPoint(nn.Module):
    """Passes its input through. Its module path is its name; `axes` are the names of the dimensions that pass.

    A point that is not `is_public` is no step of its own in tables of a pass: what passes there is what an operation beside
    it is named for, or is computed only for watchers.
    """

    def __init__(self, *axes: str, is_public: bool = True):
        super().__init__()
        self.axes, self.is_public = axes, is_public

    def __call__(self, x: Any) -> Any:
        # A token that is written passes hundreds of points: what torch does around a module's call takes longer than this one.
        if self._forward_hooks or self._forward_pre_hooks:
            return super().__call__(x)
        return self.forward(x)

    def forward(self, x: Any) -> Any:
        hooks = _hooks.get()
        hook = None if hooks is None else hooks.get(self)
        if hook is None:
            return x
        out = hook(x)
        return x if out is None else out

    @property
    def has_hooks(self) -> bool:
        """Whether the current run has a hook here. Attention asks, to spell itself out only where it must."""
        hooks = _hooks.get()
        return hooks is not None and self in hooks

    def extra_repr(self) -> str:
        return ", ".join(self.axes)


_hooks: ContextVar[Mapping[HookPoint, Hook] | None] = ContextVar("hooks", default=None)

# Called before every layer of a stack, where a pass may pause for another one. A caller of a model must not hold a lock then.
between_layers: ContextVar[Callable[[], object] | None] = ContextVar("between_layers", default=None)


def hook_points(model: nn.Module) -> Mapping[str, HookPoint]:
    """Every hook point by its module path, e.g. `decoder.blocks.3.attn.hook_q`. Looked up once for each model."""
    points = _points.get(model)
    if points is None:
        found = {name: module for name, module in model.named_modules() if isinstance(module, HookPoint)}
        points = _points[model] = MappingProxyType(found)
    return points


# Walking all modules takes as long as a small layer does; a model's hook points are fixed when it is built.
_points: WeakKeyDictionary[nn.Module, Mapping[str, HookPoint]] = WeakKeyDictionary()


def current_hooks() -> Mapping[HookPoint, Hook]:
    """The hooks of the context that the caller is in, outer and inner ones at one point together."""
    return _hooks.get() or {}


@contextmanager
def hooked(
    model: nn.Module, hooks: Mapping[str, Hook], *, outside: Mapping[HookPoint, Hook] | None = None
) -> Iterator[None]:
    """Run `hooks` at the named points of `model` for every forward pass of this context.

    Contexts nest: at one point the outer hook runs first and the inner one sees what it left. `outside` are the hooks of
    an earlier context, by current_hooks(), which then stand in the place of those that are open now.
    Raises KeyError naming the points that do not exist.
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
    """One hook that runs several in order, each seeing what the one before it left."""

    def run(x: Any) -> Any:
        for hook in hooks:
            out = hook(x)
            x = x if out is None else out
        return x

    return ReadHook(run) if all(isinstance(hook, ReadHook) for hook in hooks) else run
