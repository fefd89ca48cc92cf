"""Component: one head, one MLP, or the residual stream at one token after one layer, as the target of an edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import InterventionError
from ..run.trace import Trace

ComponentKind = Literal["head", "mlp", "resid"]
Site = Literal["attn", "cross_attn"]
_ENDS: dict[ComponentKind, str] = {"head": "hook_z", "mlp": "hook_mlp_out", "resid": "hook_resid_post"}


@dataclass(frozen=True)
class Component:
    """Component of a model: Component("head", layer, head), Component("mlp", layer), or Component("resid", layer, token), which is the
    residual stream after a layer.

    `stack` None is the last one, the decoder of a model with two.
    """

    kind: ComponentKind
    layer: int
    at: int = 0  # index of the head, or of the token; 0 for an MLP
    stack: str | None = None
    site: Site = "attn"  # of a head

    def point(self, last_stack: str) -> str:
        """The hook point of the component's output."""
        site = f"{self.site}." if self.kind == "head" else ""
        return f"{self.stack or last_stack}.blocks.{self.layer}.{site}{_ENDS[self.kind]}"


def check_component(run: Trace, part: Component) -> None:
    """Raise InterventionError if the run has no such component."""
    stacks = dict(run.config.stacks)
    name = part.stack or run.config.stacks[-1][0]
    if part.kind not in _ENDS:
        raise InterventionError(f"A part is a head, an mlp or a resid, not {part.kind!r}.")
    if name not in stacks:
        raise InterventionError(f"This model has no {name}; it has: {', '.join(stacks)}.")
    if not 0 <= part.layer < stacks[name]:
        raise InterventionError(f"There is no {name} layer {part.layer}: its layers are 0 to {stacks[name] - 1}.")
    if part.kind == "head" and part.site != "attn" and not (name == "decoder" and "encoder" in stacks):
        raise InterventionError(f"The {name} of this model has no {part.site}: its heads are those of attn.")
    tokens = run.source if name == "encoder" or run.target is None else run.target
    n, noun = {"head": (run.config.n_heads, "head"), "mlp": (1, "MLP"), "resid": (len(tokens), "token")}[part.kind]
    if not 0 <= part.at < n:
        raise InterventionError(f"There is no {noun} {part.at}: they are 0 to {n - 1}.")
