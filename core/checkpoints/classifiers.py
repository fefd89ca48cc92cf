"""Classification heads of published models: which tensors they have, and the names of their classes in config.json."""

from __future__ import annotations

import re
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
MOST_CLASSES = 10_000
KINDS: dict[str, Kind] = {
    "single_label_classification": "one",
    "multi_label_classification": "several",
    "regression": "numbers",
}
POOLINGS: dict[str, Reads] = {"cls": "first", "bos": "first", "mean": "mean", "late": "late"}


@dataclass(frozen=True)
class HeadRow:
    """The head of a family: the modules that it has in their files. Dropout between them does nothing to a model that is used."""

    out: str
    reads: Reads = "first"
    dense: str = ""
    activation: Any = ""
    activation_key: str = ""  # the key of config.json that overrides it
    norm: str = ""
    bias: bool | None = True  # of the last layer; None: where the file has one
    begins: Literal["start", "last"] = "start"  # end: as ClassifierShape has it
    pooling: str = ""  # the default of classifier_pooling, where config.json says what is read


_POOLED = HeadRow("classifier", dense="pooler.dense", activation="tanh")
_DENSE = HeadRow("classifier.out_proj", dense="classifier.dense", activation="tanh")
SCORE = HeadRow("score", reads="last", bias=False)
_OF_TWO = HeadRow("classification_head.out_proj", reads="end", dense="classification_head.dense", activation="tanh")
_MODERN = HeadRow(
    "classifier", dense="head.dense", activation="gelu", activation_key="classifier_activation", norm="head.norm"
)
_CONTEXT = HeadRow("classifier", dense="pooler.dense", activation="gelu", activation_key="pooler_hidden_act")
ROWS = {
    "bert": _POOLED,
    "ernie": _POOLED,
    "rembert": _POOLED,
    "nomic_bert": _POOLED,
    "albert": HeadRow("classifier", dense="pooler", activation="tanh"),
    "distilbert": HeadRow("classifier", dense="pre_classifier", activation="relu"),
    "roberta": _DENSE,
    "xlm-roberta": _DENSE,
    "camembert": _DENSE,
    "mpnet": _DENSE,
    "esm": _DENSE,
    "electra": HeadRow("classifier.out_proj", dense="classifier.dense", activation="gelu"),
    "deberta": _CONTEXT,
    "deberta-v2": _CONTEXT,
    "modernbert": replace(_MODERN, pooling="cls"),
    "modernbert-decoder": replace(_MODERN, reads="last", bias=None),
    "eurobert": HeadRow("classifier", dense="dense", activation="gelu", pooling="late"),
    "bart": _OF_TWO,
    "mbart": replace(_OF_TWO, begins="last"),
    "plbart": replace(_OF_TWO, begins="last"),
    "mvp": _OF_TWO,
    "roberta-prelayernorm": _DENSE,
    "xlm-roberta-xl": _DENSE,
    "data2vec-text": _DENSE,
    "megatron-bert": _POOLED,
    "t5": _OF_TWO,
    "mt5": _OF_TWO,
    "umt5": _OF_TWO,
    "ctrl": HeadRow("classifier", reads="last", bias=False),
}


def classifies(theirs: Theirs) -> str:
    """The class that config.json names for a model that sorts texts into classes; "" where it names none."""
    return next((name for name in theirs.strings("architectures") if name.endswith(SUFFIX)), "")


def row_of(family: Family, config: ModelConfig) -> HeadRow | None:
    """The head of a family; None where it is not known, and for one stack of two whose head reads its decoder."""
    row = ROWS.get(family.model_type, SCORE if family.head == "lm" and not family.start_token else None)
    return row if row is None or (row.reads == "end") == (config.kind == "encoder-decoder") else None


