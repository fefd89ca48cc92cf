"""wrap(): a person's own model of transformers, run as it is, whose passes are recorded like our own."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NoReturn, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from ..checkpoints import Loaded, ModelSpec
from ..checkpoints.family import Theirs
from ..checkpoints.generation import next_token_rule
from ..errors import Refused, TextError
from ..memory import admit_large
from ..model.chat import ChatTemplate
from ..model.config import ModelConfig
from ..model.given import Given, given, spread
from ..model.next_tokens import ANYTHING, NextTokenRule
from ..model.rules import GivenBias, MaskRule, ScoreRule, attend
from ..model.text import Tokens, from_ids, tokenize
from .attention import AttentionRecord, receipt_rows
from .capture import written_out
from .interface import AttentionCall, configs_of, implementation_of, is_opaque, recording
from .mask_functions import rule_of
from .recorder import Held
from .shared_rows import Pool

OLDEST = (5, 18)  # of transformers; in 5.13 and older some families are not seen, and in 4 edits have no effect
CANNOT = (
    "step by step: the numbers between attentions (norms, MLPs, the residual stream) and any hook point but q, k, v, scores, "
    "pattern and z",
    "parts of a logit, the logit lens, and sweeps over heads or looks: a head is silenced by interventions=[core.Ablate(…)], a run each",
    "what a head adds to the residual stream: how its output projection is used is not known",
    "edits of positions",
    "a long text in chunks",
    "Shapes, Memory and Compute: the rows inside of a layer",
    "writing and training: model.generate and your own training loop do that, with a recording() around them",
)
PROBE = 4  # tokens of the pass that shows which attentions there are
WRAPPERS = {
    "OptimizedModule": "is compiled, and compiled code cannot be looked into. Wrap the model that you gave to torch.compile",
    "ScriptModule": "is compiled by torch.jit, and compiled code cannot be looked into. Wrap the model that it was made from",
    "DataParallel": "runs on copies of your model. Wrap its .module",
    "DistributedDataParallel": "runs on copies of your model. Wrap its .module",
    "FullyShardedDataParallel": "is in parts on several machines. Wrap a model that is whole",
    "DeepSpeedEngine": "is in parts on several machines. Wrap a model that is whole",
}


@dataclass(frozen=True)
class Place:
    """The place of an attention in its model, by our names."""

    stack: Literal["encoder", "decoder"]
    layer: int
    site: Literal["attn", "cross_attn"]
    part: int = 0  # of an attention whose values come in several parts, each in a call of its own (DiffLlama)

    @property
    def attention(self) -> str:
        """The name of the attention, which all its parts share."""
        return f"{self.stack}.blocks.{self.layer}.{self.site}"

    @property
    def name(self) -> str:
        return f"{self.attention}.part{self.part}" if self.part else self.attention


@dataclass(frozen=True, kw_only=True)
class SeenConfig:
    """The known sizes of a model whose code is not ours. Anything else that ModelConfig has raises Refused."""

    model_type: str
    kind: Literal["encoder", "decoder", "encoder-decoder"]
    vocab_size: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    n_encoder_layers: int  # one after the last that has an attention
    n_decoder_layers: int
    head: Literal["none", "lm"]
    n_ctx: int
    has_position_table: bool = False  # a text that is too long is refused by the model itself

    @property
    def stacks(self) -> tuple[tuple[Literal["encoder", "decoder"], int], ...]:
        both: tuple[tuple[Literal["encoder", "decoder"], int], ...] = (
            ("encoder", self.n_encoder_layers),
            ("decoder", self.n_decoder_layers),
        )
        return tuple((name, n) for name, n in both if n)

    @property
    def causal(self) -> bool:
        return self.n_decoder_layers > 0

    @property
    def writes(self) -> bool:
        return self.n_decoder_layers > 0 and self.head == "lm"

    def __getattr__(self, name: str) -> Any:
        if name in KNOWN_OF_OURS:
            cannot(f"its {name}")
        raise AttributeError(name)


KNOWN_OF_OURS = {f.name for f in fields(ModelConfig)} | {
    name for name, what in vars(ModelConfig).items() if isinstance(what, property) or callable(what)
}
KNOWN_OF_OURS = {name for name in KNOWN_OF_OURS if not name.startswith("_")}


def cannot(what: str) -> NoReturn:
    """Raises Refused: what a wrapped model does not show."""
    raise Refused(
        f"This model runs in transformers (headlight.wrap), where {what} is not known; wrapped.cannot lists what else is not. Where "
        "headlight.load reads its family, model.save_pretrained(folder), tokenizer.save_pretrained(folder) and headlight.load(folder) give all."
    )


@dataclass(eq=False)
class TheirModel:
    """Takes the place of our Transformer: whether it has an encoder, a decoder and a head, and nothing else. Raises Refused."""

    config: SeenConfig
    head: GivenHead | None
    encoder: Literal[True] | None
    decoder: Literal[True] | None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        cannot(f"the inside of the model ({name})")


@dataclass(eq=False)
class GivenHead:
    """The head of a wrapped model: its logits come from the pass itself, with all that the model does to them."""

    def __call__(self, logits: Tensor) -> Tensor:
        return logits

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        cannot(f"the way from the residual stream to a logit ({name})")


@dataclass(frozen=True, eq=False, repr=False)
class Wrapped(Loaded):
    """A model of transformers with a tokenizer: core.trace takes it as it takes what core.load gives.

    `cannot` lists what a run of it does not show. `recording()` watches passes that are not of a text: generate(), images,
    a step of training.
    """

    theirs: Any = None  # the person's own module
    places: Mapping[tuple[str, int], Place] = field(default_factory=dict)  # module path, earlier calls of it -> place
    notes: tuple[str, ...] = ()
    reads_words: Any = None  # their tokenizer
    no_text: str = ""  # why it cannot be run on a text

    @property
    def cannot(self) -> tuple[str, ...]:
        """The things that are not known of a run of this model, a line each."""
        return CANNOT

    @property
    def notices(self) -> tuple[str, ...]:
        more = self.notes
        if self.theirs.training:
            more += (
                "The model is in training mode: its dropout takes part, so another run gives other numbers. Weights are those "
                "before dropout. Call model.eval() for numbers that stay.",
            )
        return more

    def tokens(self, text: str) -> Tokens:
        """A text as their tokenizer reads it. Raises TextError."""
        if self.tokenizer is None:
            raise TextError(
                "No tokenizer was given: headlight.wrap(model, tokenizer) reads texts; without one give ids=[…]."
            )
        if self.reads_words is None:
            return tokenize(self.tokenizer, text)
        if not isinstance(text, str):
            raise TextError(f"A text is a string, not {text!r}.")
        ids = [int(i) for i in self.reads_words(text)["input_ids"]]
        if isinstance(self.tokenizer, Tokenizer):
            tokens = tokenize(self.tokenizer, text)
            if list(tokens.ids) == ids:
                return tokens
        return from_ids(self.tokenizer, ids)

    @contextmanager
    def recording(self) -> Iterator[list[AttentionRecord]]:
        """Record every attention that the model runs in this context and thread, in order, under its module's own name.

        Calls of one module are told apart by `call`, and keys that come again, as in the steps of generate(), are kept once.
        Gradients, dropout and random numbers are as without it. Raises Refused at the end where nothing was seen.
        """
        records: list[AttentionRecord] = []
        pools: dict[Any, Pool] = {}
        calls: Counter[str] = Counter()
        rules = Rules()

        def after(call: AttentionCall, z: Tensor) -> None:
            name = paths[call.module]
            with torch.inference_mode(False), torch.no_grad():
                record = recorded(call, z, rules, pools)
            place = self.places.get((name, 0)) or place_of(self.theirs, name, call)
            records.append(_placed(record, name, place, calls[name]))
            calls[name] += 1

        paths = {module: name for name, module in self.theirs.named_modules()}
        with recording(self.theirs, lambda _: None, after):
            yield records
        if not records:
            raise Refused(_nothing_seen(self.theirs, set()))


def wrap(model: Any, tokenizer: Any = None) -> Wrapped:
    """Your own model of transformers and its tokenizer, to be run as they are: core.trace(core.wrap(model, tokenizer), "a text").

    The pass is the model's own, to the last bit, through a function that is registered with transformers.AttentionInterface
    while it runs; it records queries, keys, values, mask, scale, soft-cap, sinks and bias. One pass over four tokens shows
    which attentions there are. A tokenizer is one of transformers, a tokenizers.Tokenizer, or None: then give ids.

    Raises Refused for a model that is compiled or in parts, whose attention is written out by hand, or that has none, and
    TypeError for what is no model. Needs transformers: pip install "headlight-attention[transformers]".
    """
    import transformers

    if tuple(int(part) for part in transformers.__version__.split(".")[:2]) < OLDEST:
        raise Refused(
            f"headlight.wrap works with transformers {'.'.join(map(str, OLDEST))} and newer, and this is {transformers.__version__}."
        )
    inner = check_model(model, transformers.PreTrainedModel)
    spelled, reads_words = tokenizer_of(tokenizer)
    config = inner.config
    size = sum(p.numel() for p in model.parameters())
    device = next(model.parameters()).device
    title = str(getattr(config, "name_or_path", "") or type(inner).__name__).rstrip("/").split("/")[-1]
    spec = ModelSpec(
        id=str(getattr(config, "name_or_path", "") or type(inner).__name__),
        title=title,
        family=config.model_type,
        source="built",
        location="",
        revision=getattr(config, "_commit_hash", None),
        n_params=size,
    )
    seen = probed(model, inner)
    shape, text_config = seen.config, config.get_text_config()
    ends, pad = (getattr(text_config, name, None) for name in ("eos_token_id", "pad_token_id"))
    end_ids = () if ends is None else tuple(ends) if isinstance(ends, list | tuple) else (ends,)
    start = getattr(text_config, "decoder_start_token_id", None) or getattr(config, "decoder_start_token_id", None)
    template = getattr(reads_words, "chat_template", None)
    stand_in = TheirModel(
        shape,
        GivenHead() if shape.head == "lm" else None,
        True if shape.n_encoder_layers else None,
        True if shape.n_decoder_layers else None,
    )
    return Wrapped(
        spec,
        cast(ModelConfig, shape),
        cast(Any, stand_in),
        spelled,
        device,
        inner.dtype,
        (),
        pad if isinstance(pad, int) and 0 <= pad < shape.vocab_size else 0,
        start if shape.kind == "encoder-decoder" else None,
        end_ids,
        isinstance(pad, int),
        next_tokens_of(inner, shape, end_ids),
        chat_template=ChatTemplate(template, special_tokens(reads_words)) if isinstance(template, str) else None,
        theirs=model,
        places=seen.places,
        notes=seen.notes,
        reads_words=reads_words,
        no_text=seen.no_text,
    )


def check_model(model: Any, kind: type) -> Any:
    """The model of transformers in what was given, which may be an adapter around one. Raises TypeError and Refused."""
    name = type(model).__name__
    if why := WRAPPERS.get(name):
        raise Refused(f"This {name} {why}.")
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"headlight.wrap takes a model of transformers, as from_pretrained gives it, not {name}. For a name or a folder use headlight.load."
        )
    inner = (
        model if isinstance(model, kind) else next((part for part in model.modules() if isinstance(part, kind)), None)
    )
    if inner is None:
        raise Refused(
            f"{name} is no model of transformers, whose attention functions headlight.wrap watches. headlight.capture(module) records any "
            "module that calls torch.nn.functional.scaled_dot_product_attention."
        )
    for path, part in model.named_modules():
        if getattr(part, "_compiled_call_impl", None) is not None or type(part).__name__ in (
            "OptimizedModule",
            "ScriptModule",
        ):
            raise Refused(
                f"{path or name} is compiled, and compiled code cannot be looked into. Wrap a model on which compile() was not called."
            )
    weights = list(model.parameters())
    if any("DTensor" in type(weight).__name__ for weight in weights):
        raise Refused(
            f"The weights of this {name} are in parts on several devices. Load it without tp_plan, on one device."
        )
    if len(devices := {weight.device for weight in weights}) > 1 or any(device.type == "meta" for device in devices):
        found = ", ".join(sorted(map(str, devices)))
        raise Refused(
            f"The weights of this {name} are on several devices ({found}). Load it on one: leave device_map out, and call .to(device)."
        )
    if not weights:
        raise Refused(f"This {name} has no weights.")
    return inner


@dataclass(frozen=True, eq=False)
class Spelling:
    """A tokenizer of transformers without a fast part, with the methods of tokenizers.Tokenizer that spell tokens."""

    theirs: Any

    def id_to_token(self, i: int) -> str | None:
        found = self.theirs.convert_ids_to_tokens(i)
        return None if found is None else str(found)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        return self.theirs.decode(ids, skip_special_tokens=skip_special_tokens)

    def get_added_tokens_decoder(self) -> Any:
        return self.theirs.added_tokens_decoder

    def to_str(self) -> str:
        return repr(self.theirs)


def tokenizer_of(given: Any) -> tuple[Any, Any]:
    """Something that spells tokens, and their tokenizer where it is one of transformers. Raises TypeError."""
    given = getattr(given, "tokenizer", given)  # a processor has one
    if given is None or isinstance(given, Tokenizer):
        return given, None
    if not callable(given) or not hasattr(given, "convert_ids_to_tokens"):
        raise TypeError(
            f"A tokenizer is one of transformers, a tokenizers.Tokenizer, or None; not {type(given).__name__}. "
            "AutoTokenizer.from_pretrained gives the one that belongs to a model."
        )
    fast = getattr(given, "backend_tokenizer", None)
    return (fast if isinstance(fast, Tokenizer) else Spelling(given)), given


def special_tokens(tokenizer: Any) -> tuple[tuple[str, str], ...]:
    """bos_token, eos_token and others, with their texts."""
    return tuple((name, str(text)) for name, text in tokenizer.special_tokens_map.items() if isinstance(text, str))


def next_tokens_of(inner: Any, config: SeenConfig, end_ids: tuple[int, ...]) -> NextTokenRule:
    """The tokens that the model's generation_config lets it write."""
    theirs = getattr(inner, "generation_config", None)
    if theirs is None:
        return ANYTHING
    return next_token_rule(Theirs(theirs.to_diff_dict(), "generation_config"), cast(ModelConfig, config), end_ids)[0]


