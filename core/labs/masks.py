"""Labs on masks: padding, a decoder without its causal mask, and what training without one leaks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from ..checkpoints import Loaded, sha256
from ..checkpoints.catalog import MODELS
from ..checkpoints.family import SourceConfig
from ..checkpoints.files import header
from ..checkpoints.loading import empty
from ..checkpoints.native_format import INT8, QUANTIZATION
from ..checkpoints.weight_transforms import dequantize_tensors
from ..edits import DropCausalMask
from ..errors import CheckpointError, HeadlightError
from ..model.config import ModelConfig
from ..model.text import from_ids
from ..read import measures
from ..read.next_token_loss import given
from ..run.attention import AttentionRecord
from ..trace import Trace, trace_tokens
from ..write.generate import generate


@dataclass(frozen=True, eq=False)
class PaddingInvariance:
    """Effect of padding on the tokens of a text. Padding itself is in no number."""

    on_padding: Tensor  # [record, head]: weight of the mean row on padding
    weights: float  # max |Δ| of all weights between real tokens
    output: float  # max |Δ| of the last residual stream
    cosine: float  # of the text's two vectors, the means of that stream over its tokens


def padding_invariance(batch: Trace, alone: Trace) -> PaddingInvariance:
    """Compare a text of a batch (run.text(i)) with a run of only this text.

    For an encoder–decoder this is the encoder and its output. Raises ValueError if the two runs have different texts.
    """
    real = [i for i, padding in enumerate(batch.source.padding) if not padding]
    if [batch.source.ids[i] for i in real] != list(alone.source.ids):
        raise ValueError("the text alone is not the text of the batch")
    at, hidden = torch.tensor(real), torch.tensor(batch.source.padding)
    together, single = own_records(batch), own_records(alone)
    shares, weights = [], 0.0
    for a, b in zip(together, single, strict=True):
        pattern = a.pattern(None, at)  # [head, real, key]
        shares.append(pattern[..., hidden.to(pattern.device)].sum(-1).mean(-1))
        weights = max(weights, (pattern[..., at] - b.pattern()).abs().max().item())
    x, y = last_stream(batch, real), last_stream(alone, range(len(real)))
    cosine = F.cosine_similarity(x.mean(0), y.mean(0), dim=0).item()
    return PaddingInvariance(torch.stack(shares), weights, (x - y).abs().max().item(), cosine)


def own_records(run: Trace) -> list[AttentionRecord]:
    """Self-attentions of the stack that reads the source, by layer."""
    stack = run.config.stacks[0][0]
    return [record for record in run.attention if (record.stack, record.site) == (stack, "attn")]


def last_stream(run: Trace, positions: Sequence[int]) -> Tensor:
    """Output of the stack that reads the source, before its final norm, [pos, d_model] float32."""
    at = torch.tensor([*positions], device=run.loaded.device)
    if run.config.kind == "encoder-decoder":
        stack, n = run.config.stacks[0]
        return run.activation(f"{stack}.blocks.{n - 1}.hook_resid_post", at.tolist()).float()
    return run.last_residual(at)[run.index].float()


UNMASKED_TOKENS = 8  # generated with and without the mask; without it each token is a pass over the whole text


@dataclass(frozen=True, eq=False)
class Unmasked:
    """One text with the causal mask, and without it in all layers.

    Losses are −ln of the probability of the text's own next token, in nats, [pos − 1]. Maps are [query, key].
    """

    losses: Tensor
    without: Tensor
    layer: int
    head: int  # the head with the largest weight on the next token without the mask
    next_word: float  # mean weight of that head on the next token
    before: Tensor  # map of that head with the mask
    after: Tensor
    written: tuple[int, ...]  # generated tokens
    written_without: tuple[int, ...]


def has_mask(run: Trace) -> bool:
    """True for a run of a language model with a causal mask and without an encoder."""
    return run.config.kind == "decoder" and run.config.causal and run.config.writes


def without_causal_mask(run: Trace) -> Unmasked:
    """A run's text without the mask: one more pass, and one for each generated token.

    Without a mask keys cannot be cached, because a new token changes the values of all earlier ones. Raises Refused for a model
    without a causal mask or without a language head, and for a text of one token.
    """
    if not has_mask(run):
        raise HeadlightError(
            f"{run.spec.title} has no causal mask to take away. Choose a decoder that continues a text, such as SmolLM2."
        )
    if len(run.source) < 2:
        raise HeadlightError("A loss needs a word to predict. Write at least two words.")
    free = trace_tokens(run.loaded, (run.source,), None, (*run.interventions, DropCausalMask()))
    layer, head, ahead = looks_ahead(free)
    return Unmasked(
        losses=given(run).losses,
        without=given(free).losses,
        layer=layer,
        head=head,
        next_word=ahead,
        before=run.attention.at(layer).pattern(head)[0],
        after=free.attention.at(layer).pattern(head)[0],
        written=_greedy_tokens(run),
        written_without=_greedy_tokens(free),
    )


def looks_ahead(run: Trace) -> tuple[int, int, float]:
    """Layer and head with the largest mean weight on the next token, and that weight."""
    best = (0, 0, -1.0)
    for layer, record in enumerate(run.attention):
        weight, head = measures.next_token(record.pattern()).max(-1)
        if weight.item() > best[2]:
            best = layer, int(head), weight.item()
    return best


def _greedy_tokens(run: Trace) -> tuple[int, ...]:
    """Greedy continuation of the text, with the run's own edits."""
    loaded, n = run.loaded, len(run.source)
    room = loaded.config.n_ctx - n if loaded.config.has_position_table else UNMASKED_TOKENS
    ids = list(run.source.ids)
    for i in range(min(UNMASKED_TOKENS, room)):
        read = trace_tokens(loaded, (from_ids(loaded.tokenizer, ids),), None, run.interventions) if i else run
        ids.append(read.predictions(k=1).ids[0][0])
    return tuple(ids[n:])


