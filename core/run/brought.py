"""from_attentions(): a run made of attention weights that a person brings, which knows these and says what it does not know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NoReturn, cast

import torch
from torch import Tensor

from ..checkpoints import Loaded, ModelSpec
from ..device import dtype_name
from ..errors import Refused
from ..memory import admit_large
from ..model.config import ModelConfig
from ..model.rules import MaskRule, ScoreRule
from ..model.spelled import may_be_padding, spelled_tokens
from ..model.text import Tokens
from .arrays import ASK, layers_of
from .attention import WORST, AttentionRecord, Index, Receipt, Stage, receipt_rows
from .classes import Classes
from .forward_pass import Pass
from .predictions import Predictions
from .prompt import Prompt
from .recorder import NonFinite, PositionRecord, Step
from .trace import Trace

CANNOT = (
    "the model: its logits and next words, its residual stream, what a head adds to it, the logit lens, parts of a logit",
    "queries, keys and values, and the scores before the softmax, unless they were brought as well",
    "masks: a weight of 0 is shown as 0, and has a reason only where all weights together leave no other",
    "edits, sweeps, writing and training, which run the model again",
)
OFF_BY = {
    torch.float32: 1e-3,
    torch.float16: 1e-2,
    torch.bfloat16: 3e-2,
}  # how far from 1 rounding may take a row's sum
SURE_FROM = 3  # tokens, from which weights above the diagonal that are all 0 say something
ORIGIN = "from_attentions"
TITLE = "Weights alone"

Stack = Literal["encoder", "decoder"]
Place = tuple[Stack, int, Literal["attn", "cross_attn"]]  # stack, layer, site


ZEROS = {
    "sure": "In every head each weight on a later token is exactly 0 and each other one is more than 0, which is a causal mask: "
    "the reason of these zeros is “future”.",
    "zeros": "No head gives any weight to a later token, so this is read as a decoder. Other weights are 0 as well, so the reason is "
    "not certain: these cells are zero, and no mask is named.",
}
UNNAMED = "No tokens were given, so they are named by their places, from 0 on."


def cannot(what: str, origin: str = ORIGIN) -> NoReturn:
    """Raises Refused: what a run that was made of weights does not know."""
    raise Refused(refusal(what, origin))


def refusal(what: str, origin: str) -> str:
    """The sentence for it, with where it comes from."""
    return (
        f"This run was made of attention weights ({origin}), and {what} cannot be read from these. Run the model itself: "
        "hl.trace(hl.wrap(model, tokenizer), text) for one of transformers, hl.trace(hl.load(name), text) for a published one."
    )


@dataclass(frozen=True, eq=False, repr=False)
class WeightsRecord(AttentionRecord):
    """One attention whose weights are known, [batch, head, query, key] in `replaced_pattern`, and nothing else that was
    not brought. Asking for the rest raises Refused."""

    origin: str = ORIGIN
    has: frozenset[str] = frozenset()  # of q, k, v and z what was brought

    @property
    def weights(self) -> Tensor:
        """[batch, head, query, key], as they were brought."""
        assert self.replaced_pattern is not None
        return self.replaced_pattern

    @property
    def q(self) -> Tensor:
        """[head, query, d_head] where it was brought. Raises Refused."""
        return super().q if "q" in self.has else cannot("queries", self.origin)

    @property
    def k(self) -> Tensor:
        """[kv_head, key, d_head] where it was brought. Raises Refused."""
        return super().k if "k" in self.has else cannot("keys", self.origin)

    def z(self, heads: Index = None, queries: Index = None) -> Tensor:
        """The input of W_O from each head, [head, query, d_head], where it or the values were brought. Raises Refused."""
        if not self.has & {"z", "v"}:
            cannot("what heads read, which needs their values,", self.origin)
        return super().z(heads, queries)

    def receipt(self) -> Receipt:
        """How far from 1 rows sum, over rows with any weight. Nothing else can be held against another number."""
        queries = receipt_rows(self.n_query).to(self.device)
        sums, masked, blocked = 0.0, 0.0, 0
        allowed = self.mask(queries)
        for head in range(self.n_heads):
            pattern = self.pattern(head, queries)[0]
            whole = pattern.sum(-1)
            sees = (pattern != 0).any(-1)
            sums = max(sums, _largest((whole - 1)[sees]))
            masked = max(masked, _largest(pattern[~allowed]))
            blocked = max(blocked, int((~sees).sum()))
        return Receipt(sums, masked, None, len(queries), self.n_query, blocked)

    def _stage(self, stage: Stage, heads: Index, queries: Index, keys: Index) -> Tensor:
        if stage != "pattern":
            cannot("scores before the softmax", self.origin)
        return super()._stage(stage, heads, queries, keys)

    def _o_weight(self, heads: Tensor) -> Tensor:
        cannot("what a head adds to the residual stream", self.origin)


@dataclass(frozen=True)
class WeightsConfig:
    """All that weights say of their model. Anything else that ModelConfig has raises Refused.

    kind is encoder–decoder where there is cross-attention, decoder where no weight of any head is on a later token.
    """

    kind: Literal["encoder", "decoder", "encoder-decoder"]
    heads: tuple[int, ...]  # of each attention
    n_encoder_layers: int
    n_decoder_layers: int
    origin: str = ORIGIN

    @property
    def n_heads(self) -> int:
        """Of the attention that has most."""
        return max(self.heads)

    @property
    def n_kv_heads(self) -> int:
        """As many: that heads share keys is not known."""
        return self.n_heads

    @property
    def n_ctx(self) -> None:
        """Not known, nor is a table of positions."""
        return None

    @property
    def has_position_table(self) -> None:
        """Not known."""
        return None

    @property
    def n_layers(self) -> int:
        return max(self.n_encoder_layers, self.n_decoder_layers)

    @property
    def stacks(self) -> tuple[tuple[Stack, int], ...]:
        both: tuple[tuple[Stack, int], ...] = (("encoder", self.n_encoder_layers), ("decoder", self.n_decoder_layers))
        return tuple((name, n) for name, n in both if n)

    @property
    def causal(self) -> bool:
        return self.n_decoder_layers > 0

    @property
    def writes(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name in OF_A_CONFIG:
            cannot(f"the model's {name}", self.origin)
        raise AttributeError(name)


OF_A_CONFIG = {f.name for f in fields(ModelConfig)} | {name for name in vars(ModelConfig) if not name.startswith("_")}


@dataclass(frozen=True)
class NoModel:
    """Takes the place of a Transformer: it has no head, and asking for anything else raises Refused."""

    origin: str
    head: None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        cannot(f"the inside of the model ({name})", self.origin)


@dataclass(frozen=True, eq=False, repr=False)
class NoLoaded(Loaded):
    """Takes the place of a loaded model. core.trace and whatever else would run it raises Refused."""

    origin: str = ORIGIN

    @property
    def headless(self) -> str:
        return refusal("a logit", self.origin)

    def cannot(self, what: str) -> NoReturn:
        """Raises Refused: what these weights do not tell."""
        cannot(what, self.origin)

    def tokens(self, text: str) -> NoReturn:
        """Raises Refused."""
        cannot("the tokens of another text", self.origin)


class NoWeights:
    """Takes the place of the mark of a model's weights: there are none that could change."""

    def check(self) -> None:
        """Nothing."""


