"""Many runs of one text in one batch, each with an edit of its own: what a head, a look or another run's head does to the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .. import frames, memory
from ..checkpoints import Loaded
from ..model.hooks import Hook, hook_points
from ..model.mask_edits import Singles
from ..model.rules import ScoreRule
from ..model.text import Tokens
from ..run.classes import class_logits
from ..run.forward_pass import Pass
from ..run.predictions import allowed_scores, following, head_of, strings_of
from ..run.prompt import Prompt
from .branches import Begin, Trunk, trunk_of

BATCH_BYTES = 256 << 20  # what the passes of several edits may need at once, unless one alone needs more
LIKELIEST = 6  # words that are kept of each run
To = Literal["zero", "mean"]


@dataclass(frozen=True)
class HeadEffect:
    """Effect of silencing one head alone: each value ablated minus intact. None where it is not asked for."""

    stack: str
    layer: int
    site: Literal["attn", "cross_attn"]
    head: int
    logit: float | None = None
    probability: float | None = None
    kl: float | None = None  # KL divergence of the prediction without the head from the run's, in nats
    distance: float | None = None  # 1 − cosine of the text's two vectors


@dataclass(frozen=True)
class HeadEffects:
    """Of a prediction: which, and what the run gives it; of a class: its number and its name, and no position. Of a text's vector (the
    mean over its tokens): all None."""

    heads: tuple[HeadEffect, ...]  # in the order of the pass
    position: int | None = None
    token: int | None = None
    string: str | None = None
    logit: float | None = None
    probability: float | None = None

    def to_frame(self) -> frames.DataFrame:
        """A row for each head. Needs pandas."""
        return frames.of_records(self.heads, HeadEffect)


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """How several runs answer, a row each. Of a prediction, or of a classifier's classes, the first five; of a text's vector the last
    two; the rest is None."""

    logit: np.ndarray | None = None  # float32 [row, watched]: of the tokens, or classes, that are watched
    probability: np.ndarray | None = None  # float32 [row, watched]
    kl: np.ndarray | None = None  # float32 [row]: KL divergence from the plain run's prediction, in nats
    ids: np.ndarray | None = None  # int64 [row, k]: the likeliest tokens, or classes
    likeliest: np.ndarray | None = None  # float32 [row, k]: their probabilities
    distance: np.ndarray | None = (
        None  # float32 [row]: 1 − cosine of the text's vector, the mean over its tokens, and the plain run's
    )
    turned: np.ndarray | None = None  # float32 [row, pos]: the same of every token's last vector; 0 for padding

    def __getitem__(self, rows: slice) -> RowAnswers:
        return RowAnswers(**{name: None if x is None else x[rows] for name, x in self._columns()})

    @property
    def n_rows(self) -> int:
        return next(len(x) for _, x in self._columns() if x is not None)

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for _, x in self._columns() if x is not None)

    def _columns(self) -> list[tuple[str, np.ndarray | None]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


def together(outcomes: Sequence[RowAnswers]) -> RowAnswers:
    """The rows of several outcomes, one after the other."""
    names = [field.name for field in fields(RowAnswers)]
    columns = {name: [getattr(outcome, name) for outcome in outcomes] for name in names}
    return RowAnswers(**{name: None if found[0] is None else np.concatenate(found) for name, found in columns.items()})


Places = tuple[slice, slice]


@dataclass(frozen=True, eq=False)
class Edits:
    """The edits of many rows, one each, in the order of the pass."""

    what: str  # is done to a row, for a refusal
    attentions: tuple[str, ...]  # [row]: the attention that is edited, and none before it
    hooks: Callable[[int, int], Mapping[str, Hook]]  # of rows start to stop


@dataclass(frozen=True, eq=False)
class Rows:
    """Runs of one text that differ by an edit each, run in batches as large as one likes.

    `position` asks for the prediction after it, None for the classes of the text or, where the model has none, its vector. The edits of the run itself, and the hooks
    that were open around it, hold in every row and come first.
    """

    forward: Pass  # of one text
    tokens: Tokens  # that the last stack reads
    begins: tuple[Begin, ...]  # [row]: where each begins to differ, in the order of the pass
    edits: Edits
    position: int | None
    watched: tuple[int, ...]  # tokens or classes whose probabilities are read, of a prediction
    trunk: Trunk
    plain: Tensor  # logits [vocab] or [class], or last residual [pos, d_model], of the run itself, float32

    @property
    def n(self) -> int:
        return len(self.begins)

    def most(self) -> int:
        """How many rows fit into one batch. Raises TooLarge, with both numbers, where not even one does."""
        device = self.forward.loaded.device
        each = self.forward.transient() + self.forward.loaded.config.vocab_size * 16 * (self.position is not None)
        most = max(1, min(self.n, min(BATCH_BYTES, memory.free_bytes(device) // 2) // each))
        memory.admit_large(
            most * each, device, f"{self.edits.what} in a run of {self.forward.prompt.source_len:,} tokens"
        )
        return most

    def before(self) -> RowAnswers:
        """The run itself, as one row."""
        return self._read(self.plain[None])

    def shares(self, start: int, stop: int, n: int) -> list[tuple[int, int]]:
        """Rows start to stop as at most n batches, (start, stop) each, of about the same work: a row is computed from its layer on."""
        stacks = self.forward.loaded.config.stacks if self.trunk.streams else ()
        behind = [sum(layers for _, layers in stacks[at + 1 :]) for at in range(len(stacks))]
        left = [stacks[at][1] - layer + behind[at] if stacks else 1 for at, layer in self.begins[start:stop]]
        total, done, found = sum(left), 0, [start]
        for row, work in enumerate(left, start):
            if row > found[-1] and done * n >= total * len(found):
                found.append(row)
            done += work
        return list(zip(found, [*found[1:], stop], strict=True))

    def run(self, start: int, stop: int) -> RowAnswers:
        """Rows start to stop, in one batch. Raises Outdated after a training."""
        forward = self.forward
        forward.weights.check()
        with torch.inference_mode():
            if self.trunk.streams:
                final = self.trunk.grow(self.begins[start:stop], self.edits.hooks(start, stop), self.position)
            else:
                final = replace(forward, prompt=copies(forward.prompt, stop - start)).run(self.edits.hooks(start, stop))
                final = final if self.position is None else final[:, self.position]
            outcome = self._read(_answered(forward, final))
        forward.weights.check()  # a training may go on beside this
        return outcome

    def _read(self, found: Tensor) -> RowAnswers:
        """found is logits [row, vocab] or [row, class], or last residuals [row, pos, d_model], float32."""
        with torch.inference_mode():
            if self.position is None and found.ndim == 2:
                return self._classes(found)
            if self.position is None:
                real = ~torch.tensor(self.tokens.padding, device=found.device)
                turned = 1 - F.cosine_similarity(found, self.plain[None], dim=-1)
                vectors, plain = found[:, real].mean(1), self.plain[real].mean(0)
                return RowAnswers(
                    distance=_array(1 - F.cosine_similarity(vectors, plain[None], dim=-1)), turned=_array(turned * real)
                )
            logits, what = found, following(self.forward.loaded, self.tokens, [self.position])
            found = allowed_scores(logits, what * len(logits))
            before, after = allowed_scores(self.plain[None], what).log_softmax(-1)[0], found.log_softmax(-1)
            apart = F.kl_div(after, before[None].expand_as(after), reduction="none", log_target=True)
            kl = apart.masked_fill(before.isneginf(), 0.0).sum(-1)  # tokens that may not follow have no part in either
            probability = after.exp()
            likeliest, ids = probability.topk(min(LIKELIEST, found.shape[-1]))
            watched = list(self.watched)
            return RowAnswers(
                logit=_array(logits[:, watched]),
                probability=_array(probability[:, watched]),
                kl=_array(kl),
                ids=ids.cpu().numpy(),
                likeliest=_array(likeliest),
            )

    def _classes(self, logits: Tensor) -> RowAnswers:
        """Of logits [row, class]."""
        answers = self.forward.loaded.spec.classes
        assert answers is not None
        found = answers.probabilities(logits)
        assert found is not None
        likeliest, ids = found.topk(min(LIKELIEST, found.shape[-1]))
        watched = list(self.watched)
        return RowAnswers(
            logit=_array(logits[:, watched]),
            probability=_array(found[:, watched]),
            kl=_array(answers.divergence(self.plain, logits)),
            ids=ids.cpu().numpy(),
            likeliest=_array(likeliest),
        )


def rows_of(
    forward: Pass,
    edits: Edits,
    position: int | None,
    token: int | None,
    also: tuple[int, ...] = (),
    looks: Mapping[str, Hook] | None = None,
) -> Rows:
    """Rows of a pass over one text, each with its own of the edits.

    Watched are a token, or of a classifier a class, the likeliest of the run itself where none is named, and `also`. `looks` see
    the run itself.
    """
    forward.weights.check()
    with torch.inference_mode():
        trunk = trunk_of(forward, looks or {})
        (tokens,) = forward.prompt.last_read
        plain = _answered(forward, trunk.final if position is None else trunk.final[:, position])[0]
    forward.weights.check()
    watched: tuple[int, ...] = ()
    if position is not None:
        allowed = allowed_scores(plain[None], following(forward.loaded, tokens, [position]))
        watched = (int(allowed.argmax()) if token is None else token, *also)
    elif plain.ndim == 1:
        watched = (int(plain.argmax()) if token is None else token, *also)
    stacks: list[str] = [name for name, _ in forward.loaded.config.stacks]
    begins = tuple((stacks.index(stack), layer) for stack, layer, _ in map(place_of, edits.attentions))
    return Rows(forward, tokens, begins, edits, position, watched, trunk, plain)


def in_batches(rows: Rows) -> Iterator[RowAnswers]:
    """All rows, as many at once as fit."""
    most = rows.most()
    for start in range(0, rows.n, most):
        yield rows.run(start, min(rows.n, start + most))


def has_classes(loaded: Loaded) -> bool:
    """Whether the answer of a model is one of its classes, with a probability. Of a regression it is the text's vector."""
    return loaded.spec.classes is not None and loaded.spec.classes.kind != "numbers"


