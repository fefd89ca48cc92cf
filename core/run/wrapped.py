"""wrap(): run and record a transformers model unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from ..checkpoints import ModelSpec
from ..checkpoints.family import SourceConfig
from ..checkpoints.metadata import next_token_rule
from ..errors import HeadlightError
from ..model.chat import ChatTemplate
from ..model.config import ModelConfig
from ..model.outputs import ANYTHING, NextTokenRule
from .call_records import (
    AttentionCall,
    Place,
    RuleCache,
    configs_of,
    implementation_of,
    is_explained,
    is_opaque,
    places_of,
    recording,
)
from .capture import written_out
from .foreign import ForeignTransformer
from .wrapped_trace import WRAP, InferredConfig, Wrapped, WrappedHead, nothing_recorded, options_of

OLDEST = (5, 18)  # of transformers; in 5.13 and older some families are not seen, and in 4 edits have no effect
PROBE_TOKENS = 4  # of the pass that shows which attentions there are
COMPILED = {
    "OptimizedModule": "is compiled, and compiled code cannot be looked into. Wrap the model that you gave to torch.compile",
    "ScriptModule": "is compiled by torch.jit, and compiled code cannot be looked into. Wrap the model that it was made from",
}
WRAPPERS = {
    **COMPILED,
    "DataParallel": "runs on copies of your model. Wrap its .module",
    "DistributedDataParallel": "runs on copies of your model. Wrap its .module",
    "FullyShardedDataParallel": "is in parts on several machines. Wrap a model that is whole",
    "DeepSpeedEngine": "is in parts on several machines. Wrap a model that is whole",
}


def wrap(model: Any, tokenizer: Any = None) -> Wrapped:
    """Wrap your own transformers model and its tokenizer, to run them unchanged: core.trace(core.wrap(model, tokenizer), "a text").

    The pass is the model's own, to the last bit. A function that is registered with transformers.AttentionInterface during
    the pass records queries, keys, values, mask, scale, soft-cap, sinks and bias. wrap() runs one pass over four tokens to
    find the attentions. `tokenizer` is one of transformers, a tokenizers.Tokenizer, or None: then give ids.

    Raises Refused for a model that is compiled or split over devices, that computes attention by hand, or that has none,
    and TypeError for anything but a model. Needs transformers: pip install "headlight-attention[transformers]".
    """
    import transformers

    if tuple(int(part) for part in transformers.__version__.split(".")[:2]) < OLDEST:
        raise HeadlightError(
            f"headlight.wrap works with transformers {'.'.join(map(str, OLDEST))} and newer, and this is {transformers.__version__}."
        )
    pretrained = check_model(model, transformers.PreTrainedModel)
    speller, hf_tokenizer = tokenizer_of(tokenizer)
    probed = probe(model, pretrained)
    config, hf_config = probed.config, pretrained.config
    text_config = hf_config.get_text_config()
    ends, pad = (getattr(text_config, name, None) for name in ("eos_token_id", "pad_token_id"))
    end_ids = () if ends is None else tuple(ends) if isinstance(ends, list | tuple) else (ends,)
    start = getattr(text_config, "decoder_start_token_id", None) or getattr(hf_config, "decoder_start_token_id", None)
    template = getattr(hf_tokenizer, "chat_template", None)
    return Wrapped(
        spec=_spec_of(model, pretrained),
        config=cast(ModelConfig, config),
        model=cast(Any, ForeignTransformer(WRAP, config, WrappedHead() if config.head == "lm" else None)),
        tokenizer=speller,
        device=next(model.parameters()).device,
        dtype=pretrained.dtype,
        unused=(),
        pad_id=pad if isinstance(pad, int) and 0 <= pad < config.vocab_size else 0,
        start_id=start if config.kind == "encoder-decoder" else None,
        end_ids=end_ids,
        has_pad=isinstance(pad, int),
        next_tokens=_next_tokens_of(pretrained, config, end_ids),
        chat_template=ChatTemplate(template, _special_tokens(hf_tokenizer)) if isinstance(template, str) else None,
        hf_model=model,
        places=probed.places,
        notes=probed.notes,
        hf_tokenizer=hf_tokenizer,
        no_text=probed.no_text,
    )


def check_model(model: Any, kind: type) -> Any:
    """The PreTrainedModel, which may be inside an adapter. Raises TypeError and Refused."""
    name = type(model).__name__
    if why := WRAPPERS.get(name):
        raise HeadlightError(f"This {name} {why}.")
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"headlight.wrap takes a model of transformers, as from_pretrained gives it, not {name}. For a name or a folder use headlight.load."
        )
    pretrained = next((part for part in (model, *model.modules()) if isinstance(part, kind)), None)
    if pretrained is None:
        raise HeadlightError(
            f"{name} is no model of transformers, whose attention functions headlight.wrap watches. headlight.capture(module) records any "
            "module that calls torch.nn.functional.scaled_dot_product_attention."
        )
    for path, part in model.named_modules():
        if getattr(part, "_compiled_call_impl", None) is not None or type(part).__name__ in COMPILED:
            raise HeadlightError(
                f"{path or name} is compiled, and compiled code cannot be looked into. Wrap a model on which compile() was not called."
            )
    _check_devices(name, list(model.parameters()))
    return pretrained


def _check_devices(name: str, weights: Sequence[Tensor]) -> None:
    """Raises Refused unless all weights are on one device."""
    if not weights:
        raise HeadlightError(f"This {name} has no weights.")
    if any("DTensor" in type(weight).__name__ for weight in weights):
        raise HeadlightError(
            f"The weights of this {name} are in parts on several devices. Load it without tp_plan, on one device."
        )
    devices = {weight.device for weight in weights}
    if len(devices) > 1 or any(device.type == "meta" for device in devices):
        raise HeadlightError(
            f"The weights of this {name} are on several devices ({', '.join(sorted(map(str, devices)))}). Load it on one: leave "
            "device_map out, and call .to(device)."
        )


def _spec_of(model: nn.Module, pretrained: Any) -> ModelSpec:
    config = pretrained.config
    name = str(getattr(config, "name_or_path", "") or type(pretrained).__name__)
    return ModelSpec(
        id=name,
        title=name.rstrip("/").split("/")[-1],
        family=config.model_type,
        source="built",
        location="",
        revision=getattr(config, "_commit_hash", None),
        n_params=sum(p.numel() for p in model.parameters()),
    )


# tokenizers


@dataclass(frozen=True, eq=False)
class SlowTokenizer:
    """A transformers tokenizer without a fast backend, with the methods of tokenizers.Tokenizer that spell tokens."""

    hf_tokenizer: Any

    def id_to_token(self, i: int) -> str | None:
        token = self.hf_tokenizer.convert_ids_to_tokens(i)
        return None if token is None else str(token)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        return self.hf_tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)

    def get_added_tokens_decoder(self) -> Any:
        return self.hf_tokenizer.added_tokens_decoder

    def to_str(self) -> str:
        return repr(self.hf_tokenizer)


def tokenizer_of(given: Any) -> tuple[Any, Any]:
    """(tokenizer that spells tokens, transformers tokenizer or None). Raises TypeError."""
    given = getattr(given, "tokenizer", given)  # a processor has one
    if given is None or isinstance(given, Tokenizer):
        return given, None
    if not callable(given) or not hasattr(given, "convert_ids_to_tokens"):
        raise TypeError(
            f"A tokenizer is one of transformers, a tokenizers.Tokenizer, or None; not {type(given).__name__}. "
            "AutoTokenizer.from_pretrained gives the one that belongs to a model."
        )
    fast = getattr(given, "backend_tokenizer", None)
    return (fast if isinstance(fast, Tokenizer) else SlowTokenizer(given)), given


def _special_tokens(hf_tokenizer: Any) -> tuple[tuple[str, str], ...]:
    """bos_token, eos_token and others, with their texts."""
    return tuple((name, str(text)) for name, text in hf_tokenizer.special_tokens_map.items() if isinstance(text, str))


def _next_tokens_of(pretrained: Any, config: InferredConfig, end_ids: tuple[int, ...]) -> NextTokenRule:
    """The tokens that the model's generation_config allows."""
    generation_config = getattr(pretrained, "generation_config", None)
    if generation_config is None:
        return ANYTHING
    theirs = SourceConfig(generation_config.to_diff_dict(), "generation_config")
    return next_token_rule(theirs, cast(ModelConfig, config), end_ids)[0]


