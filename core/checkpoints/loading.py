"""Assembles a Transformer from a family's table, a config.json and stored tensors, and accounts for every tensor of the files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .. import device as memory
from ..errors import CheckpointError, ConfigError
from ..model.attention import RMSNorm, norm_dtype
from ..model.config import ModelConfig
from ..model.outputs import Classifier
from ..model.transformer import Embedding, Transformer, sinusoid_rows
from .families import FAMILIES
from .family import WHOLES, Family, Source, SourceConfig, shown
from .files import FLOATS, PLACE, Stored, explain_missing_names, quantized, strip_prefix, unread_kind
from .metadata import classifier_class, empty_classifier, head_dtype, head_row, load_head, sources_of
from .native_format import HEADLIGHT, KEYS, check_known
from .weight_transforms import method_of

OLD_LEAVES = {"weight": ("weight", "gamma"), "bias": ("bias", "beta")}  # norms in files converted from TensorFlow
DISCRIMINATOR = "ElectraForPreTraining"  # its head detects replaced tokens and predicts no words
HEADED = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForPreTraining", "ForConditionalGeneration", "MTModel")
MAX_LAYERS = 1000  # each takes time to build even on the meta device
SMALLER = "Try a smaller model, or the same one in bfloat16."
MAX_SINUSOID_ROWS = 1 << 20  # rows of a computed table, which no tensor of the files bounds


# Reason why a model is not supported -> its model types
_UNSUPPORTED = {
    "It has no attention, so that there is nothing to show.": "mamba,mamba2,falcon_mamba,rwkv,xlstm,fnet",
    "Some of its layers have another kind of mixing than attention, which is not computed.": (
        "jamba,falcon_h1,lfm2,lfm2_moe,bamba,zamba,zamba2,recurrent_gemma,nemotron_h,qwen3_next,"
        "qwen3_5,qwen3_5_text,qwen3_5_moe,qwen3_5_moe_text,olmo_hybrid,kimi_linear,minimax,"
        "granitemoehybrid,bailing_hybrid,convbert"
    ),
    "Its attention over parts of a text is not computed.": "longformer,led,longt5,big_bird",
    "Its attention over parts or summaries of a text is not computed.": (
        "bigbird_pegasus,pegasus_x,nystromformer,yoso,mra,reformer,funnel,perceiver,deepseek_v32"
    ),
    "It reads a text in two streams at once, which is not computed.": "xlnet,prophetnet",
    "Its mixture of experts is not computed.": (
        "dbrx,jetmoe,granitemoe,granitemoeshared,hunyuan_v1_moe,ernie4_5_moe,dots1,qwen2_vl_moe,"
        "nllb-moe,cohere2_moe,aria_text,exaone_moe,minimax_m2,longcat_flash,flex_olmo"
    ),
    "It reads or writes sound.": "whisper,speech_to_text,musicgen,musicgen_melody,moshi,seamless_m4t,seamless_m4t_v2",
    "It reads pictures or tables beside its text, and its text half is not computed alone.": (
        "trocr,git,mllama,tapas,vision-encoder-decoder"
    ),
    "It is two models in one folder: open the folder of one of them.": "encoder-decoder",
    "Its decoder adds positions after a norm, which is not computed.": "blenderbot-small",
    "Its rotary positions may turn values too, which is not computed.": "roformer",
    "It may add vectors for the language of each word.": "xlm,flaubert",
    "It computes in whole numbers.": "ibert",
    "Its projections are grouped convolutions.": "squeezebert",
    "It reads entities beside words.": "luke",
    "It has an adapter for each language in every layer.": "xmod",
    "It reads the sound and the shape of each character beside it.": "roc_bert",
    "It reads bytes in patches.": "blt",
    "Its weights have three values, and norms within each sublayer are not computed.": "bitnet",
    "It adds vectors of its own for each word in every layer.": "gemma3n,gemma3n_text",
    "It may add vectors of its own for each word in every layer.": "gemma4,gemma4_text",
    "Its two stacks are of Gemma 2, each of a size of its own, which is not computed.": "t5gemma",
    "It reads what comes before the answer both ways, which is not computed.": "paligemma",
    "Its attention is a difference of two, which is not computed.": "diffllama",
    "It has a vocabulary for each of its languages.": "fsmt",
    "It reads where on a page a word is.": "layoutlm",
    "Its layers narrow the stream within themselves.": "mobilebert",
    "Its mixture of experts takes no more than so many tokens.": "switch_transformers",
    "Programs differ in whether its logits are scaled.": "aya_vision",
    "Its attention within chunks of a text is not computed.": "llama4,llama4_text",
}
WHY_NOT = {name: reason for reason, names in _UNSUPPORTED.items() for name in names.split(",")}


class SkipInit(TorchFunctionMode):
    """Skips the initialisation of parameters, which takes seconds even on the meta device."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


