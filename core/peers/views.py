"""head_view and model_view with the signatures of bertviz 1.4.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import Refused
from ..model.text import Tokens
from ..trace import WeightsTrace, from_attentions
from .shown import Shown, handed, picture

COLOURS = "display_mode={mode!r}: the page has the notebook's own light or dark."
EVERY = "{name}={given}: every {what} is here, since pages hold {what}s at little cost; it opens on the first of these."
SEVERAL = "heads={given}: one head is opened at a time, head {first}, and the others are beside it."
SECOND = "sentence_b_start={at}: the second sentence begins at token {at}; both are in one map."


def head_view(
    attention: Any = None,
    tokens: Any = None,
    sentence_b_start: Any = None,
    prettify_tokens: Any = True,
    layer: Any = None,
    heads: Any = None,
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Any = None,
    decoder_tokens: Any = None,
    include_layers: Any = None,
    html_action: Any = "view",
) -> Shown | None:
    """bertviz.head_view (1.4.1): the heads of a model whose attention weights are here, opened on a layer and a head.

    attention: one [1, head, query, key] for each layer, with `tokens`; or encoder_attention, decoder_attention and cross_attention
    with encoder_tokens and decoder_tokens. html_action "return" returns an object with .data (HTML) and .run; "view" displays it.
    Raises Refused, which is a ValueError, as from_attentions().
    """
    two = {"encoder": encoder_attention, "decoder": decoder_attention, "cross": cross_attention}
    run = _run(attention, tokens, two, (encoder_tokens, decoder_tokens), bool(prettify_tokens))
    chosen, opened = _list(heads), _list(include_layers)
    remarks = _remarks(sentence_b_start, include_layers)
    if len(chosen) > 1:
        remarks.append(SEVERAL.format(given=chosen, first=chosen[0]))
    first = opened[0] if opened and layer is None else layer
    return handed(picture(run, int(first or 0), chosen[0] if chosen else 0, remarks), html_action)


def model_view(
    attention: Any = None,
    tokens: Any = None,
    sentence_b_start: Any = None,
    prettify_tokens: Any = True,
    display_mode: Any = "dark",
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Any = None,
    decoder_tokens: Any = None,
    include_layers: Any = None,
    include_heads: Any = None,
    html_action: Any = "view",
) -> Shown | None:
    """bertviz.model_view (1.4.1): every head of every layer as a small picture, and one of them large. As head_view()."""
    two = {"encoder": encoder_attention, "decoder": decoder_attention, "cross": cross_attention}
    run = _run(attention, tokens, two, (encoder_tokens, decoder_tokens), bool(prettify_tokens))
    layers, heads = _list(include_layers), _list(include_heads)
    remarks = [*_remarks(sentence_b_start, include_layers), COLOURS.format(mode=display_mode)]
    if include_heads is not None:
        remarks.append(EVERY.format(name="include_heads", given=heads, what="head"))
    return handed(picture(run, layers[0] if layers else 0, heads[0] if heads else 0, remarks), html_action)


def _run(attention: Any, tokens: Any, two: dict[str, Any], two_tokens: tuple[Any, Any], prettify: bool) -> WeightsTrace:
    """The run of a model with one stack, or of an encoder and a decoder. Raises Refused."""
    given = [f"{name}_attention" for name, weights in two.items() if weights is not None]
    given += [
        name for name, some in zip(("encoder_tokens", "decoder_tokens"), two_tokens, strict=True) if some is not None
    ]
    if attention is not None:
        if tokens is None:
            raise Refused("tokens is required beside attention: tokenizer.convert_ids_to_tokens(ids) gives them.")
        if given:
            raise Refused(
                f"attention is of a model with one stack, and {given[0]} of an encoder and a decoder. Give one or the other."
            )
        return _spelled(from_attentions(attention, tokens), prettify)
    if not any(weights is not None for weights in two.values()):
        raise Refused(
            "There is no attention: give attention, or encoder_attention, decoder_attention or cross_attention."
        )
    source, target = two_tokens
    for name, stack, some in (("encoder_tokens", "encoder", source), ("decoder_tokens", "decoder", target)):
        if some is None and (two[stack] is not None or two["cross"] is not None):
            raise Refused(f"{name} is required beside {given[0]}.")
    run = from_attentions(
        two["encoder"],
        source,
        target_tokens=target if two["decoder"] is not None or two["cross"] is not None else None,
        decoder_attentions=two["decoder"],
        cross_attentions=two["cross"],
    )
    return _spelled(run, prettify)


def _spelled(run: WeightsTrace, prettify: bool) -> WeightsTrace:
    """The same, with the tokenizer's own spellings for labels where they are asked for."""
    if prettify:
        return run

    def own(texts: tuple[Tokens, ...]) -> tuple[Tokens, ...]:
        return tuple(replace(tokens, own_labels=tokens.strings) for tokens in texts)

    return replace(run, sources=own(run.sources), targets=None if run.targets is None else own(run.targets))


def _remarks(sentence_b_start: Any, include_layers: Any) -> list[str]:
    remarks = []
    if sentence_b_start is not None:
        remarks.append(SECOND.format(at=int(sentence_b_start)))
    if include_layers is not None:
        remarks.append(EVERY.format(name="include_layers", given=_list(include_layers), what="layer"))
    return remarks


def _list(given: int | Sequence[int] | None) -> list[int]:
    if given is None:
        return []
    return [int(given)] if isinstance(given, int) else [int(one) for one in given]
