"""ModelConfig: every choice that defines a transformer, validated on construction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Literal, TypeVar, get_args, get_origin, get_type_hints

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
    """Scaling of rotary angles for inputs longer than the trained context.

    linear   positions divided by `factor` (Chen et al. 2023, arXiv:2306.15595)
    dynamic  the base depends on the length of the input (NTK-aware, r/LocalLLaMA 2023)
    yarn     high frequencies kept, low ones interpolated, q and k scaled (Peng et al. 2023, arXiv:2309.00071)
    llama3   like yarn, with hard bounds on the wavelength (Llama 3.1 model card and code)
    longrope a factor for each frequency, from two lists by the input length (Ding et al. 2024, arXiv:2402.13753; Phi-3)
    """

    kind: ScalingKind
    factor: float
    n_ctx_original: int = 0  # trained context; required except for linear
    beta_fast: float = 32.0  # yarn: frequencies with more rotations than this over the original length are unchanged
    beta_slow: float = 1.0  # yarn: frequencies with fewer rotations than this are fully interpolated
    truncate: bool = True  # yarn: round both bounds to whole dimensions
    attention_factor: float | None = None  # yarn: factor on q and k; None: 0.1 ln(factor) + 1
    mscale: float | None = None  # yarn in DeepSeek models: two numbers that give the attention factor
    mscale_all_dim: float | None = None
    low_freq_factor: float = 1.0  # llama3
    high_freq_factor: float = 4.0  # llama3
    short_factors: tuple[float, ...] = ()  # longrope: a divisor of each frequency, up to n_ctx_original
    long_factors: tuple[float, ...] = ()  # longrope: beyond it

    def __post_init__(self) -> None:
        _check_choice("rotary scaling kind", self.kind, ScalingKind)
        _check_finite(self)
        _check_rules(self, _SCALING_RULES)


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Configuration of a transformer: `n_` for counts, `d_` for widths. The constructor raises ConfigError for an invalid one."""

    vocab_size: int
    d_model: int
    n_heads: int
    d_ff: int
    n_encoder_layers: int = 0
    n_decoder_layers: int = 0
    n_kv_heads: int = 0  # 0: one per query head (MHA); 1: MQA; between: GQA
    d_head: int = 0  # 0: d_model // n_heads
    n_ctx: int = 512  # trained context

    # embedding
    position: Position = "learned"
    position_offset: int = 0  # RoBERTa, OPT and BART reserve the first rows of the table for padding
    position_counts: PositionCounts = "places"  # see positions.position_ids
    sinusoid_layout: SinusoidLayout = "interleaved"
    zero_sinusoid: int | None = None  # a row of the table with zeros (XGLM: that of its padding id)
    n_token_types: int = 0
    embed_scale: float = 1.0
    embed_norm: bool = False
    d_embed: int = 0  # 0: d_model; width of the token vectors before a projection to d_model (ALBERT)
    token_dropout_id: int | None = None  # id of the mask token if its vector is zeros and the others are scaled (ESM-2)
    d_unembed: int = 0  # 0: d_embed; input width of the unembedding of a masked-word head (RemBERT)

    # rotary and relative detail
    rotary_base: float = 10_000.0
    rotary_fraction: float = 1.0  # the share of d_head that is rotated
    rotary_scaling: RotaryScaling | None = None
    rotary_base_windowed: float | None = None  # Gemma 3: separate, unscaled base of layers with a window
    n_relative_buckets: int = 32
    max_relative_distance: int = 128
    relative_bias: bool = False  # T5's distance bias in addition to another kind of position (MPNet)
    relative_per_layer: bool = False  # every layer has its own table (UMT5)
    # Disentangled attention (He et al. 2021, arXiv:2006.03654; v3: arXiv:2111.09543): content and distance have separate vectors, and
    # a score has terms of both. The table of distances has 2 · (n_position_buckets or max_relative_distance) rows.
    position_terms: tuple[PositionTerm, ...] = ()
    n_position_buckets: int = 0  # distances beyond half of them share rows, logarithmically; 0: a row for each distance
    distance_norm: bool = False  # the rows of the table are normalised
    own_distance_projections: bool = True  # each layer projects the rows by separate matrices, not by those of content
    unturned_layers: tuple[int, ...] = ()  # rotary: layers that do not rotate q and k (SmolLM3's NoPE layers)

    # block
    norm: Norm = "layer"
    norm_eps: float = 1e-5
    final_norm_eps: float | None = None  # None: norm_eps (in CTRL only the last norm has that of the file)
    latent_norm_eps: float = 1e-6  # multi-head latent attention: a constant in the published code
    norm_bias: bool = True  # LayerNorm shifts as well as scales
    norm_weight: bool = True  # norms scale by learned weights; OLMo's and nanochat's do not
    norm_order: NormOrder = "pre"
    parallel: bool = False  # attention and MLP have the same input (GPT-NeoX)
    shared_norm: bool = False  # parallel: one norm for both (GPT-J, Falcon, Phi, Cohere)
    first_attn_norm: bool = True  # False: the first attention has no norm (ModernBERT normalises the embedding)
    final_norm: bool = True
    shared_layers: bool = False  # every layer has the same weights (ALBERT)

    # attention
    causal: bool = True  # decoder: no token attends to later ones; a decoder with causal=False is built as an encoder
    qkv_bias: bool = True
    out_bias: bool = True
    qk_norm: bool = False
    qk_norm_place: QKNormPlace = (
        "head"  # each head before rotation, the full width (OLMo 2), or each head after rotation
    )
    attn_scale: float | None = None  # None: 1/√d_head; 1.0 in T5
    window: int | None = None  # number of positions that a query can attend to, itself included
    windowed_layers: tuple[int, ...] | None = None  # None: every layer has the window
    score_softcap: float | None = None  # c · tanh(score / c) before the mask (Gemma 2)
    # Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434): keys and values are projections of a latent vector of kv_rank
    # numbers per token, and the rotated features of a key are one vector for all heads. 0: projections of the residual stream.
    kv_rank: int = 0
    q_rank: int = 0  # width of the latent vector of queries
    d_v: int = 0  # width of a head's values; 0: d_head
    # Queries are scaled by 1 + query_growth · ln(1 + ⌊position / query_growth_length⌋) (Ministral 3)
    query_growth: float = 0.0
    query_growth_length: int = 1
    sinks: bool = False  # each head has a learned score that takes part in the softmax and has no value (gpt-oss)

    # mlp
    activation: Activation = "gelu"
    gated: bool = False
    mlp_bias: bool = True

    # mixture of experts: n_experts MLPs of width d_ff; a router selects n_experts_per_token of them for each token
    n_experts: int = 0  # 0: one MLP for all tokens
    n_experts_per_token: int = 0
    # softmax: over all experts, before the selection. sigmoid: of each expert (DeepSeek V3). sparsemixer: the best two experts, each by
    # a softmax over the experts with similar scores (Liu et al. 2024, arXiv:2409.12136; PhiMoE)
    router: Router = "softmax"
    router_jitter: float = 0.01  # sparsemixer: limit of the difference, relative to the best score
    # Experts are in groups, and a token selects experts from the best groups (DeepSeek-AI 2024, arXiv:2405.04434, §2.2.2)
    n_expert_groups: int = 1
    n_groups_per_token: int = 1
    router_normed: bool = True  # the weights of the selected experts are normalised to sum to 1
    router_scale: float = 1.0
    router_bias: bool = False  # gpt-oss
    router_correction: bool = False  # a bias in the selection that is not in the weights (DeepSeek V3)
    d_shared: int = 0  # width of an additional expert for every token; 0: none
    shared_gate: bool = False  # its output is multiplied by a sigmoid of the token (Qwen2-MoE)
    dense_layers: tuple[int, ...] = ()  # layers with one MLP, of width d_dense
    d_dense: int = 0
    expert_limit: float | None = None  # gpt-oss clamps gate and up to this limit, and multiplies by up + 1

    # head
    head: HeadKind = "lm"
    head_activation: Activation | None = None  # of a masked-word head; None: that of the MLPs
    tied: bool = True
    head_bias: bool = False
    logit_scale: float = 1.0
    logit_softcap: float | None = None  # c · tanh(logit / c)

    def __post_init__(self) -> None:
        self._check_values()
        _check_rules(self, _GIVEN_RULES)
        if not self.causal and not self.n_encoder_layers:
            # Layers that attend both ways are an encoder, whatever they were built from: they cannot be cached, chunked or used
            # for generation, and their mask, cost and names are an encoder's.
            object.__setattr__(self, "n_encoder_layers", self.n_decoder_layers)
            object.__setattr__(self, "n_decoder_layers", 0)
        object.__setattr__(self, "n_kv_heads", self.n_kv_heads or self.n_heads)
        object.__setattr__(self, "d_head", self.d_head or self.d_model // self.n_heads)
        _check_rules(self, _RULES)

    def _check_values(self) -> None:
        """Check each value independently of the others."""
        for name in ("vocab_size", "d_model", "n_heads", "d_ff", "n_ctx"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} ({getattr(self, name)}) must be at least 1")
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} ({getattr(self, name)}) must not be negative")
        _check_finite(self)
        for name, allowed in _CHOICES.items():
            _check_choice(name, getattr(self, name), allowed)
        if self.head_activation is not None:
            _check_choice("head_activation", self.head_activation, Activation)
        for term in self.position_terms:
            _check_choice("position_terms", term, PositionTerm)
        for name in ("norm_eps", "final_norm_eps", "latent_norm_eps"):
            if (eps := getattr(self, name)) is not None and eps <= 0:
                raise ConfigError(f"{name} ({eps}) must be positive")

    @property
    def kind(self) -> Kind:
        """encoder, decoder or encoder-decoder, by the numbers of layers."""
        if self.n_encoder_layers and self.n_decoder_layers:
            return "encoder-decoder"
        return "encoder" if self.n_encoder_layers else "decoder"

    @property
    def n_layers(self) -> int:
        """Number of layers of the deepest stack."""
        return max(self.n_encoder_layers, self.n_decoder_layers)

    @property
    def uncounted_id(self) -> int | None:
        """Id of the padding token if positions do not count it. Its row of the table precedes that of the first position."""
        return self.position_offset - 1 if self.position_counts == "not_padding" else None

    @property
    def writes(self) -> bool:
        """True if the model can generate text: its decoder is causal."""
        return self.n_decoder_layers > 0 and self.causal

    @property
    def d_rotary(self) -> int:
        """Number of rotated features of a head."""
        return int(self.d_head * self.rotary_fraction)

    @property
    def stacks(self) -> tuple[tuple[Literal["encoder", "decoder"], int], ...]:
        """The stacks of the model with their numbers of layers, in the order of the forward pass."""
        both: tuple[tuple[Literal["encoder", "decoder"], int], ...] = (
            ("encoder", self.n_encoder_layers),
            ("decoder", self.n_decoder_layers),
        )
        return tuple((name, n) for name, n in both if n)

    @property
    def has_position_table(self) -> bool:
        """True if a table limits the number of positions."""
        return self.position in ("learned", "sinusoidal")

    @property
    def longest_text(self) -> int | None:
        """Most tokens of a text: the rows of a learned table. Sinusoids can be computed for any length."""
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
        """Input width of the unembedding."""
        return (self.d_unembed or self.embed_width) if self.head == "mlm" else self.d_model

    @property
    def may_share_keys(self) -> bool:
        """True if the architecture allows grouped-query attention."""
        return not self.kv_rank and self.position != "disentangled"

    @property
    def distance_span(self) -> int:
        """Disentangled attention: rows of the table on either side of distance 0."""
        return self.n_position_buckets or self.max_relative_distance

    @property
    def has_relative_bias(self) -> bool:
        """True if T5's learned distance bias is added to the scores."""
        return self.position == "relative" or self.relative_bias

    @property
    def runs_in_steps(self) -> bool:
        """True if the fused kernel does not support the self-attention, which then runs step by step."""
        return self.score_softcap is not None or self.sinks

    def uses_rotary(self, layer: int) -> bool:
        """True if this layer rotates its queries and keys."""
        return self.position == "rotary" and layer not in self.unturned_layers

    @property
    def expert_layers(self) -> dict[str, tuple[int, ...]]:
        """The layers with a mixture of experts, for each stack that has any."""
        experts = {str(stack): tuple(i for i in range(n) if self.has_experts(i)) for stack, n in self.stacks}
        return {stack: layers for stack, layers in experts.items() if layers}

    def has_experts(self, layer: int) -> bool:
        """True if the MLP of this layer is a mixture of experts."""
        return self.n_experts > 0 and layer not in self.dense_layers

    def is_windowed(self, layer: int) -> bool:
        """True if this layer has the sliding window."""
        return self.window is not None and (self.windowed_layers is None or layer in self.windowed_layers)

    def n_windowed(self, n_layers: int) -> int:
        """Number of layers with the sliding window among the first `n_layers`. The time does not depend on `n_layers`."""
        if self.window is None:
            return 0
        if self.windowed_layers is None:
            return n_layers
        return sum(layer < n_layers for layer in set(self.windowed_layers))


