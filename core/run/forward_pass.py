"""Pass: one forward pass with all that decides it, to be run, and run again for what was not kept."""

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
    """A model, texts, edits, and the hooks that were open around the run, which come before the edits."""

    loaded: Loaded
    prompt: Prompt
    interventions: tuple[Intervention, ...]
    edits: Mapping[str, Hook]  # of all interventions, in their order
    outside: Mapping[HookPoint, Hook]
    weights: WeightsMark

    @property
    def edited(self) -> frozenset[str]:
        """The hook points where an edit or a hook from outside may have changed what passed."""
        return frozenset(self.edits) | self.edited_outside

    @property
    def edited_outside(self) -> frozenset[str]:
        """The hook points where a hook from outside may have done so."""
        points = hook_points(self.loaded.model) if self.outside else {}
        hooks = ((name, self.outside.get(point)) for name, point in points.items())
        return frozenset(name for name, hook in hooks if hook is not None and not isinstance(hook, ReadHook))

    def of(self, text: int) -> Pass:
        """The same over one text of the batch, with its padding."""
        return replace(self, prompt=self.prompt.of(text))

    def run(self, *watchers: Mapping[str, Hook]) -> Tensor:
        """The last residual [batch, pos, d_model]. Watchers see what the edits left."""
        with self.within(*watchers):
            inputs = model_inputs(self.prompt, self.loaded.device)
            return self.loaded.model.last_residual(*inputs)

    @contextmanager
    def within(self, *watchers: Mapping[str, Hook]) -> Iterator[None]:
        """Contexts of the pass: no gradients, the hooks from outside, the edits, and then the watchers."""
        with torch.inference_mode(), ExitStack() as contexts:
            contexts.enter_context(hooked(self.loaded.model, {}, outside=self.outside))
            for hooks in (self.edits, *watchers):
                contexts.enter_context(hooked(self.loaded.model, hooks))
            yield

    @property
    def is_eager(self) -> frozenset[str]:
        """The attentions that run in steps because something is hooked to their scores or their pattern."""
        ends = (".hook_scores", ".hook_pattern")
        return frozenset(name.rsplit(".", 1)[0] for name in self.edited if name.endswith(ends))

    @property
    def edited_rules(self) -> bool:
        """Whether the mask, the scale or the softmax of some attention may be another than the model's."""
        return any(name.endswith(".hook_rule") for name in self.edited)

    def again(self, point: str, part: Callable[[Tensor], Tensor] = lambda x: x) -> Tensor:
        """What passes one point, or the part of it that is asked for, from another pass that goes no further."""
        return self.moments([point], lambda _, x: part(x))[point]

    def moments(self, points: Collection[str], part: Callable[[str, Tensor], Tensor]) -> dict[str, Tensor]:
        """What is to be kept of several points, part(point, what passes), from one pass that ends at the last of them.

        Raises Outdated where the weights are no longer those of the run, KeyError for a point that no pass comes to, and
        TooLarge where it does not fit: it goes in one go, whatever the run went in.
        """
        seen: dict[str, Tensor] = {}

        def look(point: str, x: Tensor) -> None:
            seen[point] = part(point, x)
            if len(seen) == len(points):
                raise _Enough

        admit_large(self.transient(), self.loaded.device, "Another pass over this text")
        self.weights.check()
        with suppress(_Enough):
            self.run({point: partial(look, point) for point in points})
        self.weights.check()  # a training may go on beside this
        if missing := sorted(set(points) - seen.keys()):
            raise KeyError(f"this pass does not come to {', '.join(missing)}")
        return seen

    @property
    def workload(self) -> Workload:
        """The sizes of its texts, and their format, as the planner counts them."""
        prompt = self.prompt
        return Workload(
            batch=prompt.batch,
            source_len=prompt.source_len,
            target_len=prompt.target_len,
            dtype=dtype_name(self.loaded.dtype),
            padded=prompt.is_padded,
        )

    def transient(self) -> int:
        """Bytes that this pass needs at its widest moment beside the weights, by the planner's word; nothing of it is kept."""
        how = {"spelled_out": bool(self.is_eager), "edited_rules": self.edited_rules}
        return run_bytes(self.loaded.config, self.workload, keep_values=False, **how).transient

    def linear(self, name: str) -> nn.Linear:
        """A projection of the model, with the weights of the run. Raises Outdated where they have changed."""
        self.weights.check()
        found = self.loaded.model.get_submodule(name)
        assert isinstance(found, nn.Linear)
        return found


class _Enough(Exception):
    """Ends a pass that has shown what it was run for."""


def prepare(loaded: Loaded, prompt: Prompt, interventions: Iterable[Intervention]) -> Pass:
    """The pass that would run here and now. Raises InterventionError for edits of what the model does not have,
    and TooLarge for masks of too many parts."""
    edits = tuple(interventions)
    return Pass(loaded, prompt, edits, hooks_of(loaded.model, edits), current_hooks(), mark_weights(loaded.model))