@dataclass(frozen=True)
class TensorPlace:
    """Origin of one of our tensors. `stored` is None if it consists of zeros."""

    stored: Stored | None
    source: Source
    twins: tuple[Stored, ...] = ()  # copies of the tensor under other names


class _Missing(CheckpointError):
    """One of our tensors has none of its possible names in the files."""

    def __init__(self, ours: str, names: list[str]):
        super().__init__(f"no tensor {names[0]} for {ours}")
        self.ours, self.names = ours, names


def family_of(source_config: SourceConfig, place: str = PLACE, *, stored: bool = True) -> Family:
    """The family of a config.json. Raises CheckpointError for an unsupported model_type and, if `stored`, for quantized weights.

    `place` is the name of the folder or repository in the message.
    """
    name = source_config.any("model_type")
    if name == HEADLIGHT.model_type:
        check_known(source_config, KEYS)
        return HEADLIGHT
    if not isinstance(name, str) or name not in FAMILIES:
        supported = f"{', '.join(sorted(FAMILIES))}, and the text half of {', '.join(sorted(WHOLES))}"
        more = f" {WHY_NOT[name]}" if isinstance(name, str) and name in WHY_NOT else ""
        raise CheckpointError(
            f"{source_config.where}: the model type {shown(name)} is not supported.{more} Supported are {supported}."
        )
    if stored and method_of(source_config) is None and (sentence := quantized(source_config.values, place)) is not None:
        raise CheckpointError(sentence)
    family = FAMILIES[name]
    for key, allowed in family.requires.items():
        value = source_config.any(key, allowed[0])
        if not any(value is a or (value == a and type(value) is type(a)) for a in allowed):
            raise CheckpointError(
                f"{source_config.where}: {family.title} with {key}={shown(value)} is not supported; it must be {' or '.join(map(json.dumps, allowed))}."
            )
    return family


def config_from(family: Family, source_config: SourceConfig) -> ModelConfig:
    """Our config, with the family's default head. Raises CheckpointError."""
    source_config = family.completed(source_config)
    try:
        fields = {ours: read(source_config) for ours, read in family.fields.items()}
        head: dict[str, Any] = {} if family.head is None else {"head": family.head}
        return ModelConfig(**{**family.fixed, **fields, **head})
    except ConfigError as error:
        raise CheckpointError(f"{source_config.where} describes a model that cannot be built: {error}.") from error
    except (TypeError, OverflowError, ZeroDivisionError) as error:
        raise CheckpointError(f"{source_config.where} holds numbers that do not make a model ({error}).") from error


@dataclass(frozen=True)
class AssemblyPlan:
    """A model on the meta device, and the origin of each of its tensors."""

    model: Transformer
    config: ModelConfig
    family: Family
    places: Mapping[str, TensorPlace]


def plan_assembly(source_config: SourceConfig, tensors: Mapping[str, Stored], place: str = PLACE) -> AssemblyPlan:
    """Matches a config.json with the shapes of stored tensors. Nothing is allocated.

    Raises CheckpointError naming the key, or the tensor that is missing or has another shape.
    """
    family = family_of(source_config, place)
    source_config = family.completed(source_config)
    available = without_prefix(family, tensors)
    config = config_from(family, source_config)
    if source_config.whole and "tie_word_embeddings" not in source_config:
        config = replace(config, tied=not any(name in available for name in names_if("head.unembed.weight", family)))
    check_sizes(config, available, source_config.where)
    if family.head is not None:
        config = untie_if_different(with_head(config, family, source_config, available), family, available)
    model = empty(config, source_config.where)
    try:
        places = find_tensors(model, config, family, TensorSource(available, place, source_config))
    except _Missing as error:
        raise CheckpointError(explain_missing(error, source_config, family, tensors, place)) from error
    return AssemblyPlan(model, config, family, places)