def class_names(loaded: Loaded, numbers: Sequence[int]) -> tuple[str, ...]:
    """The names of some of its classes."""
    assert loaded.spec.classes is not None
    return tuple(loaded.spec.classes.names[i] for i in numbers)


def _answered(forward: Pass, final: Tensor) -> Tensor:
    """The last residual [row, d_model] of a position -> logits [row, vocab]; that of all, [row, pos, d_model], of a classifier ->
    [row, class], and else itself. float32."""
    if final.ndim == 3:
        return class_logits(forward.loaded, final, forward.prompt) if has_classes(forward.loaded) else final.float()
    return head_of(forward.loaded)(final[:, None])[:, 0].float()


def _array(x: Tensor) -> np.ndarray:
    return x.float().cpu().numpy()


def copies(prompt: Prompt, n: int) -> Prompt:
    """A prompt of one text, n times."""
    return Prompt(prompt.sources * n, None if prompt.targets is None else prompt.targets * n)


# What each row does differently. A head is (name of its attention, number).


def heads_of(forward: Pass) -> list[tuple[str, int]]:
    """Every head of the model in the order of the pass."""
    return [
        (point.removesuffix(".hook_z"), head)
        for point in hook_points(forward.loaded.model)
        if point.endswith(".hook_z")
        for head in range(forward.loaded.config.n_heads)
    ]


