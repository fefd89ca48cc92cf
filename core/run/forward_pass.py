"""Fingerprint of the weights used in a run, to reject later queries after the weights have changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ..checkpoints import Loaded
from ..device import check_fits_or_retry, dtype_name
from ..edits import Intervention, hooks_of
from ..errors import StaleTrace
from ..model.hooks import Hook, HookPoint, ReadHook, current_hooks, hook_points, hooked
from ..model.transformer import Transformer
from ..plan.peak import run_bytes
from ..plan.workload import Workload
from .request import Prompt, model_inputs

SAMPLED = 16  # numbers of a weight that are compared


@dataclass(frozen=True, eq=False, repr=False)
class WeightsMark:
    """Fingerprint of a model's weights. `version` increases when training changes them in place."""

    model: Transformer
    version: int
    sample: Tensor

    @property
    def holds(self) -> bool:
        """True if the model's weights have not changed since."""
        if _version(self.model) != self.version:
            return False
        return _same_bits(_sample(self.model), self.sample)

    def check(self) -> None:
        """Raises Outdated if the weights have changed."""
        if not self.holds:
            raise StaleTrace(
                "The model has been trained since this run, so what its weights then would give is no longer known. "
                "What the run holds can still be read; run the text again for the rest."
            )


def mark_weights(model: Transformer) -> WeightsMark:
    return WeightsMark(model, _version(model), _sample(model))


def _version(model: Transformer) -> int:
    """Number of in-place writes to the weights, by torch's counters. Inference tensors have none; they are never trained."""
    parameters = _parameters.get(model)
    if parameters is None:  # walking all modules takes as long as a small layer does
        parameters = _parameters[model] = tuple(p for p in model.parameters() if not p.is_inference())
    return sum(p._version for p in parameters)


_parameters: WeakKeyDictionary[Transformer, Sequence[Tensor]] = WeakKeyDictionary()


def _sample(model: Transformer) -> Tensor:
    """A few values, because fused optimisers and replaced weights do not change torch's counters."""
    weights = []
    for stack, n in model.config.stacks:
        for layer in {0, n - 1}:
            mlp = "mlp.router" if model.config.has_experts(layer) else "mlp.down"
            weights += [model.get_parameter(f"{stack}.blocks.{layer}.{name}.weight") for name in ("attn.q", mlp)]
    if model.head is not None:
        weights.append(model.get_parameter("head.unembed.weight"))
    with torch.inference_mode():
        return torch.cat([weight[0, :SAMPLED] for weight in weights])


def _same_bits(a: Tensor, b: Tensor) -> bool:
    """Bitwise equality, so that NaN equals itself; True for fake tensors, which have no values."""
    if type(a) is not Tensor or a.is_meta:
        return True
    if (a.shape, a.dtype, a.device) != (b.shape, b.dtype, b.device):
        return False
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))


@dataclass(frozen=True, eq=False, repr=False)
class Pass:
    """A model, texts, edits, and the hooks that were open around the run, which run before the edits."""

    loaded: Loaded
    prompt: Prompt
    interventions: tuple[Intervention, ...]
    edits: Mapping[str, Hook]  # of all interventions, in their order
    outside: Mapping[HookPoint, Hook]
    weights: WeightsMark

    @property
    def edited(self) -> frozenset[str]:
        """Hook points with an edit or an editing hook from outside."""
        return frozenset(self.edits) | self.edited_outside

    @property
    def edited_outside(self) -> frozenset[str]:
        """Hook points with an editing hook from outside."""
        points = hook_points(self.loaded.model) if self.outside else {}
        hooks = ((name, self.outside.get(point)) for name, point in points.items())
        return frozenset(name for name, hook in hooks if hook is not None and not isinstance(hook, ReadHook))

    def of(self, text: int) -> Pass:
        """The pass of one text of the batch, with its padding."""
        return replace(self, prompt=self.prompt.of(text))

    def run(self, *watchers: Mapping[str, Hook]) -> Tensor:
        """The last residual [batch, pos, d_model]. Watchers run after the edits."""
        with self.within(*watchers):
            inputs = model_inputs(self.prompt, self.loaded.device)
            return self.loaded.model.last_residual(*inputs)

    @contextmanager
    def within(self, *watchers: Mapping[str, Hook]) -> Iterator[None]:
        """Context of the pass: no gradients; hooks from outside, edits and watchers, in this order."""
        with torch.inference_mode(), ExitStack() as contexts:
            contexts.enter_context(hooked(self.loaded.model, {}, outside=self.outside))
            for hooks in (self.edits, *watchers):
                contexts.enter_context(hooked(self.loaded.model, hooks))
            yield

    @property
    def is_eager(self) -> frozenset[str]:
        """Attentions that run eagerly because their scores or pattern are edited."""
        ends = (".hook_scores", ".hook_pattern")
        return frozenset(name.rsplit(".", 1)[0] for name in self.edited if name.endswith(ends))

    @property
    def edited_rules(self) -> bool:
        """True if an edit may change the mask, scale or softmax of an attention."""
        return any(name.endswith(".hook_rule") for name in self.edited)

    def again(self, point: str, part: Callable[[Tensor], Tensor] = lambda x: x) -> Tensor:
        """The activation at one point, or a part of it, from another pass that stops there."""
        return self.moments([point], lambda _, x: part(x))[point]

    def moments(self, points: Collection[str], part: Callable[[str, Tensor], Tensor]) -> dict[str, Tensor]:
        """part(point, activation) of several points, from one pass that stops at the last of them.

        It is a single pass, even if the run was chunked. Raises Outdated if the weights have changed, KeyError for a point
        that the pass does not reach, and TooLarge.
        """
        seen: dict[str, Tensor] = {}

        def look(point: str, x: Tensor) -> None:
            seen[point] = part(point, x)
            if len(seen) == len(points):
                raise _StopForward

        check_fits_or_retry(self.transient(), self.loaded.device, "Another pass over this text")
        self.weights.check()
        with suppress(_StopForward):
            self.run({point: partial(look, point) for point in points})
        self.weights.check()  # training may run at the same time
        if missing := sorted(set(points) - seen.keys()):
            raise KeyError(f"this pass does not come to {', '.join(missing)}")
        return seen

    @property
    def workload(self) -> Workload:
        """Sizes and dtype of the texts, for the planner."""
        prompt = self.prompt
        return Workload(
            batch=prompt.batch,
            source_len=prompt.source_len,
            target_len=prompt.target_len,
            dtype=dtype_name(self.loaded.dtype),
            padded=prompt.is_padded,
        )

    def transient(self) -> int:
        """Predicted peak bytes of this pass in addition to the weights, if nothing is stored."""
        how = {"spelled_out": bool(self.is_eager), "edited_rules": self.edited_rules}
        return run_bytes(self.loaded.config, self.workload, keep_values=False, **how).transient

    def linear(self, name: str) -> nn.Linear:
        """A projection of the model, with the weights of the run. Raises Outdated if they have changed."""
        self.weights.check()
        linear = self.loaded.model.get_submodule(name)
        assert isinstance(linear, nn.Linear)
        return linear


class _StopForward(Exception):
    """Stops a pass once all requested activations are there."""


def prepare(loaded: Loaded, prompt: Prompt, interventions: Iterable[Intervention]) -> Pass:
    """A pass with the hooks that are open now. Raises InterventionError for edits of components that the model does not have,
    and TooLarge for masks of too many parts."""
    edits = tuple(interventions)
    return Pass(loaded, prompt, edits, hooks_of(loaded.model, edits), current_hooks(), mark_weights(loaded.model))