def _check_finite(config: ModelConfig | RotaryScaling) -> None:
    """Raises ConfigError for a field that is NaN or infinite. The comparisons of the rules would not reject NaN."""
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{field.name} ({value}) must be a finite number")


def _check_choice(name: str, value: object, allowed: object) -> None:
    choices = get_args(allowed)
    if value not in choices:
        raise ConfigError(f"{name} ({value!r}) must be one of {', '.join(map(repr, choices))}")


T = TypeVar("T")
# The condition under which a configuration is invalid, and the sentence that says why. The first broken rule is reported.
_Rule = tuple[Callable[[T], object], Callable[[T], str]]


def _check_rules(config: T, rules: Iterable[_Rule[T]]) -> None:
    for is_broken, sentence in rules:
        if is_broken(config):
            raise ConfigError(sentence(config))


def _model_rules(*rules: _Rule[ModelConfig]) -> tuple[_Rule[ModelConfig], ...]:
    return rules


def _rules_if(applies: Callable[[ModelConfig], object], *rules: _Rule[ModelConfig]) -> Iterator[_Rule[ModelConfig]]:
    """Rules that hold only for configurations to which the condition applies."""

    def guarded(is_broken: Callable[[ModelConfig], object]) -> Callable[[ModelConfig], object]:
        return lambda c: applies(c) and is_broken(c)

    return ((guarded(is_broken), sentence) for is_broken, sentence in rules)