@dataclass(frozen=True, eq=False)
class WeightsPass:
    """Takes the place of the pass of a run: the texts, and nothing that can run again."""

    prompt: Prompt
    origin: str
    interventions: tuple[()] = ()
    edited: frozenset[str] = frozenset()
    weights: NoWeights = field(default_factory=NoWeights)

    def of(self, text: int) -> WeightsPass:
        """The same over one text of the batch."""
        return replace(self, prompt=self.prompt.of(text))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        cannot(f"the pass of the model ({name})", self.origin)


@dataclass(frozen=True, eq=False, repr=False)
class WeightsTrace(Trace):
    """A run that was made of attention weights: maps, rows, tiles, measures, names of heads, findings, comparison and exports.

    `cannot` lists what else a Trace has and this one does not; asking for it raises Refused.
    """

    remarks: tuple[str, ...] = ()
    origin: str = ORIGIN
    are_weights: bool = True  # rows of numbers from 0 to 1 that sum to no more than 1

    @property
    def cannot(self) -> tuple[str, ...]:
        """The things that are not known of this run, a line each."""
        return CANNOT

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences to read before these numbers are believed: about rows that do not sum to 1, and what zeros say."""
        return self.remarks

    @property
    def device(self) -> str:
        return str(self.loaded.device)

    @property
    def positions(self) -> tuple[PositionRecord, ...]:
        """Raises Refused."""
        cannot("positions", self.origin)

    @property
    def non_finite(self) -> NonFinite | None:
        """The first attention with a weight that is NaN or infinite, and the first query that has one."""
        for record in self.attention:
            bad = ~record.weights[record.text].isfinite() if isinstance(record, WeightsRecord) else None
            if bad is not None and bool(bad.any()):
                at = int(bad.any(-1).any(0).int().argmax())
                nan = bool(cast(WeightsRecord, record).weights[record.text][:, at].isnan().any())
                kind: Literal["nan", "inf"] = "nan" if nan else "inf"
                return NonFinite(record.stack, record.layer, f"{record.name}.hook_pattern", "the weights", kind, at)
        return None

    def __repr__(self) -> str:
        heads = self.config.heads if isinstance(self.config, WeightsConfig) else ()
        some = f"{min(heads)}" if min(heads) == max(heads) else f"{min(heads)} to {max(heads)}"
        read = f"{len(self.source)} token{'s' * (len(self.source) != 1)}"
        read += f" and {len(self.target)}" if self.target is not None else ""
        of = f", text {self.index} of {self.texts}" if self.texts > 1 else ""
        lines = [
            f"<Trace of weights ({self.origin}): {read}{of}; {len(self.records)} attentions of {some} heads; {self.dtype} on {self.device}>"
        ]
        return "\n".join([*lines, *self.notices])

    def __getitem__(self, name: str) -> AttentionRecord | Tensor:
        """An attention by its name, or what value() gives. Raises KeyError as that does."""
        found = next((record for record in self.attention if record.name == name), None)
        return self.value(name) if found is None else found

    def value(self, point: str, positions: Sequence[int] | None = None) -> Tensor:
        """The pattern of an attention, such as decoder.blocks.3.attn.hook_pattern, and what else was brought: q, k, v, z.

        Raises KeyError for an attention that there is not, Refused for what is not known, and IndexError.
        """
        name, _, kind = point.rpartition(".")
        record = next((record for record in self.attention if record.name == name), None)
        if record is None:
            if not name.endswith("attn"):
                cannot(f"the point {point!r}", self.origin)
            near = ", ".join(record.name for record in self.records[:2])
            raise KeyError(f"there is no attention {name or point!r}; there are {near} and so on")
        n = record.n_key if kind in ("hook_k", "hook_v") else record.n_query
        chosen = list(range(n)) if positions is None else list(positions)
        if bad := [p for p in chosen if not 0 <= p < n]:
            raise IndexError(f"position {bad[0]} of {n}")
        if kind == "hook_pattern":
            return record.pattern(queries=chosen)
        if kind == "hook_z":
            return record.z(queries=chosen)
        if kind in ("hook_q", "hook_k", "hook_v"):
            return {"q": lambda: record.q, "k": lambda: record.k, "v": lambda: record.v}[kind[-1]]()[:, chosen]
        cannot(f"the point {point!r}", self.origin)

    def predictions(self, positions: Sequence[int] | None = None, k: int = 10) -> Predictions:
        """Raises Refused."""
        cannot("next words, which need the model's logits,", self.origin)

    def classes(self) -> Classes:
        """Raises Refused."""
        cannot("classes, which need the model's logits,", self.origin)

    def class_logits(self) -> Tensor:
        """Raises Refused."""
        cannot("classes, which need the model's logits,", self.origin)

    def head_input(self, positions: Sequence[int] | Tensor) -> Tensor:
        """Raises Refused."""
        cannot("the residual stream", self.origin)

    def logit_lens(self, k: int = 10, positions: Sequence[int] | None = None) -> NoReturn:
        """Raises Refused."""
        cannot("the residual stream between layers, which the logit lens reads,", self.origin)

    def contributions(self, position: int | None = None, token: int | None = None) -> NoReturn:
        """Raises Refused."""
        cannot("what each part adds to a logit", self.origin)

    def ablate_each(
        self,
        position: int | None = None,
        token: int | None = None,
        watch: Callable[[int, int], object] = lambda done, of: None,
    ) -> NoReturn:
        """Raises Refused."""
        cannot("what happens without a head, which needs runs of the model,", self.origin)


Texts = Sequence[str] | Sequence[Sequence[str]] | None


def from_attentions(
    attentions: Any,
    tokens: Texts = None,
    *,
    target_tokens: Texts = None,
    decoder_attentions: Any = None,
    cross_attentions: Any = None,
    batch: int | None = None,
) -> WeightsTrace:
    """A run made of attention weights, such as model(…, output_attentions=True) gives, with the names of its tokens.

    attentions is what the model returned (anything with .attentions, or an encoder–decoder's .encoder_attentions,
    .decoder_attentions and .cross_attentions), or a list with an array for each layer, [batch, head, query, key] or
    [head, query, key], or one array [layer, head, query, key]: of torch (any dtype and device), numpy, any library with
    __dlpack__ or __array__, or lists. Layers may have different numbers of heads. tokens are strings, as
    tokenizer.convert_ids_to_tokens gives them; of a batch a list for each text. target_tokens are those of a decoder that
    reads a source by cross-attention; `attentions` are then the encoder's, or None. `batch` chooses one text.

    The weights are copied. What they do not tell raises Refused, which says where it comes from; run.cannot lists it, and
    run.notices says where numbers look unlike weights. Raises Refused for shapes that do not go together, and TooLarge.
    """
    if (found := _of_output(attentions)) is not None:
        attentions, own_decoder, own_cross = found
        decoder_attentions = own_decoder if decoder_attentions is None else decoder_attentions
        cross_attentions = own_cross if cross_attentions is None else cross_attentions
    kinds = (
        ("attentions", attentions),
        ("decoder_attentions", decoder_attentions),
        ("cross_attentions", cross_attentions),
    )
    layers = {what: layers_of(these, what) for what, these in kinds if these is not None}
    if not layers:
        raise Refused(f"No attentions were given. {ASK}")
    given: dict[Place, Tensor] = {("encoder", i, "attn"): x for i, x in enumerate(layers.get("attentions", ()))}
    own, cross = layers.get("decoder_attentions", []), layers.get("cross_attentions", [])
    for i in range(max(len(own), len(cross))):  # in the order of the pass
        if i < len(own):
            given["decoder", i, "attn"] = own[i]
        if i < len(cross):
            given["decoder", i, "cross_attn"] = cross[i]
    if target_tokens is not None and not own and not cross:
        raise Refused(
            "target_tokens name the tokens of a decoder, and neither decoder_attentions nor cross_attentions were given. For "
            "weights of one stack give tokens alone."
        )
    return run_of(given, tokens, target_tokens, batch=batch)


def _of_output(given: Any) -> tuple[Any, Any, Any] | None:
    """The weights of the encoder (or of the only stack), of the decoder and of cross-attention in what a model returned; None
    where this is no such thing. Raises Refused for one without weights."""
    names = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    if isinstance(given, Mapping):
        there = {name: given[name] for name in names if name in given}
        known = bool(there)
    else:
        there = {name: getattr(given, name) for name in names if hasattr(given, name)}
        known = bool(there)
    if not known and not _is_output(given):
        return None
    there = {
        name: found for name, found in there.items() if not isinstance(found, tuple) or found
    }  # () where there are none
    if all(there.get(name) is None for name in names):
        raise Refused(f"This {type(given).__name__} holds no attentions. {ASK}")
    if there.get("attentions") is not None and there.get("cross_attentions") is not None:
        # A decoder that reads what it was given as encoder_hidden_states.
        return None, there["attentions"], there["cross_attentions"]
    if there.get("attentions") is not None:
        return there["attentions"], None, None
    return there.get("encoder_attentions"), there.get("decoder_attentions"), there.get("cross_attentions")


def _is_output(given: Any) -> bool:
    """Whether this is what a model of transformers returned, though without weights: it leaves out what is None."""
    return any(hasattr(given, name) for name in ("logits", "last_hidden_state", "encoder_last_hidden_state"))


def run_of(
    given: Mapping[Place, Tensor],
    tokens: Texts,
    target_tokens: Texts,
    *,
    batch: int | None = None,
    more: Mapping[tuple[int, str], Mapping[str, Tensor]] | None = None,
    origin: str = ORIGIN,
) -> WeightsTrace:
    """The run of weights [batch, head, query, key] by their place, in the order of the pass; `more` is what else is known of a
    layer and site: q, k, v and z, [batch, head, pos, d_head] each. Raises Refused and TooLarge."""
    check_shapes(given)
    given = {place: _chosen(x, batch) for place, x in given.items()}
    size = sum(x.nbytes for x in given.values())
    admit_large(
        size, next(iter(given.values())).device, "A copy of these weights", "Give fewer layers, or a shorter text."
    )
    device = next(iter(given.values())).device  # of a model on several devices the first one's
    given = {place: x.to(device, copy=True) for place, x in given.items()}
    if target_tokens is None and not _maps_on(given, "source"):  # a decoder by itself, which has one text
        tokens, target_tokens = None, tokens
    sources = _read(tokens, "tokens", given, batch)
    targets = _read(target_tokens, "target_tokens", given, batch)
    if sources is None:  # a decoder by itself
        sources, targets = targets, None
    assert sources is not None  # every attention has keys
    zeros = {
        "encoder": _zeros_after(given, "encoder", sources),
        "decoder": _zeros_after(given, "decoder", targets or sources),
    }
    if targets is None and zeros["encoder"]:  # no weight is on a later token: a decoder's
        zeros = {"encoder": "", "decoder": zeros["encoder"]}
        given = {("decoder", layer, site): x for (_, layer, site), x in given.items()}
    layers = {name: 1 + max((layer for stack, layer, _ in given if stack == name), default=-1) for name in zeros}
    crossed = any(site == "cross_attn" for _, _, site in given)
    kind = "encoder-decoder" if crossed else "decoder" if layers["decoder"] else "encoder"
    heads = tuple(x.shape[1] for x in given.values())
    config = WeightsConfig(kind, heads, layers["encoder"], layers["decoder"], origin)
    records = tuple(
        _record(place, x, _mask_of(place, x, sources, targets, zeros), (more or {}).get(place[1:], {}), origin)
        for place, x in given.items()
    )
    first = records[0].weights
    spec = ModelSpec(id=origin, title=TITLE, source="weights", location="")
    loaded = NoLoaded(
        spec,
        cast(ModelConfig, config),
        cast(Any, NoModel(origin)),
        None,
        first.device,
        first.dtype,
        (),
        0,
        None,
        origin=origin,
    )
    unnamed = tokens is None and target_tokens is None
    said, are_weights = _sums_said(records)
    remarks = (
        *said,
        *(ZEROS[found] for found in zeros.values() if found),
        *([UNNAMED] if unnamed else []),
    )
    forward = WeightsPass(Prompt(sources, targets), origin)
    steps = tuple(
        Step(
            f"{record.name}.hook_pattern",
            ("batch", "head", "query", "key"),
            tuple(x.shape),
            dtype_name(x.dtype),
            x.nbytes,
        )
        for record, x in zip(records, given.values(), strict=True)
    )
    return WeightsTrace(
        loaded,
        sources,
        targets,
        records,
        (),
        steps,
        {},
        _NoResidual(origin),
        cast(Pass, forward),
        0.0,
        remarks=remarks,
        origin=origin,
        are_weights=are_weights,
    )


@dataclass(frozen=True)
class _NoResidual:
    """Takes the place of the last residual stream. Raises Refused."""

    origin: str

    def __call__(self, positions: Tensor) -> Tensor:
        cannot("the residual stream", self.origin)


@dataclass(frozen=True)
class _NoValues:
    """Takes the place of an attention's values. Raises Refused."""

    origin: str

    def __call__(self) -> Tensor:
        cannot("values", self.origin)


