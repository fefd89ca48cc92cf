"""A family's table, a config.json and stored tensors make a Transformer: each of our weights found, each of theirs accounted for."""

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

from .. import memory
from ..errors import CheckpointError, ConfigError
from ..model.attention import RMSNorm, norm_dtype
from ..model.classifier import Classifier
from ..model.config import ModelConfig
from ..model.transformer import Embedding, Transformer, sinusoid_rows
from .bare_names import bare
from .classifiers import classifies, empty_classifier, filled, format_of, row_of, sources_of
from .families import FAMILIES
from .family import Family, Source, Theirs, shown
from .files import FLOATS, Stored
from .own import HEADLIGHT, KEYS, check_known
from .rounded import method_of
from .tensor_names import PLACE, quantized, unread_kind, why_missing
from .text_half import WHOLES

OLD_LEAVES = {"weight": ("weight", "gamma"), "bias": ("bias", "beta")}  # norms of files that came from TensorFlow
DISCRIMINATOR = "ElectraForPreTraining"  # its head tells tokens that were replaced, and scores no words
HEADED = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForPreTraining", "ForConditionalGeneration", "MTModel")
MOST_LAYERS = 1000  # each takes time to build even on the meta device
SMALLER = "Try a smaller model, or the same one in bfloat16."
LONGEST_TABLE = 1 << 20  # positions of a sinusoidal table, which no tensor in the file bounds


NO_ATTENTION = "It has no attention, so that there is nothing to show."
SOME_ATTENTION = "Some of its layers have another kind of mixing than attention, which is not computed."
# Parts of a model type that are not computed.
WHY_NOT = (
    dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "rwkv", "xlstm"), NO_ATTENTION)
    | dict.fromkeys(
        ("jamba", "falcon_h1", "lfm2", "lfm2_moe", "bamba", "zamba", "zamba2", "recurrent_gemma", "nemotron_h"),
        SOME_ATTENTION,
    )
    | dict.fromkeys(
        ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "olmo_hybrid", "kimi_linear"), SOME_ATTENTION
    )
    | dict.fromkeys(("longformer", "led", "longt5", "big_bird"), "Its attention over parts of a text is not computed.")
    | dict.fromkeys(("xlnet", "prophetnet"), "It reads a text in two streams at once, which is not computed.")
    | dict.fromkeys(
        ("dbrx", "jetmoe", "granitemoe", "hunyuan_v1_moe", "ernie4_5_moe", "dots1", "qwen2_vl_moe"),
        "Its mixture of experts is not computed.",
    )
    | dict.fromkeys(
        (
            "bigbird_pegasus",
            "pegasus_x",
            "nystromformer",
            "yoso",
            "mra",
            "reformer",
            "funnel",
            "perceiver",
            "deepseek_v32",
        ),
        "Its attention over parts or summaries of a text is not computed.",
    )
    | dict.fromkeys(("fnet",), NO_ATTENTION)
    | dict.fromkeys(("minimax", "granitemoehybrid", "bailing_hybrid", "convbert", "qwen3_5_moe_text"), SOME_ATTENTION)
    | dict.fromkeys(
        ("whisper", "speech_to_text", "musicgen", "musicgen_melody", "moshi", "seamless_m4t", "seamless_m4t_v2"),
        "It reads or writes sound.",
    )
    | dict.fromkeys(
        ("trocr", "git", "mllama", "tapas", "vision-encoder-decoder"),
        "It reads pictures or tables beside its text, and its text half is not computed alone.",
    )
    | dict.fromkeys(
        (
            "nllb-moe",
            "granitemoeshared",
            "cohere2_moe",
            "aria_text",
            "exaone_moe",
            "minimax_m2",
            "longcat_flash",
            "flex_olmo",
        ),
        "Its mixture of experts is not computed.",
    )
    | {
        "encoder-decoder": "It is two models in one folder: open the folder of one of them.",
        "blenderbot-small": "Its decoder adds positions after a norm, which is not computed.",
        "roformer": "Its rotary positions may turn values too, which is not computed.",
        "xlm": "It may add vectors for the language of each word.",
        "flaubert": "It may add vectors for the language of each word.",
        "ibert": "It computes in whole numbers.",
        "squeezebert": "Its projections are grouped convolutions.",
        "luke": "It reads entities beside words.",
        "xmod": "It has an adapter for each language in every layer.",
        "roc_bert": "It reads the sound and the shape of each character beside it.",
        "blt": "It reads bytes in patches.",
        "bitnet": "Its weights have three values, and norms within each sublayer are not computed.",
        "gemma3n": "It adds vectors of its own for each word in every layer.",
        "gemma4": "It may add vectors of its own for each word in every layer.",
        "gemma4_text": "It may add vectors of its own for each word in every layer.",
        "t5gemma": "Its two stacks are of Gemma 2, each of a size of its own, which is not computed.",
        "paligemma": "It reads what comes before the answer both ways, which is not computed.",
        "diffllama": "Its attention is a difference of two, which is not computed.",
        "fsmt": "It has a vocabulary for each of its languages.",
        "layoutlm": "It reads where on a page a word is.",
        "mobilebert": "Its layers narrow the stream within themselves.",
        "switch_transformers": "Its mixture of experts takes no more than so many tokens.",
        "aya_vision": "Programs differ in whether its logits are scaled.",
        "llama4": "Its attention within chunks of a text is not computed.",
        "llama4_text": "Its attention within chunks of a text is not computed.",
        "gemma3n_text": "It adds vectors of its own for each word in every layer.",
    }
)


