"""Size of the KV cache: the keys and values of earlier tokens, stored so that decoding does not recompute them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..errors import ConfigError
from ..model.config import ModelConfig
from .dtypes import cache_format
from .workload import Workload


@dataclass(frozen=True)
class KVCache:
    """Bytes for n tokens of every text. `per_token` is the growth of one text by one token while no window is full."""

    self_attention: int
    cross_attention: int  # filled once from the encoder, then constant
    per_token: int
    as_mha: int  # self_attention if every query head had its own keys and values
    as_mqa: int  # self_attention if all query heads shared one key and value

    @property
    def total(self) -> int:
        return self.self_attention + self.cross_attention

    def to_dict(self) -> dict[str, int]:
        return asdict(self) | {"total": self.total}


def kv_cache(config: ModelConfig, *, batch: int = 1, n: int, memory_len: int = 0, dtype: object = "float16") -> KVCache:
    """2 · layers · batch · n · n_kv_heads · d_head numbers (GQA: Ainslie et al. 2023, MQA: Shazeer 2019).

    A layer with a sliding window stores at most the window. Encoders have no cache: all zeros. `memory_len` is the length of the
    encoder's text. `dtype` may be quantized, such as llama.cpp's Q8_0. Raises ConfigError for negative counts and unknown formats.
    """
    for name, value in (("batch", batch), ("n", n), ("memory_len", memory_len)):
        if value < 0:
            raise ConfigError(f"{name} ({value}) must not be negative")
    kind = cache_format(dtype, config.d_head)
    head = kind.row(config.d_head) + kind.row(config.value_width)  # one key and one value
    windowed = config.n_windowed(config.n_decoder_layers)
    tokens = windowed * min(n, config.window or n) + (config.n_decoder_layers - windowed) * n  # over all layers
    cross = config.n_decoder_layers * memory_len if config.kind == "encoder-decoder" else 0
    return KVCache(
        self_attention=batch * tokens * config.n_kv_heads * head,
        cross_attention=batch * cross * config.n_kv_heads * head,
        per_token=config.n_decoder_layers * config.n_kv_heads * head,
        as_mha=batch * tokens * config.n_heads * head,
        as_mqa=batch * tokens * head,
    )


def cache_of(config: ModelConfig, work: Workload) -> KVCache:
    """The cache at the end of a workload."""
    return kv_cache(
        config,
        batch=work.batch,
        n=work.last_len,
        memory_len=work.memory_len(config),
        dtype=work.kv_dtype or work.dtype,
    )