def assemble(
    source_config: SourceConfig,
    tensors: Mapping[str, Stored],
    device: torch.device,
    dtype: torch.dtype,
    place: str = PLACE,
) -> tuple[Transformer, Family, tuple[str, ...]]:
    """The model with its weights, its family, and the names of unused tensors.

    Shapes are compared before anything is allocated, and each weight is stored once. Raises CheckpointError naming a tensor that is
    missing, has another shape or is not finite, and TooLarge if the weights would not fit.
    """
    plan = plan_assembly(source_config, tensors, place)
    model, config, family, places = plan.model, plan.config, plan.family, plan.places
    admit_weights(plan, device, dtype)
    state = {
        name: value_of(name, place, shape_of(model, name), config, device, norm_dtype(owner_of(model, name), dtype))
        for name, place in places.items()
    }
    model.load_state_dict(state, strict=False, assign=True)
    model.tie()
    if model.head is not None and device.type == "cpu":
        by_columns(model.head.unembed.weight)
    fill_computed(model, config, device, dtype)
    model.requires_grad_(False)
    if missing := [name for name, value in [*model.named_parameters(), *model.named_buffers()] if value.is_meta]:
        raise CheckpointError(f"The weights hold nothing for {missing[0]}.")
    used = {s.name for p in places.values() for s in (p.stored, *p.twins) if s is not None}
    return model, family, tuple(sorted(tensors.keys() - used))


def assemble_classifier(
    family: Family, config: ModelConfig, files: TensorSource, device: torch.device, dtype: torch.dtype
) -> tuple[Classifier, frozenset[str]] | None:
    """The classification head in config.json with its weights, and the names of its tensors; None if there is none, or if its kind
    is not supported.

    Raises CheckpointError for a tensor that is missing, has another shape or is not finite, and for classes that do not match it.
    """
    source_config, row = files.source_config, head_row(family, config)
    if not classifier_class(source_config) or row is None:
        return None
    files = replace(files, tensors=without_prefix(family, files.tensors))
    model = empty_classifier(source_config, config, files.tensors, row)
    state, used = {}, set()
    for name, (names, source) in sources_of(model, row).items():
        shape = tuple(model.get_parameter(name).shape)
        try:
            found = find_tensor(name, names, source, shape, files)
        except _Missing as error:
            raise CheckpointError(
                f"The weight files hold no tensor {names[0]}, which {classifier_class(source_config)[:80]} needs for its classes. They may be "
                "incomplete, or belong to another config.json."
            ) from error
        state[name] = value_of(name, found, shape, config, device, head_dtype(model, name, dtype))
        used |= {found.stored.name} if found.stored is not None else set()
    return load_head(model, state), frozenset(used)


def admit_weights(plan: AssemblyPlan, device: torch.device, dtype: torch.dtype) -> None:
    """Raises TooLarge with both numbers if the weights would not fit."""
    sizes = [math.prod(shape_of(plan.model, name)) * dtype.itemsize for name in plan.places]
    # A second copy of the largest tensor exists while it is cast or transposed.
    memory.check_fits_or_retry(
        sum(sizes) + max(sizes), device, f"The weights of this {plan.family.title} model", SMALLER
    )


def by_columns(weight: Tensor) -> None:
    """Store a [vocab, d_model] weight in memory as [d_model, vocab], without changing its shape.

    A CPU multiplies a single row by it, as in decoding, in half the time (benchmarks/generate.py). Several rows cost the same, and
    embedding lookups cost little more.
    """
    weight.data = weight.t().contiguous().t()


