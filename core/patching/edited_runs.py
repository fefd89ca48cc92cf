"""Many runs of one text in one batch, each with one edit, which share the layers before it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Literal, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .. import dataframes
from .. import device as memory
from ..checkpoints import Loaded
from ..model.custom_mask import CellSet
from ..model.hooks import Hook, hook_points
from ..model.rules import ScoreRule
from ..model.text import Tokens
from ..model.transformer import Block, Stack, StackInputs
from ..run.forward_pass import Pass
from ..run.predictions import allowed_scores, class_logits, head_of, next_token_constraints, strings_of
from ..run.request import Prompt, model_inputs

HELD_BYTES = 8 << 20  # bytes, for the layer inputs of one run; of a longer text every row is a full pass

LayerStart = tuple[int, int]  # (index of the stack, layer): the first layer in which a row may differ from the run


@dataclass(frozen=True, eq=False)
class SharedForward:
    """A run of one text, with the input of each of its layers."""

    forward: Pass
    final: Tensor  # [1, pos, d_model]: the last residual
    streams: tuple[tuple[Tensor, ...], ...]  # by stack and layer, [1, pos, d_model]; () if not kept
    memory: Tensor | None  # [1, pos, d_model]: the encoder output that the decoder reads

    def run_rows(self, begins: Sequence[LayerStart], hooks: Mapping[str, Hook], position: int | None = None) -> Tensor:
        """Return the last residual [row, pos, d_model] of rows that branch off at `begins` [row], which is in the order of the pass;
        [row, d_model] if a position is given.

        The hooks see the rows that have branched off, in that order. They must be hooks of attentions.
        """
        forward, n_rows = self.forward, len(begins)
        model = forward.loaded.model
        ids, target_ids, source_keep, target_keep, _ = model_inputs(forward.prompt, forward.loaded.device)
        stack_inputs = ((ids, source_keep), (target_ids, target_keep))  # a single stack reads the source
        memory = memory_keep = None
        x = self.final[:0]
        with forward.within(hooks):
            for at, (stack, streams) in enumerate(zip(model.stacks, self.streams, strict=True)):
                stack_ids, keep = stack_inputs[at]
                assert stack_ids is not None
                if at:
                    assert self.memory is not None
                    memory, memory_keep = torch.cat([x, self.memory.expand(n_rows - len(x), -1, -1)]), source_keep
                x, inputs = streams[0][:0], None
                for layer, stream in enumerate(streams):
                    rows = bisect_right(begins, (at, layer))
                    if rows > len(x):
                        x = torch.cat([x, stream.expand(rows - len(x), -1, -1)])
                        own_memory = None if memory is None else memory[:rows]
                        masks = _repeated(keep, rows), own_memory, _repeated(memory_keep, rows)
                        inputs = stack.prepare_inputs(stack_ids.expand(rows, -1), *masks)
                    if inputs is not None and stack is model.stacks[-1] and layer == len(streams) - 1:
                        x = self._last_layer(stack, x, inputs, position)
                    elif inputs is not None:
                        x = stack.run_layer(layer, x, inputs)
                if inputs is not None:
                    x = stack.hook_final(stack.norm(x))
        # After _last_layer(), x may have only the requested position.
        return x if position is None else x[:, min(position, x.shape[1] - 1)]

    def _last_layer(self, stack: Stack, x: Tensor, inputs: StackInputs, position: int | None) -> Tensor:
        """Run the last layer; its MLP, which is two thirds of the work, only at the requested position.

        All positions are computed if an edit follows the attention, since it may index positions.
        """
        at, name = len(stack.blocks) - 1, self.forward.loaded.config.stacks[-1][0]
        block, prefixes = cast(Block, stack.blocks[at]), (f"{name}.blocks.{at}.", f"{name}.hook_final")
        edited = any(point.startswith(prefixes) and "attn.hook_" not in point for point in self.forward.edits)
        if position is None or block.parallel or edited:
            return stack.run_layer(at, x, inputs)
        return block.mlp_sublayer(
            block.attention_sublayers(x, stack.layer_inputs(at, inputs))[:, position : position + 1]
        )


def shared_forward_of(forward: Pass, watchers: Mapping[str, Hook]) -> SharedForward:
    """Run one text, with the hooks of other callers that only read.

    Outside hooks that change something may be stateful, so in that case, or for a long text, no layer is shared and every row is a full
    pass. Outside hooks that only read, such as the engine's progress hooks, do not affect the rows.
    """
    config = forward.loaded.config
    lengths = (forward.prompt.source_len, forward.prompt.target_len)  # a single stack reads the source
    tokens = sum(n * length for (_, n), length in zip(config.stacks, lengths, strict=False))
    held = tokens * config.d_model * forward.loaded.dtype.itemsize
    if forward.edited_outside or held > HELD_BYTES:
        return SharedForward(forward, forward.run(watchers), (), None)
    seen: dict[str, Tensor] = {}
    layers = [
        [f"{name}.embed.hook_embed", *(f"{name}.blocks.{i}.hook_resid_post" for i in range(n - 1))]
        for name, n in config.stacks
    ]
    memory = "encoder.hook_final" if len(layers) > 1 else None
    points = [point for names in layers for point in names] + ([memory] if memory else [])
    final = forward.run({point: lambda x, point=point: seen.__setitem__(point, x) for point in points}, watchers)
    streams = tuple(tuple(seen[point] for point in names) for names in layers)
    return SharedForward(forward, final, streams, seen[memory] if memory else None)


def _repeated(x: Tensor | None, rows: int) -> Tensor | None:
    """[1, pos] -> [row, pos]"""
    return None if x is None else x.expand(rows, -1)


BATCH_BYTES = 256 << 20  # bytes for the passes of a batch, unless one row needs more
TOP_K = 6  # most likely tokens stored for each run
To = Literal["zero", "mean"]


@dataclass(frozen=True)
class HeadEffect:
    """Effect of ablating one head: each value ablated minus intact. None for a value that the answer does not have."""

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
    """Effects of all heads, and the answer of the run itself.

    A prediction has all fields; a class has no position; a text's vector (the mean over its tokens) has none of them.
    """

    heads: tuple[HeadEffect, ...]  # in the order of the pass
    position: int | None = None
    token: int | None = None
    string: str | None = None
    logit: float | None = None
    probability: float | None = None

    def to_frame(self) -> dataframes.DataFrame:
        """One row for each head. Needs pandas."""
        return dataframes.of_records(self.heads, HeadEffect)


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """Answers of several runs, one row each. A prediction or a classifier's classes have the first five arrays, a text's vector the last
    two; the others are None."""

    logit: np.ndarray | None = None  # float32 [row, watched]: of the watched tokens or classes
    probability: np.ndarray | None = None  # float32 [row, watched]
    kl: np.ndarray | None = None  # float32 [row]: KL divergence from the unedited run's prediction, in nats
    ids: np.ndarray | None = None  # int64 [row, k]: the most likely tokens or classes
    likeliest: np.ndarray | None = None  # float32 [row, k]: their probabilities
    distance: np.ndarray | None = (
        None  # float32 [row]: 1 − cosine of the text's vector (mean over its tokens) and the unedited run's
    )
    token_distance: np.ndarray | None = (
        None  # float32 [row, pos]: the same for every token's last vector; 0 for padding
    )

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


def together(answers: Sequence[RowAnswers]) -> RowAnswers:
    """Concatenate the rows of several answers."""
    columns = {field.name: [getattr(each, field.name) for each in answers] for field in fields(RowAnswers)}
    return RowAnswers(**{name: None if x[0] is None else np.concatenate(x) for name, x in columns.items()})


Places = tuple[slice, slice]


@dataclass(frozen=True, eq=False)
class Edits:
    """The edits of many rows, one each, in the order of the pass."""

    what: str  # description of an edit, for an error message
    attentions: tuple[str, ...]  # [row]: the edited attention; nothing before it differs from the run
    hooks: Callable[[int, int], Mapping[str, Hook]]  # for rows start to stop


@dataclass(frozen=True, eq=False)
class Rows:
    """Runs of one text that differ by one edit each, to be run in batches of any size.

    The answer is the prediction after `position`, or for None the class of the text, or its vector if the model has no classes. The edits
    of the run itself, and the hooks that were open around it, apply to every row and come first.
    """

    forward: Pass  # of one text
    tokens: Tokens  # read by the last stack
    begins: tuple[LayerStart, ...]  # [row]: where each begins to differ, in the order of the pass
    edits: Edits
    position: int | None
    watched: tuple[int, ...]  # tokens or classes of the stored logits and probabilities
    shared_forward: SharedForward
    baseline: Tensor  # logits [vocab] or [class], or last residual [pos, d_model], of the run itself, float32

    @property
    def n(self) -> int:
        return len(self.begins)

    def most(self) -> int:
        """Number of rows that fit into one batch. Raises TooLarge, with both numbers, if not even one fits."""
        forward, device = self.forward, self.forward.loaded.device
        each = forward.transient() + forward.loaded.config.vocab_size * 16 * (self.position is not None)
        most = max(1, min(self.n, min(BATCH_BYTES, memory.free_bytes(device) // 2) // each))
        what = f"{self.edits.what} in a run of {forward.prompt.source_len:,} tokens"
        memory.check_fits_or_retry(most * each, device, what)
        return most

    def before(self) -> RowAnswers:
        """The run itself, as one row."""
        return self._read(self.baseline[None])

    def shares(self, start: int, stop: int, n: int) -> list[tuple[int, int]]:
        """Split rows start to stop into at most n batches (start, stop) of about equal work: a row is computed from its layer on."""
        stacks = self.forward.loaded.config.stacks if self.shared_forward.streams else ()
        later_layers = [sum(layers for _, layers in stacks[at + 1 :]) for at in range(len(stacks))]
        work = [stacks[at][1] - layer + later_layers[at] if stacks else 1 for at, layer in self.begins[start:stop]]
        total, done, starts = sum(work), 0, [start]
        for row, layers in enumerate(work, start):
            if row > starts[-1] and done * n >= total * len(starts):
                starts.append(row)
            done += layers
        return list(zip(starts, [*starts[1:], stop], strict=True))

    def run(self, start: int, stop: int) -> RowAnswers:
        """Rows start to stop, in one batch. Raises Outdated after a training."""
        forward = self.forward
        forward.weights.check()
        with torch.inference_mode():
            hooks = self.edits.hooks(start, stop)
            if self.shared_forward.streams:
                final = self.shared_forward.run_rows(self.begins[start:stop], hooks, self.position)
            else:
                final = replace(forward, prompt=copies(forward.prompt, stop - start)).run(hooks)
                final = final if self.position is None else final[:, self.position]
            answers = self._read(_answered(forward, final))
        forward.weights.check()  # a training may run at the same time
        return answers

    def _read(self, outputs: Tensor) -> RowAnswers:
        """From logits [row, vocab] or [row, class], or last residuals [row, pos, d_model], float32."""
        with torch.inference_mode():
            if self.position is not None:
                return self._prediction(outputs, self.position)
            if outputs.ndim == 2:
                return self._classes(outputs)
            real = ~torch.tensor(self.tokens.padding, device=outputs.device)
            token_distance = 1 - F.cosine_similarity(outputs, self.baseline[None], dim=-1)
            vectors, vector = outputs[:, real].mean(1), self.baseline[real].mean(0)
            distance = 1 - F.cosine_similarity(vectors, vector[None], dim=-1)
            return RowAnswers(distance=_array(distance), token_distance=_array(token_distance * real))

    def _prediction(self, logits: Tensor, position: int) -> RowAnswers:
        """From logits [row, vocab]."""
        may_follow = next_token_constraints(self.forward.loaded, self.tokens, [position])
        before = allowed_scores(self.baseline[None], may_follow).log_softmax(-1)[0]
        after = allowed_scores(logits, may_follow * len(logits)).log_softmax(-1)
        terms = F.kl_div(after, before[None].expand_as(after), reduction="none", log_target=True)
        kl = terms.masked_fill(before.isneginf(), 0.0).sum(-1)  # forbidden tokens contribute to neither
        return self._distribution(logits, after.exp(), kl)

    def _classes(self, logits: Tensor) -> RowAnswers:
        """From logits [row, class]."""
        classes = self.forward.loaded.spec.classes
        assert classes is not None
        probability = classes.probabilities(logits)
        assert probability is not None
        return self._distribution(logits, probability, classes.divergence(self.baseline, logits))

    def _distribution(self, logits: Tensor, probability: Tensor, kl: Tensor) -> RowAnswers:
        likeliest, ids = probability.topk(min(TOP_K, probability.shape[-1]))
        watched = list(self.watched)
        return RowAnswers(
            logit=_array(logits[:, watched]),
            probability=_array(probability[:, watched]),
            kl=_array(kl),
            ids=ids.cpu().numpy(),
            likeliest=_array(likeliest),
        )


def rows_of(
    forward: Pass,
    edits: Edits,
    position: int | None,
    token: int | None,
    also: tuple[int, ...] = (),
    watchers: Mapping[str, Hook] | None = None,
) -> Rows:
    """Rows of a pass over one text, one for each of the edits.

    Watched are `token` (a class for a classifier; None: the most likely one of the run itself) and `also`. `watchers` are hooks that read
    the run itself.
    """
    forward.weights.check()
    with torch.inference_mode():
        shared = shared_forward_of(forward, watchers or {})
        (tokens,) = forward.prompt.last_read
        baseline = _answered(forward, shared.final if position is None else shared.final[:, position])[0]
    forward.weights.check()
    watched: tuple[int, ...] = ()
    if position is not None:
        allowed = allowed_scores(baseline[None], next_token_constraints(forward.loaded, tokens, [position]))
        watched = (int(allowed.argmax()) if token is None else token, *also)
    elif baseline.ndim == 1:
        watched = (int(baseline.argmax()) if token is None else token, *also)
    stacks: list[str] = [name for name, _ in forward.loaded.config.stacks]
    begins = tuple((stacks.index(stack), layer) for stack, layer, _ in map(place_of, edits.attentions))
    return Rows(forward, tokens, begins, edits, position, watched, shared, baseline)


def in_batches(rows: Rows) -> Iterator[RowAnswers]:
    """All rows, in batches that fit."""
    most = rows.most()
    for start in range(0, rows.n, most):
        yield rows.run(start, min(rows.n, start + most))


def all_rows(rows: Rows, watch: Callable[[int, int], object]) -> RowAnswers:
    """All rows; `watch` receives the number of finished rows and the total after every batch."""
    done: list[RowAnswers] = []
    for answers in in_batches(rows):
        done.append(answers)
        watch(sum(part.n_rows for part in done), rows.n)
    return together(done)


def has_classes(loaded: Loaded) -> bool:
    """True if the answer of a model is one of its classes, with a probability. A regression answers with the text's vector."""
    return loaded.spec.classes is not None and loaded.spec.classes.kind != "numbers"