@dataclass(frozen=True, eq=False)
class Brought:
    """Values or z that were brought, read by the same call as those of a run."""

    tensor: Tensor

    def __call__(self) -> Tensor:
        return self.tensor


def check_shapes(given: Mapping[Place, Tensor]) -> None:
    """Raises Refused, with both shapes, for weights that cannot be of one run."""
    seen: dict[str, tuple[str, Tensor, int]] = {}  # text -> the attention that told its length, and its length
    batch: tuple[str, Tensor] | None = None
    for place, x in given.items():
        name, site = name_of(place), place[2]
        if batch is not None and len(x) != len(batch[1]):
            raise Refused(
                f"{name} has the shape {list(x.shape)} and {batch[0]} {list(batch[1].shape)}: their batches differ."
            )
        batch = batch or (name, x)
        n_query, n_key = x.shape[-2:]
        if site == "attn" and n_query != n_key:
            raise Refused(
                f"{name} has the shape {list(x.shape)}, {n_query} queries and {n_key} keys, as in a step with a cache. Give the "
                "weights of a pass over the whole text, or as cross_attentions where queries and keys are of two texts."
            )
        texts = (
            {"target": n_query, "source": n_key}
            if site == "cross_attn"
            else {"source" if place[0] == "encoder" else "target": n_key}
        )
        for text, n in texts.items():
            other = seen.setdefault(text, (name, x, n))
            if other[2] != n:
                raise Refused(
                    f"{name} has the shape {list(x.shape)} and {other[0]} {list(other[1].shape)}: {n} and {other[2]} tokens of one "
                    "text. Give layers that saw the same text whole."
                )


