"""KV cache: stores the keys and values of earlier tokens, so that decoding computes only the new token.

In a causal stack they never change, because no token attends to later ones (Shazeer 2019, arXiv:1911.02150, §2.3). Keys
are stored after RoPE. core.plan.kv_cache predicts the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .config import ModelConfig

KV = tuple[Tensor, Tensor]  # keys and values, each [batch, kv_head, key, d_head]


class DynamicKV:
    """Cache of one self-attention: all tokens, or with a sliding window those that the next token may attend to.

    The tensors have spare capacity, so that adding a token does not copy the earlier ones. The cached keys are [start, stop)
    of the key axis. With a `capacity` for the whole text, nothing is ever copied or evicted: k and v end up as those of
    the whole text, also with a window.
    """

    cached: KV | None = None  # self-attention always has new keys to compute

    def __init__(self, window: int | None = None, capacity: int = 0):
        self.window, self.capacity = window, capacity
        self.k = self.v = torch.empty(0, 0, 0, 0)
        self.start = self.stop = 0
        self.n_past = 0  # tokens since the beginning, including evicted ones

    @property
    def length(self) -> int:
        return self.stop - self.start

    @property
    def nbytes(self) -> int:
        """Bytes of the cached keys and values, without spare capacity."""
        per_token = self.k[:, :, :1].numel() + self.v[:, :, :1].numel()
        return per_token * self.length * self.k.element_size()

    def add(self, k: Tensor, v: Tensor) -> KV:
        """Append keys and values; return the cached ones followed by the new ones."""
        n = k.shape[2]
        if self.stop + n > self.k.shape[2]:
            self._reserve(k, v)
        self.k[:, :, self.stop : self.stop + n] = k
        self.v[:, :, self.stop : self.stop + n] = v
        self.stop += n
        self.n_past += n
        so_far = self.k[:, :, self.start : self.stop], self.v[:, :, self.start : self.stop]
        if self.window is not None:  # the next token sees itself and window - 1 before it
            self.start = max(self.start, self.stop - (self.window - 1))
            if not self.capacity and self.k.shape[2] > 2 * self.window:
                self._evict()
        return so_far

    def reorder(self, rows: Tensor) -> None:
        """Continue text i from the cache of text rows[i], as beam search does."""
        self.k, self.v = self.k[rows], self.v[rows]

    def crop(self, n: int) -> None:
        """Drop all but the first n tokens. Not for a window, which may have evicted some of these."""
        assert self.window is None and n <= self.n_past
        self.stop = self.start + n
        self.n_past = n

    def _evict(self) -> None:
        """Copy the cached part into tensors of its size, to free the keys of a long prompt."""
        self.k, self.v = (x[:, :, self.start : self.stop].clone() for x in (self.k, self.v))
        self.start, self.stop = 0, self.length

    def _reserve(self, k: Tensor, v: Tensor) -> None:
        """Move the cached part to new tensors with twice its size, plus the new keys, or the capacity asked for."""
        held = self.length
        capacity = max(2 * held + k.shape[2], self.capacity)
        wider = k.new_empty(*k.shape[:2], capacity, k.shape[3]), v.new_empty(*v.shape[:2], capacity, v.shape[3])
        if held:
            wider[0][:, :, :held] = self.k[:, :, self.start : self.stop]
            wider[1][:, :, :held] = self.v[:, :, self.start : self.stop]
        self.k, self.v = wider
        self.start, self.stop = 0, held


class StaticKV(DynamicKV):
    """Read-only cache of one self-attention: a prefix that any number of rows share."""

    def __init__(self, k: Tensor, v: Tensor):
        """k and v [1, kv_head, key, d_head] of the whole prefix, also if the layer has a window."""
        super().__init__()
        self.k, self.v = k, v
        self.stop = self.n_past = k.shape[2]

    def add(self, k: Tensor, v: Tensor) -> KV:
        """The prefix, repeated for every row, followed by these keys and values."""
        before = self.k.expand(len(k), -1, -1, -1), self.v.expand(len(v), -1, -1, -1)
        return torch.cat([before[0], k], dim=2), torch.cat([before[1], v], dim=2)


class CrossKV:
    """Cache of one cross-attention: keys and values of the encoder output, computed once."""

    def __init__(self) -> None:
        self.cached: KV | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self.cached is None else sum(x.nbytes for x in self.cached)

    def add(self, k: Tensor, v: Tensor) -> KV:
        self.cached = k, v
        return k, v

    def reorder(self, rows: Tensor) -> None:
        """Continue text i with the encoder output of text rows[i]."""
        if self.cached is not None:
            self.cached = self.cached[0][rows], self.cached[1][rows]


AttentionCache = DynamicKV | CrossKV


@dataclass(frozen=True, eq=False)
class LayerCache:
    """Caches of one layer: self-attention, and cross-attention if there is an encoder."""

    attn: DynamicKV
    cross: CrossKV | None


class Cache:
    """Cache of a decoder, layer by layer. The decoder fills it."""

    def __init__(self, config: ModelConfig, capacity: int = 0):
        crosses = config.kind == "encoder-decoder"
        self.layers = [
            LayerCache(
                DynamicKV(config.window if config.is_windowed(layer) else None, capacity),
                CrossKV() if crosses else None,
            )
            for layer in range(config.n_decoder_layers)
        ]

    @property
    def n_past(self) -> int:
        """Number of cached tokens of each text, including padding and evicted ones."""
        return self.layers[0].attn.n_past

    @property
    def nbytes(self) -> int:
        """Bytes of all cached keys and values, for all texts."""
        return sum(layer.attn.nbytes + (0 if layer.cross is None else layer.cross.nbytes) for layer in self.layers)

    def crop(self, n: int) -> bool:
        """Drop all but the first n tokens of each text. Returns False, unchanged, if a layer has a window."""
        if any(layer.attn.window is not None for layer in self.layers):
            return False
        for layer in self.layers:
            layer.attn.crop(min(n, layer.attn.n_past))
        return True

    def reorder(self, rows: Tensor) -> None:
        """Continue text i from the cache of text rows[i]; rows [batch] may repeat and omit texts."""
        for layer in self.layers:
            layer.attn.reorder(rows)
            if layer.cross is not None:
                layer.cross.reorder(rows)


def with_prefix_cache(config: ModelConfig, cached: Sequence[KV]) -> Cache:
    """A read-only cache from the keys and values of a prefix in each layer, [1, kv_head, key, d_head]."""
    cache = Cache(config)
    cache.layers = [LayerCache(StaticKV(k, v), None) for k, v in cached]
    return cache
