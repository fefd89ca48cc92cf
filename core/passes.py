"""Pass: one forward pass with all that decides it, to be run, and run again for what was not kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from .checkpoints import Loaded
from .hooks import Hook, HookPoint, current_hooks, hook_points, hooked
from .interventions import Intervention, hooks_of
from .memory import admit_large
from .planner.runs import run_bytes
from .prompt import Prompt, model_inputs
from .weights import WeightsMark, mark_weights


@dataclass(frozen=True, eq=False, repr=False)
class Pass:
    """A model, texts, edits, and the hooks that were open around the run, which come before the edits."""

    loaded: Loaded
    prompt: Prompt
    edits: Mapping[str, Hook]  # of all interventions, in their order
    outside: Mapping[HookPoint, Hook]
    weights: WeightsMark

    @property
    def edited(self) -> frozenset[str]:
        """The hook points where an edit or a hook from outside may have changed what passed."""
        points = hook_points(self.loaded.model)
        from_outside = {name for name, point in points.items() if point in self.outside} if self.outside else ()
        return frozenset(self.edits) | frozenset(from_outside)

    def run(self, *watchers: Mapping[str, Hook]) -> Tensor:
        """The last residual [batch, pos, d_model]. Watchers see what the edits left."""
        with torch.inference_mode(), ExitStack() as contexts:
            contexts.enter_context(hooked(self.loaded.model, {}, outside=self.outside))
            for hooks in (self.edits, *watchers):
                contexts.enter_context(hooked(self.loaded.model, hooks))
            inputs = model_inputs(self.prompt.sources, self.prompt.targets, self.loaded.device)
            return self.loaded.model.last_residual(*inputs)

    @property
    def spelled_out(self) -> frozenset[str]:
        """The attentions that run in steps because something is hooked to their scores or their pattern."""
        ends = (".hook_scores", ".hook_pattern")
        return frozenset(name.rsplit(".", 1)[0] for name in self.edited if name.endswith(ends))

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

    def transient(self) -> int:
        """Bytes that this pass needs at its widest moment beside the weights, by the planner's word; nothing of it is kept."""
        prompt = self.prompt
        return run_bytes(
            self.loaded.config,
            batch=prompt.batch,
            source_len=prompt.source_len,
            target_len=prompt.target_len,
            dtype=str(self.loaded.dtype),
            padded=prompt.is_padded,
            keep_values=False,
            spelled_out=bool(self.spelled_out),
        ).transient

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
    return Pass(loaded, prompt, hooks_of(loaded.model, interventions), current_hooks(), mark_weights(loaded.model))