def read_shape(theirs: Theirs, row: HeadRow, n_rows: int, has_bias: bool) -> ClassifierShape:
    """The head that config.json describes, whose last layer has `n_rows` classes. Raises CheckpointError."""
    reads = row.reads
    if row.pooling:
        pooling = theirs.str("classifier_pooling", row.pooling)
        if pooling not in POOLINGS:
            raise CheckpointError(
                f"{theirs.where}: classifier_pooling is {shown(pooling)}, but it must be one of {', '.join(POOLINGS)}."
            )
        reads = POOLINGS[pooling]
    classes = ClassNames(read_names(theirs, n_rows, row.out), read_kind(theirs, n_rows), reads)
    bias = has_bias if row.bias is None else row.bias
    pad_id = theirs.any("pad_token_id", None)
    end_id = theirs.any("eos_token_id", None)
    if reads == "end" and not whole(end_id):
        raise CheckpointError(
            f"{theirs.where}: eos_token_id is {'left out' if end_id is None else shown(end_id)}, but it must be the number of the token that ends a text: its classes are read "
            "at the place of that token."
        )
    activation = theirs.str(row.activation_key, row.activation) if row.activation_key else row.activation
    if activation and activation not in ACTIVATIONS:
        raise CheckpointError(
            f"{theirs.where}: {row.activation_key} is {shown(activation)}, but it must be one of {', '.join(ACTIVATIONS)}."
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


def read_names(theirs: Theirs, n_rows: int, module: str) -> tuple[str, ...]:
    """The names of the classes by id2label, or LABEL_0 and so on where it names none."""
    named = theirs.inside("id2label").values
    number = theirs.int("num_labels", n_rows)
    if not named and number == n_rows:
        return tuple(f"LABEL_{i}" for i in range(n_rows))
    if len(named or range(number)) != n_rows:
        said = f"id2label names {len(named)}" if named else f"num_labels is {number}"
        raise CheckpointError(
            f"{theirs.where}: {said}, but {module}.weight has {n_rows} rows, one for each class. One of the two files is of another model."
        )
    if named.keys() != {str(i) for i in range(n_rows)}:
        wrong = next(
            key for key in named if not re.fullmatch(r"0|[1-9]\d{0,5}", str(key), re.ASCII) or int(key) >= n_rows
        )
        raise CheckpointError(
            f"{theirs.where}: id2label has the number {shown(wrong)}, but its {n_rows} classes have the numbers 0 to {n_rows - 1}."
        )
    for key, name in named.items():
        if isinstance(name, bool) or not isinstance(name, str | int | float):
            raise CheckpointError(f"{theirs.where}: id2label calls class {key} {shown(name)}, but a name must be text.")
    return tuple(str(named[str(i)]) for i in range(n_rows))


def read_kind(theirs: Theirs, n_rows: int) -> Kind:
    """How the numbers are read. A head of one class is a regression unless problem_type says otherwise, as transformers trains it."""
    said = theirs.str("problem_type", None)
    if said is None:
        return "numbers" if n_rows == 1 else "one"
    if said not in KINDS:
        raise CheckpointError(
            f"{theirs.where}: problem_type is {shown(said)}, but it must be one of {', '.join(KINDS)}, or be left out."
        )
    return KINDS[said]


def empty_classifier(theirs: Theirs, config: ModelConfig, tensors: Mapping[str, Stored], row: HeadRow) -> Classifier:
    """The head without its numbers. `tensors` are by the names that the family gives them. Raises CheckpointError."""
    out = tensors.get(f"{row.out}.weight")
    if out is None:
        raise CheckpointError(
            f"{theirs.where} names {shown(classifies(theirs))}, but the weight files hold no tensor {row.out}.weight, from which its classes "
            'are scored. To open the model without its classes, have "architectures" name its base, such as '
            f"{classifies(theirs).removesuffix(SUFFIX)[:40]}Model."
        )
    if len(out.shape) != 2 or out.shape[1] != config.d_model or not 1 <= out.shape[0] <= MOST_CLASSES:
        raise CheckpointError(
            f"{out.file}: the tensor {out.name} is {list(out.shape)}, but it must have a row of {config.d_model} numbers for each class, "
            f"and from 1 to {MOST_CLASSES:,} classes."
        )
    shape = read_shape(theirs, row, out.shape[0], f"{row.out}.bias" in tensors)
    with torch.device("meta"):
        return Classifier(shape, config).eval()


def sources_of(model: Classifier, row: HeadRow) -> dict[str, tuple[list[str], Source]]:
    """Each tensor of a head -> the names that it may have in their files."""
    modules = {"dense": row.dense, "norm": row.norm, "out": row.out}
    found = {}
    for name in model.state_dict():
        module, leaf = name.rsplit(".", 1)
        # A dense layer that has no bias, as ModernBERT's, adds zeros.
        source = Source(modules[module], zeros_if_absent=bool(row.norm) and name == "dense.bias")
        found[name] = [f"{modules[module]}.{leaf}"], source
    return found


def filled(model: Classifier, state: Mapping[str, torch.Tensor]) -> Classifier:
    """The head with its numbers."""
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(False)


def format_of(model: Classifier, name: str, dtype: torch.dtype) -> torch.dtype:
    """The format of one of its tensors."""
    owner: nn.Module = model.get_submodule(name.rpartition(".")[0])
    return norm_dtype(owner, dtype)