def class_names(loaded: Loaded, numbers: Sequence[int]) -> tuple[str, ...]:
    """The names of some of its classes."""
    assert loaded.spec.classes is not None
    return tuple(loaded.spec.classes.names[i] for i in numbers)


def _answered(forward: Pass, final: Tensor) -> Tensor:
    """From the last residual [row, d_model] at one position: logits [row, vocab]. From all positions [row, pos, d_model]: logits
    [row, class] of a classifier, otherwise the residual itself. float32."""
    if final.ndim == 3:
        return class_logits(forward.loaded, final, forward.prompt) if has_classes(forward.loaded) else final.float()
    return head_of(forward.loaded)(final[:, None])[:, 0].float()


def _array(x: Tensor) -> np.ndarray:
    return x.float().cpu().numpy()


def copies(prompt: Prompt, n: int) -> Prompt:
    """A prompt of n copies of one text."""
    return Prompt(prompt.sources * n, None if prompt.targets is None else prompt.targets * n)


# The edits of rows. A head is (name of its attention, index).


def heads_of(forward: Pass) -> list[tuple[str, int]]:
    """Every head of the model in the order of the pass."""
    return [
        (point.removesuffix(".hook_z"), head)
        for point in hook_points(forward.loaded.model)
        if point.endswith(".hook_z")
        for head in range(forward.loaded.config.n_heads)
    ]


