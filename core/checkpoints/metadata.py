"""Metadata of a checkpoint: generation rules, chat template and classification head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Tokenizer
from torch import nn

from ..errors import CheckpointError
from ..model.attention import norm_dtype
from ..model.chat import ChatTemplate
from ..model.config import ModelConfig
from ..model.outputs import ACTIVATIONS, Classifier, ClassifierShape, ClassNames, Kind, NextTokenRule, Reads
from ..model.templates import LONGEST_TEMPLATE
from .family import Family, Source, SourceConfig, shown
from .files import Stored, read_json
from .tokenizer_files import CONFIG, ROLES_FILE

# Unsupported keys -> their neutral value. They change scores, or depend on more than the text so far.
NOT_APPLIED: dict[str, Any] = {
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "sequence_bias": None,
    "exponential_decay_length_penalty": None,
    "forced_decoder_ids": None,
    "guidance_scale": 1.0,
}


def _token_ids(c: SourceConfig, key: str) -> tuple[int, ...]:
    """One token or a list of tokens; () if absent. Raises CheckpointError for other values."""
    value = c.any(key, None)
    return () if value is None else _whole(c, key, value if isinstance(value, list) else [value])


def next_token_rule(
    c: SourceConfig, config: ModelConfig, end_ids: tuple[int, ...]
) -> tuple[NextTokenRule, tuple[str, ...]]:
    """The rule, and a notice for each unsupported setting. Raises CheckpointError naming the key.

    Tokens outside of the vocabulary are ignored.
    """
    if not config.writes:
        return NextTokenRule(), ()
    size = config.vocab_size

    def known(key: str) -> tuple[int, ...]:
        return tuple(i for i in _token_ids(c, key) if i < size)

    first = known("forced_bos_token_id")
    if len(first) > 1:
        raise CheckpointError(f"{c.where}: forced_bos_token_id is {shown(list(first))}, but it must be one token.")
    runs = [run for run in _bad_words(c) if max(run) < size]
    # An end token cannot be a bad word, or texts would never end; published code ignores it as well.
    singles = [run[0] for run in runs if len(run) == 1 and run[0] not in end_ids]
    never = tuple(dict.fromkeys((*singles, *known("suppress_tokens"))))
    if len(never) >= size:
        raise CheckpointError(f"{c.where} forbids every token of the vocabulary, so that nothing can be written.")
    fewest_new = c.int("min_new_tokens", 0)
    rule = NextTokenRule(
        never=never,
        never_after=tuple(dict.fromkeys(run for run in runs if len(run) > 1)),
        never_first=known("begin_suppress_tokens"),
        first=first[0] if first else None,
        last=known("forced_eos_token_id"),
        fewest=0 if fewest_new else c.int("min_length", 0),
        fewest_new=fewest_new,
        no_repeat=c.int("no_repeat_ngram_size", 0),
        end_ids=end_ids,
    )
    return rule, _not_applied(c)


def _not_applied(c: SourceConfig) -> tuple[str, ...]:
    return tuple(
        f"{c.where} asks for {key}={shown(c.values[key])}, which is not applied when this model writes."
        for key, neutral in NOT_APPLIED.items()
        if key in c and c.values[key] != neutral
    )


def _bad_words(c: SourceConfig) -> list[tuple[int, ...]]:
    words = c.any("bad_words_ids", [])
    if not isinstance(words, list) or not all(isinstance(word, list) and word for word in words):
        raise CheckpointError(f"{c.where}: bad_words_ids is {shown(words)}, but it must be a list of lists of tokens.")
    return [_whole(c, "bad_words_ids", word) for word in words]


def generation_values(rule: NextTokenRule) -> dict[str, Any]:
    """Contents of a generation_config.json from which next_token_rule() reads this rule."""
    lists = {
        "bad_words_ids": [list(run) for run in rule.never_after],
        "suppress_tokens": list(rule.never),
        "begin_suppress_tokens": list(rule.never_first),
        "forced_bos_token_id": [] if rule.first is None else [rule.first],
        "forced_eos_token_id": list(rule.last),
        "eos_token_id": list(rule.end_ids),
    }
    numbers = {
        "min_length": rule.fewest,
        "min_new_tokens": rule.fewest_new,
        "no_repeat_ngram_size": rule.no_repeat,
    }
    return {key: value for key, value in (lists | numbers).items() if value}


def _whole(c: SourceConfig, key: str, values: list[Any]) -> tuple[int, ...]:
    if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in values):
        raise CheckpointError(f"{c.where}: {key} is {shown(c.values[key])}, but tokens are whole numbers from 0.")
    return tuple(values)


def special_ids(
    source_config: SourceConfig,
    generation: SourceConfig | None,
    family: Family,
    config: ModelConfig,
    tokenizer: Tokenizer | None,
) -> dict[str, Any]:
    """pad_id, has_pad, start_id and end_ids of a model. Padding is masked, so a model without a padding token uses its end token, or 0."""

    def all_stated(place: SourceConfig | None, key: str) -> list[int]:
        value = None if place is None else place.any(key, None)
        values = value if isinstance(value, list) else [value]  # Llama 3 has several end tokens
        whole = [v for v in values if isinstance(v, int) and not isinstance(v, bool)]
        return [v for v in whole if 0 <= v < config.vocab_size]

    def stated(key: str) -> int | None:
        return next(iter(all_stated(source_config, key) + all_stated(generation, key)), None)

    named = [tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>")] if tokenizer is not None else []
    end = stated("eos_token_id")
    # generation_config.json takes precedence.
    ends = all_stated(generation, "eos_token_id") or all_stated(source_config, "eos_token_id")
    # If positions skip the padding token, no other token may be used as padding.
    own = [config.uncounted_id, stated("pad_token_id"), *named]
    pad_id = next(i for i in (*own, end, 0) if i is not None and i < config.vocab_size)
    start = None
    if config.kind == "encoder-decoder":
        start = stated("decoder_start_token_id")
        start = end if start is None and family.start_token == "eos" else start
        start = pad_id if start is None else start
    return {
        "pad_id": pad_id,
        "has_pad": pad_id in own,
        "start_id": start,
        "end_ids": tuple(dict.fromkeys(ends)),
    }


def custom_code_notices(source_config: SourceConfig, family: Family) -> tuple[str, ...]:
    """Notice about custom code of a repository (auto_map), which is never run."""
    classes = source_config.inside("auto_map").values
    names = sorted(
        {str(name) for value in classes.values() for name in (value if isinstance(value, list) else [value])}
    )
    if not names:
        return ()
    return (
        f"The repository brings code of its own ({shown(', '.join(names))}, in auto_map of config.json). It is not run: this is "
        f"{family.title} as published, and where that code does otherwise its numbers are others.",
    )


TEMPLATE = "chat_template.jinja"
# Default tokens of tokenizer classes in transformers.
END = "<|endoftext|>"
CLASS_TOKENS: Mapping[str, Mapping[str, str | None]] = {
    "LlamaTokenizer": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
    "GemmaTokenizer": {
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    },
    "GPT2Tokenizer": {"bos_token": END, "eos_token": END, "unk_token": END},
    "GPTNeoXTokenizer": {"bos_token": END, "eos_token": END, "unk_token": END, "pad_token": "<|padding|>"},
    "Qwen2Tokenizer": {"eos_token": END, "unk_token": END, "pad_token": END},
    "CohereTokenizer": {
        "bos_token": "<BOS_TOKEN>",
        "eos_token": "<|END_OF_TURN_TOKEN|>",
        "unk_token": "<UNK>",
        "pad_token": "<PAD>",
        "cls_token": "<CLS>",
        "sep_token": "<SEP>",
        "mask_token": "<MASK_TOKEN>",
    },
}
CLASSES = {  # of a model type, if the settings name no class
    **dict.fromkeys(("llama", "mistral", "mixtral"), "LlamaTokenizer"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text", "gemma3"), "GemmaTokenizer"),
    **dict.fromkeys(("qwen2", "qwen3", "qwen2_moe", "qwen3_moe"), "Qwen2Tokenizer"),
    **dict.fromkeys(("cohere", "cohere2"), "CohereTokenizer"),
    "gpt2": "GPT2Tokenizer",
    "gpt_neox": "GPTNeoXTokenizer",
}
DEFAULT = "default"  # name of the template for conversations without tools


def read_chat_template(folder: Path) -> tuple[ChatTemplate | None, tuple[str, ...]]:
    """The template, or None, and a notice about a template that cannot be used.

    As in transformers, a separate file takes precedence. Nothing is raised, because the model can be used without its template.
    """
    try:
        settings = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
        file = folder / TEMPLATE
        text = _own_file(file) if file.is_file() else _stated(settings.get("chat_template"))
        if text is None:
            return None, ()
        tokens = _tokens(_merged({**_of_class(folder, settings), **settings}, folder / ROLES_FILE))
    except CheckpointError as error:
        return None, (f"The chat template of this model is not used. {error}",)
    return ChatTemplate(text, tokens), ()


def settings_of(template: ChatTemplate) -> dict[str, Any]:
    """Content of a tokenizer_config.json from which read_chat_template() reads this template."""
    return {**dict(template.tokens), "chat_template": template.text}


def _own_file(path: Path) -> str:
    try:
        if path.stat().st_size > 4 * LONGEST_TEMPLATE:
            raise CheckpointError(f"{path.name} is larger than any published file of that name.")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path.name} cannot be read as text. Download it again.") from error


def _stated(value: Any) -> str | None:
    """The template in the settings: a string, or the default or only one of several named ones."""
    if value is None:
        return None
    if isinstance(value, list):
        named = {
            each["name"]: each["template"]
            for each in value
            if isinstance(each, dict) and isinstance(each.get("name"), str) and isinstance(each.get("template"), str)
        }
        value = next(iter(named.values())) if len(named) == 1 else named.get(DEFAULT)
        if value is None:
            names = f"It has {shown(', '.join(named))}" if named else "It has none with a name"
            raise CheckpointError(f"{CONFIG}: chat_template is a list without a template called {DEFAULT}. {names}.")
    if not isinstance(value, str):
        raise CheckpointError(
            f"{CONFIG}: chat_template is {shown(value)}, but it must be a text, or a list of named ones."
        )
    return value or None


def _of_class(folder: Path, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Default tokens of the tokenizer's class."""
    name = settings.get("tokenizer_class")
    if name is None and (folder / "config.json").is_file():
        kind = read_json(folder / "config.json").get("model_type")
        name = CLASSES.get(kind) if isinstance(kind, str) else None
    return CLASS_TOKENS.get(name.removesuffix("Fast"), {}) if isinstance(name, str) else {}


