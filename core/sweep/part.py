"""Part: one head, one MLP, or the stream at one token after one layer, named so that a run can be changed there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import InterventionError
from ..run.trace import Trace

PartKind = Literal["head", "mlp", "resid"]
Site = Literal["attn", "cross_attn"]


@dataclass(frozen=True)
class Part:
    """A part of a model: Part("head", layer, head), Part("mlp", layer), or Part("resid", layer, token), the stream after a layer.

    `stack` None is the last one, the decoder of a model with two.
    """

    kind: PartKind
    layer: int
    at: int = 0  # number of the head, or of the token; an MLP has none
    stack: str | None = None
    site: Site = "attn"  # of a head

    def point(self, last_stack: str) -> str:
        """The hook point that the part gives its numbers at."""
        end = {"head": f"{self.site}.hook_z", "mlp": "hook_mlp_out", "resid": "hook_resid_post"}[self.kind]
        return f"{self.stack or last_stack}.blocks.{self.layer}.{end}"


def check_part(run: Trace, part: Part) -> None:
    """Raises InterventionError for a part that the run does not have."""
    stacks = dict(run.config.stacks)
    name = part.stack or run.config.stacks[-1][0]
    if part.kind not in ("head", "mlp", "resid"):
        raise InterventionError(f"A part is a head, an mlp or a resid, not {part.kind!r}.")
    if name not in stacks:
        raise InterventionError(f"This model has no {name}; it has: {', '.join(stacks)}.")
    if not 0 <= part.layer < stacks[name]:
        raise InterventionError(f"There is no {name} layer {part.layer}: its layers are 0 to {stacks[name] - 1}.")
    if part.kind == "head" and part.site != "attn" and not (name == "decoder" and "encoder" in stacks):
        raise InterventionError(f"The {name} of this model has no {part.site}: its heads are those of attn.")
    read = run.source if name == "encoder" or run.target is None else run.target
    n = {"head": run.config.n_heads, "mlp": 1, "resid": len(read)}[part.kind]
    if not 0 <= part.at < n:
        what = {"head": "head", "mlp": "MLP", "resid": "token"}[part.kind]
        raise InterventionError(f"There is no {what} {part.at}: they are 0 to {n - 1}.")