def _scaling_rules(*rules: _Rule[RotaryScaling]) -> tuple[_Rule[RotaryScaling], ...]:
    return rules


def _positive_or_none(name: str) -> _Rule[ModelConfig]:
    def sentence(c: ModelConfig) -> str:
        return f"{name} ({getattr(c, name)}) must be positive, or None for none"

    return lambda c: getattr(c, name) is not None and getattr(c, name) <= 0, sentence


def _layers_that_exist(name: str) -> _Rule[ModelConfig]:
    """`name` is a field that lists layers, or is None."""

    def missing(c: ModelConfig) -> list[int]:
        return [layer for layer in getattr(c, name) or () if not 0 <= layer < c.n_layers]

    def sentence(c: ModelConfig) -> str:
        return f"{name} names layer {missing(c)[0]}, but the layers run from 0 to {c.n_layers - 1}"

    return missing, sentence


def _base_above_one(name: str) -> _Rule[ModelConfig]:
    def sentence(c: ModelConfig) -> str:
        return f"{name} ({getattr(c, name)}) must be above 1: frequencies are its powers"

    return lambda c: getattr(c, name) is not None and getattr(c, name) <= 1, sentence


def _buckets_fit(config: ModelConfig) -> bool:
    half = config.n_position_buckets // 2
    return not config.n_position_buckets or 1 <= half < config.max_relative_distance - 1


