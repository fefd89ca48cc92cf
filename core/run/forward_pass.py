"""Pass: one forward pass with everything that determines it, so that it can be run again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from ..checkpoints import Loaded
from ..device import dtype_name
from ..edits import Intervention, hooks_of
from ..memory import admit_large
from ..model.hooks import Hook, HookPoint, ReadHook, current_hooks, hook_points, hooked
from ..plan.runs import run_bytes
from ..plan.workload import Workload
from .prompt import Prompt, model_inputs
from .weights import WeightsMark, mark_weights


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

        admit_large(self.transient(), self.loaded.device, "Another pass over this text")
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
