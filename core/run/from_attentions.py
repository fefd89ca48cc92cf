"""from_attentions() and from_cache(): build a run from existing attention weights; operations that need the model raise Refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NoReturn, TypeVar, cast

import torch
from torch import Tensor

from ..checkpoints import ModelSpec
from ..device import check_fits_or_retry, dtype_name
from ..errors import HeadlightError
from ..model.config import ModelConfig
from ..model.rules import MaskRule, ScoreRule
from ..model.text import Tokens
from .arrays import ASK, Place, Texts, check_shapes, layers_of, read_tokens, tensor_of
from .attention import MAX_SUM_ERROR, AttentionRecord, Index, Receipt, Stage, receipt_rows
from .foreign import (
    ForeignConfig,
    ForeignModel,
    ForeignPass,
    ForeignRecord,
    ForeignTransformer,
    Origin,
    attention_name,
)
from .forward_pass import Pass
from .recorder import HeldTensor, NonFinite, PositionRecord, TensorStep
from .request import Prompt
from .trace_record import TraceRecord

NOT_SUPPORTED = (
    "the model: its logits and next words, its residual stream, what a head adds to it, the logit lens, parts of a logit",
    "queries, keys and values, and the scores before the softmax, unless they were brought as well",
    "masks: a weight of 0 is shown as 0, and has a reason only where all weights together leave no other",
    "edits, sweeps, writing and training, which run the model again",
)
# Deviation of a row's sum from 1 that rounding explains
SUM_TOLERANCES = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 3e-2}
MIN_CAUSAL_TOKENS = 3  # in a shorter text, zeros above the diagonal may be chance
TITLE = "Weights alone"
ZEROS = {
    "sure": "In every head each weight on a later token is exactly 0 and each other one is more than 0, which is a causal mask: "
    "the reason of these zeros is “future”.",
    "zeros": "No head gives any weight to a later token, so this is read as a decoder. Other weights are 0 as well, so the reason is "
    "not certain: these cells are zero, and no mask is named.",
}
UNNAMED = "No tokens were given, so they are named by their places, from 0 on."
CACHE_NAME = re.compile(
    r"(?:(?P<stack>encoder|decoder)\.|blocks\.)(?P<layer>\d+)\.(?P<site>attn|cross_attn)\.hook_(?P<what>\w+)"
)
AFTER_ROTARY = {"rot_q": "q", "rot_k": "k"}  # queries and keys as they meet in the scores

T = TypeVar("T")


def _refusal(what: str, name: str) -> str:
    return (
        f"This run was made of attention weights ({name}), and {what} cannot be read from these. Run the model itself: "
        "hl.trace(hl.wrap(model, tokenizer), text) for one of transformers, hl.trace(hl.load(name), text) for a published one."
    )


ORIGINS = {
    name: Origin(name, partial(_refusal, name=name), NOT_SUPPORTED) for name in ("from_attentions", "from_cache")
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GivenAttention(AttentionRecord):
    """One attention with given weights, [batch, head, query, key] in `replaced_pattern`. Anything else that was not given
    raises Refused."""

    origin: Origin
    has: frozenset[str] = frozenset()  # of q, k, v and z what was given

    @property
    def weights(self) -> Tensor:
        """[batch, head, query, key], as they were given."""
        assert self.replaced_pattern is not None
        return self.replaced_pattern

    @property
    def q(self) -> Tensor:
        """[head, query, d_head] if it was given. Raises Refused."""
        return super().q if "q" in self.has else self.origin.refuse("queries")

    @property
    def k(self) -> Tensor:
        """[kv_head, key, d_head] if it was given. Raises Refused."""
        return super().k if "k" in self.has else self.origin.refuse("keys")

    def z(self, heads: Index = None, queries: Index = None) -> Tensor:
        """The input of W_O from each head, [head, query, d_head], if it or the values were given. Raises Refused."""
        if not self.has & {"z", "v"}:
            self.origin.refuse("what heads read, which needs their values,")
        return super().z(heads, queries)

    def receipt(self) -> Receipt:
        """Deviation of row sums from 1, over rows with any weight. There is no other result to compare with."""
        queries = receipt_rows(self.n_query).to(self.device)
        allowed = self.mask(queries)
        sums, masked, blocked = 0.0, 0.0, 0
        for head in range(self.n_heads):
            pattern = self.pattern(head, queries)[0]
            has_weight = (pattern != 0).any(-1)
            sums = max(sums, _largest((pattern.sum(-1) - 1)[has_weight]))
            masked = max(masked, _largest(pattern[~allowed]))
            blocked = max(blocked, int((~has_weight).sum()))
        return Receipt(sums, masked, None, len(queries), self.n_query, blocked)

    def _stage(self, stage: Stage, heads: Index, queries: Index, keys: Index) -> Tensor:
        if stage != "pattern":
            self.origin.refuse("scores before the softmax")
        return super()._stage(stage, heads, queries, keys)

    def _o_weight(self, heads: Tensor) -> Tensor:
        self.origin.refuse("what a head adds to the residual stream")


@dataclass(frozen=True, kw_only=True)
class GivenConfig(ForeignConfig):
    """The shape that weights show. kind is encoder–decoder if there is cross-attention, and decoder if no weight of any head
    is on a later token."""

    origin: str
    heads: tuple[int, ...]  # of each attention
    n_ctx: None = None
    has_position_table: None = None
    writes: bool = False

    @property
    def n_heads(self) -> int:
        """Of the attention that has most."""
        return max(self.heads)

    @property
    def n_kv_heads(self) -> int:
        """The same number: shared keys are not known."""
        return self.n_heads

    @property
    def n_layers(self) -> int:
        return max(self.n_encoder_layers, self.n_decoder_layers)

    def refuse(self, what: str) -> NoReturn:
        """Raises Refused: `what` is not known."""
        ORIGINS[self.origin].refuse(what)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GivenModel(ForeignModel):
    """Takes the place of the model that the weights came from."""

    @property
    def headless(self) -> str:
        return self.origin.refusal("a logit")

    def tokens(self, text: str) -> NoReturn:
        """Raises Refused."""
        self.refuse("the tokens of another text")


@dataclass(frozen=True, eq=False, repr=False)
class AttentionsRecord(ForeignRecord):
    """Run made of attention weights: maps, rows, tiles, measures, names of heads, findings, comparison and exports."""

    remarks: tuple[str, ...] = ()
    are_weights: bool = True  # rows of numbers from 0 to 1 that sum to at most 1

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about rows that do not sum to 1, and the meaning of zeros."""
        return self.remarks

    @property
    def positions(self) -> tuple[PositionRecord, ...]:
        """Raises Refused."""
        self.require_model("positions")

    @property
    def non_finite(self) -> NonFinite | None:
        """The first attention with a weight that is NaN or infinite, and the first query that has one."""
        given = (record for record in self.attention if isinstance(record, GivenAttention))
        return self._first_non_finite(
            ((record, record.weights[record.text]) for record in given), "hook_pattern", "the weights"
        )

    def __repr__(self) -> str:
        heads = cast(GivenConfig, self.config).heads
        some = f"{min(heads)}" if min(heads) == max(heads) else f"{min(heads)} to {max(heads)}"
        read = f"{len(self.source)} token{'s' * (len(self.source) != 1)}"
        read += f" and {len(self.target)}" if self.target is not None else ""
        of = f", text {self.index} of {self.texts}" if self.texts > 1 else ""
        first = (
            f"<Trace of weights ({self.spec.id}): {read}{of}; {len(self.records)} attentions of {some} heads; {self.dtype} on "
            f"{self.device}>"
        )
        return "\n".join([first, *self.warnings])

    def classes(self) -> NoReturn:
        """Raises Refused."""
        self.require_model("classes, which need the model's logits,")

    def class_logits(self) -> NoReturn:
        """Raises Refused."""
        self.require_model("classes, which need the model's logits,")