def with_ablations(heads: Sequence[tuple[str, int]], to: To, prompt: Prompt, sizes: Mapping[str, int] = {}) -> Edits:
    """Row i has heads[i] ablated, together with the rest of its group: `sizes` are group sizes by attention (default 1). Each output is
    zero, or its mean over the real tokens of the text."""

    def ablated(real: Tensor, z: Tensor, _: int) -> Tensor:  # z [query, d_head]
        if to == "zero":
            return torch.zeros_like(z)
        weight = real.to(z.device, z.dtype)[:, None]
        return ((z * weight).sum(0, keepdim=True) / weight.sum()).expand_as(z)

    def hooks(start: int, stop: int) -> Mapping[str, Hook]:
        hooks: dict[str, Hook] = {}
        for name, cells in by_attention(heads[start:stop]).items():
            real = ~torch.tensor(queries_of(prompt, name).padding)
            cells = [(row, head + i) for row, head in cells for i in range(sizes.get(name, 1))]
            hooks[f"{name}.hook_z"] = partial(_changed_heads, cells, partial(ablated, real))
        return hooks

    return Edits("Silencing a head", tuple(name for name, _ in heads), hooks)


def with_patches(heads: Sequence[tuple[str, int]], other: Mapping[str, Tensor], places: Mapping[str, Places]) -> Edits:
    """Row i has the output of heads[i] in another run; `other` is z [head, query, d_head] of that run by attention.

    `places` are by attention: the queries that are replaced, and the corresponding queries of the other run.
    """

    def patched(name: str, z: Tensor, head: int) -> Tensor:  # z [query, d_head]
        own, theirs = places[name]
        z = z.clone()
        z[own] = other[name][head][theirs]
        return z

    def hooks(start: int, stop: int) -> Mapping[str, Hook]:
        cells = by_attention(heads[start:stop])
        return {f"{name}.hook_z": partial(_changed_heads, some, partial(patched, name)) for name, some in cells.items()}

    return Edits("Taking over a head's output", tuple(name for name, _ in heads), hooks)


