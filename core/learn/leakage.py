"""Leakage: the storyteller with its last layer learnt again without the causal mask, which reads each answer one step ahead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from ..checkpoints import Loaded, sha256
from ..checkpoints.catalog import MODELS
from ..checkpoints.family import Theirs
from ..checkpoints.files import header
from ..checkpoints.loading import empty
from ..checkpoints.own import INT8, QUANTIZATION
from ..checkpoints.rounded import in_full
from ..edits import DropCausalMask
from ..errors import CheckpointError, Refused
from ..model.config import ModelConfig
from ..read.conditional_loss import given
from ..trace import Trace, trace_tokens
from ..write.generate import generate

MODEL = "storyteller"  # the one model whose last layer was learnt again
WEIGHTS, FACTS, CARD = "unmasked.safetensors", "unmasked.json", "unmasked.md"  # beside its own weights in models/
WRITTEN = 16  # tokens that each of the two goes on with


@dataclass(frozen=True, eq=False)
class Leakage:
    """One text, read by the model as it is, without the mask of its last layer, and by the one whose last layer learnt so.

    Losses are −ln of the probability of the text's own next token, nats, [pos − 1]; maps are [query, key].
    """

    layer: int  # which was learnt again
    head: int  # of that layer: the one that looks most at the next word
    losses: Tensor
    dropped: Tensor
    relearnt: Tensor
    before: Tensor  # the head with the mask
    after: Tensor  # the same head where it was learnt again
    next_word: float  # mean weight of the head on the word that comes next
    written: str
    written_relearnt: str


def learnt(config: ModelConfig) -> tuple[str, ...]:
    """Name prefixes of the retrained weights: the last layer and the norm after it."""
    return (f"decoder.blocks.{config.n_decoder_layers - 1}.", "decoder.norm.")


def facts(folder: Path = MODELS / MODEL) -> dict[str, object]:
    """Results of the training: digest, recipe, seconds. Raises CheckpointError where it is not there or cannot be read."""
    try:
        return json.loads((folder / FACTS).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{FACTS} cannot be read ({error}). `python -m scripts.train_leak` trains it again."
        ) from None


def relearnt(loaded: Loaded, folder: Path = MODELS / MODEL) -> Loaded:
    """The model with its last layer and final norm as they were learnt without the mask; all other weights are shared.

    Raises Refused for any model but the storyteller, CheckpointError where the file is not the one that its digest names.
    """
    check_model(loaded)
    known, path = facts(folder), folder / WEIGHTS
    if not path.is_file() or sha256(path) != known.get("sha256"):
        raise CheckpointError(f"{WEIGHTS} is not the file that {FACTS} names. Get it from the repository again.")
    return with_weights(loaded, weights(path))


def weights(path: Path) -> dict[str, Tensor]:
    """The weights in a file that scripts/train_leak.py wrote, in full. Raises CheckpointError where it cannot be read."""
    tensors, _ = in_full(Theirs({QUANTIZATION: INT8}, path.name), {stored.name: stored for stored in header(path)})
    return {name: stored.read() for name, stored in tensors.items()}


def with_weights(loaded: Loaded, tensors: Mapping[str, Tensor]) -> Loaded:
    """A model that has these weights by their names, and shares all others with `loaded`. Raises CheckpointError for a misfit."""
    state = loaded.model.state_dict()
    expected = {name for name in state if name.startswith(learnt(loaded.config))}
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
    """Raises Refused, with what to do, for a model that has no last layer learnt again."""
    if loaded.spec.id != MODEL:
        raise Refused(
            f"Only the Storyteller has a last layer that was learnt again without its mask; this is {loaded.spec.title}. "
            "Choose the Storyteller to see leakage."
        )


def leakage(run: Trace, other: Loaded) -> Leakage:
    """What a run's text is to `other`, which is relearnt(run.loaded): loss at each position, one head's map, what each writes.

    Two more passes, and two short texts written greedily. Raises Refused for a text of one token, which has no next word.
    """
    layer = run.config.n_decoder_layers - 1
    if len(run.source) < 3:
        raise Refused("A loss needs a word that is foretold. Write at least two words.")
    edits = (
        *run.interventions,
        DropCausalMask(layer),
    )  # of both alike: only the last layer has learnt without its mask
    dropped, again = (trace_tokens(model, (run.source,), None, edits) for model in (run.loaded, other))
    patterns = again.attention.at(layer).pattern()  # [head, query, key]
    ahead = patterns.diagonal(1, -2, -1).mean(-1)  # [head]
    head = int(ahead.argmax())
    text = run.source.text
    ours, theirs = (generate(model, [text], max_tokens=WRITTEN)[0].text for model in (run.loaded, other))
    return Leakage(
        layer,
        head,
        given(run).losses,
        given(dropped).losses,
        given(again).losses,
        run.attention.at(layer).pattern(head)[0],
        patterns[head],
        ahead[head].item(),
        ours,
        theirs,
    )