def from_attentions(
    attentions: Any,
    tokens: Texts = None,
    *,
    target_tokens: Texts = None,
    decoder_attentions: Any = None,
    cross_attentions: Any = None,
    batch: int | None = None,
) -> AttentionsRecord:
    """A run made of attention weights, such as those of model(…, output_attentions=True), with the names of its tokens.

    `attentions` is the output of the model (anything with .attentions, or an encoder-decoder's .encoder_attentions,
    .decoder_attentions and .cross_attentions), or a list with an array for each layer, [batch, head, query, key] or
    [head, query, key], or one array [layer, head, query, key]. Arrays are of torch (any dtype and device), numpy or any
    library with __dlpack__ or __array__, or nested lists. Layers may have different numbers of heads.

    `tokens` are strings, as tokenizer.convert_ids_to_tokens() returns them; for a batch, a list for each text.
    `target_tokens` are those of a decoder with cross-attention; `attentions` are then the encoder's, or None. `batch`
    selects one text.

    The weights are copied. Anything that they do not show raises Refused with their origin; run.cannot lists it, and
    run.warnings tells if the numbers do not look like weights. Raises Refused for shapes that do not fit together, and
    TooLarge.
    """
    if (output := _of_output(attentions)) is not None:
        attentions, own_decoder, own_cross = output
        decoder_attentions = own_decoder if decoder_attentions is None else decoder_attentions
        cross_attentions = own_cross if cross_attentions is None else cross_attentions
    given = {"attentions": attentions, "decoder_attentions": decoder_attentions, "cross_attentions": cross_attentions}
    layers = {name: layers_of(x, name) for name, x in given.items() if x is not None}
    if not layers:
        raise HeadlightError(f"No attentions were given. {ASK}")
    if target_tokens is not None and layers.keys() == {"attentions"}:
        raise HeadlightError(
            "target_tokens name the tokens of a decoder, and neither decoder_attentions nor cross_attentions were given. For "
            "weights of one stack give tokens alone."
        )
    places = {"attentions": ("encoder", "attn"), "decoder_attentions": ("decoder", "attn")}
    weights: dict[Place, Tensor] = {}
    for name, xs in layers.items():
        stack, site = places.get(name, ("decoder", "cross_attn"))
        weights |= {cast(Place, (stack, i, site)): x for i, x in enumerate(xs)}
    return run_of(weights, tokens, target_tokens, batch=batch)


