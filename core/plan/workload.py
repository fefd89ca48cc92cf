"""Workload: texts, number formats and methods of a run or a training, that is, everything a plan needs besides the config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..device import dtype_name
from ..errors import ConfigError
from ..model.config import ModelConfig
from .dtypes import bytes_of, cache_format, check_activations, check_choice, check_lengths, weight_format
from .uncounted import check_counted

Attention = Literal["eager", "spelled_out", "efficient", "flash"]
Logits = Literal["last", "all"]
Optimizer = Literal["sgd", "momentum", "adam", "adamw"]
Recompute = Literal["none", "attention", "full"]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """`batch` texts of `source_len` tokens each. An encoder-decoder generates `target_len` tokens for each; others leave it at 0.

    dtype        of weights and activations
    weight_dtype only of weights, for inference: "int8", "int4", "Q4_K_M" ... (None: dtype), see core.plan.weights
    kv_dtype     of the KV cache: "int8", "Q8_0" ... (None: dtype)
    attention    flash, efficient, eager or spelled_out: see core.plan.saved
    logits       "last": a decoder computes them at the last position of each text, which generation needs; "all": at all
                 positions, as training and encoders always do
    piece        chunked prefill: tokens of the prompts, over all texts, that a decoder reads at once; 0: the whole prompt.
                 vLLM reads 2,048 at once (max_num_batched_tokens), llama.cpp 512 (n_ubatch)
    optimizer    sgd, momentum, adam or adamw; recompute: none, attention or full
    dropout      counts the masks that training with dropout saves
    padded       True if texts of different length share the batch
    rank         in training: the rank of low-rank adapters, which are trained while the weights are frozen, in weight_dtype if
                 that is given (LoRA and QLoRA: see core.plan.adapters). 0: all weights are trained
    """

    batch: int = 1
    source_len: int
    target_len: int = 0
    dtype: object = "float32"
    training: bool = False
    attention: Attention = "flash"
    logits: Logits = "last"
    piece: int = 0
    optimizer: Optimizer = "adamw"
    recompute: Recompute = "none"
    dropout: bool = False
    weight_dtype: object = None
    kv_dtype: object = None
    padded: bool = False
    rank: int = 0

    @property
    def by(self) -> int:
        """Bytes of one number of the activations. Raises ConfigError for an unsupported format."""
        return bytes_of(self.dtype)

    @property
    def last_len(self) -> int:
        """Tokens of the text whose next tokens are predicted: the target, or the only text."""
        return self.target_len or self.source_len

    def logit_positions(self, config: ModelConfig) -> int:
        """Positions of each text whose logits are in memory at the same time."""
        writes = config.kind != "encoder" and not self.training
        return 1 if writes and self.logits == "last" else self.last_len

    def memory_len(self, config: ModelConfig) -> int:
        """Keys of cross-attention for each text; 0 without cross-attention."""
        return self.source_len if config.kind == "encoder-decoder" else 0

    def stacks(self, config: ModelConfig) -> Iterator[tuple[Literal["encoder", "decoder"], int, int, int]]:
        """(stack, layers, tokens of its text, keys of its cross-attention), in the order of the forward pass."""
        memory_len = 0
        for name, n_layers in config.stacks:
            n = self.target_len if memory_len else self.source_len
            yield name, n_layers, n, memory_len
            memory_len = n

    def check(self, config: ModelConfig) -> None:
        """Raises ConfigError unless every stack has a text of at least one token and every option is one of those above."""
        check_lengths(config.kind, batch=self.batch, source_len=self.source_len, target_len=self.target_len)
        choices = {"attention": Attention, "logits": Logits, "optimizer": Optimizer, "recompute": Recompute}
        for name, allowed in choices.items():
            check_choice(name, getattr(self, name), allowed)
        check_activations(self.dtype)
        if self.training:
            check_counted(config, "The memory of a training is not counted")
        self._check_rank()
        if self.piece < 0:
            raise ConfigError(f"piece ({self.piece}) must be at least 1, or 0 for the whole prompt at once")
        if self.piece and (self.training or config.kind != "decoder"):
            raise ConfigError(f"piece ({self.piece}) is for decoders that read a prompt: leave it at 0")
        if self.weight_dtype is not None:
            name = weight_format(self.weight_dtype)
            if self.training and not self.rank and name != dtype_name(self.dtype):
                raise ConfigError(
                    f"weight_dtype ({self.weight_dtype!r}) is for inference: training updates its weights in dtype, unless rank "
                    "gives it adapters to update"
                )
        cache_format(self.kv_dtype or self.dtype, config.d_head)

    def _check_rank(self) -> None:
        if self.rank < 0:
            raise ConfigError(f"rank ({self.rank}) must be at least 1, or 0 where all weights are trained")
        if self.rank and not self.training:
            raise ConfigError(f"rank ({self.rank}) is of adapters that are trained: leave it at 0 without training")


def of_texts(workload: Workload | None, options: Mapping[str, Any]) -> Workload:
    """as_workload(), but several texts count as padded unless `padded` is given."""
    if workload is not None:
        return as_workload(workload, options)
    several = options.get("batch", 1) > 1
    padded = options.get("padded")
    return Workload(**{**options, "padded": several if padded is None else padded})


def as_workload(workload: Workload | None, options: Mapping[str, Any]) -> Workload:
    """The given workload, or one with these fields. Raises TypeError if both are given."""
    if workload is not None and options:
        raise TypeError(f"give a Workload or its fields by name, not both: {', '.join(options)}")
    return Workload(**options) if workload is None else workload