def _merged(settings: Mapping[str, Any], roles: Path) -> Mapping[str, Any]:
    """The settings, overridden by special_tokens_map.json, which is ignored if there is added_tokens_decoder, as in transformers."""
    if "added_tokens_decoder" in settings or not roles.is_file():
        return settings
    return {**settings, **read_json(roles)}


def _tokens(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Named special tokens, such as bos_token and names of the model's own. A value is a string or an object with its text."""
    tokens = {}
    own = [settings.get(key) for key in ("model_specific_special_tokens", "extra_special_tokens")]
    named = {key: value for part in own if isinstance(part, dict) for key, value in part.items()}
    roles = {key: value for key, value in settings.items() if key.endswith("_token")}
    for key, value in {**roles, **named}.items():
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            tokens[key] = text
    return tuple(sorted(tokens.items()))


SUFFIX = "ForSequenceClassification"
MAX_CLASSES = 10_000
KINDS: dict[str, Kind] = {
    "single_label_classification": "one",
    "multi_label_classification": "several",
    "regression": "numbers",
}
POOLINGS: dict[str, Reads] = {"cls": "first", "bos": "first", "mean": "mean", "late": "late"}


@dataclass(frozen=True)
class HeadRow:
    """The head of a family, by its modules in the files. Dropout between them has no effect in evaluation."""

    out: str
    reads: Reads = "first"
    dense: str = ""
    activation: Any = ""
    activation_key: str = ""  # key of config.json that overrides it
    norm: str = ""
    bias: bool | None = True  # of the last layer; None: if the file has one
    begins: Literal["start", "last"] = "start"  # as in ClassifierShape
    pooling: str = ""  # default of classifier_pooling, if config.json selects the position


_POOLED = HeadRow("classifier", dense="pooler.dense", activation="tanh")
_DENSE = HeadRow("classifier.out_proj", dense="classifier.dense", activation="tanh")
SCORE = HeadRow("score", reads="last", bias=False)
_OF_TWO = HeadRow("classification_head.out_proj", reads="end", dense="classification_head.dense", activation="tanh")
_MODERN = HeadRow(
    "classifier", dense="head.dense", activation="gelu", activation_key="classifier_activation", norm="head.norm"
)
_CONTEXT = HeadRow("classifier", dense="pooler.dense", activation="gelu", activation_key="pooler_hidden_act")
ROWS = {
    **dict.fromkeys(("bert", "ernie", "rembert", "nomic_bert", "megatron-bert"), _POOLED),
    "albert": HeadRow("classifier", dense="pooler", activation="tanh"),
    "distilbert": HeadRow("classifier", dense="pre_classifier", activation="relu"),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert", "mpnet", "esm"), _DENSE),
    **dict.fromkeys(("roberta-prelayernorm", "xlm-roberta-xl", "data2vec-text"), _DENSE),
    "electra": HeadRow("classifier.out_proj", dense="classifier.dense", activation="gelu"),
    **dict.fromkeys(("deberta", "deberta-v2"), _CONTEXT),
    "modernbert": replace(_MODERN, pooling="cls"),
    "modernbert-decoder": replace(_MODERN, reads="last", bias=None),
    "eurobert": HeadRow("classifier", dense="dense", activation="gelu", pooling="late"),
    **dict.fromkeys(("bart", "mvp", "t5", "mt5", "umt5"), _OF_TWO),
    **dict.fromkeys(("mbart", "plbart"), replace(_OF_TWO, begins="last")),
    "ctrl": HeadRow("classifier", reads="last", bias=False),
}


def classifier_class(source_config: SourceConfig) -> str:
    """The class of a sequence classifier in config.json; "" if there is none."""
    return next((name for name in source_config.strings("architectures") if name.endswith(SUFFIX)), "")


def head_row(family: Family, config: ModelConfig) -> HeadRow | None:
    """The head of a family; None if it is unknown, or if it reads a decoder that the model does not have."""
    row = ROWS.get(family.model_type, SCORE if family.head == "lm" and not family.start_token else None)
    return row if row is None or (row.reads == "end") == (config.kind == "encoder-decoder") else None


def read_shape(source_config: SourceConfig, row: HeadRow, n_rows: int, has_bias: bool) -> ClassifierShape:
    """Shape of the head in config.json, whose last layer has `n_rows` classes. Raises CheckpointError."""
    reads = row.reads
    if row.pooling:
        pooling = source_config.str("classifier_pooling", row.pooling)
        if pooling not in POOLINGS:
            raise CheckpointError(
                f"{source_config.where}: classifier_pooling is {shown(pooling)}, but it must be one of {', '.join(POOLINGS)}."
            )
        reads = POOLINGS[pooling]
    classes = ClassNames(read_names(source_config, n_rows, row.out), read_kind(source_config, n_rows), reads)
    bias = has_bias if row.bias is None else row.bias
    pad_id = source_config.any("pad_token_id", None)
    end_id = source_config.any("eos_token_id", None)
    if reads == "end" and not whole(end_id):
        raise CheckpointError(
            f"{source_config.where}: eos_token_id is {'left out' if end_id is None else shown(end_id)}, but it must be the number of the token that ends a text: its classes are read "
            "at the place of that token."
        )
    activation = source_config.str(row.activation_key, row.activation) if row.activation_key else row.activation
    if activation and activation not in ACTIVATIONS:
        raise CheckpointError(
            f"{source_config.where}: {row.activation_key} is {shown(activation)}, but it must be one of {', '.join(ACTIVATIONS)}."
        )
    return ClassifierShape(
        classes,
        activation,
        bool(row.norm),
        bias,
        pad_id if whole(pad_id) else None,
        end_id if whole(end_id) else None,
        row.begins,
    )


def whole(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def read_names(source_config: SourceConfig, n_rows: int, module: str) -> tuple[str, ...]:
    """Names of the classes in id2label; LABEL_0 and so on if there are none."""
    named = source_config.inside("id2label").values
    number = source_config.int("num_labels", n_rows)
    if not named and number == n_rows:
        return tuple(f"LABEL_{i}" for i in range(n_rows))
    if len(named or range(number)) != n_rows:
        stated = f"id2label names {len(named)}" if named else f"num_labels is {number}"
        raise CheckpointError(
            f"{source_config.where}: {stated}, but {module}.weight has {n_rows} rows, one for each class. One of the two files is of another model."
        )
    numbers = {str(i) for i in range(n_rows)}
    for key, name in named.items():
        if key not in numbers:
            raise CheckpointError(
                f"{source_config.where}: id2label has the number {shown(key)}, but its {n_rows} classes have the numbers 0 to {n_rows - 1}."
            )
        if isinstance(name, bool) or not isinstance(name, str | int | float):
            raise CheckpointError(
                f"{source_config.where}: id2label calls class {key} {shown(name)}, but a name must be text."
            )
    return tuple(str(named[str(i)]) for i in range(n_rows))


def read_kind(source_config: SourceConfig, n_rows: int) -> Kind:
    """Kind of the outputs. A head with one class is a regression unless problem_type states another kind, as in transformers."""
    kind = source_config.str("problem_type", None)
    if kind is None:
        return "numbers" if n_rows == 1 else "one"
    if kind not in KINDS:
        raise CheckpointError(
            f"{source_config.where}: problem_type is {shown(kind)}, but it must be one of {', '.join(KINDS)}, or be left out."
        )
    return KINDS[kind]


def empty_classifier(
    source_config: SourceConfig, config: ModelConfig, tensors: Mapping[str, Stored], row: HeadRow
) -> Classifier:
    """The head on the meta device. `tensors` have the names of the family. Raises CheckpointError."""
    out = tensors.get(f"{row.out}.weight")
    if out is None:
        raise CheckpointError(
            f"{source_config.where} names {shown(classifier_class(source_config))}, but the weight files hold no tensor {row.out}.weight, from which its classes "
            'are scored. To open the model without its classes, have "architectures" name its base, such as '
            f"{classifier_class(source_config).removesuffix(SUFFIX)[:40]}Model."
        )
    if len(out.shape) != 2 or out.shape[1] != config.d_model or not 1 <= out.shape[0] <= MAX_CLASSES:
        raise CheckpointError(
            f"{out.file}: the tensor {out.name} is {list(out.shape)}, but it must have a row of {config.d_model} numbers for each class, "
            f"and from 1 to {MAX_CLASSES:,} classes."
        )
    shape = read_shape(source_config, row, out.shape[0], f"{row.out}.bias" in tensors)
    with torch.device("meta"):
        return Classifier(shape, config).eval()


def sources_of(model: Classifier, row: HeadRow) -> dict[str, tuple[list[str], Source]]:
    """Tensor of a head -> its names in the files, and its source."""
    modules = {"dense": row.dense, "norm": row.norm, "out": row.out}
    found = {}
    for name in model.state_dict():
        module, leaf = name.rsplit(".", 1)
        # ModernBERT's dense layer may have no bias.
        source = Source(modules[module], zeros_if_absent=bool(row.norm) and name == "dense.bias")
        found[name] = [f"{modules[module]}.{leaf}"], source
    return found


def load_head(model: Classifier, state: Mapping[str, torch.Tensor]) -> Classifier:
    """Load the weights of the head."""
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(False)


def head_dtype(model: Classifier, name: str, dtype: torch.dtype) -> torch.dtype:
    """dtype of one of the head's tensors."""
    owner: nn.Module = model.get_submodule(name.rpartition(".")[0])
    return norm_dtype(owner, dtype)