def name_of(place: Place) -> str:
    """The name of an attention."""
    return f"{place[0]}.blocks.{place[1]}.{place[2]}"


def _chosen(x: Tensor, batch: int | None) -> Tensor:
    if batch is None:
        return x
    if not -len(x) <= batch < len(x):
        raise Refused(f"There is no text {batch} in a batch of {len(x)}: the weights have the shape {list(x.shape)}.")
    return x[batch % len(x)][None]


def _read(given: Texts, what: str, weights: Mapping[Place, Tensor], batch: int | None) -> tuple[Tokens, ...] | None:
    """The tokens of every text that these weights are of; None where they are of no such text. Raises Refused."""
    maps = _maps_on(weights, "source" if what == "tokens" else "target")
    if not maps:
        if given is not None:
            part = "an encoder" if what == "tokens" else "a decoder"
            raise Refused(f"{what} name the tokens of {part}, and no weights on these were given.")
        return None
    name, x, n = maps[0][0], maps[0][1], maps[0][2]
    if given is None:
        return (spelled_tokens([str(i) for i in range(n)]),) * len(x)
    texts = list(given) if not isinstance(given, str) else [given]
    if isinstance(given, str) or not all(isinstance(one, str) or _is_texts(one) for one in texts):
        odd = (
            given
            if isinstance(given, str)
            else next(one for one in texts if not isinstance(one, str) and not _is_texts(one))
        )
        raise Refused(
            f"{what} is a list of strings, one for each token, and not {type(odd).__name__} {str(odd)[:40]!r}: "
            "tokenizer.convert_ids_to_tokens(ids) gives it."
        )
    several = [list(map(str, one)) for one in texts if not isinstance(one, str)]
    if batch is not None and len(several) > 1 and -len(several) <= batch < len(several):
        several = [several[batch]]
    several = several or [[str(one) for one in texts]]
    if len(several) != len(x):
        raise Refused(
            f"{what} are of {len(several)} {_texts_of(len(several))} and the weights of {len(x)}: {name} has the shape "
            f"{list(x.shape)}. Give a list of tokens for each text, or batch=0 for the first one."
        )
    for strings in several:
        if len(strings) != n:
            raise Refused(
                f"{what} has {len(strings)} tokens, and {name} has the shape {list(x.shape)}, which is of {n}. Give the tokens that "
                "the model read, with special ones and padding."
            )
    return tuple(
        spelled_tokens(strings, _filling(strings, [m[1][i] for m in maps if m[3]])) for i, strings in enumerate(several)
    )