def with_blocked_edges(
    cells: Sequence[tuple[int, int]], attentions: Sequence[str], head: int | None, n_heads: int
) -> Edits:
    """Row i has the edge cells[i] = (query, key) masked, in one head or (None) in all heads of these attentions."""

    def hooks(start: int, stop: int) -> Mapping[str, Hook]:
        layer = CellSet(torch.tensor(cells[start:stop]).view(-1, 2), head, n_heads)

        def hide(rule: ScoreRule) -> ScoreRule:
            return replace(rule, mask=replace(rule.mask, edits=(*rule.mask.edits, layer)))

        return {f"{name}.hook_rule": hide for name in attentions}

    return Edits("Cutting a look", (attentions[0],) * len(cells), hooks)


def by_attention(heads: Sequence[tuple[str, int]]) -> dict[str, list[tuple[int, int]]]:
    """(row, head) of the rows of each attention."""
    cells: dict[str, list[tuple[int, int]]] = {}
    for row, (name, head) in enumerate(heads):
        cells.setdefault(name, []).append((row, head))
    return cells


def _changed_heads(cells: list[tuple[int, int]], change: Callable[[Tensor, int], Tensor], z: Tensor) -> Tensor:
    """z [row, query, head, d_head] with some heads of some rows changed, each as [query, d_head]."""
    z = z.clone()
    for row, head in cells:
        z[row, :, head] = change(z[row, :, head], head)
    return z


