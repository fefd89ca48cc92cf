"""Setup: what the sliders of the memory and compute views say, as one record that the planner understands."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.errors import ConfigError
from core.model.config import ModelConfig
from core.plan import Plan, Workload, plan, with_layers
from core.plan.workload import Attention, Logits, Optimizer, Recompute


@dataclass(frozen=True)
class Setup:
    """A model, and the texts it is run or trained on. `weight_dtype` and `kv_dtype` are None where they are dtype.

    `logits` and `piece` say how a decoder reads its prompt, and `rank` that adapters alone are trained, as in core.plan.Workload.
    """

    title: str  # of the preset it began as
    config: ModelConfig
    batch: int
    source_len: int
    target_len: int
    dtype: str = "float32"
    attention: Attention = "flash"
    training: bool = False
    optimizer: Optimizer = "adamw"
    recompute: Recompute = "none"
    dropout: bool = False
    weight_dtype: str | None = None
    kv_dtype: str | None = None
    logits: Logits = "last"
    piece: int = 0
    rank: int = 0

    @property
    def workload(self) -> Workload:
        """What the planner is asked about."""
        return Workload(
            batch=self.batch,
            source_len=self.source_len,
            target_len=self.target_len,
            dtype=self.dtype,
            attention=self.attention,
            training=self.training,
            optimizer=self.optimizer,
            recompute=self.recompute,
            dropout=self.dropout,
            weight_dtype=self.weight_dtype,
            kv_dtype=self.kv_dtype,
            logits=self.logits,
            piece=self.piece if self.config.kind == "decoder" and not self.training else 0,
            rank=self.rank,
        )


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a model that a slider changes, named as in ModelConfig; n_layers of one stack."""

    d_model: int
    n_heads: int
    n_kv_heads: int
    n_layers: int
    d_ff: int
    vocab_size: int


def shaped(config: ModelConfig, sizes: Sizes, *, longest: int) -> ModelConfig:
    """`config` with other sizes, for texts of at most `longest` tokens; heads share d_model where one of both is another. Raises ConfigError where they do not fit together.

    A table of sinusoids is computed for as many positions as are asked for; a learned table stays as long as it is.
    """
    n_ctx = max(config.n_ctx, longest) if config.position == "sinusoidal" else config.n_ctx
    shares = (sizes.d_model, sizes.n_heads) != (config.d_model, config.n_heads)
    sized = replace(
        config,
        d_model=sizes.d_model,
        n_heads=sizes.n_heads,
        n_kv_heads=sizes.n_kv_heads,
        d_head=0 if shares else config.d_head,
        d_ff=sizes.d_ff,
        vocab_size=sizes.vocab_size,
        n_ctx=n_ctx,
    )
    return sized if sizes.n_layers == layers(config) else with_layers(sized, sizes.n_layers)


def layers(config: ModelConfig) -> int:
    """Layers of one stack; encoder and decoder have as many."""
    return max(config.n_encoder_layers, config.n_decoder_layers)


def as_decoder(setup: Setup) -> Setup:
    """The same layers as a decoder, for an encoder."""
    config = replace(setup.config, n_encoder_layers=0, n_decoder_layers=layers(setup.config), causal=True)
    return replace(setup, config=config, target_len=0)


def as_pair(setup: Setup) -> Setup:
    """The same layers in an encoder and in a decoder, which writes as much as is read."""
    n = layers(setup.config)
    config = replace(setup.config, n_encoder_layers=n, n_decoder_layers=n, causal=True, parallel=False)
    return replace(setup, config=config, target_len=setup.target_len or setup.source_len)


def planned(setup: Setup) -> Plan:
    """plan() of a setup. Raises ConfigError as it does."""
    return plan(setup.config, setup.workload)


def ended(error: ConfigError) -> str:
    """An error as a sentence."""
    return str(error) if str(error).endswith(".") else f"{error}."
