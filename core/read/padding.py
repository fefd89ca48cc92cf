"""Padding proved inert: one text of a batch against the same text alone, with the padding masked and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..run.attention import AttentionRecord
from ..run.trace import Trace


@dataclass(frozen=True, eq=False)
class Inertness:
    """The effect of a text's padding on its own tokens; all numbers are of real rows, whose padding is never in a mean."""

    on_padding: Tensor  # [record, head]: the weight on padding of the mean row
    weights: float  # max |Δ| of all weights between real tokens, against the text alone
    output: float  # max |Δ| of the last residual stream
    cosine: float  # of the text's vectors, the means of that stream over its tokens


def inertness(batch: Trace, alone: Trace) -> Inertness:
    """What is different for a text of a batch, seen from it (run.text(i)), where it runs alone.

    Of an encoder–decoder the encoder is meant, and what it writes into the decoder. Raises ValueError where the two runs
    have not read the same text.
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
    """The self-attentions of the stack that reads the source, by layer."""
    stack = run.config.stacks[0][0]
    return [record for record in run.attention if (record.stack, record.site) == (stack, "attn")]


def last_stream(run: Trace, positions: Sequence[int]) -> Tensor:
    """[pos, d_model] float32: what leaves the stack that reads the source, before its last norm where it has one."""
    at = torch.tensor([*positions], device=run.loaded.device)
    if run.config.kind == "encoder-decoder":
        stack, n = run.config.stacks[0]
        return run.activation(f"{stack}.blocks.{n - 1}.hook_resid_post", at.tolist()).float()
    return run.last_residual(at)[run.index].float()