def from_cache(cache: Any, tokens: Texts = None, *, target_tokens: Texts = None) -> AttentionsRecord:
    """A run made of the cache of model.run_with_cache(text): the weights of every blocks.{layer}.attn.hook_pattern, and
    queries, keys, values and z if it has hook_q, hook_k, hook_v and hook_z (q and k after rotary positions if available).

    `cache` is an ActivationCache of TransformerLens, or anything with items(), with or without a batch axis. Other
    activations are ignored. `tokens` are strings: model.to_str_tokens(text). Everything else as from_attentions().
    Raises Refused.
    """
    if not hasattr(cache, "items"):
        raise HeadlightError(
            f"A cache holds activations by name, and {type(cache).__name__} has no items(). Give the second result of model.run_with_cache(text)."
        )
    weights: dict[Place, Tensor] = {}
    activations: dict[Place, dict[str, Tensor]] = {}
    for name, x in cache.items():
        if (match := CACHE_NAME.fullmatch(str(name))) is None:
            continue
        what, place = match["what"], cast(Place, (match["stack"] or "encoder", int(match["layer"]), match["site"]))
        if what == "pattern":
            weights[place] = _with_batch(tensor_of(x, str(name)), str(name))
        elif what in ("q", "k", "v", "z", *AFTER_ROTARY) and place[0] == "encoder":
            own = activations.setdefault(place, {})
            if what in AFTER_ROTARY or what not in own:
                own[AFTER_ROTARY.get(what, what)] = tensor_of(x, str(name))
    if not weights:
        raise HeadlightError(
            "This cache holds no weights: no name in it is blocks.0.attn.hook_pattern or the like. Run model.run_with_cache(text) "
            "without a names_filter, or with one that lets hook_pattern through."
        )
    more = {place: _fitting(own, weights[place]) for place, own in activations.items() if place in weights}
    return run_of(weights, tokens, target_tokens, more=more, origin="from_cache")


