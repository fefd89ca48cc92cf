"""show() with the signature of bertviz.neuron_view 1.4.1: queries and keys of a transformers model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..model.text import from_ids
from ..run.wrapped import wrap
from ..trace import trace, trace_tokens
from .views import DISPLAY_MODE, Shown, picture, returned

NUMBERS = "The queries and keys of this layer are in .run.attention.at({layer}).q and .k, [head, position, d_head]."


def show(
    model: Any,
    model_type: Any,
    tokenizer: Any,
    sentence_a: Any,
    sentence_b: Any = None,
    display_mode: Any = "dark",
    layer: Any = None,
    head: Any = None,
    html_action: Any = "view",
) -> Shown | None:
    """bertviz.neuron_view.show (1.4.1): a run of a transformers model on one or two sentences, opened on a layer and a head.

    model and tokenizer are those of transformers, of any family that core.wrap supports (bertviz needs its own copies of three
    families from 2019). model_type is not needed. The run has queries and keys. html_action as in head_view(). Raises Refused as
    core.wrap().
    """
    wrapped = wrap(model, tokenizer)
    remarks = [
        f"model_type={model_type!r} is not needed: the model's config has it.",
        DISPLAY_MODE.format(mode=display_mode),
    ]
    if sentence_b is None:
        run = trace(wrapped, sentence_a)
    else:
        pair = tokenizer(sentence_a, sentence_b)
        types = pair.get("token_type_ids") or [0] * len(pair["input_ids"])
        tokens = replace(from_ids(wrapped.tokenizer, list(pair["input_ids"])), type_ids=tuple(types))
        run = trace_tokens(wrapped, (tokens,), None, ())
    remarks.append(NUMBERS.format(layer=layer or 0))
    return returned(picture(run, int(layer or 0), int(head or 0), remarks), html_action)
