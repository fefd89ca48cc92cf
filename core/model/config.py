"""ModelConfig: every choice that shapes a transformer, checked the moment it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal, get_args

from ..errors import ConfigError

Position = Literal["none", "learned", "sinusoidal", "rotary", "alibi", "relative", "disentangled"]
PositionCounts = Literal["places", "seen", "not_padding"]
SinusoidLayout = Literal["interleaved", "halves", "fairseq"]
Norm = Literal["layer", "rms"]
PositionTerm = Literal["c2p", "p2c"]  # content to position, position to content
NormOrder = Literal["pre", "post", "sandwich", "after"]
QKNormPlace = Literal["head", "full", "turned"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "relu_squared", "xielu"]
HeadKind = Literal["none", "lm", "mlm"]
ScalingKind = Literal["linear", "dynamic", "yarn", "llama3", "longrope"]
Router = Literal["softmax", "sigmoid", "sparsemixer"]
Kind = Literal["encoder", "decoder", "encoder-decoder"]


@dataclass(frozen=True, kw_only=True)
class RotaryScaling:
    """How rotary angles are stretched for inputs longer than the model was trained on.

    linear   positions divided by `factor` (Chen et al. 2023, arXiv:2306.15595)
    dynamic  the base grows with the length of the input (NTK-aware, r/LocalLLaMA 2023)
    yarn     high frequencies kept, low ones interpolated, q and k scaled (Peng et al. 2023, arXiv:2309.00071)
    llama3   the same idea with hard bounds on the wavelength (Llama 3.1 model card and code)
    longrope each frequency by a factor of its own, others once the input is longer (Ding et al. 2024, arXiv:2402.13753; Phi-3)
    """

    kind: ScalingKind
    factor: float
    n_ctx_original: int = 0  # length of the original training; needed by all but linear
    beta_fast: float = 32.0  # yarn: more turns than this over the original length: untouched
    beta_slow: float = 1.0  # yarn: fewer turns than this: fully interpolated
    truncate: bool = True  # yarn: round the two bounds to whole dimensions
    attention_factor: float | None = None  # yarn: factor on q and k; None: 0.1 ln(factor) + 1
    mscale: float | None = None  # yarn as DeepSeek writes it: two numbers that give the attention factor
    mscale_all_dim: float | None = None
    low_freq_factor: float = 1.0  # llama3
    high_freq_factor: float = 4.0  # llama3
    short_factors: tuple[float, ...] = ()  # longrope: a divisor of each frequency, up to n_ctx_original
    long_factors: tuple[float, ...] = ()  # longrope: beyond it

    def __post_init__(self) -> None:
        _one_of("rotary scaling kind", self.kind, ScalingKind)
        _finite(self)
        if self.factor < 1:
            raise ConfigError(f"rotary scaling factor ({self.factor}) must be at least 1")
        if self.kind != "linear" and self.n_ctx_original < 1:
            raise ConfigError(
                f"{self.kind} rotary scaling needs n_ctx_original, the length it was trained on (got {self.n_ctx_original})"
            )
        if self.kind == "longrope" and (not self.short_factors or len(self.short_factors) != len(self.long_factors)):
            raise ConfigError(
                f"longrope needs short_factors ({len(self.short_factors)}) and long_factors ({len(self.long_factors)}), one of "
                "each for every pair of features that turns"
            )
        if self.kind == "llama3" and self.high_freq_factor <= self.low_freq_factor:
            raise ConfigError(
                f"high_freq_factor ({self.high_freq_factor}) must exceed low_freq_factor ({self.low_freq_factor})"
            )


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The shape of one transformer. `n_` counts things, `d_` measures widths. Raises ConfigError at birth if it cannot be built."""

    vocab_size: int
    d_model: int
    n_heads: int
    d_ff: int
    n_encoder_layers: int = 0
    n_decoder_layers: int = 0
    n_kv_heads: int = 0  # 0: one per query head (MHA); 1: MQA; between: GQA
    d_head: int = 0  # 0: d_model // n_heads
    n_ctx: int = 512  # the longest input the model was made for

    # embedding
    position: Position = "learned"
    position_offset: int = 0  # RoBERTa, OPT and BART keep their first rows of the table for padding
    position_counts: PositionCounts = "places"  # see positions.position_ids
    sinusoid_layout: SinusoidLayout = "interleaved"
    zero_sinusoid: int | None = None  # a row of the table that is zeros (XGLM: that of its padding id)
    n_token_types: int = 0
    embed_scale: float = 1.0
    embed_norm: bool = False
    d_embed: int = 0  # 0: d_model; the width of the token vectors where a projection brings them to d_model (ALBERT)
    token_dropout_id: int | None = (
        None  # the mask's id, where its vector is zeros and the others are scaled for it (ESM-2)
    )
    d_unembed: int = 0  # 0: d_embed; what the masked-word head scores words from (RemBERT)

    # rotary and relative detail
    rotary_base: float = 10_000.0
    rotary_fraction: float = 1.0  # the share of d_head that turns
    rotary_scaling: RotaryScaling | None = None
    rotary_base_windowed: float | None = None  # Gemma 3: layers with a window turn by their own, unscaled base
    n_relative_buckets: int = 32
    max_relative_distance: int = 128
    relative_bias: bool = False  # T5's bias of distance beside another kind of position (MPNet)
    relative_per_layer: bool = False  # every layer has a table of its own (UMT5)
    # Disentangled attention (He et al. 2021, arXiv:2006.03654; v3: arXiv:2111.09543): content and distance have vectors of their own,
    # and a score has terms of both. The table of distances has 2 · (n_position_buckets or max_relative_distance) rows.
    position_terms: tuple[PositionTerm, ...] = ()
    n_position_buckets: int = (
        0  # distances beyond half of them share rows, more of them the farther away; 0: a row for each distance
    )
    distance_norm: bool = False  # the rows of the table are normed
    own_distance_projections: bool = True  # rows have projections of their own in each layer, or those of content
    unturned_layers: tuple[int, ...] = ()  # rotary: layers that do not turn q and k (SmolLM3's NoPE layers)

    # block
    norm: Norm = "layer"
    norm_eps: float = 1e-5
    final_norm_eps: float | None = None  # None: norm_eps (only CTRL's last norm reads the file's)
    latent_norm_eps: float = 1e-6  # of multi-head latent attention: a constant of the published code
    norm_bias: bool = True  # of LayerNorm: it shifts as well as scales
    norm_weight: bool = True  # norms scale by learned weights; OLMo's and nanochat's do not
    norm_order: NormOrder = "pre"
    parallel: bool = False  # attention and MLP read the same residual (GPT-NeoX)
    shared_norm: bool = False  # parallel: through one norm (GPT-J, Falcon, Phi, Cohere)
    first_attn_norm: bool = True  # ModernBERT's first attention reads the embedding, which was just normed, as it is
    final_norm: bool = True
    shared_layers: bool = False  # every layer has the same weights (ALBERT)

    # attention
    causal: bool = True  # of a decoder: no token sees what comes after it; one whose tokens do is built as an encoder
    qkv_bias: bool = True
    out_bias: bool = True
    qk_norm: bool = False
    qk_norm_place: QKNormPlace = "head"  # each head's, before it turns; the full width at once (OLMo 2); after it turns
    attn_scale: float | None = None  # None: 1/√d_head; T5 leaves it to initialisation (1.0)
    window: int | None = None  # how many positions back a query sees, itself included
    windowed_layers: tuple[int, ...] | None = None  # None: every layer has the window
    score_softcap: float | None = None  # c · tanh(score / c) before the mask (Gemma 2)
    # Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434): keys and values come from kv_rank numbers of each token, and
    # the features of a key that turn are one vector for all heads. 0: straight from the stream.
    kv_rank: int = 0
    q_rank: int = 0  # the same for queries
    d_v: int = 0  # width of a head's values; 0: d_head
    # The longer the text, the larger its queries: times 1 + growth · ln(1 + ⌊position / length⌋) (Ministral 3)
    query_growth: float = 0.0
    query_growth_length: int = 1
    sinks: bool = False  # each head has a score of its own that takes part in the softmax and has no value (gpt-oss)

    # mlp
    activation: Activation = "gelu"
    gated: bool = False
    mlp_bias: bool = True

    # mixture of experts: n_experts MLPs of width d_ff; a router gives each token to n_experts_per_token of them
    n_experts: int = 0  # 0: one MLP for all tokens
    n_experts_per_token: int = 0
    # softmax of all experts, before the best are taken; sigmoid: each by itself (DeepSeek V3); sparsemixer: the best two, each by a
    # softmax of those that are close to it (Liu et al. 2024, arXiv:2409.12136; PhiMoE)
    router: Router = "softmax"
    router_jitter: float = 0.01  # sparsemixer: how close, relative to the best
    # Experts come in groups, and a token takes its experts from the best few groups (DeepSeek-AI 2024, arXiv:2405.04434, §2.2.2)
    n_expert_groups: int = 1
    n_groups_per_token: int = 1
    router_normed: bool = True  # the weights of the chosen ones are made to sum to 1
    router_scale: float = 1.0
    router_bias: bool = False  # gpt-oss
    router_correction: bool = False  # a bias that takes part in the choice and not in the weights (DeepSeek V3)
    d_shared: int = 0  # width of an expert that every token takes as well; 0: there is none
    shared_gate: bool = False  # it is multiplied by a sigmoid of the token (Qwen2-MoE)
    dense_layers: tuple[int, ...] = ()  # layers that have one MLP, of width d_dense
    d_dense: int = 0
    expert_limit: float | None = None  # gpt-oss keeps gate and up within this, and multiplies by up + 1

    # head
    head: HeadKind = "lm"
    head_activation: Activation | None = None  # of a masked-word head; None: as in the MLPs
    tied: bool = True
    head_bias: bool = False
    logit_scale: float = 1.0
    logit_softcap: float | None = None  # c · tanh(logit / c)

    def __post_init__(self) -> None:
        self._check_values()
        if not (self.n_encoder_layers or self.n_decoder_layers):
            raise ConfigError(
                "a model needs encoder layers, decoder layers, or both (n_encoder_layers and n_decoder_layers are 0)"
            )
        if not self.causal and not self.n_encoder_layers:
            # Layers that all look both ways are an encoder, whatever they were made from: nothing of them can be cached,
            # read in chunks or written on, and their mask, cost and names are an encoder's.
            object.__setattr__(self, "n_encoder_layers", self.n_decoder_layers)
            object.__setattr__(self, "n_decoder_layers", 0)
        if not self.d_head and self.d_model % self.n_heads:
            raise ConfigError(
                f"d_model ({self.d_model}) must be a multiple of n_heads ({self.n_heads}), or give d_head"
            )
        object.__setattr__(self, "n_kv_heads", self.n_kv_heads or self.n_heads)
        object.__setattr__(self, "d_head", self.d_head or self.d_model // self.n_heads)
        if self.n_heads % self.n_kv_heads:
            raise ConfigError(f"n_heads ({self.n_heads}) must be a multiple of n_kv_heads ({self.n_kv_heads})")
        if self.position == "sinusoidal" and self.d_model % 2:
            raise ConfigError(f"sinusoidal positions pair their features: d_model ({self.d_model}) must be even")
        if self.position == "sinusoidal" and self.sinusoid_layout == "fairseq" and self.d_model < 4:
            raise ConfigError(f"fairseq's sinusoids need d_model ({self.d_model}) of at least 4")
        if self.position_counts != "places" and (self.position != "learned" or self.position_offset < 1):
            raise ConfigError(
                f"position_counts {self.position_counts!r} needs a table with a row before the first position: position "
                f"({self.position!r}) must be 'learned' and position_offset ({self.position_offset}) at least 1"
            )
        if self.position_counts == "not_padding" and self.n_decoder_layers:
            raise ConfigError(
                f"position_counts 'not_padding' is defined for encoders only (n_decoder_layers is {self.n_decoder_layers})"
            )
        if self.position == "rotary":
            self._check_rotary()
        if self.has_relative_bias:
            self._check_relative()
        if self.window is not None and self.window < 1:
            raise ConfigError(f"window ({self.window}) must be at least 1: a query always sees itself")
        if self.windowed_layers is not None:
            if self.window is None:
                raise ConfigError("windowed_layers is given but window is None: say how wide the window is")
            n_layers = max(self.n_encoder_layers, self.n_decoder_layers)
            if bad := [i for i in self.windowed_layers if not 0 <= i < n_layers]:
                raise ConfigError(f"windowed_layers names layer {bad[0]}, but the layers run from 0 to {n_layers - 1}")
        if self.parallel and (self.norm_order != "pre" or self.kind == "encoder-decoder"):
            raise ConfigError("parallel blocks are defined for pre-norm encoders and decoders only")
        if self.shared_norm and not self.parallel:
            raise ConfigError("shared_norm is the one norm of a parallel block; parallel is False")
        if not self.first_attn_norm and (self.norm_order != "pre" or self.parallel):
            raise ConfigError("first_attn_norm False is defined for pre-norm blocks only, one sublayer after the other")
        for name in ("score_softcap", "logit_softcap", "expert_limit"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"{name} ({value}) must be positive, or None for none")
        for name in ("unturned_layers", "dense_layers"):
            n_layers = max(self.n_encoder_layers, self.n_decoder_layers)
            if bad := [i for i in getattr(self, name) if not 0 <= i < n_layers]:
                raise ConfigError(f"{name} names layer {bad[0]}, but the layers run from 0 to {n_layers - 1}")
        if self.head != "none" and self.tied and self.unembed_width != self.embed_width:
            raise ConfigError(
                f"a tied head scores words from {self.unembed_width} numbers, but the table that it shares has "
                f"{self.embed_width} for each token"
            )
        if self.n_experts:
            self._check_experts()
        if self.query_growth_length < 1:
            raise ConfigError(f"query_growth_length ({self.query_growth_length}) must be at least 1")
        scaling = self.rotary_scaling
        if scaling is not None and scaling.kind == "longrope" and len(scaling.short_factors) != self.d_rotary // 2:
            raise ConfigError(
                f"longrope has {len(scaling.short_factors)} short_factors for {self.d_rotary // 2} pairs of features that turn"
            )
        if self.position == "disentangled":
            self._check_disentangled()
        if self.kv_rank:
            self._check_latent()
        elif self.q_rank or self.d_v:
            raise ConfigError("q_rank and d_v belong to multi-head latent attention: give kv_rank as well")

    def _check_values(self) -> None:
        """Each value by itself."""
        for name in ("vocab_size", "d_model", "n_heads", "d_ff", "n_ctx"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} ({getattr(self, name)}) must be at least 1")
        for name in (
            "n_encoder_layers",
            "n_decoder_layers",
            "n_kv_heads",
            "d_head",
            "position_offset",
            "n_token_types",
            "d_embed",
            "d_unembed",
            "n_experts",
            "n_experts_per_token",
            "d_shared",
            "d_dense",
            "kv_rank",
            "q_rank",
            "d_v",
        ):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} ({getattr(self, name)}) must not be negative")
        _finite(self)
        for name, allowed in (
            ("position", Position),
            ("position_counts", PositionCounts),
            ("sinusoid_layout", SinusoidLayout),
            ("norm", Norm),
            ("norm_order", NormOrder),
            ("qk_norm_place", QKNormPlace),
            ("router", Router),
            ("activation", Activation),
            ("head", HeadKind),
        ):
            _one_of(name, getattr(self, name), allowed)
        if self.head_activation is not None:
            _one_of("head_activation", self.head_activation, Activation)
        for term in self.position_terms:
            _one_of("position_terms", term, PositionTerm)
        for name in ("norm_eps", "final_norm_eps", "latent_norm_eps"):
            if (eps := getattr(self, name)) is not None and eps <= 0:
                raise ConfigError(f"{name} ({eps}) must be positive")

    def _check_disentangled(self) -> None:
        if (
            not self.position_terms
            or self.n_decoder_layers
            or self.n_kv_heads != self.n_heads
            or self.window is not None
        ):
            raise ConfigError(
                "disentangled attention is defined for encoders with position_terms, without a window and without shared keys"
            )
        half = self.n_position_buckets // 2
        if (self.n_position_buckets and not 1 <= half < self.max_relative_distance - 1) or self.distance_span < 1:
            raise ConfigError(
                f"disentangled attention needs max_relative_distance ({self.max_relative_distance}) of at least 1, and with "
                f"n_position_buckets ({self.n_position_buckets}) at least 2 buckets and a distance beyond half of them"
            )

    def _check_latent(self) -> None:
        if self.kind != "decoder" or self.position != "rotary" or self.qk_norm or self.unturned_layers:
            raise ConfigError(
                "multi-head latent attention (kv_rank) is defined for decoders with rotary positions and without qk_norm"
            )
        if self.n_kv_heads != self.n_heads:
            raise ConfigError(
                f"multi-head latent attention gives every head keys of its own: n_kv_heads ({self.n_kv_heads}) must be n_heads "
                f"({self.n_heads})"
            )
        if self.d_rotary >= self.d_head:
            raise ConfigError(f"of a head's {self.d_head} features some must not turn (d_rotary is {self.d_rotary})")

    def _check_experts(self) -> None:
        if not 1 <= self.n_experts_per_token <= self.n_experts:
            raise ConfigError(
                f"n_experts_per_token ({self.n_experts_per_token}) must be from 1 to n_experts ({self.n_experts})"
            )
        if self.dense_layers and not self.d_dense:
            raise ConfigError("dense_layers is given but d_dense is 0: say how wide their MLP is")
        groups, chosen = self.n_expert_groups, self.n_groups_per_token
        if not 1 <= chosen <= groups or self.n_experts % groups:
            raise ConfigError(
                f"n_experts ({self.n_experts}) must divide into n_expert_groups ({groups}), and a token chooses from 1 to all of them "
                f"(n_groups_per_token is {chosen})"
            )
        if chosen * (self.n_experts // groups) < self.n_experts_per_token:
            raise ConfigError(
                f"{chosen} groups of {self.n_experts // groups} experts hold fewer than n_experts_per_token ({self.n_experts_per_token})"
            )
        if self.router == "sparsemixer" and (self.n_experts_per_token != 2 or self.n_experts < 2):
            raise ConfigError(f"sparsemixer takes two experts for each token, not {self.n_experts_per_token}")

    def _check_rotary(self) -> None:
        for name in ("rotary_base", "rotary_base_windowed"):
            base = getattr(self, name)
            if base is not None and base <= 1:
                raise ConfigError(f"{name} ({base}) must be above 1: frequencies are its powers")
        if not 0 < self.rotary_fraction <= 1:
            raise ConfigError(f"rotary_fraction ({self.rotary_fraction}) must be above 0 and at most 1")
        if self.d_rotary < 2 or self.d_rotary % 2:
            raise ConfigError(
                f"rotary positions turn pairs of features: d_head ({self.d_head}) × rotary_fraction ({self.rotary_fraction}) "
                f"gives {self.d_rotary}, which must be even and at least 2"
            )

    def _check_relative(self) -> None:
        if self.n_relative_buckets < 4 or self.n_relative_buckets % 2:
            raise ConfigError(f"n_relative_buckets ({self.n_relative_buckets}) must be even and at least 4")
        # Half of a causal stack's buckets (a quarter of a bidirectional one's) hold one exact distance each; the
        # logarithmic rest needs room above them.
        exact = self.n_relative_buckets // 2
        if self.max_relative_distance <= exact:
            raise ConfigError(
                f"max_relative_distance ({self.max_relative_distance}) must exceed n_relative_buckets / 2 ({exact})"
            )

    @property
    def kind(self) -> Kind:
        """encoder, decoder, or encoder-decoder: it follows from the layer counts."""
        if self.n_encoder_layers and self.n_decoder_layers:
            return "encoder-decoder"
        return "encoder" if self.n_encoder_layers else "decoder"

    @property
    def uncounted_id(self) -> int | None:
        """The padding's token where positions count all others: its row of the table is the one before the first position's."""
        return self.position_offset - 1 if self.position_counts == "not_padding" else None

    @property
    def writes(self) -> bool:
        """Whether the last stack can continue a text: a decoder in which no token has seen a later one."""
        return self.n_decoder_layers > 0 and self.causal

    @property
    def d_rotary(self) -> int:
        """How many of a head's d_head features turn."""
        return int(self.d_head * self.rotary_fraction)

    @property
    def stacks(self) -> tuple[tuple[Literal["encoder", "decoder"], int], ...]:
        """The stacks that exist with their number of layers, in the order of the forward pass."""
        both: tuple[tuple[Literal["encoder", "decoder"], int], ...] = (
            ("encoder", self.n_encoder_layers),
            ("decoder", self.n_decoder_layers),
        )
        return tuple((name, n) for name, n in both if n)

    @property
    def has_position_table(self) -> bool:
        """Whether the number of positions is fixed by a table, so that a longer input cannot run at all."""
        return self.position in ("learned", "sinusoidal")

    @property
    def longest_text(self) -> int | None:
        """The most tokens that a text of this kind of model can have: rows of a learned table; sinusoids can be computed for more."""
        return self.n_ctx if self.position == "learned" else None

    @property
    def value_width(self) -> int:
        """The width of a head's values."""
        return self.d_v or self.d_head

    @property
    def embed_width(self) -> int:
        """The width of the table of tokens."""
        return self.d_embed or self.d_model

    @property
    def unembed_width(self) -> int:
        """How many numbers the head scores words from."""
        return (self.d_unembed or self.embed_width) if self.head == "mlm" else self.d_model

    @property
    def may_share_keys(self) -> bool:
        """Whether query heads could share keys and values: not where each head has its own by construction."""
        return not self.kv_rank and self.position != "disentangled"

    @property
    def distance_span(self) -> int:
        """Disentangled attention: the rows of the table on either side of no distance."""
        return self.n_position_buckets or self.max_relative_distance

    @property
    def has_relative_bias(self) -> bool:
        """Whether T5's learned bias of distance is added to the scores."""
        return self.position == "relative" or self.relative_bias

    @property
    def runs_in_steps(self) -> bool:
        """Whether self-attention is more than the fused kernel computes, so that it runs in the textbook's steps."""
        return self.score_softcap is not None or self.sinks

    def uses_rotary(self, layer: int) -> bool:
        """Whether this layer turns its queries and keys by rotary angles."""
        return self.position == "rotary" and layer not in self.unturned_layers

    @property
    def expert_layers(self) -> dict[str, tuple[int, ...]]:
        """The layers of each stack whose MLP is a mixture of experts; a stack without one is left out."""
        found = {str(stack): tuple(layer for layer in range(n) if self.has_experts(layer)) for stack, n in self.stacks}
        return {stack: layers for stack, layers in found.items() if layers}

    def has_experts(self, layer: int) -> bool:
        """Whether the MLP of this layer is a mixture of experts."""
        return self.n_experts > 0 and layer not in self.dense_layers

    def is_windowed(self, layer: int) -> bool:
        """Whether this layer looks through the sliding window."""
        return self.window is not None and (self.windowed_layers is None or layer in self.windowed_layers)

    def n_windowed(self, n_layers: int) -> int:
        """How many of the first `n_layers` layers look through the sliding window. Takes as long for any number of layers."""
        if self.window is None:
            return 0
        if self.windowed_layers is None:
            return n_layers
        return sum(layer < n_layers for layer in set(self.windowed_layers))


def _finite(config: ModelConfig | RotaryScaling) -> None:
    """Raises ConfigError for a field that is NaN or infinite: no comparison below would refuse the first."""
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{field.name} ({value}) must be a finite number")


def _one_of(name: str, value: object, allowed: object) -> None:
    choices = get_args(allowed)
    if value not in choices:
        raise ConfigError(f"{name} ({value!r}) must be one of {', '.join(map(repr, choices))}")


FIELD_NAMES = tuple(f.name for f in fields(ModelConfig))
