"""Workload: what a model is run or trained on, the number formats it may use, and its KV cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from ..device import dtype_name
from ..errors import ConfigError
from ..model.config import ModelConfig

BYTES: dict[str, int] = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}  # formats that a pass can run in
FLOAT = 4  # bytes of a float32 number
INT = 8  # bytes of an id, a position or a distance


@dataclass(frozen=True)
class Format:
    """A block of `numbers` in a row of a matrix that share scales; `bits` are those of the whole block, scales and offsets included."""

    name: str
    numbers: int
    bits: int
    row_bits: int = 0  # of scales that a whole row shares
    why: str = ""

    @property
    def bits_each(self) -> float:
        """Bits per number without the scales of whole rows."""
        return self.bits / self.numbers

    def row(self, width: int) -> int:
        """Bytes of a row of `width` numbers. A partial last block takes as much as a full one."""
        return -(-(-(-width // self.numbers) * self.bits + self.row_bits) // 8)

    def fits(self, width: int) -> bool:
        """True if rows of this width are whole blocks."""
        return width % self.numbers == 0


def _ggml(name: str, numbers: int, n_bytes: int, why: str) -> Format:
    return Format(name, numbers, 8 * n_bytes, why=why)


FORMATS: dict[str, Format] = {
    format_.name: format_
    for format_ in (
        *(Format(name, 1, 8 * by, why=f"{by} bytes each") for name, by in BYTES.items()),
        Format("float8", 1, 8, why="one byte each; one scale for a whole tensor is not counted"),
        Format("int8", 1, 8, row_bits=32, why="one byte each, and a float32 scale a row (Dettmers et al. 2022)"),
        Format(
            "int4", 128, 128 * 4 + 16 + 4, why="groups of 128 with a float16 scale and a 4-bit zero, as GPTQ and AWQ"
        ),
        Format(
            "nf4", 64, 64 * 4 + 32, why="blocks of 64 with a float32 scale (Dettmers et al. 2023), scales not quantized"
        ),
        _ggml("Q4_0", 32, 2 + 16, "a float16 scale"),
        _ggml("Q4_1", 32, 2 + 2 + 16, "a float16 scale and minimum"),
        _ggml("Q5_0", 32, 2 + 4 + 16, "a float16 scale, the fifth bits apart"),
        _ggml("Q5_1", 32, 2 + 2 + 4 + 16, "a float16 scale and minimum, the fifth bits apart"),
        _ggml("Q8_0", 32, 2 + 32, "a float16 scale"),
        _ggml("Q2_K", 256, 2 + 2 + 16 + 64, "4-bit scales and minima of 16, and two float16 for those"),
        _ggml("Q3_K", 256, 2 + 12 + 64 + 32, "6-bit scales of 16, and a float16 for those"),
        _ggml("Q4_K", 256, 2 + 2 + 12 + 128, "6-bit scales and minima of 32, and two float16 for those"),
        _ggml("Q5_K", 256, 2 + 2 + 12 + 128 + 32, "as Q4_K, the fifth bits apart"),
        _ggml("Q6_K", 256, 2 + 16 + 128 + 64, "8-bit scales of 16, and a float16 for those"),
        _ggml("IQ1_S", 256, 2 + 32 + 16, "places in a grid, and a float16 scale"),
        _ggml("IQ1_M", 256, 32 + 16 + 8, "places in a grid, scales among them"),
        _ggml("IQ2_XXS", 256, 2 + 64, "places in a grid, and a float16 scale"),
        _ggml("IQ2_XS", 256, 2 + 64 + 8, "places in a grid, scales of 16 and a float16 for those"),
        _ggml("IQ2_S", 256, 2 + 64 + 8 + 8, "places in a grid, scales of 16 and a float16 for those"),
        _ggml("IQ3_XXS", 256, 2 + 96, "places in a grid, and a float16 scale"),
        _ggml("IQ3_S", 256, 2 + 64 + 8 + 32 + 4, "places in a grid, signs, scales of 32 and a float16 for those"),
        _ggml("IQ4_NL", 32, 2 + 16, "places in a table of 16, and a float16 scale"),
        _ggml("IQ4_XS", 256, 2 + 2 + 4 + 128, "places in a table of 16, 6-bit scales of 32 and a float16 for those"),
        _ggml("MXFP4", 32, 1 + 16, "4-bit floats with a power of two for a scale"),
    )
}
LAYERS_ALONE = ("float8", "int8", "int4", "nf4")

# Mix -> the type of most of its tensors. Some names differ from that type because files are named after their bits per weight.
MIXES: dict[str, str] = {
    name: name for name in FORMATS if name not in (*BYTES, *LAYERS_ALONE, "MXFP4", "Q3_K", "Q4_K", "Q5_K")
}
MIXES |= {"Q2_K_S": "Q2_K", "Q3_K_S": "Q3_K", "Q3_K_M": "Q3_K", "Q3_K_L": "Q3_K", "Q4_K_S": "Q4_K", "Q4_K_M": "Q4_K"}
MIXES |= {"Q5_K_S": "Q5_K", "Q5_K_M": "Q5_K", "IQ2_S": "IQ2_XS", "IQ2_M": "IQ2_S", "IQ3_XS": "IQ3_S", "IQ3_M": "IQ3_S"}
WEIGHT_FORMATS = (*BYTES, *LAYERS_ALONE, *MIXES)
CACHE = (*BYTES, "float8", "int8", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL")  # formats of a KV cache


def bytes_of(dtype: object, what: str = "dtype") -> int:
    """Bytes of one number of "float32" or torch.float32. Raises ConfigError, naming `what`, for an unsupported format."""
    name = dtype_name(dtype)
    if name not in BYTES:
        raise ConfigError(f"{what} ({name!r}) must be one of {_listed(BYTES)}")
    return BYTES[name]


def cache_format(dtype: object, d_head: int) -> Format:
    """The format of the keys and values of a head. Raises ConfigError if a cache cannot use it or its blocks do not fit d_head."""
    name = canonical_dtype(dtype, CACHE)
    if name not in CACHE:
        raise ConfigError(f"kv_dtype ({dtype_name(dtype)!r}) must be one of {_listed(CACHE)}")
    if name == "int8":
        return Format("int8", 1, 8)  # scales of whole tensors
    kind = FORMATS[name]
    if not kind.fits(d_head):
        raise ConfigError(
            f"kv_dtype ({name!r}) keeps blocks of {kind.numbers}, and d_head ({d_head}) is no multiple of it"
        )
    return kind


def weight_format(dtype: object) -> str:
    """The canonical name of a weight format. Raises ConfigError for an unknown one."""
    name = canonical_dtype(dtype, WEIGHT_FORMATS)
    if name not in WEIGHT_FORMATS:
        raise ConfigError(f"weight_dtype ({dtype_name(dtype)!r}) must be one of {_listed(WEIGHT_FORMATS)}")
    return name


def canonical_dtype(dtype: object, known: object) -> str:
    """The canonical name of a format: GGUF types may be given in lower case."""
    name = dtype_name(dtype)
    return name if name in known else name.upper()  # type: ignore[operator]


def check_choice(name: str, value: object, allowed: object) -> None:
    """Raises ConfigError unless the value is one of those of a Literal type."""
    if value not in get_args(allowed):
        raise ConfigError(f"{name} ({value!r}) must be one of {_listed(get_args(allowed))}")


def check_lengths(kind: str, *, batch: int, source_len: int, target_len: int) -> None:
    """Raises ConfigError unless every stack has at least one text of at least one token."""
    lengths = {"batch": batch, "source_len": source_len}
    if kind == "encoder-decoder":
        lengths["target_len"] = target_len
    for name, value in lengths.items():
        if value < 1:
            raise ConfigError(f"{name} ({value}) must be at least 1")
    if kind != "encoder-decoder" and target_len:
        raise ConfigError(
            f"target_len ({target_len}) is for encoder-decoders; this model is {kind}-only: leave it at 0"
        )


def check_activations(dtype: object) -> None:
    """Raises ConfigError for a format in which weights can be stored but a pass cannot run."""
    name = canonical_dtype(dtype, FORMATS)
    if name in FORMATS and name not in BYTES:
        raise ConfigError(
            f"dtype ({str(dtype)!r}) is a format for weights: pass dtype='float16', weight_dtype={str(dtype)!r}"
        )
    bytes_of(dtype)


def _listed(names: object) -> str:
    return ", ".join(map(repr, names))  # type: ignore[call-overload]


def rare_parts(config: ModelConfig) -> list[str]:
    """The components of a model that saved activations and diagrams do not support, in words."""
    parts = {
        "a mixture of experts": config.n_experts > 0,
        "multi-head latent attention": config.kv_rank > 0,
        "a soft-cap on scores": config.score_softcap is not None,
        "a soft-cap on logits": config.logit_softcap is not None,
        "attention sinks": config.sinks,
        "norms after the sublayers alone": config.norm_order == "after",
        "one norm for both sublayers": config.shared_norm,
        "a first layer without a norm": not config.first_attn_norm,
        "norms without weights": not config.norm_weight,
        "queries and keys normed at their full width or after they turn": config.qk_norm
        and config.qk_norm_place != "head",
        "layers that share their weights": config.shared_layers,
        "word vectors of another width than the stream": config.embed_width != config.d_model
        or config.unembed_width != config.d_model,
        "disentangled attention": config.position == "disentangled",
        "a bias of distance beside other positions": config.relative_bias,
        "a bias of distance of each layer's own": config.relative_per_layer,
        "layers that do not turn": bool(config.unturned_layers),
        "queries that grow with the text": config.query_growth != 0,
        "an activation that learns": config.activation == "xielu",
        "a squared activation": config.activation == "relu_squared",
        "an activation by a sigmoid": config.activation == "quick_gelu",
    }
    return [part for part, has in parts.items() if has]


def check_counted(config: ModelConfig, what: str) -> None:
    """Raises ConfigError if a model has an unsupported component. `what` is the beginning of the sentence."""
    if parts := rare_parts(config):
        raise ConfigError(f"{what} for a model with {parts[0]}. Its parameters, its operations and its runs are.")


Attention = Literal["eager", "spelled_out", "efficient", "flash"]
Logits = Literal["last", "all"]
Optimizer = Literal["sgd", "momentum", "adam", "adamw"]
Recompute = Literal["none", "attention", "full"]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """`batch` texts of `source_len` tokens each. An encoder-decoder generates `target_len` tokens for each; others leave it at 0.

    dtype        of weights and activations
    weight_dtype only of weights, for inference: "int8", "int4", "Q4_K_M" ... (None: dtype), see core.plan.parameters
    kv_dtype     of the KV cache: "int8", "Q8_0" ... (None: dtype)
    attention    flash, efficient, eager or spelled_out: see core.plan.training
    logits       "last": a decoder computes them at the last position of each text, which generation needs; "all": at all
                 positions, as training and encoders always do
    piece        chunked prefill: tokens of the prompts, over all texts, that a decoder reads at once; 0: the whole prompt.
                 vLLM reads 2,048 at once (max_num_batched_tokens), llama.cpp 512 (n_ubatch)
    optimizer    sgd, momentum, adam or adamw; recompute: none, attention or full
    dropout      counts the masks that training with dropout saves
    padded       True if texts of different length share the batch
    rank         in training: the rank of low-rank adapters, which are trained while the weights are frozen, in weight_dtype if
                 that is given (LoRA and QLoRA: see core.plan.training). 0: all weights are trained
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