def _is_texts(one: Any) -> bool:
    return isinstance(one, list | tuple) and all(isinstance(token, str) for token in one)


def _texts_of(n: int) -> str:
    return "text" if n == 1 else "texts"


def _maps_on(weights: Mapping[Place, Tensor], text: Literal["source", "target"]) -> list[tuple[str, Tensor, int, bool]]:
    """Of each attention that has this text for queries or keys: name, weights, how many tokens it has, whether these are keys."""
    found = []
    for place, x in weights.items():
        name, (stack, _, site) = name_of(place), place
        if site == "cross_attn":
            found.append((name, x, x.shape[-1], True) if text == "source" else (name, x, x.shape[-2], False))
        elif (stack == "encoder") == (text == "source"):
            found.append((name, x, x.shape[-1], True))
    return found


def _filling(strings: Sequence[str], maps: Sequence[Tensor]) -> list[bool]:
    """Which tokens only fill a batch up: those that are called padding and get no weight from any other one in these maps
    [head, query, key]."""
    called = torch.tensor([may_be_padding(string) for string in strings])
    if not bool(called.any()) or not maps:
        return [False] * len(strings)
    for x in maps:
        rows = (
            ~called.to(x.device)
            if x.shape[-2] == x.shape[-1]
            else torch.ones(x.shape[-2], dtype=torch.bool, device=x.device)
        )
        called &= ~(x[:, rows] != 0).any(1).any(0).cpu()
    return called.tolist()