def without_prefix(family: Family, tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    tables = [name for stack in ("encoder", "decoder") for name in names_if(f"{stack}.embed.token.weight", family)]
    return strip_prefix(family.prefix, tables, tensors)


def names_if(name: str, family: Family) -> list[str]:
    """Possible names of one of our tensors in the files; none if the family has no such tensor."""
    try:
        return names_of(name, family)[0]
    except KeyError:
        return []


def check_sizes(config: ModelConfig, available: Mapping[str, Stored], where: str) -> None:
    """Check the number of layers and the size of computed tables before anything is allocated."""
    n_layers = config.n_encoder_layers + config.n_decoder_layers
    if n_layers > min(MAX_LAYERS, len(available)):
        raise CheckpointError(
            f"{where} speaks of {n_layers} layers, but the weight files hold only {len(available)} tensors "
            f"(and at most {MAX_LAYERS} layers are supported)."
        )
    if config.position == "sinusoidal" and config.n_ctx > MAX_SINUSOID_ROWS:
        raise CheckpointError(
            f"{where} asks for {config.n_ctx} sinusoidal positions; at most {MAX_SINUSOID_ROWS} are supported."
        )


def empty(config: ModelConfig, where: str = "config.json") -> Transformer:
    """The modules on the meta device."""
    try:
        with torch.device("meta"), SkipInit():
            return Transformer(config).eval()
    except (RuntimeError, OverflowError) as error:  # the product of the sizes overflows
        raise CheckpointError(
            f"{where} describes a model too large to exist ({str(error).splitlines()[0]})."
        ) from error


def with_head(
    config: ModelConfig, family: Family, source_config: SourceConfig, available: Mapping[str, Stored]
) -> ModelConfig:
    """Without a head if the files contain none and config.json names no class that has one."""
    is_half = not config.n_decoder_layers and "n_encoder_layers" in family.fields and family.head == "lm"
    # ModernBERT's classification head has layers with the names of its language-model head.
    is_classifier = classifier_class(source_config) and head_row(family, config) is not None
    if is_half or is_classifier:
        return replace(config, head="none")
    classes = source_config.strings("architectures")
    if _is_head_stored(family, available) or any(name.endswith(HEADED) and name != DISCRIMINATOR for name in classes):
        return config
    # A decoder with tied embeddings needs no tensor for its head, whatever its class. In a bidirectional model the token table may be
    # no head.
    needs_tensor = not config.tied or config.head == "mlm" or not config.writes
    is_other_class = any(not name.endswith((*HEADED, "Model")) for name in classes)
    return replace(config, head="none") if needs_tensor or is_other_class else config


def _is_head_stored(family: Family, available: Mapping[str, Stored]) -> bool:
    rows = [source for row, source in family.weights.items() if row.startswith("head.")]
    modules = [name for row in rows for name in modules_of(as_source(row))]
    return any(name in available or f"{name}.weight" in available for name in modules)


def untie_if_different(config: ModelConfig, family: Family, available: Mapping[str, Stored]) -> ModelConfig:
    """Untied if the files contain an unembedding that differs from the token table; config.json does not count."""
    if not config.tied or config.head == "none":
        return config
    own = [available[n] for n in names_of("head.unembed.weight", family)[0] if n in available]
    table = [available[n] for n in names_of(f"{config.stacks[0][0]}.embed.token.weight", family)[0] if n in available]
    if own and table and not same(own[0], table[0]):
        return replace(config, tied=False)
    return config


def same(one: Stored, other: Stored) -> bool:
    return one.shape == other.shape and torch.equal(one.read(), other.read())


def head_name(family: Family, tensors: Mapping[str, Stored]) -> str | None:
    """The stored tensor that is the model's unembedding, its own or the token table; None if neither is stored in our layout."""
    names: list[str] = []
    for row in ("head.unembed.weight", "decoder.embed.token.weight"):
        try:
            names_there, source = names_of(row, family)
        except KeyError:
            continue
        names += [] if source.transpose or source.fused or source.plus_one else names_there
    candidates = (name for each in names for name in (f"{family.prefix}{each}", each))
    return next((name for name in candidates if name in tensors), None)


def as_source(row: str | tuple[str, ...] | Source) -> Source:
    return row if isinstance(row, Source) else Source(row)


def modules_of(source: Source) -> tuple[str, ...]:
    return (source.module,) if isinstance(source.module, str) else source.module


def names_of(name: str, family: Family) -> tuple[list[str], Source]:
    """'decoder.blocks.3.attn.q.weight' -> its possible names in the files, and its source. Raises KeyError if there is no row."""
    module, leaf = name.rsplit(".", 1)
    layer = re.search(r"\.(?:blocks|relative_biases)\.(\d+)\b", name)
    expert = re.search(r"\.experts\.(\d+)\.", name)
    stack = module.split(".", 1)[0]
    spots = {"i": layer[1] if layer else "", "e": expert[1] if expert else "", "stack": stack}
    template = re.sub(r"\.(blocks|relative_biases)\.\d+\b", r".\1.{i}", module)
    template = re.sub(r"\.experts\.\d+\.", ".experts.{e}.", template)
    for row in (template, template.replace(stack, "{stack}", 1)):
        if f"{row}.{leaf}" in family.weights:
            source = of_expert(as_source(family.weights[f"{row}.{leaf}"]), expert)
            return [m.format(**spots) for m in modules_of(source)], source
        if row in family.weights:
            source = of_expert(as_source(family.weights[row]), expert)
            return [f"{m.format(**spots)}.{old}" for m in modules_of(source) for old in OLD_LEAVES[leaf]], source
    raise KeyError(f"{family.model_type} has no row for {template}.{leaf}")


def of_expert(source: Source, expert: re.Match[str] | None) -> Source:
    """The source of one expert if a tensor contains all of them."""
    return source if source.expert is None or expert is None else replace(source, expert=int(expert[1]))


@dataclass(frozen=True)
class TensorSource:
    """Stored tensors, their config.json, and the name of their folder for messages."""

    tensors: Mapping[str, Stored]
    place: str
    source_config: SourceConfig

    @property
    def where(self) -> str:
        return self.source_config.where


def find_tensors(
    model: Transformer, config: ModelConfig, family: Family, files: TensorSource
) -> dict[str, TensorPlace]:
    """Origin of each of our tensors; shared ones appear once. Raises _Missing for the first that is missing."""
    first = f"{config.stacks[0][0]}.embed.token.weight"
    shared = {f"{stack}.embed.token.weight" for stack, _ in config.stacks[1:]}
    if config.tied:
        shared.add("head.unembed.weight")
    places: dict[str, TensorPlace] = {}
    for name in model.state_dict():
        if name in shared or (config.shared_layers and re.search(r"\.blocks\.[1-9]\d*\.", name)):
            continue
        names, source = names_of(name, family)
        if name == first and config.tied and config.head != "none":
            names = names + names_of("head.unembed.weight", family)[0]
        shape = their_shape(shape_of(model, name), source, config)
        places[name] = find_tensor(name, names, source, shape, files)
    return places


def find_tensor(
    ours: str, names: list[str], source: Source, shape: tuple[int, ...], files: TensorSource
) -> TensorPlace:
    """Origin of one of our tensors, stored in this shape under one or several of `names`."""
    found = [files.tensors[name] for name in names if name in files.tensors]
    if not found and source.zeros_if_absent:
        return TensorPlace(None, source)
    if source.times is not None:
        source = replace(source, factor=source.times(files.source_config))
    if not found:
        raise _Missing(ours, names)
    stored, twins = found[0], tuple(found[1:])
    if stored.dtype not in FLOATS:  # before the shape, because packed tensors have another one
        raise unread_kind(stored, files.tensors, files.place)
    if stored.shape != shape and stored.shape != (1, *shape):  # final_logits_bias is stored as one row
        raise CheckpointError(
            f"{stored.file}: the tensor {stored.name} is {list(stored.shape)}, but {files.where} makes it {list(shape)}."
        )
    for twin in twins:
        if not same(stored, twin):
            raise CheckpointError(
                f"{twin.file}: {stored.name} and {twin.name} must be the same tensor, but they differ."
            )
    return TensorPlace(stored, source, twins)


def explain_missing(
    error: _Missing, source_config: SourceConfig, family: Family, tensors: Mapping[str, Stored], place: str
) -> str:
    """Why a required tensor is missing, as far as the files show it."""
    if (why := explain_missing_names(error.names, family.prefix, tensors, place)) is not None:
        return why
    text = (
        f"The weight files hold no tensor {' or '.join(error.names[:2])}, which {family.title} needs for {error.ours}. "
    )
    halves = [name for name in source_config.strings("architectures") if name.endswith("ForCausalLM")]
    if halves and family.start_token:  # it has an encoder
        return f"{text}They are those of a {halves[0]}, the decoder of {family.title} alone, which is not supported. Open the whole model."
    return f"{text}They may be incomplete, or belong to another config.json."


def shape_of(model: Transformer, name: str) -> tuple[int, ...]:
    return tuple(model.get_parameter(name).shape)


def widths(config: ModelConfig) -> dict[str, int]:
    """Number of rows of each projection in a fused tensor."""
    q, kv = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    d_nope = config.d_head - config.d_rotary if config.kv_rank else config.d_head
    return {"q": q, "k": kv, "v": kv, "gate": config.d_ff, "up": config.d_ff} | {
        "latent": config.kv_rank,
        "turned": config.d_rotary if config.kv_rank else 0,
        "still k": config.n_heads * d_nope,
        "wide v": config.n_heads * config.value_width,
    }


def their_shape(shape: tuple[int, ...], source: Source, config: ModelConfig) -> tuple[int, ...]:
    """Shape of one of our tensors in its file."""
    if source.fused:
        shape = (sum(widths(config)[part] for part in source.fused), *shape[1:])
    shape = shape[::-1] if source.transpose else shape
    return shape if source.expert is None else (config.n_experts, *shape)


def owner_of(model: Transformer, name: str) -> nn.Module:
    return model.get_submodule(name.rpartition(".")[0])


def value_of(
    name: str, place: TensorPlace, shape: tuple[int, ...], config: ModelConfig, device: torch.device, dtype: torch.dtype
) -> Tensor:
    """Our tensor on the device. Without a transformation it stays memory-mapped until the cast copies it."""
    if place.stored is None:
        return torch.zeros(shape, device=device, dtype=dtype)
    tensor = cut(place.stored.read(), place.source, config).reshape(shape)
    if not place.stored.finite or dtype == torch.float16:  # reads all of a mapped file
        check_numbers(place.stored, tensor, dtype)
    if place.source.fused or place.source.expert is not None:
        tensor = tensor.clone()  # a view would keep the whole stored tensor in memory
    if place.source.plus_one:
        tensor = tensor.float() + 1
    if place.source.factor != 1:
        tensor = tensor.float() * place.source.factor
    value = tensor.to(device=device, dtype=dtype)
    # On a CPU the head is used column by column, and stays mapped if it is stored that way.
    return value if place.stored.by_columns and device.type == "cpu" else value.contiguous()


def check_numbers(stored: Stored, tensor: Tensor, dtype: torch.dtype) -> None:
    """Raises CheckpointError naming a tensor that is not finite, or too large for float16 if that is the dtype."""
    low, high = torch.aminmax(tensor)
    if not (torch.isfinite(low) and torch.isfinite(high)):
        raise CheckpointError(f"{stored.file}: the tensor {stored.name} holds numbers that are not finite.")
    if dtype == torch.float16 and max(-low.item(), high.item()) > torch.finfo(dtype).max:
        raise CheckpointError(
            f"{stored.file}: {stored.name} holds numbers too large for float16. Load it as bfloat16 or float32."
        )


def cut(tensor: Tensor, source: Source, config: ModelConfig) -> Tensor:
    """Our part of a stored tensor, as [out, in]."""
    tensor = tensor if source.expert is None else tensor[source.expert]
    if source.transpose:
        tensor = tensor.t() if tensor.ndim == 2 else tensor
    if source.fused:
        tensor = part_of(tensor, source, config)
    if source.order is None:
        return tensor
    order = list(source.order(config))
    return tensor.unflatten(0, (-1, len(order)))[:, order].flatten(0, 1)


def part_of(tensor: Tensor, source: Source, config: ModelConfig) -> Tensor:
    """One of several projections in a fused tensor."""
    if source.per_head:
        group = config.n_heads // config.n_kv_heads
        rows = {"q": slice(0, group), "k": slice(group, group + 1), "v": slice(group + 1, None)}[source.part]
        return tensor.unflatten(0, (config.n_kv_heads, group + 2, config.d_head))[:, rows].flatten(0, 2)
    sizes = [widths(config)[part] for part in source.fused]
    blocks = sizes[0] if source.alternate else config.n_heads if source.by_head else source.blocks
    shares = tensor.unflatten(0, (blocks, -1)).split([size // blocks for size in sizes], dim=1)
    return shares[source.fused.index(source.part)].flatten(0, 1)


def fill_computed(model: Transformer, config: ModelConfig, device: torch.device, dtype: torch.dtype) -> None:
    """Fill tensors that are computed instead of loaded: sinusoids, and the ones of norms without weights."""
    for module in model.modules():
        if isinstance(module, Embedding) and config.position == "sinusoidal":
            module.sinusoid = sinusoid_rows(config).to(device=device, dtype=dtype)
        if isinstance(module, RMSNorm | nn.LayerNorm) and not config.norm_weight:
            ones = torch.ones(module.weight.shape, device=device, dtype=norm_dtype(module, dtype))
            module.register_buffer("weight", ones, persistent=False)