def _n_longrope_factors(config: ModelConfig) -> int | None:
    scaling = config.rotary_scaling
    return len(scaling.short_factors) if scaling is not None and scaling.kind == "longrope" else None


_SCALING_RULES = _scaling_rules(
    (lambda s: s.factor < 1, lambda s: f"rotary scaling factor ({s.factor}) must be at least 1"),
    (
        lambda s: s.kind != "linear" and s.n_ctx_original < 1,
        lambda s: (
            f"{s.kind} rotary scaling needs n_ctx_original, the length it was trained on (got {s.n_ctx_original})"
        ),
    ),
    (
        lambda s: s.kind == "longrope" and (not s.short_factors or len(s.short_factors) != len(s.long_factors)),
        lambda s: (
            f"longrope needs short_factors ({len(s.short_factors)}) and long_factors ({len(s.long_factors)}), one of "
            "each for every pair of features that turns"
        ),
    ),
    (
        lambda s: s.kind == "llama3" and s.high_freq_factor <= s.low_freq_factor,
        lambda s: f"high_freq_factor ({s.high_freq_factor}) must exceed low_freq_factor ({s.low_freq_factor})",
    ),
)

_GIVEN_RULES = _model_rules(  # of the values as they were given, before the defaults are filled in
    (
        lambda c: not (c.n_encoder_layers or c.n_decoder_layers),
        lambda c: "a model needs encoder layers, decoder layers, or both (n_encoder_layers and n_decoder_layers are 0)",
    ),
    (
        lambda c: not c.d_head and c.d_model % c.n_heads,
        lambda c: f"d_model ({c.d_model}) must be a multiple of n_heads ({c.n_heads}), or give d_head",
    ),
)