def silenced(heads: Sequence[tuple[str, int]], to: To, prompt: Prompt, sizes: Mapping[str, int] = {}) -> Edits:
    """Row i has heads[i] silent, and as many after it as `sizes` says of its attention, itself among them: their outputs are
    zero, or each the mean of its own over the real tokens of the text."""

    def silent(real: Tensor, z: Tensor) -> Tensor:  # [head, query, d_head] of one row and head as [query, d_head]
        if to == "zero":
            return torch.zeros_like(z)
        counted = real.to(z.device, z.dtype)[:, None]
        return ((z * counted).sum(0, keepdim=True) / counted.sum()).expand_as(z)

    def hooks(start: int, stop: int) -> Mapping[str, Hook]:
        found: dict[str, Hook] = {}
        for name, cells in _by_attention(heads[start:stop]).items():
            read = prompt.sources if name.startswith("encoder") or prompt.targets is None else prompt.targets
            real = ~torch.tensor(read[0].padding)
            cells = [(row, head + i) for row, head in cells for i in range(sizes.get(name, 1))]
            found[f"{name}.hook_z"] = partial(_each, cells, lambda z, _, real=real: silent(real, z))
        return found

    return Edits("Silencing a head", tuple(name for name, _ in heads), hooks)


def patched(heads: Sequence[tuple[str, int]], other: Mapping[str, Tensor], places: Mapping[str, Places]) -> Edits:
    """Row i has in heads[i] what this head gave in another run, other: attention -> z [head, query, d_head] of it.

    places: attention -> the queries that are changed, and those of the other run that they are taken from.
    """

    def taken(name: str, z: Tensor, head: int) -> Tensor:
        here, there = places[name]
        z = z.clone()
        z[here] = other[name][head][there]
        return z

    def hooks(start: int, stop: int) -> Mapping[str, Hook]:
        some = _by_attention(heads[start:stop])
        return {f"{name}.hook_z": partial(_each, cells, partial(taken, name)) for name, cells in some.items()}

    return Edits("Taking over a head's output", tuple(name for name, _ in heads), hooks)


