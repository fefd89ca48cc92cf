"""Memory of a traced run in chunks of rows, on the device and on the host, known in advance.

It follows core.run.chunks line by line: tensors that grow with the text, in addition to the peaks of the last chunk, which attends
to all keys.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import ConfigError
from ..model.config import ModelConfig
from ..model.rules import BLOCK_BYTES, WINDOW_ROWS
from .dtypes import FLOAT, INT
from .edits import rule_bytes
from .peak import SAMPLED, StackPass, head_bytes
from .runs import RunBytes, weight_bytes
from .workload import Workload, of_texts


def chunked_run_bytes(
    config: ModelConfig,
    workload: Workload | None = None,
    *,
    rows: int,
    keep_values: bool = True,
    on_host: bool = False,
    edited_rules: bool = False,
    **options: Any,
) -> RunBytes:
    """run_bytes() of a decoder that reads `rows` tokens at a time with a KV cache.

    With `on_host` the captured q, k and v are in host memory: `host` has their bytes and `captured` is 0, while the device still
    stores the keys and values of every layer to the end. An upper bound. Raises ConfigError as run_bytes does, for rows below 1, and
    for models other than decoders.
    """
    if config.kind != "decoder":
        raise ConfigError(f"a run in chunks is for decoders; this model is {config.kind}")
    if rows < 1:
        raise ConfigError(f"rows ({rows}) must be at least 1")
    work = of_texts(workload, options)
    work.check(config)
    batch, source_len = work.batch, work.source_len
    n_layers, by, rows = config.n_decoder_layers, work.by, min(rows, source_len)
    whole = StackPass(config, work, "decoder", n_layers, source_len, 0, "", "fused", True)
    chunk = StackPass(config, replace(work, source_len=rows), "decoder", n_layers, rows, 0, "", "fused", False)

    queries, values = n_layers * whole.q, n_layers * whole.kv(source_len)
    kept = queries + values + (values if keep_values else 0)
    inputs = whole.tokens * (2 * INT + 1) + (4 * len(config.stacks) + 1) * SAMPLED * by
    norms = (n_layers + 3) * whole.tokens * FLOAT  # of attention outputs, as chunks and joined
    beside = inputs + whole.noted * 2 + norms  # positions and angles exist twice: as chunks and joined
    beside += whole.stream if keep_values else 2 * batch * batch * config.d_model * by  # final residual stream
    held = beside + 2 * values + (0 if on_host else queries)
    moments = {name: held + value for name, value in chunk.moments().items()} | {
        f"decoder {name}": held + value for name, value in _chunk_attention(whole, chunk).items()
    }
    moments["decoder softmax and sum"] += chunk.q if on_host else 0  # made contiguous before the copy to the host
    if edited_rules:
        moments["decoder softmax and sum"] += rule_bytes(config, work, rows, source_len, spelled_out=False)
    moments["head"] = beside + (0 if on_host else kept) + head_bytes(config, batch, by, probabilities=True)
    moment = max(moments, key=lambda name: moments[name])
    captured = 0 if on_host else kept
    peak = max(moments[moment], captured)
    weights = weight_bytes(config, by)
    return RunBytes(weights, captured, peak - captured, weights + peak, values, moment, kept if on_host else 0)


def _chunk_attention(whole: StackPass, chunk: StackPass) -> dict[str, int]:
    """Possible peaks in the attention of the last chunk. The kernel does not support an offset of the queries, so that a numeric mask
    is made, a block of rows at a time."""
    config, by = whole.config, whole.by
    projected = chunk.q + 2 * chunk.kv(chunk.n)
    biased = config.position in ("relative", "alibi")
    z = chunk.q + chunk.tokens * config.n_heads * FLOAT
    row = whole.batch * (config.n_heads if biased else 1) * whole.n * by
    widest = 2 * chunk.q  # rows of the blocks, and their concatenation
    for window in {None if window is None else window for window in whole._windows(cross=False)}:
        block = min(chunk.n, max(1, BLOCK_BYTES // row))
        if window is not None:
            block = min(block, max(window, WINDOW_ROWS))
        keys = whole.n if window is None else min(whole.n, block + window - 1)
        mask = INT * (2 * block + keys) + whole._block(block * keys, biased=biased, windowed=window is not None)
        widest = max(widest, z + mask)
    before = chunk._around() + chunk._residual(0) + chunk._normed() + projected
    return {
        "softmax and sum": before + widest,
        "output projection": before + 2 * chunk.q + chunk.stream,
    }