def _zeros_after(given: Mapping[Place, Tensor], stack: str, texts: Sequence[Tokens]) -> Literal["", "zeros", "sure"]:
    """Whether all weights on later tokens are exactly 0 in every head of a stack, and whether no other weight is ("sure")."""
    maps = [x for place, x in given.items() if place[0] == stack and place[2] == "attn"]
    if not maps or len(texts[0]) < SURE_FROM:
        return ""
    sure = True
    for i, tokens in enumerate(texts):
        real = (~torch.tensor(tokens.padding)).nonzero()[:, 0]
        n = len(real)
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        for x in maps:
            at = real.to(x.device)
            seen = x[i][:, at][:, :, at] != 0  # [head, query, key]
            above = later.to(x.device)
            if bool((seen & above).any()):
                return ""
            sure = sure and bool((seen | above).all())
    return "sure" if sure else "zeros"


def _mask_of(
    place: Place, x: Tensor, sources: Sequence[Tokens], targets: Sequence[Tokens] | None, zeros: Mapping[str, str]
) -> MaskRule:
    """The part of a mask that is certain: padding, and the future where nothing else can be the reason."""
    keys = sources if targets is None or place[0] == "encoder" or place[2] == "cross_attn" else targets
    padding = torch.tensor([tokens.padding for tokens in keys], device=x.device)
    causal = place[2] == "attn" and zeros[place[0]] == "sure"
    return MaskRule(*x.shape[1:], causal=causal, keep=~padding if bool(padding.any()) else None)