def _with_batch(x: Tensor, name: str) -> Tensor:
    if x.ndim not in (3, 4):
        raise HeadlightError(
            f"{name} has the shape {list(x.shape)}, and a pattern is [batch, head, query, key] or [head, query, key]."
        )
    return x if x.ndim == 4 else x[None]


def _fitting(activations: Mapping[str, Tensor], weights: Tensor) -> dict[str, Tensor]:
    """q, k, v and z as [batch, head, pos, d_head], without those whose batch, positions or heads do not fit the weights."""
    batch, n_heads, n_query, n_key = weights.shape
    lengths = {"q": n_query, "z": n_query, "k": n_key, "v": n_key}
    fitting = {}
    for what, x in activations.items():
        x = x if x.ndim == 4 else x[None]
        if x.ndim == 4 and x.shape[:2] == (batch, lengths[what]) and n_heads % x.shape[2] == 0:
            fitting[what] = x.transpose(1, 2).clone()
    return fitting


def _of_output(output: Any) -> tuple[Any, Any, Any] | None:
    """The weights of the encoder (or of the only stack), of the decoder and of cross-attention in the output of a model;
    None if this is not one. Raises Refused for an output without weights."""
    names = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    is_mapping = isinstance(output, Mapping)
    values = output if is_mapping else {name: getattr(output, name) for name in names if hasattr(output, name)}
    # transformers leaves out of an output everything that is None
    is_output = any(hasattr(output, name) for name in ("logits", "last_hidden_state", "encoder_last_hidden_state"))
    if not is_output and values.keys().isdisjoint(names):
        return None
    given = {name: x for name in names if (x := values.get(name)) is not None and not (isinstance(x, tuple) and not x)}
    if not given:
        raise HeadlightError(f"This {type(output).__name__} holds no attentions. {ASK}")
    own, encoder, decoder, cross = (given.get(name) for name in names)
    if own is None:
        return encoder, decoder, cross
    return (own, None, None) if cross is None else (None, own, cross)  # a decoder with encoder_hidden_states


def run_of(
    weights: Mapping[Place, Tensor],
    tokens: Texts,
    target_tokens: Texts,
    *,
    batch: int | None = None,
    more: Mapping[Place, Mapping[str, Tensor]] | None = None,
    origin: str = "from_attentions",
) -> AttentionsRecord:
    """The run of these weights, [batch, head, query, key] for each place. `more` has q, k, v and z of some places,
    [batch, head, pos, d_head] each. Raises Refused and TooLarge."""
    order = sorted(weights, key=lambda place: (place[0] == "decoder", place[1], place[2] == "cross_attn"))
    weights = {place: weights[place] for place in order}
    check_shapes(weights)
    weights, more = _copied(weights, batch), more or {}
    sources, targets = read_tokens(tokens, target_tokens, weights, batch)
    zeros = {
        "encoder": _zeros_after(weights, "encoder", sources),
        "decoder": _zeros_after(weights, "decoder", targets or sources),
    }
    if targets is None and zeros["encoder"]:  # no weight is on a later token, so this is a decoder
        zeros = {"encoder": "", "decoder": zeros["encoder"]}
        weights, more = _of_decoder(weights), _of_decoder(more)
    records = tuple(
        _attention(place, x, _mask_of(place, x, sources, targets, zeros), more.get(place, {}), ORIGINS[origin])
        for place, x in weights.items()
    )
    loaded = _stand_in(weights, origin)
    sums, are_weights = _check_sums(records)
    unnamed = [UNNAMED] if tokens is None and target_tokens is None else []
    return AttentionsRecord(
        loaded=loaded,
        sources=sources,
        targets=targets,
        records=records,
        position_records=(),
        steps=tuple(_pattern_step(record) for record in records),
        norms={},
        last_residual=_Missing(ORIGINS[origin], "the residual stream"),
        forward=cast(Pass, ForeignPass(loaded, Prompt(sources, targets))),
        seconds=0.0,
        remarks=(*sums, *(ZEROS[kind] for kind in zeros.values() if kind), *unnamed),
        are_weights=are_weights,
    )