class Unfilled(TorchFunctionMode):
    """Modules made inside it do not fill their parameters with random numbers, which takes seconds even where there is no memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


@dataclass(frozen=True)
class Place:
    """One of our tensors: where it comes from. `stored` None: it is zeros by definition."""

    stored: Stored | None
    source: Source
    twins: tuple[Stored, ...] = ()  # the same tensor again, under its other names


class _Missing(CheckpointError):
    """A tensor of ours that is under none of the names that a family gives it."""

    def __init__(self, ours: str, names: list[str]):
        super().__init__(f"no tensor {names[0]} for {ours}")
        self.ours, self.names = ours, names


def family_of(theirs: Theirs, place: str = PLACE, *, stored: bool = True) -> Family:
    """Raises CheckpointError by name for a model_type that we do not have, and for quantized weights where they are `stored`.

    `place` is the folder or repository, for its sentence.
    """
    name = theirs.any("model_type")
    if name == HEADLIGHT.model_type:
        check_known(theirs, KEYS)
        return HEADLIGHT
    if not isinstance(name, str) or name not in FAMILIES:
        supported = f"{', '.join(sorted(FAMILIES))}, and the text half of {', '.join(sorted(WHOLES))}"
        more = f" {WHY_NOT[name]}" if isinstance(name, str) and name in WHY_NOT else ""
        raise CheckpointError(
            f"{theirs.where}: the model type {shown(name)} is not supported.{more} Supported are {supported}."
        )
    if stored and method_of(theirs) is None and (sentence := quantized(theirs.values, place)) is not None:
        raise CheckpointError(sentence)
    family = FAMILIES[name]
    for key, allowed in family.requires.items():
        value = theirs.any(key, allowed[0])
        if not any(value is a or (value == a and type(value) is type(a)) for a in allowed):
            raise CheckpointError(
                f"{theirs.where}: {family.title} with {key}={shown(value)} is not supported; it must be {' or '.join(map(json.dumps, allowed))}."
            )
    return family


def config_from(family: Family, theirs: Theirs) -> ModelConfig:
    """Our config, with the head that the family has when there is one. Raises CheckpointError."""
    theirs = family.completed(theirs)
    try:
        fields = {ours: read(theirs) for ours, read in family.fields.items()}
        head: dict[str, Any] = {} if family.head is None else {"head": family.head}
        return ModelConfig(**{**family.fixed, **fields, **head})
    except ConfigError as error:
        raise CheckpointError(f"{theirs.where} describes a model that cannot be built: {error}.") from error
    except (TypeError, OverflowError, ZeroDivisionError) as error:
        raise CheckpointError(f"{theirs.where} holds numbers that do not make a model ({error}).") from error


@dataclass(frozen=True)
class Fitted:
    """A model without its numbers, and where each of them lies."""

    model: Transformer  # on the meta device
    config: ModelConfig
    family: Family
    places: Mapping[str, Place]


def fitted(theirs: Theirs, tensors: Mapping[str, Stored], place: str = PLACE) -> Fitted:
    """Their config.json and the shapes of their tensors held together. Nothing is allocated.

    Raises CheckpointError naming the key, or the tensor that is missing or of another shape.
    """
    family = family_of(theirs, place)
    theirs = family.completed(theirs)
    available = without_prefix(family, tensors)
    config = config_from(family, theirs)
    if theirs.whole and "tie_word_embeddings" not in theirs:
        config = replace(config, tied=not any(name in available for name in head_names(family)))
    check_sizes(config, available, theirs.where)
    if family.head is not None:
        config = really_tied(with_head(config, family, theirs, available), family, available)
    model = empty(config, theirs.where)
    try:
        places = find_all(model, config, family, Held(available, place, theirs))
    except _Missing as error:
        raise CheckpointError(why_not_there(error, theirs, family, tensors, place)) from error
    return Fitted(model, config, family, places)


def assemble(
    theirs: Theirs,
    tensors: Mapping[str, Stored],
    device: torch.device,
    dtype: torch.dtype,
    place: str = PLACE,
) -> tuple[Transformer, Family, tuple[str, ...]]:
    """The model with its weights, its family, and the names of their tensors that it has no use for.

    Shapes are compared before anything is allocated, and each weight is held once. Raises CheckpointError naming the
    tensor that is missing, of another shape, or not finite, and TooLarge where the weights would not fit.
    """
    fit = fitted(theirs, tensors, place)
    model, config, family, places = fit.model, fit.config, fit.family, fit.places
    admit_weights(fit, device, dtype)
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
    family: Family, config: ModelConfig, held: Held, device: torch.device, dtype: torch.dtype
) -> tuple[Classifier, frozenset[str]] | None:
    """The classification head that config.json names, with its weights, and the names of their tensors that it uses; None where
    there is none, or it is of a kind that is not computed.

    Raises CheckpointError for a tensor that is missing, of another shape or not finite, and for classes that do not fit.
    """
    theirs, row = held.theirs, row_of(family, config)
    if not classifies(theirs) or row is None:
        return None
    held = replace(held, tensors=without_prefix(family, held.tensors))
    model = empty_classifier(theirs, config, held.tensors, row)
    state, used = {}, set()
    for name, (names, source) in sources_of(model, row).items():
        shape = tuple(model.get_parameter(name).shape)
        try:
            found = find(name, names, source, shape, held)
        except _Missing as error:
            raise CheckpointError(
                f"The weight files hold no tensor {names[0]}, which {classifies(theirs)[:80]} needs for its classes. They may be "
                "incomplete, or belong to another config.json."
            ) from error
        state[name] = value_of(name, found, shape, config, device, format_of(model, name, dtype))
        used |= {found.stored.name} if found.stored is not None else set()
    return filled(model, state), frozenset(used)


def admit_weights(fit: Fitted, device: torch.device, dtype: torch.dtype) -> None:
    """Raises TooLarge where the weights would not fit, with both numbers."""
    sizes = [math.prod(shape_of(fit.model, name)) * dtype.itemsize for name in fit.places]
    # The largest of them once more, while it is cast or laid out again.
    memory.admit_large(sum(sizes) + max(sizes), device, f"The weights of this {fit.family.title} model", SMALLER)


def by_columns(weight: Tensor) -> None:
    """Lay a [vocab, d_model] weight out in memory as [d_model, vocab]; it stays the same tensor in every other way.

    Each token that is written multiplies one row by all of it, and a CPU does that in half the time this way round
    (benchmarks/generate.py); where more rows are read it costs nothing, and looking words up in it little.
    """
    weight.data = weight.t().contiguous().t()


def without_prefix(family: Family, tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    tables = [name for stack in ("encoder", "decoder") for name in names_if(f"{stack}.embed.token.weight", family)]
    return bare(family.prefix, tables, tensors)


def names_if(name: str, family: Family) -> list[str]:
    """The names of one of our tensors in their files; none where the family has no such tensor."""
    try:
        return names_of(name, family)[0]
    except KeyError:
        return []


def head_names(family: Family) -> list[str]:
    return names_if("head.unembed.weight", family)


def check_sizes(config: ModelConfig, available: Mapping[str, Stored], where: str) -> None:
    """Bound the sizes that config.json claims, before anything is allocated: layers and computed tables."""
    n_layers = config.n_encoder_layers + config.n_decoder_layers
    if n_layers > min(MOST_LAYERS, len(available)):
        raise CheckpointError(
            f"{where} speaks of {n_layers} layers, but the weight files hold only {len(available)} tensors "
            f"(and at most {MOST_LAYERS} layers are supported)."
        )
    if config.position == "sinusoidal" and config.n_ctx > LONGEST_TABLE:
        raise CheckpointError(
            f"{where} asks for {config.n_ctx} sinusoidal positions; at most {LONGEST_TABLE} are supported."
        )


def empty(config: ModelConfig, where: str = "config.json") -> Transformer:
    """The modules without memory for their parameters."""
    try:
        with torch.device("meta"), Unfilled():
            return Transformer(config).eval()
    except (RuntimeError, OverflowError) as error:  # sizes whose product no address can hold
        raise CheckpointError(
            f"{where} describes a model too large to exist ({str(error).splitlines()[0]})."
        ) from error


def with_head(config: ModelConfig, family: Family, theirs: Theirs, available: Mapping[str, Stored]) -> ModelConfig:
    """Without its head if the files hold none and config.json names no class that has one."""
    if not config.n_decoder_layers and "n_encoder_layers" in family.fields and family.head == "lm":
        return replace(config, head="none")  # half of an encoder-decoder
    if classifies(theirs) and row_of(family, config) is not None:
        return replace(config, head="none")  # ModernBERT's has layers of the same names
    rows = [row for row in family.weights if row.startswith("head.")]
    held = any(module_held(name, available) for row in rows for name in modules_of(as_source(family.weights[row])))
    classes = theirs.strings("architectures")
    named = any(name.endswith(HEADED) and name != DISCRIMINATOR for name in classes)
    own = not config.tied or config.head == "mlm"  # else the token table is the head, and no tensor is missing
    other = any(not name.endswith((*HEADED, "Model")) for name in classes)  # a classifier
    # A decoder's token table is its head, whatever its class; of a model that reads both ways it may be a table and no more.
    own = own or not config.writes
    return config if held or named or not (own or other) else replace(config, head="none")


def module_held(name: str, available: Mapping[str, Stored]) -> bool:
    return name in available or f"{name}.weight" in available


def really_tied(config: ModelConfig, family: Family, available: Mapping[str, Stored]) -> ModelConfig:
    """Untied if the files hold an unembedding that differs from the token table, whatever config.json says."""
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
    """The tensor that a model multiplies by for its next word, of those of its files: its own, or the token table; None where neither
    is there as it is used."""
    names: list[str] = []
    for row in ("head.unembed.weight", "decoder.embed.token.weight"):
        try:
            theirs, source = names_of(row, family)
        except KeyError:
            continue
        names += [] if source.transpose or source.fused or source.plus_one else theirs
    spelt = (name for each in names for name in (f"{family.prefix}{each}", each))
    return next((name for name in spelt if name in tensors), None)


def as_source(row: str | tuple[str, ...] | Source) -> Source:
    return row if isinstance(row, Source) else Source(row)


def modules_of(source: Source) -> tuple[str, ...]:
    return (source.module,) if isinstance(source.module, str) else source.module


def names_of(name: str, family: Family) -> tuple[list[str], Source]:
    """'decoder.blocks.3.attn.q.weight' -> the names it may have in their files, and how to cut it. Raises KeyError: no row."""
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
    """The source of one expert, where their tensor holds all of them."""
    return source if source.expert is None or expert is None else replace(source, expert=int(expert[1]))


@dataclass(frozen=True)
class Held:
    """The tensors that there are, their config.json, and the name of their folder for sentences."""

    tensors: Mapping[str, Stored]
    place: str
    theirs: Theirs

    @property
    def where(self) -> str:
        return self.theirs.where


def find_all(model: Transformer, config: ModelConfig, family: Family, held: Held) -> dict[str, Place]:
    """Where each of our tensors lies. What is shared is asked for once. Raises _Missing for the first that is not there."""
    first = f"{config.stacks[0][0]}.embed.token.weight"
    shared = {f"{stack}.embed.token.weight" for stack, _ in config.stacks[1:]}
    if config.tied:
        shared.add("head.unembed.weight")
    places: dict[str, Place] = {}
    for name in model.state_dict():
        if name in shared or (config.shared_layers and re.search(r"\.blocks\.[1-9]\d*\.", name)):
            continue
        names, source = names_of(name, family)
        if name == first and config.tied and config.head != "none":
            names = names + names_of("head.unembed.weight", family)[0]
        shape = their_shape(shape_of(model, name), source, config)
        places[name] = find(name, names, source, shape, held)
    return places


def find(ours: str, names: list[str], source: Source, shape: tuple[int, ...], held: Held) -> Place:
    """Where one of our tensors lies, which their files have under one of `names` or under several, in this shape."""
    found = [held.tensors[name] for name in names if name in held.tensors]
    if not found and source.zeros_if_absent:
        return Place(None, source)
    if source.times is not None:
        source = replace(source, factor=source.times(held.theirs))
    if not found:
        raise _Missing(ours, names)
    stored, twins = found[0], tuple(found[1:])
    if stored.dtype not in FLOATS:  # before the shape, because several packed numbers lie in one
        raise unread_kind(stored, held.tensors, held.place)
    if stored.shape != shape and stored.shape != (1, *shape):  # final_logits_bias is kept as one row
        raise CheckpointError(
            f"{stored.file}: the tensor {stored.name} is {list(stored.shape)}, but {held.where} makes it {list(shape)}."
        )
    for twin in twins:
        if not same(stored, twin):
            raise CheckpointError(
                f"{twin.file}: {stored.name} and {twin.name} must be the same tensor, but they differ."
            )
    return Place(stored, source, twins)


def why_not_there(error: _Missing, theirs: Theirs, family: Family, tensors: Mapping[str, Stored], place: str) -> str:
    """Why a tensor that the family needs is not there, as well as the files tell."""
    if (why := why_missing(error.names, family.prefix, tensors, place)) is not None:
        return why
    text = (
        f"The weight files hold no tensor {' or '.join(error.names[:2])}, which {family.title} needs for {error.ours}. "
    )
    halves = [name for name in theirs.strings("architectures") if name.endswith("ForCausalLM")]
    if halves and family.start_token:  # it has an encoder
        return f"{text}They are those of a {halves[0]}, the decoder of {family.title} alone, which is not supported. Open the whole model."
    return f"{text}They may be incomplete, or belong to another config.json."


def shape_of(model: Transformer, name: str) -> tuple[int, ...]:
    return tuple(model.get_parameter(name).shape)


def widths(config: ModelConfig) -> dict[str, int]:
    """How many rows each projection takes in a fused tensor."""
    q, kv = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    still = config.d_head - config.d_rotary if config.kv_rank else config.d_head
    return {"q": q, "k": kv, "v": kv, "gate": config.d_ff, "up": config.d_ff} | {
        "latent": config.kv_rank,
        "turned": config.d_rotary if config.kv_rank else 0,
        "still k": config.n_heads * still,
        "wide v": config.n_heads * config.value_width,
    }


def their_shape(shape: tuple[int, ...], source: Source, config: ModelConfig) -> tuple[int, ...]:
    """The shape that one of our tensors has in their file."""
    if source.fused:
        shape = (sum(widths(config)[part] for part in source.fused), *shape[1:])
    shape = shape[::-1] if source.transpose else shape
    return shape if source.expert is None else (config.n_experts, *shape)


def owner_of(model: Transformer, name: str) -> nn.Module:
    return model.get_submodule(name.rpartition(".")[0])


def value_of(
    name: str, place: Place, shape: tuple[int, ...], config: ModelConfig, device: torch.device, dtype: torch.dtype
) -> Tensor:
    """Our tensor, on the device. A plain one stays mapped to its file until the cast copies it."""
    if place.stored is None:
        return torch.zeros(shape, device=device, dtype=dtype)
    tensor = cut(place.stored.read(), place.source, config).reshape(shape)
    if not place.stored.finite or dtype == torch.float16:  # which reads all of a mapped file
        check_numbers(place.stored, tensor, dtype)
    if place.source.fused or place.source.expert is not None:
        tensor = tensor.clone()  # a view would keep all of their tensor, once for every part of it
    if place.source.plus_one:
        tensor = tensor.float() + 1
    if place.source.factor != 1:
        tensor = tensor.float() * place.source.factor
    value = tensor.to(device=device, dtype=dtype)
    # The head of a model on a CPU is wanted by columns, and stays mapped where it lies so.
    return value if place.stored.by_columns and device.type == "cpu" else value.contiguous()


def check_numbers(stored: Stored, tensor: Tensor, dtype: torch.dtype) -> None:
    """Raises CheckpointError naming a tensor that is not finite, or too large for float16 where that is asked for."""
    low, high = torch.aminmax(tensor)
    if not (torch.isfinite(low) and torch.isfinite(high)):
        raise CheckpointError(f"{stored.file}: the tensor {stored.name} holds numbers that are not finite.")
    if dtype == torch.float16 and max(-low.item(), high.item()) > torch.finfo(dtype).max:
        raise CheckpointError(
            f"{stored.file}: {stored.name} holds numbers too large for float16. Load it as bfloat16 or float32."
        )


def cut(tensor: Tensor, source: Source, config: ModelConfig) -> Tensor:
    """The part of their tensor that is ours, rows first."""
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
    """One of several projections that share a tensor."""
    if source.per_head:
        group = config.n_heads // config.n_kv_heads
        rows = {"q": slice(0, group), "k": slice(group, group + 1), "v": slice(group + 1, None)}[source.part]
        return tensor.unflatten(0, (config.n_kv_heads, group + 2, config.d_head))[:, rows].flatten(0, 2)
    sizes = [widths(config)[part] for part in source.fused]
    blocks = sizes[0] if source.alternate else config.n_heads if source.by_head else source.blocks
    shares = tensor.unflatten(0, (blocks, -1)).split([size // blocks for size in sizes], dim=1)
    return shares[source.fused.index(source.part)].flatten(0, 1)


def fill_computed(model: Transformer, config: ModelConfig, device: torch.device, dtype: torch.dtype) -> None:
    """Sinusoids and the ones of norms without weights are computed, not loaded, so they are still on the meta device."""
    for module in model.modules():
        if isinstance(module, Embedding) and config.position == "sinusoidal":
            module.sinusoid = sinusoid_rows(config).to(device=device, dtype=dtype)
        if isinstance(module, RMSNorm | nn.LayerNorm) and not config.norm_weight:
            ones = torch.ones(module.weight.shape, device=device, dtype=norm_dtype(module, dtype))
            module.register_buffer("weight", ones, persistent=False)