def _record(place: Place, x: Tensor, mask: MaskRule, more: Mapping[str, Tensor], origin: str) -> WeightsRecord:
    n, n_heads, n_query, n_key = x.shape
    q, k, v, z = (more.get(name) for name in "qkvz")
    of_keys = k if k is not None else v
    kv_heads = n_heads if of_keys is None else of_keys.shape[1]
    return WeightsRecord(
        name_of(place),
        *place,
        x.new_empty(n, n_heads, n_query, 0) if q is None else q,
        x.new_empty(n, kv_heads, n_key, 0) if k is None else k,
        _NoValues(origin) if v is None else Brought(v),
        ScoreRule(mask, 1.0),
        replaced_pattern=x,
        edited_z=None if z is None else Brought(z),
        origin=origin,
        has=frozenset(name for name, found in more.items() if found is not None),
    )


def _sums_said(records: Sequence[WeightsRecord]) -> tuple[list[str], bool]:
    """Whether all are weights, rows from 0 to 1 that sum to no more than 1, and a sentence about rows that do not sum to 1 and numbers that are no weights; none where all is as a softmax leaves it."""
    low, high, least, bad, off = 1.0, 1.0, 0.0, "", 0.0
    for record in records:
        for one in record.weights.split(1):
            x = one[0].float()
            finite = x.isfinite()
            bad = bad or ("" if bool(finite.all()) else record.name)
            rows = x.where(finite, 0)
            sums = rows.sum(-1)[(rows != 0).any(-1)]
            off = max(off, OFF_BY.get(record.weights.dtype, 1e-3))
            least = min(least, float(rows.min()))
            if sums.numel():
                low, high = min(low, float(sums.min())), max(high, float(sums.max()))
    said = []
    if bad:
        said.append(
            f"{bad} holds NaN or infinite numbers, which are shown as no weight. Did the run overflow, as in half precision?"
        )
    are_weights = least >= -off and high <= 1 + off
    if not are_weights:
        said.append(
            f"These are no weights as a softmax leaves them: rows sum to between {low:.3g} and {high:.3g}, and the least number is "
            f"{least:.3g}. Are they attention scores before the softmax? Measures take the numbers as they are."
        )
    elif low < 1 - off:
        said.append(
            f"Some rows sum to less than 1, the least to {low:.3g}: a part of each map, dropout, or a model whose heads may look at "
            "nothing leaves such rows."
        )
    return said, are_weights