def _of_decoder(by_place: Mapping[Place, T]) -> dict[Place, T]:
    return {("decoder", layer, site): x for (_, layer, site), x in by_place.items()}


def _stand_in(weights: Mapping[Place, Tensor], name: str) -> GivenModel:
    """Takes the place of the model that these weights came from."""
    origin, first = ORIGINS[name], next(iter(weights.values()))
    encoder, decoder = (
        1 + max((layer for stack, layer, _ in weights if stack == own), default=-1) for own in ("encoder", "decoder")
    )
    crossed = any(site == "cross_attn" for _, _, site in weights)
    config = GivenConfig(
        kind="encoder-decoder" if crossed else "decoder" if decoder else "encoder",
        n_encoder_layers=encoder,
        n_decoder_layers=decoder,
        origin=name,
        heads=tuple(x.shape[1] for x in weights.values()),
    )
    return GivenModel(
        spec=ModelSpec(id=name, title=TITLE, source="weights", location=""),
        config=cast(ModelConfig, config),
        model=cast(Any, ForeignTransformer(origin, config)),
        tokenizer=None,
        device=first.device,
        dtype=first.dtype,
        unused=(),
        pad_id=0,
        start_id=None,
        origin=origin,
        no_text=origin.refusal("a run of another text"),
    )


@dataclass(frozen=True)
class _Missing:
    """Takes the place of the function that returns a tensor. Raises Refused."""

    origin: Origin
    what: str

    def __call__(self, *_: Tensor) -> Tensor:
        self.origin.refuse(self.what)


def _copied(weights: Mapping[Place, Tensor], batch: int | None) -> dict[Place, Tensor]:
    """Copies of the weights of the selected text, or of all, on one device. Raises Refused and TooLarge."""
    if batch is not None:
        for x in weights.values():
            if not -len(x) <= batch < len(x):
                raise HeadlightError(
                    f"There is no text {batch} in a batch of {len(x)}: the weights have the shape {list(x.shape)}."
                )
        weights = {place: x[batch % len(x)][None] for place, x in weights.items()}
    device = next(iter(weights.values())).device  # of a model on several devices the first one's
    size = sum(x.nbytes for x in weights.values())
    check_fits_or_retry(size, device, "A copy of these weights", "Give fewer layers, or a shorter text.")
    return {place: x.to(device, copy=True) for place, x in weights.items()}


def _pattern_step(record: GivenAttention) -> TensorStep:
    x = record.weights
    axes = ("batch", "head", "query", "key")
    return TensorStep(f"{record.name}.hook_pattern", axes, tuple(x.shape), dtype_name(x.dtype), x.nbytes)


def _zeros_after(weights: Mapping[Place, Tensor], stack: str, texts: Sequence[Tokens]) -> Literal["", "zeros", "sure"]:
    """Whether all weights on later tokens are exactly 0 in every head of a stack, and whether no other weight is ("sure")."""
    maps = [x for place, x in weights.items() if place[0] == stack and place[2] == "attn"]
    if not maps or len(texts[0]) < MIN_CAUSAL_TOKENS:
        return ""
    sure = True
    for i, tokens in enumerate(texts):
        real = (~torch.tensor(tokens.padding)).nonzero()[:, 0]
        later = torch.ones(len(real), len(real), dtype=torch.bool).triu(1)
        for x in maps:
            at, above = real.to(x.device), later.to(x.device)
            has_weight = x[i][:, at][:, :, at] != 0  # [head, query, key]
            if bool((has_weight & above).any()):
                return ""
            sure = sure and bool((has_weight | above).all())
    return "sure" if sure else "zeros"


def _mask_of(
    place: Place, x: Tensor, sources: Sequence[Tokens], targets: Sequence[Tokens] | None, zeros: Mapping[str, str]
) -> MaskRule:
    """The part of a mask that is certain: padding, and the future where nothing else can be the reason."""
    keys = sources if targets is None or place[0] == "encoder" or place[2] == "cross_attn" else targets
    padding = torch.tensor([tokens.padding for tokens in keys], device=x.device)
    causal = place[2] == "attn" and zeros[place[0]] == "sure"
    return MaskRule(*x.shape[1:], causal=causal, keep=~padding if bool(padding.any()) else None)


