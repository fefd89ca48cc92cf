"""Classification heads of published models: their tensors, and the names of their classes in config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import nn

from ..errors import CheckpointError
from ..model.attention import norm_dtype
from ..model.classifier import ACTIVATIONS, Classifier, ClassifierShape, ClassNames, Kind, Reads
from ..model.config import ModelConfig
from .family import Family, Source, Theirs, shown
from .files import Stored

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


def classifies(source_config: Theirs) -> str:
    """The class of a sequence classifier in config.json; "" if there is none."""
    return next((name for name in source_config.strings("architectures") if name.endswith(SUFFIX)), "")


def row_of(family: Family, config: ModelConfig) -> HeadRow | None:
    """The head of a family; None if it is unknown, or if it reads a decoder that the model does not have."""
    row = ROWS.get(family.model_type, SCORE if family.head == "lm" and not family.start_token else None)
    return row if row is None or (row.reads == "end") == (config.kind == "encoder-decoder") else None


def read_shape(source_config: Theirs, row: HeadRow, n_rows: int, has_bias: bool) -> ClassifierShape:
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


def read_names(source_config: Theirs, n_rows: int, module: str) -> tuple[str, ...]:
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


def read_kind(source_config: Theirs, n_rows: int) -> Kind:
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
    source_config: Theirs, config: ModelConfig, tensors: Mapping[str, Stored], row: HeadRow
) -> Classifier:
    """The head on the meta device. `tensors` have the names of the family. Raises CheckpointError."""
    out = tensors.get(f"{row.out}.weight")
    if out is None:
        raise CheckpointError(
            f"{source_config.where} names {shown(classifies(source_config))}, but the weight files hold no tensor {row.out}.weight, from which its classes "
            'are scored. To open the model without its classes, have "architectures" name its base, such as '
            f"{classifies(source_config).removesuffix(SUFFIX)[:40]}Model."
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


def filled(model: Classifier, state: Mapping[str, torch.Tensor]) -> Classifier:
    """Load the weights of the head."""
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(False)


def format_of(model: Classifier, name: str, dtype: torch.dtype) -> torch.dtype:
    """dtype of one of the head's tensors."""
    owner: nn.Module = model.get_submodule(name.rpartition(".")[0])
    return norm_dtype(owner, dtype)