def ablate_each(
    forward: Pass,
    position: int | None,
    token: int | None,
    watch: Callable[[int, int], object],
) -> HeadEffects:
    """The effect of every head on the prediction after `position` in a pass over one text, or for None on the text's class or vector: see
    Trace.ablate_heads()."""
    heads = heads_of(forward)
    rows = rows_of(forward, with_ablations(heads, "zero", forward.prompt), position, token)
    before, after = rows.before(), all_rows(rows, watch)
    effects = tuple(_effect(name, head, before, after[i : i + 1]) for i, (name, head) in enumerate(heads))
    if before.logit is None or before.probability is None:
        return HeadEffects(effects)
    (string,) = (strings_of if position is not None else class_names)(forward.loaded, rows.watched)
    logit, probability = float(before.logit[0, 0]), float(before.probability[0, 0])
    return HeadEffects(effects, position, rows.watched[0], string, logit, probability)


def _effect(name: str, head: int, before: RowAnswers, after: RowAnswers) -> HeadEffect:
    if after.distance is not None:
        return HeadEffect(*place_of(name), head, distance=float(after.distance[0]))
    logit, probability = (
        None if a is None or b is None else float(a[0, 0] - b[0, 0])
        for a, b in ((after.logit, before.logit), (after.probability, before.probability))
    )
    return HeadEffect(*place_of(name), head, logit, probability, None if after.kl is None else float(after.kl[0]))


def queries_of(prompt: Prompt, attention: str) -> Tokens:
    """The text of the queries of an attention, in a prompt of one text."""
    texts = prompt.sources if attention.startswith("encoder") or prompt.targets is None else prompt.targets
    return texts[0]


def place_of(name: str) -> tuple[str, int, Literal["attn", "cross_attn"]]:
    """ "decoder.blocks.3.cross_attn" -> its stack, layer and site."""
    stack, _, layer, site = name.split(".")
    return stack, int(layer), "attn" if site == "attn" else "cross_attn"
