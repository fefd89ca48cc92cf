"""The KV cache: what a decoder's attentions keep of earlier tokens, so that the next one is all there is to compute.

Keys and values of a causal stack never change once they are made, because no token sees what comes after it (Shazeer
2019, arXiv:1911.02150, §2.3). Positions are in them already: rotary keys are kept as they were turned. Bytes in advance
are `core.plan.kv_cache`'s to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .config import ModelConfig

KV = tuple[Tensor, Tensor]  # keys and values, each [batch, kv_head, key, d_head]


class DynamicKV:
    """Cache of one self-attention: all it has seen, or with a sliding window what the next token may still look at.

    The tensors have room for more than they hold, so that a new token copies nothing but itself: what is held lies in
    [start, stop) of the axis of keys. Who knows how many tokens come asks for `room` for all of them: then nothing is ever
    copied, and once they are read, k and v are those of the whole text, whatever a window lets the next token see.
    """

    cached: KV | None = None  # there are always new keys to compute

    def __init__(self, window: int | None = None, capacity: int = 0):
        self.window, self.capacity = window, capacity
        self.k = self.v = torch.empty(0, 0, 0, 0)
        self.start = self.stop = 0
        self.n_past = 0  # tokens since the beginning, forgotten ones included

    @property
    def length(self) -> int:
        return self.stop - self.start

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values that are held, without the room beside them."""
        per_token = self.k[:, :, :1].numel() + self.v[:, :, :1].numel()
        return per_token * self.length * self.k.element_size()

    def add(self, k: Tensor, v: Tensor) -> KV:
        """Take new ones in; what was held and they, in order."""
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
        """Let text i go on from what text rows[i] has seen: beams are copied and dropped."""
        self.k, self.v = self.k[rows], self.v[rows]

    def crop(self, n: int) -> None:
        """Forget all but the first n tokens. Only where no window has forgotten some of these."""
        assert self.window is None and n <= self.n_past
        self.stop = self.start + n
        self.n_past = n

    def _evict(self) -> None:
        """Move what is held into tensors of its size: those of a long prompt would keep all its keys for the next tokens."""
        self.k, self.v = (x[:, :, self.start : self.stop].clone() for x in (self.k, self.v))
        self.start, self.stop = 0, self.length

    def _reserve(self, k: Tensor, v: Tensor) -> None:
        """New tensors with what is held at their front, and room for as much again beside what comes."""
        held = self.length
        capacity = max(2 * held + k.shape[2], self.capacity)
        wider = k.new_empty(*k.shape[:2], capacity, k.shape[3]), v.new_empty(*v.shape[:2], capacity, v.shape[3])
        if held:
            wider[0][:, :, :held] = self.k[:, :, self.start : self.stop]
            wider[1][:, :, :held] = self.v[:, :, self.start : self.stop]
        self.k, self.v = wider
        self.start, self.stop = 0, held


class StaticKV(DynamicKV):
    """Cache of one self-attention whose rows have the same tokens before them: any number of rows read it, and none writes it."""

    def __init__(self, k: Tensor, v: Tensor):
        """k and v [1, kv_head, key, d_head]: everything that was seen, also where the layer has a window."""
        super().__init__()
        self.k, self.v = k, v
        self.stop = self.n_past = k.shape[2]

    def add(self, k: Tensor, v: Tensor) -> KV:
        """Those of the tokens before, for every row, and these after them."""
        before = self.k.expand(len(k), -1, -1, -1), self.v.expand(len(v), -1, -1, -1)
        return torch.cat([before[0], k], dim=2), torch.cat([before[1], v], dim=2)


class CrossKV:
    """Cache of one cross-attention: the encoder's keys and values, computed once and then `cached`."""

    def __init__(self) -> None:
        self.cached: KV | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self.cached is None else sum(x.nbytes for x in self.cached)

    def add(self, k: Tensor, v: Tensor) -> KV:
        """Take them in, and give them back."""
        self.cached = k, v
        return k, v

    def reorder(self, rows: Tensor) -> None:
        """Let text i look at what text rows[i] looks at."""
        if self.cached is not None:
            self.cached = self.cached[0][rows], self.cached[1][rows]


AttentionCache = DynamicKV | CrossKV


@dataclass(frozen=True, eq=False)
class LayerCache:
    """Of one block: its self-attention's, and its cross-attention's where there is an encoder."""

    attn: DynamicKV
    cross: CrossKV | None


class Cache:
    """Of a whole decoder, layer by layer. Empty at first; the decoder fills it as it reads."""

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
        """How many tokens of each text have been read, padding included."""
        return self.layers[0].attn.n_past

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values that are held now, for all texts."""
        return sum(layer.attn.nbytes + (0 if layer.cross is None else layer.cross.nbytes) for layer in self.layers)

    def crop(self, n: int) -> bool:
        """Forget all but the first n tokens of each text. False, and nothing changes, where a window has forgotten some of these."""
        if any(layer.attn.window is not None for layer in self.layers):
            return False
        for layer in self.layers:
            layer.attn.crop(min(n, layer.attn.n_past))
        return True

    def reorder(self, rows: Tensor) -> None:
        """Let text i go on from what text rows[i] has seen; rows [batch] may repeat texts and leave some out."""
        for layer in self.layers:
            layer.attn.reorder(rows)
            if layer.cross is not None:
                layer.cross.reorder(rows)


def with_prefix_cache(config: ModelConfig, cached: Sequence[KV]) -> Cache:
    """A cache of a decoder that many rows read, from the keys and values of each layer, [1, kv_head, key, d_head]."""
    cache = Cache(config)
    cache.layers = [LayerCache(StaticKV(k, v), None) for k, v in cached]
    return cache
