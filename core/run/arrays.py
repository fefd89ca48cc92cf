"""Given weights and tokens: arrays of any library as tensors, one [batch, head, query, key] for each layer, and strings as Tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import HeadlightError
from ..model.text import Tokens, looks_like_padding, tokens_from_strings
from .foreign import Site, Stack, attention_name

Place = tuple[Stack, int, Site]  # stack, layer, site
Texts = Sequence[str] | Sequence[Sequence[str]] | None

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
        raise HeadlightError(
            f"{_title(what)} are in a tensor of layout {tensor.layout}. Give a dense one: {what}.to_dense()."
        )
    if tensor.device.type == "meta":
        raise HeadlightError(f"{_title(what)} are on the device meta, which holds shapes and no numbers.")
    if tensor.is_complex():
        raise HeadlightError(f"{_title(what)} are complex numbers ({tensor.dtype}), and weights are real ones.")
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
        raise HeadlightError(
            f"{_title(what)} are an empty {type(given).__name__}. outputs[-1] of a model without cross-attention may be that of "
            f"its cross-attentions: give outputs.attentions. {ASK}"
        )
    empty = [layer is None for layer in given]
    if any(empty):
        raise HeadlightError(
            f"{_title(what)} of layer {empty.index(True)} are None: the model's fused attention gives no weights. {ASK}"
        )
    if all(isinstance(step, tuple) for step in given) and any(
        step and _is_array(step[0]) and _rank(step[0]) == 4 for step in given
    ):
        raise HeadlightError(
            f"{_title(what)} are a tuple of {len(given)} tuples, as generate() returns them: one for each token that was "
            "written. Give one step of it, or the weights of a pass over the whole text: "
            "model(outputs.sequences, output_attentions=True)."
        )
    if isinstance(given[-1], tuple) and any(_is_array(layer) and _rank(layer) for layer in given):
        raise HeadlightError(
            f"{_title(what)} are a tuple of arrays and tuples, like all that a model returns with return_dict=False. Give the "
            "tuple of its attentions alone."
        )


def _with_batch(layer: Tensor, what: str) -> Tensor:
    if not 2 <= layer.ndim <= 4:
        shape = list(layer.shape)
        raise HeadlightError(f"{_title(what)} has the shape {shape}, and the weights of a layer are {AXES}.")
    if 0 in layer.shape:
        raise HeadlightError(f"{_title(what)} has the shape {list(layer.shape)}, which holds no weight.")
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
            raise HeadlightError(f"{_title(what)} are of the type {x.dtype}, and weights are numbers.") from None
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
        raise HeadlightError(f"{_title(what)} {why}. Give arrays {AXES}, one a layer.") from None


def check_shapes(weights: Mapping[Place, Tensor]) -> None:
    """Raises Refused, with both shapes, for weights that cannot be of one run."""
    lengths: dict[str, tuple[str, Tensor, int]] = {}  # text -> the first attention on it, and its number of tokens
    first, first_name = next(iter(weights.values())), attention_name(*next(iter(weights)))
    for place, x in weights.items():
        name, (stack, _, site) = attention_name(*place), place
        if len(x) != len(first):
            raise HeadlightError(
                f"{name} has the shape {list(x.shape)} and {first_name} {list(first.shape)}: their batches differ."
            )
        n_query, n_key = x.shape[-2:]
        if site == "attn" and n_query != n_key:
            raise HeadlightError(
                f"{name} has the shape {list(x.shape)}, {n_query} queries and {n_key} keys, as in a step with a cache. Give the "
                "weights of a pass over the whole text, or as cross_attentions where queries and keys are of two texts."
            )
        own = "source" if stack == "encoder" else "target"
        for text, n in {"target": n_query, "source": n_key}.items() if site == "cross_attn" else [(own, n_key)]:
            other = lengths.setdefault(text, (name, x, n))
            if other[2] != n:
                raise HeadlightError(
                    f"{name} has the shape {list(x.shape)} and {other[0]} {list(other[1].shape)}: {n} and {other[2]} tokens of one "
                    "text. Give layers that saw the same text whole."
                )


class _Axis(NamedTuple):
    """The queries or keys of an attention, which are the tokens of one text."""

    name: str  # of the attention
    weights: Tensor  # [batch, head, query, key]
    n: int
    is_keys: bool


def _axes_of(weights: Mapping[Place, Tensor], text: Literal["source", "target"]) -> list[_Axis]:
    """The axes of all attentions that are the tokens of this text; of self-attention its keys."""
    axes = []
    for place, x in weights.items():
        name, (stack, _, site) = attention_name(*place), place
        is_keys = site == "attn" or text == "source"
        if site == "cross_attn" or (stack == "encoder") == (text == "source"):
            axes.append(_Axis(name, x, x.shape[-1] if is_keys else x.shape[-2], is_keys))
    return axes


def read_tokens(
    tokens: Texts, target_tokens: Texts, weights: Mapping[Place, Tensor], batch: int | None
) -> tuple[tuple[Tokens, ...], tuple[Tokens, ...] | None]:
    """Sources and targets. Raises Refused."""
    if target_tokens is None and not _axes_of(weights, "source"):  # a decoder by itself, which has one text
        tokens, target_tokens = None, tokens
    sources = _tokens_of(tokens, "tokens", weights, batch)
    targets = _tokens_of(target_tokens, "target_tokens", weights, batch)
    if sources is not None:
        return sources, targets
    assert targets is not None  # every attention has keys
    return targets, None


def _tokens_of(
    given: Texts, what: str, weights: Mapping[Place, Tensor], batch: int | None
) -> tuple[Tokens, ...] | None:
    """The tokens of every text of the batch; None if no weights are on such a text. Raises Refused."""
    axes = _axes_of(weights, "source" if what == "tokens" else "target")
    if not axes:
        if given is not None:
            part = "an encoder" if what == "tokens" else "a decoder"
            raise HeadlightError(f"{what} name the tokens of {part}, and no weights on these were given.")
        return None
    if given is None:
        return (tokens_from_strings([str(i) for i in range(axes[0].n)]),) * len(axes[0].weights)
    keys = [axis.weights for axis in axes if axis.is_keys]
    return tuple(
        tokens_from_strings(strings, _padding(strings, [maps[i] for maps in keys]))
        for i, strings in enumerate(_strings_for(axes[0], given, what, batch))
    )


def _strings_for(axis: _Axis, given: Any, what: str, batch: int | None) -> list[list[str]]:
    """The tokens of every text on this axis. Raises Refused for another number of texts or tokens."""
    name, x, n, _ = axis
    texts = _strings(given, what)
    if batch is not None and len(texts) > 1 and -len(texts) <= batch < len(texts):
        texts = [texts[batch]]
    if len(texts) != len(x):
        raise HeadlightError(
            f"{what} are of {len(texts)} {'text' if len(texts) == 1 else 'texts'} and the weights of {len(x)}: {name} has the shape "
            f"{list(x.shape)}. Give a list of tokens for each text, or batch=0 for the first one."
        )
    if wrong := [len(strings) for strings in texts if len(strings) != n]:
        raise HeadlightError(
            f"{what} has {wrong[0]} tokens, and {name} has the shape {list(x.shape)}, which is of {n}. Give the tokens that "
            "the model read, with special ones and padding."
        )
    return texts


def _strings(given: Any, what: str) -> list[list[str]]:
    """The tokens of every text. Raises Refused for anything but a list of strings, or a list of such lists."""
    items = [given] if isinstance(given, str) else list(given)
    odd = (
        items
        if isinstance(given, str)
        else [item for item in items if not isinstance(item, str) and not _is_strings(item)]
    )
    if odd:
        raise HeadlightError(
            f"{what} is a list of strings, one for each token, and not {type(odd[0]).__name__} {str(odd[0])[:40]!r}: "
            "tokenizer.convert_ids_to_tokens(ids) gives it."
        )
    return [list(map(str, item)) for item in items if not isinstance(item, str)] or [list(map(str, items))]


def _is_strings(item: Any) -> bool:
    return isinstance(item, list | tuple) and all(isinstance(token, str) for token in item)


def _padding(strings: Sequence[str], maps: Sequence[Tensor]) -> list[bool]:
    """Which tokens only fill up a batch: they are named like padding, and no other token of these maps [head, query, key]
    attends to them."""
    padding = torch.tensor([looks_like_padding(string) for string in strings])
    if not bool(padding.any()) or not maps:
        return [False] * len(strings)
    for x in maps:
        square = x.shape[-2] == x.shape[-1]
        rows = ~padding.to(x.device) if square else torch.ones(x.shape[-2], dtype=torch.bool, device=x.device)
        padding &= ~(x[:, rows] != 0).any(1).any(0).cpu()
    return padding.tolist()
