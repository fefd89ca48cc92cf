"""Padding invariance: one text in a padded batch compared with the same text without a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..run.attention import AttentionRecord
from ..trace import Trace


@dataclass(frozen=True, eq=False)
class Inertness:
    """Effect of padding on the tokens of a text. Padding itself is in no number."""

    on_padding: Tensor  # [record, head]: weight of the mean row on padding
    weights: float  # max |Δ| of all weights between real tokens
    output: float  # max |Δ| of the last residual stream
    cosine: float  # of the text's two vectors, the means of that stream over its tokens


def inertness(batch: Trace, alone: Trace) -> Inertness:
    """Compare a text of a batch (run.text(i)) with a run of only this text.

    For an encoder–decoder this is the encoder and its output. Raises ValueError if the two runs have different texts.
    """
    real = [i for i, padding in enumerate(batch.source.padding) if not padding]
    if [batch.source.ids[i] for i in real] != list(alone.source.ids):
        raise ValueError("the text alone is not the text of the batch")
    at, hidden = torch.tensor(real), torch.tensor(batch.source.padding)
    together, single = own_records(batch), own_records(alone)
    shares, weights = [], 0.0
    for a, b in zip(together, single, strict=True):
        pattern = a.pattern(None, at)  # [head, real, key]
        shares.append(pattern[..., hidden.to(pattern.device)].sum(-1).mean(-1))
        weights = max(weights, (pattern[..., at] - b.pattern()).abs().max().item())
    x, y = last_stream(batch, real), last_stream(alone, range(len(real)))
    cosine = F.cosine_similarity(x.mean(0), y.mean(0), dim=0).item()
    return Inertness(torch.stack(shares), weights, (x - y).abs().max().item(), cosine)


def own_records(run: Trace) -> list[AttentionRecord]:
    """Self-attentions of the stack that reads the source, by layer."""
    stack = run.config.stacks[0][0]
    return [record for record in run.attention if (record.stack, record.site) == (stack, "attn")]


def last_stream(run: Trace, positions: Sequence[int]) -> Tensor:
    """Output of the stack that reads the source, before its final norm, [pos, d_model] float32."""
    at = torch.tensor([*positions], device=run.loaded.device)
    if run.config.kind == "encoder-decoder":
        stack, n = run.config.stacks[0]
        return run.activation(f"{stack}.blocks.{n - 1}.hook_resid_post", at.tolist()).float()
    return run.last_residual(at)[run.index].float()