# the attentions


@dataclass(frozen=True)
class ProbeResult:
    """The attentions and sizes that one short pass showed."""

    config: InferredConfig
    places: Mapping[tuple[str, int], Place]
    notes: tuple[str, ...]
    no_text: str = ""


def probe(model: nn.Module, pretrained: Any) -> ProbeResult:
    """Run the model on a few tokens to find its attentions. Raises Refused if there are none that can be recorded."""
    kind = type(pretrained).__name__
    notes = _implementation_notes(model)
    if pretrained.main_input_name != "input_ids":
        no_text = (
            f"{kind} reads {pretrained.main_input_name}, not the tokens of a text. Record a pass of your own: "
            "`with wrapped.recording() as records: model(…)`."
        )
        return ProbeResult(infer_config(pretrained, [], {}, 0), {}, notes, no_text)
    calls: list[tuple[str, AttentionCall]] = []
    unexplained: list[str] = []
    rules = RuleCache()
    paths = {module: name for name, module in model.named_modules()}

    def after(call: AttentionCall, z: Tensor) -> None:
        calls.append((paths[call.module], call))
        if not is_explained(call, z, rules):
            unexplained.append(paths[call.module])

    device = next(model.parameters()).device
    ids = (torch.arange(PROBE_TOKENS, device=device) + 5)[None] % _vocab_size(pretrained)
    decoder_ids = {"decoder_input_ids": ids} if pretrained.config.is_encoder_decoder else {}
    # In eval mode, also during a training: dropout would draw from the random numbers that all threads share.
    with _eval_mode(model), torch.no_grad(), recording(model, lambda _: None, after):
        try:
            with written_out(model) as written:
                out = model(input_ids=ids, **decoder_ids, **options_of(pretrained))
        except (TypeError, ValueError, RuntimeError, IndexError, KeyError, AttributeError) as error:
            raise HeadlightError(
                f"{kind} could not be run on {PROBE_TOKENS} tokens alone: {type(error).__name__}: {error}. headlight.wrap "
                "runs a model once to see its attentions."
            ) from error
    if not calls:
        raise HeadlightError(nothing_recorded(pretrained, written))
    notes += _record_notes(sorted(written - {name for name, _ in calls}), unexplained)
    places = places_of(pretrained, calls)
    logits = getattr(out, "logits", None)
    scores_tokens = (
        logits is not None and logits.ndim == 3 and logits.shape[:2] == ids.shape and logits.shape[2] > PROBE_TOKENS
    )
    n_logits = int(logits.shape[2]) if logits is not None and scores_tokens else 0
    return ProbeResult(infer_config(pretrained, [call for _, call in calls], places, n_logits), places, notes)


