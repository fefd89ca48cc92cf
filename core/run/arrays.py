"""Arrays of any library, or nested lists, as tensors: one [batch, head, query, key] for each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import Refused

AXES = "[batch, head, query, key] or [head, query, key]"
ASK = (
    'Load the model with attn_implementation="eager" and call it with output_attentions=True; hl.wrap(model, tokenizer) '
    "records what any of its attention functions does."
)


def tensor_of(x: Any, what: str) -> Tensor:
    """A detached real tensor from an array of torch, numpy or another library (__dlpack__ or __array__), or nested lists.

    Copies only if necessary. Raises Refused.
    """
    if isinstance(x, Tensor):
        tensor = x.detach()
    elif isinstance(x, np.ndarray):
        tensor = _from_numpy(x, what)
    elif _is_array(x):
        tensor = _from_other(x, what)
    else:
        tensor = _from_lists(x, what)
    if tensor.is_sparse or tensor.layout != torch.strided or tensor.is_nested:
        raise Refused(f"{_title(what)} are in a tensor of layout {tensor.layout}. Give a dense one: {what}.to_dense().")
    if tensor.device.type == "meta":
        raise Refused(f"{_title(what)} are on the device meta, which holds shapes and no numbers.")
    if tensor.is_complex():
        raise Refused(f"{_title(what)} are complex numbers ({tensor.dtype}), and weights are real ones.")
    if tensor.dtype == torch.float64 or not tensor.is_floating_point() or tensor.element_size() < 2:
        tensor = tensor.float()
    return tensor


def layers_of(given: Any, what: str) -> list[Tensor]:
    """[batch, head, query, key] of each layer, from a list of layers or one array. Raises Refused for all other shapes.

    One array is [layer, head, query, key], [layer, batch, head, query, key], [head, query, key] or [query, key]; those of a
    list may lack the batch axis, or the batch and head axes.
    """
    if isinstance(given, list | tuple):
        _check_layers(given, what)
        if any(_is_array(layer) for layer in given) or _depth(given) > 3:
            return [_with_batch(tensor_of(layer, what), f"{what}[{i}]") for i, layer in enumerate(given)]
    array = tensor_of(given, what)
    if array.ndim == 5:
        return list(array)
    if array.ndim == 4:
        return [layer[None] for layer in array]
    return [_with_batch(array, what)]


def _check_layers(given: list[Any] | tuple[Any, ...], what: str) -> None:
    """Raises Refused, with the remedy, for the other lists and tuples that a model returns."""
    if not given:
        raise Refused(
            f"{_title(what)} are an empty {type(given).__name__}. outputs[-1] of a model without cross-attention may be that of "
            f"its cross-attentions: give outputs.attentions. {ASK}"
        )
    empty = [layer is None for layer in given]
    if any(empty):
        raise Refused(
            f"{_title(what)} of layer {empty.index(True)} are None: the model's fused attention gives no weights. {ASK}"
        )
    if all(isinstance(step, tuple) for step in given) and any(
        step and _is_array(step[0]) and _rank(step[0]) == 4 for step in given
    ):
        raise Refused(
            f"{_title(what)} are a tuple of {len(given)} tuples, as generate() returns them: one for each token that was "
            "written. Give one step of it, or the weights of a pass over the whole text: "
            "model(outputs.sequences, output_attentions=True)."
        )
    if isinstance(given[-1], tuple) and any(_is_array(layer) and _rank(layer) for layer in given):
        raise Refused(
            f"{_title(what)} are a tuple of arrays and tuples, like all that a model returns with return_dict=False. Give the "
            "tuple of its attentions alone."
        )


def _with_batch(layer: Tensor, what: str) -> Tensor:
    if not 2 <= layer.ndim <= 4:
        shape = list(layer.shape)
        raise Refused(f"{_title(what)} has the shape {shape}, and the weights of a layer are {AXES}.")
    if 0 in layer.shape:
        raise Refused(f"{_title(what)} has the shape {list(layer.shape)}, which holds no weight.")
    return layer[(None,) * (4 - layer.ndim)]


def _is_array(x: Any) -> bool:
    return hasattr(x, "__array__") or hasattr(x, "__dlpack__")


def _rank(x: Any) -> int:
    return len(getattr(x, "shape", ()))


def _depth(x: Any) -> int:
    """The number of axes of nested lists, including those of an array in them."""
    if _is_array(x):
        return _rank(x)
    return 1 + _depth(x[0]) if isinstance(x, Sequence) and not isinstance(x, str) and len(x) else 0


def _title(what: str) -> str:
    return f"The {what}"


def _from_numpy(x: np.ndarray, what: str) -> Tensor:
    if x.dtype.kind not in "fiub":  # such as bfloat16 of ml_dtypes, or objects
        try:
            x = x.astype(np.float32)
        except (TypeError, ValueError):
            raise Refused(f"{_title(what)} are of the type {x.dtype}, and weights are numbers.") from None
    if x.dtype.kind == "f" and x.dtype.itemsize > 8:
        x = x.astype(np.float32)
    x = x.astype(x.dtype.newbyteorder("=")) if not x.dtype.isnative else x
    return torch.from_numpy(np.ascontiguousarray(x) if x.flags.writeable else x.copy())


def _from_other(x: Any, what: str) -> Tensor:
    if hasattr(x, "__dlpack__"):
        try:
            return torch.from_dlpack(x).detach()
        except Exception:  # a library's own reasons: a device, a dtype, a version; numpy is the other way
            if not hasattr(x, "__array__"):
                raise
    return _from_numpy(np.asarray(x), what)


def _from_lists(x: Any, what: str) -> Tensor:
    is_list = isinstance(x, list | tuple)
    if is_list and any(_is_array(item) for item in x):
        return torch.stack([tensor_of(item, what) for item in x])
    try:
        return torch.tensor(x, dtype=torch.float32)
    except (TypeError, ValueError, RuntimeError):
        lists = "are lists of different lengths, or of things that are no numbers"
        why = lists if is_list else f"are of the type {type(x).__name__}"
        raise Refused(f"{_title(what)} {why}. Give arrays {AXES}, one a layer.") from None