def _attention(place: Place, x: Tensor, mask: MaskRule, more: Mapping[str, Tensor], origin: Origin) -> GivenAttention:
    n, n_heads, n_query, n_key = x.shape
    q, k, v, z = (more.get(name) for name in "qkvz")
    of_keys = k if k is not None else v
    kv_heads = n_heads if of_keys is None else of_keys.shape[1]
    return GivenAttention(
        attention_name(*place),
        *place,
        x.new_empty(n, n_heads, n_query, 0) if q is None else q,
        x.new_empty(n, kv_heads, n_key, 0) if k is None else k,
        _Missing(origin, "values") if v is None else HeldTensor(v),
        ScoreRule(mask, 1.0),
        replaced_pattern=x,
        edited_z=None if z is None else HeldTensor(z),
        origin=origin,
        has=frozenset(more),
    )


def _check_sums(records: Sequence[GivenAttention]) -> tuple[list[str], bool]:
    """Sentences about rows that do not sum to 1 and numbers that are not finite; and whether these are weights: rows from 0
    to 1 that sum to at most 1."""
    low, high, least, bad = 1.0, 1.0, 0.0, ""
    tolerance = max(SUM_TOLERANCES.get(record.weights.dtype, 1e-3) for record in records)
    for record in records:
        for weights in record.weights:  # one text after the other, since each is copied as float32
            x = weights.float()
            finite = x.isfinite()
            bad = bad or ("" if bool(finite.all()) else record.name)
            rows = x.where(finite, 0)
            sums = rows.sum(-1)[(rows != 0).any(-1)]
            least = min(least, float(rows.min()))
            if sums.numel():
                low, high = min(low, float(sums.min())), max(high, float(sums.max()))
    sentences = []
    if bad:
        sentences.append(
            f"{bad} holds NaN or infinite numbers, which are shown as no weight. Did the run overflow, as in half precision?"
        )
    are_weights = least >= -tolerance and high <= 1 + tolerance
    if not are_weights:
        sentences.append(
            f"These are no weights as a softmax leaves them: rows sum to between {low:.3g} and {high:.3g}, and the least number is "
            f"{least:.3g}. Are they attention scores before the softmax? Measures take the numbers as they are."
        )
    elif low < 1 - tolerance:
        sentences.append(
            f"Some rows sum to less than 1, the least to {low:.3g}: a part of each map, dropout, or a model whose heads may look at "
            "nothing leaves such rows."
        )
    return sentences, are_weights


def not_drawn(run: TraceRecord) -> str:
    """Why the screens, which draw weights and layers of one size, do not draw this run; "" if they do."""
    if not isinstance(run, AttentionsRecord):
        return ""
    sites: dict[str, tuple[str, ...]] = {name: ("attn",) for name, _ in run.config.stacks}
    if run.config.kind == "encoder-decoder":
        sites["decoder"] = ("attn", "cross_attn")
    names = [
        attention_name(stack, i, site) for stack, n in run.config.stacks for i in range(n) for site in sites[stack]
    ]
    why = ""
    if not run.are_weights:
        why = "These numbers are no weights as a softmax leaves them, and the screens say of each how much attention it is"
    elif any(record.n_heads != run.config.n_heads for record in run.attention):
        why = "The layers of this run have different numbers of heads, and the screens draw layers that are alike"
    elif [record.name for record in run.records] != names:
        why = "Some attentions of this run were not brought, and the screens draw all of a model's layers"
    return why and f"{why}. The run itself, as the last line of a cell, is a still picture with a table."


def _largest(deviations: Tensor) -> float:
    """The largest absolute value, 0 of an empty tensor; NaN and infinity count as float32's largest."""
    return (
        deviations.abs().nan_to_num(nan=MAX_SUM_ERROR, posinf=MAX_SUM_ERROR).max().item() if deviations.numel() else 0.0
    )