MODEL = "storyteller"  # the only model with a retrained last layer
WEIGHTS, FACTS, CARD = "unmasked.safetensors", "unmasked.json", "unmasked.md"  # in the model's folder
LEAKAGE_TOKENS = 16  # generated by each of the two models


@dataclass(frozen=True, eq=False)
class Leakage:
    """One text in three runs: the model, the model without the mask of its last layer, and the retrained model without it.

    Losses are −ln of the probability of the text's own next token, in nats, [pos − 1]. Maps are [query, key].
    """

    layer: int  # the retrained layer
    head: int  # the head of that layer with the largest weight on the next token
    losses: Tensor
    dropped: Tensor
    relearnt: Tensor
    before: Tensor  # map of the head with the mask
    after: Tensor  # map of the head in the retrained model
    next_word: float  # mean weight of the head on the next token
    written: str
    written_relearnt: str


def learned_config(config: ModelConfig) -> tuple[str, ...]:
    """Name prefixes of the retrained weights: the last layer and the norm after it."""
    return (f"decoder.blocks.{config.n_decoder_layers - 1}.", "decoder.norm.")


def facts(folder: Path = MODELS / MODEL) -> dict[str, object]:
    """Results of the training: digest, recipe, seconds. Raises CheckpointError if the file is missing or cannot be read."""
    try:
        return json.loads((folder / FACTS).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{FACTS} cannot be read ({error}). `python -m scripts.train_leak` trains it again."
        ) from None


def relearnt(loaded: Loaded, folder: Path = MODELS / MODEL) -> Loaded:
    """The model with the retrained last layer and final norm; all other weights are shared.

    Raises Refused for any model but the storyteller, CheckpointError if the file does not match its digest.
    """
    check_model(loaded)
    known, path = facts(folder), folder / WEIGHTS
    if not path.is_file() or sha256(path) != known.get("sha256"):
        raise CheckpointError(f"{WEIGHTS} is not the file that {FACTS} names. Get it from the repository again.")
    return with_weights(loaded, weights(path))


def weights(path: Path) -> dict[str, Tensor]:
    """Dequantised weights of a file from scripts/train_leak.py. Raises CheckpointError if it cannot be read."""
    tensors, _ = dequantize_tensors(
        SourceConfig({QUANTIZATION: INT8}, path.name), {stored.name: stored for stored in header(path)}
    )
    return {name: stored.read() for name, stored in tensors.items()}


def with_weights(loaded: Loaded, tensors: Mapping[str, Tensor]) -> Loaded:
    """A model with these weights that shares all others with `loaded`. Raises CheckpointError for other names or shapes."""
    state = loaded.model.state_dict()
    expected = {name for name in state if name.startswith(learned_config(loaded.config))}
    if set(tensors) != expected:
        raise CheckpointError(f"{WEIGHTS} holds other weights than the last layer and the norm after it.")
    for name, tensor in tensors.items():
        if tensor.shape != state[name].shape:
            raise CheckpointError(f"{WEIGHTS}: {name} is {list(tensor.shape)}, not {list(state[name].shape)}.")
        state[name] = tensor.to(state[name])
    model = empty(loaded.config)
    model.load_state_dict(state, strict=False, assign=True)
    model.tie()
    model.requires_grad_(False)
    return replace(loaded, model=model)


def check_model(loaded: Loaded) -> None:
    """Raises Refused for a model without a retrained last layer."""
    if loaded.spec.id != MODEL:
        raise HeadlightError(
            f"Only the Storyteller has a last layer that was retrained without its mask; this is {loaded.spec.title}. "
            "Choose the Storyteller to see leakage."
        )


def leakage(run: Trace, other: Loaded) -> Leakage:
    """Compare a run with `other`, which is relearnt(run.loaded): losses, the map of one head, and a greedy continuation.

    Takes two more passes and two short continuations. Raises Refused for a text of one token.
    """
    layer = run.config.n_decoder_layers - 1
    if len(run.source) < 3:
        raise HeadlightError("A loss needs a word to predict. Write at least two words.")
    edits = (*run.interventions, DropCausalMask(layer))
    dropped, again = (trace_tokens(model, (run.source,), None, edits) for model in (run.loaded, other))
    patterns = again.attention.at(layer).pattern()  # [head, query, key]
    ahead = measures.next_token(patterns)  # [head]
    head = int(ahead.argmax())
    written, rewritten = (
        generate(model, [run.source.text], max_tokens=LEAKAGE_TOKENS)[0].text for model in (run.loaded, other)
    )
    return Leakage(
        layer=layer,
        head=head,
        losses=given(run).losses,
        dropped=given(dropped).losses,
        relearnt=given(again).losses,
        before=run.attention.at(layer).pattern(head)[0],
        after=patterns[head],
        next_word=ahead[head].item(),
        written=written,
        written_relearnt=rewritten,
    )