def not_drawn(run: Trace) -> str:
    """A sentence where the screens, which draw weights and layers that are alike, do not draw this run; else nothing."""
    if not isinstance(run, WeightsTrace):
        return ""
    sites: dict[str, tuple[str, ...]] = {name: ("attn",) for name, _ in run.config.stacks}
    if run.config.kind == "encoder-decoder":
        sites["decoder"] = ("attn", "cross_attn")
    names = [f"{stack}.blocks.{i}.{site}" for stack, n in run.config.stacks for i in range(n) for site in sites[stack]]
    why = ""
    if not run.are_weights:
        why = "These numbers are no weights as a softmax leaves them, and the screens say of each how much attention it is"
    elif any(record.n_heads != run.config.n_heads for record in run.attention):
        why = "The layers of this run have different numbers of heads, and the screens draw layers that are alike"
    elif [record.name for record in run.records] != names:
        why = "Some attentions of this run were not brought, and the screens draw all of a model's layers"
    return why and f"{why}. The run itself, as the last line of a cell, is a still picture with a table."


def _largest(deviations: Tensor) -> float:
    """The largest absolute one, 0 of none; what is no number counts as float32's largest."""
    return deviations.abs().nan_to_num(nan=WORST, posinf=WORST).max().item() if deviations.numel() else 0.0
