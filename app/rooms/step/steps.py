"""The steps of one token through one layer, in the order of its config: the stations of the line."""

from __future__ import annotations

from dataclasses import dataclass

from core.model.config import ModelConfig
from core.model.text import Tokens
from core.service import Facts

Axes = tuple[tuple[str, int], ...]

CROSS = "cross-"  # before the ids of a cross-attention's steps
SITES = {"attn": "", "cross_attn": CROSS}


@dataclass(frozen=True)
class Step:
    """One station of the line. lane: stream is on the residual stream, branch beside it, add where a branch comes back."""

    id: str  # in links, for ever
    kind: str  # which picture and which words: the id without what tells two of a kind apart
    lane: str
    value: str  # which of the walk's values it shows; "" for those that are computed from others
    axes: Axes  # of the whole tensor, not of the followed token's part of it


@dataclass(frozen=True)
class Fold:
    """Layers that are folded away."""

    first: int
    last: int
    same: bool = True  # their steps are those of the layer that is shown


def steps_of(run: Facts, stack: str, layer: int) -> tuple[Step | Fold, ...]:
    """Post-LN norms sit on the stream and Pre-LN norms on the branch: the order is the config's."""
    config = run.config
    stacks: dict[str, int] = dict(config.stacks)
    n = len(tokens_of(run, stack))
    stream: Axes = (("batch", run.texts), ("query", n), ("d_model", config.d_model))
    found: list[Step | Fold] = [
        Step("token", "token", "stream", "start.token", stream[:2]),
        Step("embed", "embed", "stream", "embed", stream),
    ]
    mixed = config.expert_layers.get(stack, ())

    def fold(first: int, last: int) -> Fold:
        return Fold(first, last, all((i in mixed) == (layer in mixed) for i in range(first, last + 1)))

    if layer:
        found.append(fold(0, layer - 1))
    found.append(Step("x", "x", "stream", "x", stream))
    found += _attention(config, "attn", stream, n, n)
    found.append(Step("why", "why", "stream", "", stream))
    if stack == "decoder" and config.kind == "encoder-decoder":
        found += _attention(config, "cross_attn", stream, n, len(run.source))
    found += _mlp(config, stream, layer)
    if layer + 1 < stacks[stack]:
        found.append(fold(layer + 1, stacks[stack] - 1))
    if guesses_words(run, stack):
        found += _ending(config, stream)
        found.append(Step("end", "next", "stream", "", (stream[0], ("query", 1), ("vocab", config.vocab_size))))
    elif run.spec.classes is not None and run.config.stacks[-1][0] == stack:
        answers: Axes = (stream[0], ("class", len(run.spec.classes.names)))
        found.append(Step("end", "classes", "stream", "end", answers))
    else:
        found.append(Step("end", "result", "stream", "end", stream))
    return tuple(found)


def guesses_words(run: Facts, stack: str) -> bool:
    """Whether a stack ends in a head: the last one, of a model that has one."""
    return run.config.head != "none" and run.config.stacks[-1][0] == stack


def tokens_of(run: Facts, stack: str) -> Tokens:
    """What a stack reads."""
    return run.source if stack == "encoder" or run.target is None else run.target


def ids_of(run: Facts, stack: str) -> tuple[str, ...]:
    """The ids of all steps of its layers: some may have experts, and the others one MLP."""
    n_layers = next(n for name, n in run.config.stacks if name == stack)
    mixed, all_layers = run.config.expert_layers.get(stack, ()), range(n_layers)
    kinds = [next((i for i in all_layers if (i in mixed) is has), None) for has in (False, True)]
    steps = [step for layer in kinds if layer is not None for step in steps_of(run, stack, layer)]
    return tuple(dict.fromkeys(step.id for step in steps if isinstance(step, Step)))


def _attention(config: ModelConfig, site: str, stream: Axes, n: int, n_key: int) -> list[Step]:
    heads: Axes = (stream[0], ("head", config.n_heads), ("query", n), ("d_head", config.d_head))
    scores: Axes = (stream[0], ("head", config.n_heads), ("query", n), ("key", n_key))
    wide: Axes = (*stream[:2], ("d_model", config.n_heads * config.d_head))
    prefix = SITES[site]
    found = _before(config, f"{prefix}norm1", f"{site}.norm", stream)
    found.append(Step(f"{prefix}qkv", "qkv", "branch", f"{site}.q", wide))
    found.append(Step(f"{prefix}heads", "heads", "branch", f"{site}.q", heads))
    if config.position == "rotary" and site == "attn":
        found.append(Step("turn", "turn", "branch", f"{site}.turned", heads))
    found.append(Step(f"{prefix}scores", "scores", "branch", f"{site}.raw", scores))
    for kind, value in (("scale", ""), ("mask", "scores"), ("softmax", "weights")):
        found.append(Step(f"{prefix}{kind}", kind, "branch", value and f"{site}.{value}", scores))
    found.append(Step(f"{prefix}z", "z", "branch", f"{site}.z", heads))
    found.append(Step(f"{prefix}join", "join", "branch", f"{site}.z", wide))
    found.append(Step(f"{prefix}wo", "wo", "branch", f"{site}.out", stream))
    return found + _behind(config, site, f"{prefix}out1", f"{prefix}add1", f"{prefix}norm1", stream)


def _mlp(config: ModelConfig, stream: Axes, layer: int) -> list[Step]:
    hidden: Axes = (*stream[:2], ("d_ff", config.d_dense if config.n_experts else config.d_ff))
    found = _before(config, "norm2", "mlp.norm", stream)
    if config.has_experts(layer):
        found.append(Step("router", "router", "branch", "mlp.router", (*stream[:2], ("expert", config.n_experts))))
        found.append(Step("mix", "mix", "branch", "mlp.out", stream))
        return found + _behind(config, "mlp", "out2", "add2", "norm2", stream)
    if config.gated:
        found.append(Step("gate", "gate", "branch", "mlp.gate", hidden))
    found.append(Step("up", "up", "branch", "mlp.up", hidden))
    found.append(Step("act", "product" if config.gated else "act", "branch", "mlp.act", hidden))
    found.append(Step("down", "down", "branch", "mlp.out", stream))
    return found + _behind(config, "mlp", "out2", "add2", "norm2", stream)


def _ending(config: ModelConfig, stream: Axes) -> list[Step]:
    """Post-LN streams are normed as they come, and some models have no last norm. Only of a model that writes has a word a loss."""
    found = []
    if config.norm_order != "post" and config.final_norm:
        found.append(Step("lastnorm", "lastnorm", "stream", "", stream))
    found.append(Step("words", "words", "stream", "", (*stream[:2], ("vocab", config.vocab_size))))
    if config.writes:
        found.append(Step("loss", "loss", "stream", "", stream[:2]))
    return found


def _before(config: ModelConfig, id: str, value: str, stream: Axes) -> list[Step]:
    return [] if config.norm_order == "post" else [Step(id, "norm", "branch", value, stream)]


def _behind(config: ModelConfig, part: str, out: str, add: str, norm: str, stream: Axes) -> list[Step]:
    found = []
    if config.norm_order == "sandwich":
        found.append(Step(out, "norm", "branch", f"{part}.out_norm", stream))
    found.append(Step(add, "add", "add", f"{part}.add", stream))
    if config.norm_order == "post":
        found.append(Step(norm, "norm", "stream", f"{part}.norm", stream))
    return found