@contextmanager
def _eval_mode(model: nn.Module) -> Iterator[None]:
    """Without dropout; restores the mode of every module afterwards."""
    training = [module for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        yield
    finally:
        for module in training:
            module.training = True


def _vocab_size(pretrained: Any) -> int:
    embeddings = pretrained.get_input_embeddings()
    return getattr(embeddings, "num_embeddings", 0) or int(pretrained.config.get_text_config().vocab_size)


def _implementation_notes(model: nn.Module) -> tuple[str, ...]:
    """Sentences about attention implementations that a recorded pass replaces by eager attention."""
    opaque = sorted({str(name) for config in configs_of(model) if is_opaque(name := implementation_of(config))})
    return tuple(
        f"This model was loaded with attn_implementation={name!r}, which cannot be looked into: a recorded pass runs its eager "
        "attention, which agrees to rounding."
        for name in opaque
    )


def _record_notes(missed: Sequence[str], unexplained: Sequence[str]) -> tuple[str, ...]:
    """Sentences about attentions that are not recorded, and about those whose records do not explain their output."""
    notes: tuple[str, ...] = ()
    if missed:
        many = len(missed) > 1
        notes += (
            f"{len(missed)} attention{'s' * many} of this model {'are' if many else 'is'} written out by hand and not "
            f"among the records: {', '.join(missed[:3])}{' and others' if len(missed) > 3 else ''}.",
        )
    if unexplained:
        notes += (
            f"{unexplained[0]}{' and others' if len(unexplained) > 1 else ''} returned something else than pattern · v of what its attention "
            "function was given: it does more than is recorded, and its patterns may be wrong. record.receipt() says by how much.",
        )
    return notes


def infer_config(
    pretrained: Any, calls: Sequence[AttentionCall], places: Mapping[tuple[str, int], Place], n_logits: int
) -> InferredConfig:
    """The model's sizes from the calls of a pass and its config."""
    text = pretrained.config.get_text_config()

    def from_config(*names: str) -> int:
        return next((int(value) for name in names if (value := getattr(text, name, None))), 0)

    def largest(size: Callable[[AttentionCall], int]) -> int:
        return max((size(call) for call in calls), default=0)

    encoder, decoder = (
        1 + max((place.layer for place in places.values() if place.stack == stack), default=-1)
        for stack in ("encoder", "decoder")
    )
    if getattr(pretrained.config, "is_encoder_decoder", False):  # one of them may have no attention that is recorded
        layers = from_config("num_hidden_layers") or 1
        encoder, decoder = encoder or layers, decoder or layers
    reads_tokens = pretrained.main_input_name == "input_ids"
    return InferredConfig(
        model_type=pretrained.config.model_type,
        kind="encoder-decoder" if encoder and decoder else "decoder" if decoder else "encoder",
        vocab_size=n_logits or (_vocab_size(pretrained) if reads_tokens else 1),
        d_model=from_config("hidden_size", "d_model") or 1,
        n_heads=largest(lambda call: call.query.shape[1]),
        n_kv_heads=largest(lambda call: call.key.shape[1]),
        d_head=largest(lambda call: call.query.shape[3]),
        n_encoder_layers=encoder,  # one after the last layer that has an attention
        n_decoder_layers=decoder,
        head="lm" if n_logits else "none",
        n_ctx=from_config("max_position_embeddings"),
    )