_RULES = _model_rules(
    (
        lambda c: c.n_heads % c.n_kv_heads,
        lambda c: f"n_heads ({c.n_heads}) must be a multiple of n_kv_heads ({c.n_kv_heads})",
    ),
    # tables of positions
    (
        lambda c: c.position == "sinusoidal" and c.d_model % 2,
        lambda c: f"sinusoidal positions pair their features: d_model ({c.d_model}) must be even",
    ),
    (
        lambda c: c.position == "sinusoidal" and c.sinusoid_layout == "fairseq" and c.d_model < 4,
        lambda c: f"fairseq's sinusoids need d_model ({c.d_model}) of at least 4",
    ),
    (
        lambda c: c.position_counts != "places" and (c.position != "learned" or c.position_offset < 1),
        lambda c: (
            f"position_counts {c.position_counts!r} needs a table with a row before the first position: position "
            f"({c.position!r}) must be 'learned' and position_offset ({c.position_offset}) at least 1"
        ),
    ),
    (
        lambda c: c.position_counts == "not_padding" and c.n_decoder_layers,
        lambda c: (
            f"position_counts 'not_padding' is defined for encoders only (n_decoder_layers is {c.n_decoder_layers})"
        ),
    ),
    *_rules_if(
        lambda c: c.position == "rotary",
        _base_above_one("rotary_base"),
        _base_above_one("rotary_base_windowed"),
        (
            lambda c: not 0 < c.rotary_fraction <= 1,
            lambda c: f"rotary_fraction ({c.rotary_fraction}) must be above 0 and at most 1",
        ),
        (
            lambda c: c.d_rotary < 2 or c.d_rotary % 2,
            lambda c: (
                f"rotary positions turn pairs of features: d_head ({c.d_head}) × rotary_fraction ({c.rotary_fraction}) "
                f"gives {c.d_rotary}, which must be even and at least 2"
            ),
        ),
    ),
    *_rules_if(
        lambda c: c.has_relative_bias,
        (
            lambda c: c.n_relative_buckets < 4 or c.n_relative_buckets % 2,
            lambda c: f"n_relative_buckets ({c.n_relative_buckets}) must be even and at least 4",
        ),
        # Half of the buckets of a causal stack, and a quarter of a bidirectional one's, hold one exact distance each. The
        # logarithmic rest needs distances above them.
        (
            lambda c: c.max_relative_distance <= c.n_relative_buckets // 2,
            lambda c: (
                f"max_relative_distance ({c.max_relative_distance}) must exceed n_relative_buckets / 2 "
                f"({c.n_relative_buckets // 2})"
            ),
        ),
    ),
    # window and block
    (
        lambda c: c.window is not None and c.window < 1,
        lambda c: f"window ({c.window}) must be at least 1: a query always sees itself",
    ),
    (
        lambda c: c.windowed_layers is not None and c.window is None,
        lambda c: "windowed_layers is given but window is None: say how wide the window is",
    ),
    _layers_that_exist("windowed_layers"),
    (
        lambda c: c.parallel and (c.norm_order != "pre" or c.kind == "encoder-decoder"),
        lambda c: "parallel blocks are defined for pre-norm encoders and decoders only",
    ),
    (
        lambda c: c.shared_norm and not c.parallel,
        lambda c: "shared_norm is the one norm of a parallel block; parallel is False",
    ),
    (
        lambda c: not c.first_attn_norm and (c.norm_order != "pre" or c.parallel),
        lambda c: "first_attn_norm False is defined for pre-norm blocks only, one sublayer after the other",
    ),
    *map(_positive_or_none, ("score_softcap", "logit_softcap", "expert_limit")),
    *map(_layers_that_exist, ("unturned_layers", "dense_layers")),
    (
        lambda c: c.head != "none" and c.tied and c.unembed_width != c.embed_width,
        lambda c: (
            f"a tied head scores words from {c.unembed_width} numbers, but the table that it shares has "
            f"{c.embed_width} for each token"
        ),
    ),
    *_rules_if(
        lambda c: c.n_experts,
        (
            lambda c: not 1 <= c.n_experts_per_token <= c.n_experts,
            lambda c: f"n_experts_per_token ({c.n_experts_per_token}) must be from 1 to n_experts ({c.n_experts})",
        ),
        (
            lambda c: c.dense_layers and not c.d_dense,
            lambda c: "dense_layers is given but d_dense is 0: say how wide their MLP is",
        ),
        (
            lambda c: not 1 <= c.n_groups_per_token <= c.n_expert_groups or c.n_experts % c.n_expert_groups,
            lambda c: (
                f"n_experts ({c.n_experts}) must divide into n_expert_groups ({c.n_expert_groups}), and a token chooses from 1 "
                f"to all of them (n_groups_per_token is {c.n_groups_per_token})"
            ),
        ),
        (
            lambda c: c.n_groups_per_token * (c.n_experts // c.n_expert_groups) < c.n_experts_per_token,
            lambda c: (
                f"{c.n_groups_per_token} groups of {c.n_experts // c.n_expert_groups} experts hold fewer than "
                f"n_experts_per_token ({c.n_experts_per_token})"
            ),
        ),
        (
            lambda c: c.router == "sparsemixer" and (c.n_experts_per_token != 2 or c.n_experts < 2),
            lambda c: f"sparsemixer takes two experts for each token, not {c.n_experts_per_token}",
        ),
    ),
    (
        lambda c: c.query_growth_length < 1,
        lambda c: f"query_growth_length ({c.query_growth_length}) must be at least 1",
    ),
    (
        lambda c: _n_longrope_factors(c) not in (None, c.d_rotary // 2),
        lambda c: (
            f"longrope has {_n_longrope_factors(c)} short_factors for {c.d_rotary // 2} pairs of features that turn"
        ),
    ),
    *_rules_if(
        lambda c: c.position == "disentangled",
        (
            lambda c: not c.position_terms or c.n_decoder_layers or c.n_kv_heads != c.n_heads or c.window is not None,
            lambda c: (
                "disentangled attention is defined for encoders with position_terms, without a window and without shared keys"
            ),
        ),
        (
            lambda c: c.distance_span < 1 or not _buckets_fit(c),
            lambda c: (
                f"disentangled attention needs max_relative_distance ({c.max_relative_distance}) of at least 1, and with "
                f"n_position_buckets ({c.n_position_buckets}) at least 2 buckets and a distance beyond half of them"
            ),
        ),
    ),
    *_rules_if(
        lambda c: c.kv_rank,
        (
            lambda c: c.kind != "decoder" or c.position != "rotary" or c.qk_norm or c.unturned_layers,
            lambda c: (
                "multi-head latent attention (kv_rank) is defined for decoders with rotary positions and without qk_norm"
            ),
        ),
        (
            lambda c: c.n_kv_heads != c.n_heads,
            lambda c: (
                f"multi-head latent attention gives every head keys of its own: n_kv_heads ({c.n_kv_heads}) must be n_heads "
                f"({c.n_heads})"
            ),
        ),
        (
            lambda c: c.d_rotary >= c.d_head,
            lambda c: f"of a head's {c.d_head} features some must not turn (d_rotary is {c.d_rotary})",
        ),
    ),
    (
        lambda c: not c.kv_rank and (c.q_rank or c.d_v),
        lambda c: "q_rank and d_v belong to multi-head latent attention: give kv_rank as well",
    ),
)

FIELD_NAMES = tuple(f.name for f in fields(ModelConfig))
_CHOICES = {name: hint for name, hint in get_type_hints(ModelConfig).items() if get_origin(hint) is Literal}
_NOT_NEGATIVE = tuple(
    name
    for name in FIELD_NAMES
    if name.startswith(("n_", "d_", "position_offset", "kv_rank", "q_rank"))
    and name not in ("n_relative_buckets", "n_position_buckets", "n_expert_groups", "n_groups_per_token")
)  # the four have rules of their own
