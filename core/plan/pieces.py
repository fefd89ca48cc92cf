"""Possible memory peaks of chunked prefill, as in vLLM and llama.cpp (n_ubatch).

Only the activations of one chunk are in memory. The keys and values of earlier chunks are in the cache, which is counted separately.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.config import ModelConfig
from .dtypes import INT
from .peak import Path, StackPass, head_bytes
from .workload import Workload


def piece_moments(config: ModelConfig, work: Workload, path: Path) -> dict[str, int]:
    """Live bytes besides weights and cache at the possible peaks of the last chunk, which attends to all keys.

    A chunk is a number of tokens over all texts of the batch, so more texts need more cache and no more of these bytes.
    """
    n, n_layers = work.source_len, config.n_decoder_layers
    rows = min(work.piece, work.batch * n)
    texts = min(work.batch, rows)  # with tokens in the chunk
    piece = StackPass(config, replace(work, batch=1, source_len=rows), "decoder", n_layers, rows, 0, "", path, False)
    inputs = work.batch * n * INT  # ids
    moments = {name: inputs + value for name, value in piece.moments().items()}
    before = inputs + piece._around() + piece._residual(0) + piece._normed() + piece.q + 2 * piece.kv(rows)
    if path == "fused":
        moments["decoder softmax and sum"] = before + piece._attend(n, cross=False)
    else:
        others = (
            (texts - 1) * 2 * n * config.n_heads * config.d_head * work.by
        )  # repeated keys and values of other texts
        moments["decoder scores and weights"] = before + others + piece._spelled_out(n, cross=False)
    positions = work.batch * work.logit_positions(config)
    last = max(rows, work.batch) * config.d_model * work.by
    moments["head"] = inputs + last + head_bytes(config, positions, work.by, probabilities=work.logits == "last")
    return moments