@dataclass(frozen=True)
class Probed:
    """The attentions and sizes that one short pass showed."""

    config: SeenConfig
    places: Mapping[tuple[str, int], Place]
    notes: tuple[str, ...]
    no_text: str = ""


@contextmanager
def _evaluated(model: nn.Module) -> Iterator[None]:
    """Without dropout; afterwards each module trains again that did."""
    training = [module for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        yield
    finally:
        for module in training:
            module.training = True


def probed(model: nn.Module, inner: Any) -> Probed:
    """Run the model on a few tokens and see which attentions there are. Raises Refused where there are none to be seen."""
    if inner.main_input_name != "input_ids":
        no_text = (
            f"{type(inner).__name__} reads {inner.main_input_name}, not the tokens of a text. Record a pass of your own: "
            "`with wrapped.recording() as records: model(…)`."
        )
        return Probed(seen_config(inner, [], {}, False), {}, notes_of(model), no_text)
    calls: list[tuple[str, AttentionCall]] = []
    unexplained: list[str] = []
    rules = Rules()
    paths = {module: name for name, module in model.named_modules()}

    def after(call: AttentionCall, z: Tensor) -> None:
        calls.append((paths[call.module], call))
        if not explains(call, z, rules):
            unexplained.append(paths[call.module])

    device = next(model.parameters()).device
    ids = (torch.arange(PROBE, device=device) + 5)[None] % vocab_of(inner)
    words = {"decoder_input_ids": ids} if inner.config.is_encoder_decoder else {}
    # Evaluated, also in the middle of a training: dropout would draw from the random numbers that all threads share.
    with _evaluated(model), torch.no_grad(), recording(model, lambda _: None, after):
        try:
            with written_out(model) as written:
                out = model(input_ids=ids, **words, **options_of(inner))
        except (
            TypeError,
            ValueError,
            RuntimeError,
            IndexError,
            KeyError,
            AttributeError,
        ) as error:
            raise Refused(
                f"{type(inner).__name__} could not be run on {PROBE} tokens alone: {type(error).__name__}: {error}. headlight.wrap "
                "runs a model once to see its attentions."
            ) from error
    missed = sorted(written - {name for name, _ in calls})
    if not calls:
        raise Refused(_nothing_seen(inner, written))
    notes = notes_of(model)
    if missed:
        notes += (
            f"{len(missed)} attention{'s' * (len(missed) > 1)} of this model {'are' if len(missed) > 1 else 'is'} written out by hand and not "
            f"among the records: {', '.join(missed[:3])}{' and others' if len(missed) > 3 else ''}.",
        )
    if unexplained:
        notes += (
            f"{unexplained[0]}{' and others' if len(unexplained) > 1 else ''} returned something else than pattern · v of what its attention "
            "function was given: it does more than is recorded, and its patterns may be wrong. record.receipt() says by how much.",
        )
    places = places_of(inner, calls)
    logits = getattr(out, "logits", None)
    scored = logits is not None and logits.ndim == 3 and logits.shape[:2] == ids.shape and logits.shape[2] > PROBE
    n_logits = int(logits.shape[2]) if logits is not None and scored else 0
    config = seen_config(inner, [call for _, call in calls], places, n_logits)
    return Probed(config, places, notes)


def explains(call: AttentionCall, z: Tensor, rules: Rules) -> bool:
    """Whether pattern · v of what was recorded is what the attention returned, to the rounding of its dtype."""
    if call.dropout and call.module.training:
        return True
    mine = attend(call.query.float(), call.key.float(), call.value.float(), score_rule(call, rules))
    return bool((mine - z).abs().max() <= 50 * torch.finfo(z.dtype).eps * (1 + z.abs().max()))


def options_of(inner: Any) -> dict[str, Any]:
    """Arguments of any pass over a whole text."""
    accepted = accepted_by(inner)
    return {name: value for name, value in {"use_cache": False, "return_dict": True}.items() if name in accepted}


def accepted_by(inner: Any) -> frozenset[str]:
    """The arguments of a model's forward()."""
    return frozenset(inspect.signature(inner.forward).parameters)


def vocab_of(inner: Any) -> int:
    found = inner.get_input_embeddings()
    return getattr(found, "num_embeddings", 0) or int(inner.config.get_text_config().vocab_size)


def notes_of(model: nn.Module) -> tuple[str, ...]:
    """Sentences about anything that is run in another way than the model would be."""
    opaque = sorted({str(name) for config in configs_of(model) if is_opaque(name := implementation_of(config))})
    return tuple(
        f"This model was loaded with attn_implementation={name!r}, which cannot be looked into: a recorded pass runs its eager "
        "attention, which agrees to rounding."
        for name in opaque
    )


def places_of(inner: Any, calls: Sequence[tuple[str, AttentionCall]]) -> Mapping[tuple[str, int], Place]:
    """The place of each call of a pass: the layer is the number in its module's path, or, where one module is several layers,
    the number of calls before it."""
    counts: Counter[str] = Counter()
    found: dict[tuple[str, int], Place] = {}
    before: tuple[Tensor | None, int] = None, 0  # queries of the call before, and which part it was
    for name, call in calls:
        part = before[1] + 1 if call.query is before[0] else 0
        found[name, counts[name]] = replace(place_of(inner, name, call), part=part)
        before = call.query, part
        counts[name] += 1
    if len(set(found.values())) < len(found):
        seen: Counter[tuple[str, str]] = Counter()
        for key, place in found.items():
            seen[place.stack, place.site] += not place.part
            found[key] = replace(place, layer=seen[place.stack, place.site] - 1)
    return found


def place_of(inner: Any, name: str, call: AttentionCall) -> Place:
    """The place of an attention, by its module's path and by what it may look at."""
    steps = name.split(".")
    config = getattr(inner, "config", None)
    stack: Literal["encoder", "decoder"]
    if getattr(config, "is_encoder_decoder", False):
        stack = "decoder" if "decoder" in steps and "encoder" not in steps[: steps.index("decoder")] else "encoder"
    else:
        stack = "decoder" if looks_back_only(call) else "encoder"
    crosses = getattr(call.module, "is_cross_attention", False) is True or any(
        "cross" in step.lower() or step in ("encoder_attn", "EncDecAttention", "encoder_attention") for step in steps
    )
    numbers = [int(step) for step in steps if step.isdigit()]
    return Place("decoder" if crosses else stack, numbers[0] if numbers else 0, "cross_attn" if crosses else "attn")


def looks_back_only(call: AttentionCall) -> bool:
    """Whether no query may look at a key after it."""
    if call.mask is None:
        return call.is_causal
    n_query, n_key = call.query.shape[2], call.key.shape[2]
    mask = given(spread(call.mask.detach()), (call.query.shape[0],))
    seen = mask.allowed(*(torch.arange(n, device=call.mask.device) for n in (n_query, n_key)))
    after = torch.ones(n_query, n_key, dtype=torch.bool, device=seen.device).triu(1 + n_key - n_query)
    return bool(after.any()) and not bool((seen & after).any())


def seen_config(
    inner: Any, calls: Sequence[AttentionCall], places: Mapping[tuple[str, int], Place], n_logits: int
) -> SeenConfig:
    """The model's shape as the pass and the config tell it."""
    text = inner.config.get_text_config()
    layers = {
        stack: 1 + max((p.layer for p in places.values() if p.stack == stack), default=-1)
        for stack in ("encoder", "decoder")
    }
    if getattr(inner.config, "is_encoder_decoder", False):  # one of them may have no attention that is seen
        layers = {stack: n or int(getattr(text, "num_hidden_layers", None) or 1) for stack, n in layers.items()}
    kind = "encoder-decoder" if all(layers.values()) else "decoder" if layers["decoder"] else "encoder"
    width = getattr(text, "hidden_size", None) or getattr(text, "d_model", None) or 1
    return SeenConfig(
        model_type=inner.config.model_type,
        kind=kind,
        vocab_size=n_logits or vocab_of(inner) if inner.main_input_name == "input_ids" else 1,
        d_model=int(width),
        n_heads=max((call.query.shape[1] for call in calls), default=0),
        n_kv_heads=max((call.key.shape[1] for call in calls), default=0),
        d_head=max((call.query.shape[3] for call in calls), default=0),
        n_encoder_layers=layers["encoder"],
        n_decoder_layers=layers["decoder"],
        head="lm" if n_logits else "none",
        n_ctx=int(getattr(text, "max_position_embeddings", None) or 0),
    )


def _nothing_seen(inner: Any, written: set[str]) -> str:
    """The reason why there are no records, and the cure."""
    kind = type(inner).__name__
    if written:
        names = ", ".join(sorted(written)[:3])
        why = f"{kind} writes its attention out by hand ({names}), and does not call transformers' attention functions."
    else:
        why = f"{kind} called no attention function of transformers: it has no attention, or another kind of it."
    return (
        f"Nothing was recorded: {why} Where headlight.load reads its family, headlight.trace shows its attention; headlight.capture(module) "
        "records any module that calls torch.nn.functional.scaled_dot_product_attention."
    )


# records


@dataclass(eq=False)
class Rules:
    """The rules of masks and biases that a recording has met: the layers of a model share them."""

    known: dict[tuple[Any, ...], tuple[Any, MaskRule, Given | None]] = field(default_factory=dict)

    def of(self, call: AttentionCall) -> tuple[MaskRule, GivenBias | None]:
        """Mask and bias of one call."""
        batch, n_heads, n_query, _ = call.query.shape
        n_key = call.key.shape[2]
        free = MaskRule(n_heads, n_query, n_key)
        numbers = None if call.bias is None and call.mask is None else (call.mask, call.bias)
        if numbers is None:
            return MaskRule(n_heads, n_query, n_key, causal=call.is_causal), None
        key = (id(call.mask), id(call.bias), n_heads, n_query, n_key)
        if key not in self.known:
            values = spread(_together(call.mask, call.bias)).detach().clone()
            one = given(values, (batch,))
            rule = (
                MaskRule(n_heads, n_query, n_key, causal=call.is_causal)
                if call.mask is None
                else rule_of(free, one, call.masks)
            )
            if len(self.known) >= KEPT_RULES:
                self.known.pop(next(iter(self.known)))
            self.known[key] = (
                numbers,
                rule,
                one if one.adds else None,
            )  # numbers are kept so that no other tensor gets their id
        _, rule, adds = self.known[key]
        return rule, None if adds is None else GivenBias(adds)


KEPT_RULES = 16


def _together(mask: Tensor | None, bias: Tensor | None) -> Tensor:
    """A mask and a bias as the numbers that are added to the scores; a mask alone as it is."""
    if bias is None:
        assert mask is not None
        return mask
    if mask is None:
        return bias
    if mask.dtype == torch.bool:
        return bias.masked_fill(~mask, float("-inf"))
    return (bias.float() + mask.float()).clamp(min=torch.finfo(torch.float32).min)


def recorded(call: AttentionCall, z: Tensor, rules: Rules, pools: dict[Any, Pool] | None = None) -> AttentionRecord:
    """The record of one call, from copies of its tensors. With `pools`, keys and values that came before are kept once.

    Raises TooLarge where the copies would not fit.
    """
    size = call.query.nbytes + call.key.nbytes + call.value.nbytes
    admit_large(size, call.query.device, "What an attention keeps", "Use a shorter text.")
    q = call.query.detach().clone(memory_format=torch.contiguous_format)
    if pools is None:
        k, v = (x.detach().clone(memory_format=torch.contiguous_format) for x in (call.key, call.value))
        values: Callable[[], Tensor] = Held(v)
    else:
        kept = []
        for what, x in (("k", call.key), ("v", call.value)):
            pool = pools.setdefault((call.module, what, x.shape[1], x.shape[-1], x.dtype), Pool())
            kept.append(pool.keep(pool.seek(x.detach()), (x.shape[0],)))
        k, values = kept
    rule = score_rule(call, rules)
    returned = None
    if not (call.dropout and call.module.training):
        returned = z.detach()[:, :, receipt_rows(z.shape[2]).to(z.device)].clone()
    return AttentionRecord("", "module", None, "unknown", q, k, values, rule, returned=returned)


def score_rule(call: AttentionCall, rules: Rules) -> ScoreRule:
    """Everything of one call but q, k and v."""
    mask, bias = rules.of(call)
    return ScoreRule(mask, call.scale, bias, softcap=call.softcap, sinks=call.sinks)


def _placed(record: AttentionRecord, name: str, place: Place, call: int) -> AttentionRecord:
    return replace(record, name=name, layer=place.layer, site=place.site, call=call)
