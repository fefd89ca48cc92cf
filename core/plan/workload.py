"""Workload: what a model is to be run or trained on, and how: all that a plan depends on beside the config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..device import dtype_name
from ..errors import ConfigError
from ..model.config import ModelConfig
from .dtypes import bytes_of, cache_format, check_activations, check_lengths, weight_format
from .uncounted import check_counted

Attention = Literal["eager", "spelled_out", "efficient", "flash"]
Logits = Literal["last", "all"]
Optimizer = Literal["sgd", "momentum", "adam", "adamw"]
Recompute = Literal["none", "attention", "full"]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """`batch` texts of `source_len` tokens each; an encoder-decoder writes `target_len` for each, other models leave it at 0.

    dtype        of weights and activations
    weight_dtype of weights alone, for inference: "int8", "int4", "Q4_K_M" ... (None: dtype), see core.plan.weights
    kv_dtype     of the KV cache: "int8", "Q8_0" ... (None: dtype)
    attention    flash, efficient, eager or spelled_out: see core.plan.saved
    logits       a decoder's run keeps those of the last position of each text, which is all that writing needs, or of all.
                 Training and encoders need all of them
    piece        tokens of a prompt that a decoder reads at once, over all texts; 0: the whole prompt. vLLM reads 2,048 at once
                 (max_num_batched_tokens), llama.cpp 512 (n_ubatch), and only their activations are ever there
    optimizer    sgd, momentum, adam or adamw; recompute: none, attention or full
    dropout      counts the masks that training with dropout keeps
    padded       whether texts of different length share the batch
    rank         of training: low-rank adapters of this rank beside every matrix of the layers are trained and the weights are
                 frozen, in weight_dtype if that is given (LoRA and QLoRA: see core.plan.adapters). 0: all weights are trained
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
        """Bytes of one number of the activations. Raises ConfigError for a format that is not counted."""
        return bytes_of(self.dtype)

    @property
    def last_len(self) -> int:
        """Tokens of the text that words are foretold for: the target, or the only one."""
        return self.target_len or self.source_len

    def logit_positions(self, config: ModelConfig) -> int:
        """Positions of each text whose logits are there at once."""
        writes = config.kind != "encoder" and not self.training
        return 1 if writes and self.logits == "last" else self.last_len

    def memory_len(self, config: ModelConfig) -> int:
        """Tokens that cross-attention looks at; 0 where there is none."""
        return self.source_len if config.kind == "encoder-decoder" else 0

    def stacks(self, config: ModelConfig) -> Iterator[tuple[Literal["encoder", "decoder"], int, int, int]]:
        """(stack, layers, tokens of its text, tokens that its cross-attention looks at), in the order of the forward pass."""
        memory_len = 0
        for name, n_layers in config.stacks:
            n = self.target_len if memory_len else self.source_len
            yield name, n_layers, n, memory_len
            memory_len = n

    def check(self, config: ModelConfig) -> None:
        """Raises ConfigError unless every stack has a text of at least one token and every choice is one of those above."""
        check_lengths(config.kind, batch=self.batch, source_len=self.source_len, target_len=self.target_len)
        choices = {"attention": Attention, "logits": Logits, "optimizer": Optimizer, "recompute": Recompute}
        for name, allowed in choices.items():
            if (value := getattr(self, name)) not in get_args(allowed):
                raise ConfigError(f"{name} ({value!r}) must be one of {', '.join(map(repr, get_args(allowed)))}")
        check_activations(self.dtype)
        if self.training:
            check_counted(config, "The memory of a training is not counted")
        if self.rank < 0:
            raise ConfigError(f"rank ({self.rank}) must be at least 1, or 0 where all weights are trained")
        if self.rank and not self.training:
            raise ConfigError(f"rank ({self.rank}) is of adapters that are trained: leave it at 0 without training")
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


def of_texts(workload: Workload | None, options: Mapping[str, Any]) -> Workload:
    """as_workload(), where texts that share a batch are of different length unless `padded` says otherwise."""
    if workload is not None:
        return as_workload(workload, options)
    several = options.get("batch", 1) > 1
    padded = options.get("padded")
    return Workload(**{**options, "padded": several if padded is None else padded})


def as_workload(workload: Workload | None, options: Mapping[str, Any]) -> Workload:
    """A workload, or one made of its fields by name. Raises TypeError for both."""
    if workload is not None and options:
        raise TypeError(f"give a Workload or its fields by name, not both: {', '.join(options)}")
    return Workload(**options) if workload is None else workload