def cut(cells: Sequence[tuple[int, int]], attentions: Sequence[str], head: int | None, n_heads: int) -> Edits:
    """Row i may not look from query to key of cells[i], in one head or (None) in all of these attentions."""

    def hooks(start: int, stop: int) -> Mapping[str, Hook]:
        layer = Singles(torch.tensor(cells[start:stop]).view(-1, 2), head, n_heads)

        def hide(rule: ScoreRule) -> ScoreRule:
            return replace(rule, mask=replace(rule.mask, edits=(*rule.mask.edits, layer)))

        return {f"{name}.hook_rule": hide for name in attentions}

    return Edits("Cutting a look", (attentions[0],) * len(cells), hooks)


def _by_attention(heads: Sequence[tuple[str, int]]) -> dict[str, list[tuple[int, int]]]:
    """Attention -> (row, head) of the rows that are about it."""
    found: dict[str, list[tuple[int, int]]] = {}
    for row, (name, head) in enumerate(heads):
        found.setdefault(name, []).append((row, head))
    return found


def _each(cells: list[tuple[int, int]], change: Callable[[Tensor, int], Tensor], z: Tensor) -> Tensor:
    """z [row, head, query, d_head] with some heads of some rows changed, each as [query, d_head]."""
    z = z.clone()
    for row, head in cells:
        z[row, head] = change(z[row, head], head)
    return z


def ablate_each(
    forward: Pass,
    position: int | None,
    token: int | None,
    watch: Callable[[int, int], object],
) -> HeadEffects:
    """The effect of every head on what a pass over one text predicts after `position`, or with None on the text's class or vector:
    see Trace.ablate_heads()."""
    heads = heads_of(forward)
    rows = rows_of(forward, silenced(heads, "zero", forward.prompt), position, token)
    done: list[RowAnswers] = []
    for outcome in in_batches(rows):
        done.append(outcome)
        watch(sum(part.n_rows for part in done), len(heads))
    before, after = rows.before(), together(done)
    effects = tuple(_effect(name, head, before, after[i : i + 1]) for i, (name, head) in enumerate(heads))
    if before.logit is None or before.probability is None:
        return HeadEffects(effects)
    (string,) = (
        strings_of(forward.loaded, rows.watched) if position is not None else class_names(forward.loaded, rows.watched)
    )
    return HeadEffects(
        effects, position, rows.watched[0], string, float(before.logit[0, 0]), float(before.probability[0, 0])
    )


def _effect(name: str, head: int, before: RowAnswers, after: RowAnswers) -> HeadEffect:
    stack, layer, site = place_of(name)
    numbers: dict[str, Any] = {}
    if after.distance is not None:
        numbers = {"distance": float(after.distance[0])}
    elif before.logit is not None and before.probability is not None and after.kl is not None:
        assert after.logit is not None and after.probability is not None
        numbers = {
            "logit": float(after.logit[0, 0] - before.logit[0, 0]),
            "probability": float(after.probability[0, 0] - before.probability[0, 0]),
            "kl": float(after.kl[0]),
        }
    return HeadEffect(stack, layer, site, head, **numbers)


def place_of(name: str) -> tuple[str, int, Literal["attn", "cross_attn"]]:
    """ "decoder.blocks.3.cross_attn" -> its stack, layer and site."""
    stack, _, layer, site = name.split(".")
    return stack, int(layer), "attn" if site == "attn" else "cross_attn"
