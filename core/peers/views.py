"""bertviz's head_view and model_view, and what every call of a peer shows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from ..errors import HeadlightError
from ..model.text import Tokens
from ..run.from_attentions import not_drawn
from ..run.trace_record import still
from ..trace import AttentionsTrace, Trace, from_attentions

ACTIONS = ("view", "return")


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """A picture and its run, for run.attention, core.findings(run) and everything else that takes a run."""

    data: str  # HTML
    run: Trace | None = None

    def _repr_html_(self) -> str:
        return self.data

    def __html__(self) -> str:
        return self.data

    def __str__(self) -> str:
        return self.data

    def __repr__(self) -> str:
        return f"<Shown {len(self.data):,} characters of HTML{'' if self.run is None else f', {self.run!r}'}>"


def picture(run: Trace, layer: int, head: int, remarks: Sequence[str]) -> Shown:
    """The run's page opened on a head, or a still of it if there is no page, with the remarks below.

    Raises Refused for a layer or a head that does not exist.
    """
    record = next((record for record in run.attention if record.layer == layer), None)
    if record is None:
        layers = sorted({record.layer or 0 for record in run.attention})
        raise HeadlightError(f"There is no layer {layer}: these weights are of the layers {layers[0]} to {layers[-1]}.")
    if not 0 <= head < record.n_heads:
        raise HeadlightError(f"There is no head {head} in layer {layer}: it has the heads 0 to {record.n_heads - 1}.")
    page, why = _page(run, layer, head)
    return Shown(page + below([*run.warnings, *why, *remarks]), run)


def below(lines: Sequence[str]) -> str:
    """Lines of small print."""
    return "".join(f'<p style="margin:0.3em 0;font-size:0.82rem;opacity:0.8">{escape(line)}</p>' for line in lines)


def _page(run: Trace, layer: int, head: int) -> tuple[str, tuple[str, ...]]:
    """The page in a frame; or a still, if the app is not installed or cannot draw the numbers, with the reason."""
    why: tuple[str, ...] = ()
    if not not_drawn(run):
        try:
            return str(run.show(layer=layer, head=head).html), why
        except HeadlightError as refusal:
            why = (str(refusal),)
    record = next(record for record in run.attention if record.layer == layer)
    queries, keys = run.tokens_of(record)
    return still(repr(run).partition("\n")[0].strip("<>"), record, head, queries.labels, keys.labels), why


def returned(shown: Shown, html_action: str) -> Shown | None:
    """Display the picture ("view") or return it ("return", and also "view" outside of a notebook).

    Raises Refused for another html_action.
    """
    if html_action not in ACTIONS:
        raise HeadlightError(f"html_action is 'view' or 'return', not {html_action!r}.")
    notebook: Any = sys.modules.get("IPython")
    if html_action == "return" or notebook is None or notebook.get_ipython() is None:
        return shown
    notebook.display.display(shown)
    return None


DISPLAY_MODE = "display_mode={mode!r}: the page has the notebook's own light or dark."
EVERY = "{name}={given}: every {what} is here, since pages hold {what}s at little cost; it opens on the first of these."
SEVERAL = "heads={given}: one head is opened at a time, here head {first}; the others are next to it."
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
    """bertviz.head_view (1.4.1): the heads of a model, from its attention weights, opened on a layer and a head.

    attention is one [1, head, query, key] for each layer, with `tokens`. Encoder–decoders have encoder_attention, decoder_attention
    and cross_attention instead, with encoder_tokens and decoder_tokens. html_action "return" returns an object with .data (HTML) and
    .run; "view" displays it. Raises Refused, which is a ValueError, as from_attentions().
    """
    two = {"encoder_attention": encoder_attention, "decoder_attention": decoder_attention}
    two |= {"cross_attention": cross_attention, "encoder_tokens": encoder_tokens, "decoder_tokens": decoder_tokens}
    run = _run_of_weights(attention, tokens, two, bool(prettify_tokens))
    chosen, opened = _integers(heads), _integers(include_layers)
    remarks = _remarks(sentence_b_start, include_layers)
    if len(chosen) > 1:
        remarks.append(SEVERAL.format(given=chosen, first=chosen[0]))
    first = opened[0] if opened and layer is None else layer
    return returned(picture(run, int(first or 0), chosen[0] if chosen else 0, remarks), html_action)


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
    """bertviz.model_view (1.4.1): every head of every layer as a small picture, and one of them large. Otherwise as head_view()."""
    two = {"encoder_attention": encoder_attention, "decoder_attention": decoder_attention}
    two |= {"cross_attention": cross_attention, "encoder_tokens": encoder_tokens, "decoder_tokens": decoder_tokens}
    run = _run_of_weights(attention, tokens, two, bool(prettify_tokens))
    layers, heads = _integers(include_layers), _integers(include_heads)
    remarks = [*_remarks(sentence_b_start, include_layers), DISPLAY_MODE.format(mode=display_mode)]
    if include_heads is not None:
        remarks.append(EVERY.format(name="include_heads", given=heads, what="head"))
    return returned(picture(run, layers[0] if layers else 0, heads[0] if heads else 0, remarks), html_action)


def _run_of_weights(attention: Any, tokens: Any, two: dict[str, Any], prettify: bool) -> AttentionsTrace:
    """The run of a model with one stack, or of an encoder and a decoder with the arguments in `two`. Raises Refused."""
    given = [name for name, argument in two.items() if argument is not None]
    weights = [name for name in given if name.endswith("_attention")]
    if attention is not None:
        if tokens is None:
            raise HeadlightError(
                "tokens is required beside attention: tokenizer.convert_ids_to_tokens(ids) gives them."
            )
        if given:
            raise HeadlightError(
                f"attention is of a model with one stack, and {given[0]} of an encoder and a decoder. Give one or the other."
            )
        return _labelled(from_attentions(attention, tokens), prettify)
    if not weights:
        raise HeadlightError(
            "There is no attention: give attention, or encoder_attention, decoder_attention or cross_attention."
        )
    for stack in ("encoder", "decoder"):
        is_read = f"{stack}_attention" in weights or "cross_attention" in weights
        if is_read and f"{stack}_tokens" not in given:
            raise HeadlightError(f"{stack}_tokens is required beside {weights[0]}.")
    run = from_attentions(
        two["encoder_attention"],
        two["encoder_tokens"],
        target_tokens=None if weights == ["encoder_attention"] else two["decoder_tokens"],
        decoder_attentions=two["decoder_attention"],
        cross_attentions=two["cross_attention"],
    )
    return _labelled(run, prettify)


def _labelled(run: AttentionsTrace, prettify: bool) -> AttentionsTrace:
    """The run with tidy labels, or with the tokenizer's own spellings."""
    if prettify:
        return run

    def spelled(texts: tuple[Tokens, ...]) -> tuple[Tokens, ...]:
        return tuple(replace(tokens, own_labels=tokens.strings) for tokens in texts)

    return replace(run, sources=spelled(run.sources), targets=None if run.targets is None else spelled(run.targets))


def _remarks(sentence_b_start: Any, include_layers: Any) -> list[str]:
    remarks = []
    if sentence_b_start is not None:
        remarks.append(SECOND.format(at=int(sentence_b_start)))
    if include_layers is not None:
        remarks.append(EVERY.format(name="include_layers", given=_integers(include_layers), what="layer"))
    return remarks


def _integers(given: int | Sequence[int] | None) -> list[int]:
    if given is None:
        return []
    return [int(given)] if isinstance(given, int) else [int(one) for one in given]
