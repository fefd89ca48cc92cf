"""Activation patching of components, its estimate by gradients, and three tests of one component."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from .. import dataframes, device
from .. import device as memory
from ..errors import InterventionError, TextError
from ..model.hooks import Hook, hooked
from ..run.forward_pass import Pass
from ..run.predictions import allowed_scores, check_token, head_of, labels_of, next_token_constraints
from ..run.request import model_inputs
from ..run.trace_record import TraceRecord
from .counterfactual import (
    ADVICE,
    Activations,
    Component,
    Counterfactual,
    IncrementalBatch,
    To,
    activations_of,
    check_component,
    component_points,
    counterfactual_of,
    decoder_of,
    joining_points,
    prefix_activations,
    row_bytes,
)
from .edited_runs import SharedForward, copies, shared_forward_of
from .head_sweeps import (
    Given,
    Head,
    HeadPlace,
    LogitDiff,
    check_pair,
    checked_head,
    logit_diff_between,
    logit_diff_changes,
)

# Bytes of one batch: 300 heads and MLPs of a sentence then fit one batch of SmolLM2, which is a fifth faster than two.
BATCH_BYTES = 384 << 20
WORD_ROWS = 64  # rows whose logits are computed at once


@dataclass(frozen=True, eq=False)
class PatchResults:
    """The next token with each of some components replaced, one row for each."""

    parts: tuple[Component, ...]
    first: int  # number of rows yielded before
    before: np.ndarray  # float32 [watched]: log p of the watched tokens in the run itself
    log_p: np.ndarray  # float32 [row, watched]; the difference of two columns is that of their logits
    top: np.ndarray  # int64 [row]: the most likely token
    top_p: np.ndarray  # float32 [row]: its probability

    def to_frame(self) -> dataframes.DataFrame:
        """One row for each component; log_p_0 and so on are the watched tokens in order. Needs pandas."""
        columns: dict[str, Sequence[object]] = dataframes.columns_of(self.parts, Component)
        columns |= {f"log_p_{i}": self.log_p[:, i].tolist() for i in range(self.log_p.shape[1])}
        return dataframes.of_columns(columns | {"top": self.top.tolist(), "top_p": self.top_p.tolist()})


def patch_components(
    run: TraceRecord,
    other: TraceRecord | None,
    parts: Sequence[Component | Sequence[Component]],
    watched: Sequence[int],
    to: To = "other",
    position: int | None = None,
) -> Iterator[PatchResults]:
    """Replace the output of each component at every token by that of the other run, and return log p of the `watched` tokens after
    `position` (None: the last real token) and the most likely token. With to="zero" the output of a head or an MLP is zero, with "mean"
    its mean over the tokens of the text; `other` may then be None.

    Yields rows in the order of `parts`. An item may be a group of components, which are computed together; single components are batched
    by available memory. The generator may be closed between two batches. Activation patching (Vig et al. 2020; Meng et al. 2022). Every
    row equals a separate run with that edit, and is computed as one if the model is not a decoder or the run is edited. In a decoder a row
    is computed after the component that it changes and from the first token that differs.

    Raises TextError for texts of unequal lengths, another model, or a model without an answer, InterventionError for a component that the
    run does not have, IndexError for a position, TooLarge with both numbers before anything runs, and Outdated after a training.
    """
    groups = _grouped(parts)
    for part in (part for group in groups for part in group):
        check_changed(run, part, to)
    for token in watched:
        check_token(run.loaded, token)
    return patching_of(counterfactual_of(run, other, to, position), watched).answers(groups)


def _grouped(parts: Sequence[Component | Sequence[Component]]) -> list[list[Component]]:
    """The groups, with each stretch of single components as a group of its own."""
    groups: list[list[Component]] = []
    is_open = False  # True if the last group consists of single components
    for item in parts:
        if not isinstance(item, Component):
            groups.append([*item])
        elif is_open:
            groups[-1].append(item)
        else:
            groups.append([item])
        is_open = isinstance(item, Component)
    return [group for group in groups if group]


def check_changed(run: TraceRecord, part: Component, to: To) -> None:
    """Raise InterventionError if the run has no such component, or it cannot be set to this."""
    check_component(run, part)
    if part.kind == "resid" and to != "other":
        raise InterventionError(
            "The stream at a word is taken from another run; it has no silence and no mean of its own. Give a run as `other`."
        )


@dataclass(frozen=True, eq=False)
class Patching:
    """Rows to be computed, one batch at a time."""

    counterfactual: Counterfactual
    replacements: Mapping[str, Tensor]
    batch: IncrementalBatch | None
    shared_forward: SharedForward | None  # without a batch
    watched: tuple[int, ...]
    before: np.ndarray  # float32 [watched]

    def most(self) -> int:
        """Number of rows that fit into one batch. Raises TooLarge, with both numbers, if not even one fits."""
        forward, device = self.counterfactual.forward, self.counterfactual.run.loaded.device
        prefix = self.counterfactual.prefix
        if prefix is not None:
            each = row_bytes(forward, prefix.n_computed, prefix.first)
        else:
            each = forward.transient() + forward.loaded.config.vocab_size * 16
        most = max(1, min(BATCH_BYTES, memory.free_bytes(device) // 2) // each)
        n = self.counterfactual.position + 1
        memory.check_fits_or_retry(most * each, device, f"Changing a part in a run of {n:,} tokens", ADVICE)
        return most

    def answers(self, groups: Sequence[Sequence[Component]]) -> Iterator[PatchResults]:
        """All rows of all groups, in batches."""
        first = 0
        for group in groups:
            most = self.most()
            for start in range(0, len(group), most):
                results = self.run(group[start : start + most], first)
                first += len(results.parts)
                yield results

    def run(self, parts: Sequence[Component], first: int = 0) -> PatchResults:
        """These rows in one batch. Raises Outdated after a training."""
        forward = self.counterfactual.forward
        forward.weights.check()
        with torch.inference_mode():
            final = self._whole_rows(parts) if self.batch is None else self.batch.run(parts)
            log_p, top, top_p = _next_tokens(self.counterfactual, final, self.watched)
        forward.weights.check()  # a training may have changed them in the meantime
        return PatchResults(tuple(parts), first, self.before, log_p, top, top_p)

    def _whole_rows(self, parts: Sequence[Component]) -> Tensor:
        """The last residual [row, d_model] of edited runs, which branch off at the layer of their component if layers are shared."""
        assert self.shared_forward is not None
        config, forward = self.counterfactual.run.config, self.counterfactual.forward
        stacks: list[str] = [name for name, _ in config.stacks]
        last = stacks[-1]
        begins = [(stacks.index(part.stack or last), part.layer) for part in parts]
        order = sorted(range(len(parts)), key=begins.__getitem__)
        cells: dict[str, list[tuple[int, Component]]] = {}
        for row, i in enumerate(order):
            cells.setdefault(parts[i].point(last), []).append((row, parts[i]))
        hooks: dict[str, Hook] = {
            point: partial(_with_components, some, self.replacements[point]) for point, some in cells.items()
        }
        if self.shared_forward.streams:
            final = self.shared_forward.run_rows([begins[i] for i in order], hooks)
        else:
            final = replace(forward, prompt=copies(forward.prompt, len(parts))).run(hooks)
        rows = torch.empty_like(final[:, 0])
        rows[torch.tensor(order, device=rows.device)] = final[:, self.counterfactual.position]
        return rows


def patching_of(
    counterfactual: Counterfactual, watched: Sequence[int], activations: Activations | None = None
) -> Patching:
    """Prepare the rows with one unedited pass of the run. A prefix needs no pass if `activations` at joining_points() are given, which
    Gradients have."""
    forward, prefix = counterfactual.forward, counterfactual.prefix
    shared_forward = batch = None
    if prefix is None:
        shared_forward = shared_forward_of(forward, {})
        final = shared_forward.final[0, counterfactual.position]
        replacements = counterfactual.other_activations
        if replacements is None:
            points = [p for p in component_points(counterfactual.run) if not p.endswith("hook_resid_post")]
            replacements = counterfactual.replacements(forward.moments(points, lambda _, x: x[0].clone()))
    else:
        activations = activations or prefix_activations(forward, prefix, joining_points(forward))
        final, replacements = activations.final, counterfactual.replacements(activations.own, activations.other)
        batch = IncrementalBatch(forward, prefix, activations.own, replacements)
    with torch.inference_mode():
        before, _, _ = _next_tokens(counterfactual, final[None], tuple(watched))
    patching = Patching(counterfactual, replacements, batch, shared_forward, tuple(watched), before[0])
    patching.most()  # refuse before the first row is requested
    return patching


def _next_tokens(
    counterfactual: Counterfactual, final: Tensor, watched: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """From last residuals [row, d_model]: log p of the watched tokens [row, watched], the most likely token [row], and its p [row]."""
    loaded = counterfactual.run.loaded
    head = head_of(loaded)
    may_follow = next_token_constraints(loaded, counterfactual.tokens, [counterfactual.position])
    log_p, top, top_p = [], [], []
    for rows in final.split(WORD_ROWS):
        scores = allowed_scores(head(rows[:, None])[:, 0].float(), may_follow * len(rows))
        total = scores.logsumexp(-1)
        best, tokens = scores.max(-1)
        log_p.append((scores[:, list(watched)] - total[:, None]).cpu().numpy())
        top.append(tokens.cpu().numpy())
        top_p.append((best - total).exp().cpu().numpy())
    return np.concatenate(log_p), np.concatenate(top), np.concatenate(top_p)


def _with_components(cells: Sequence[tuple[int, Component]], replacement: Tensor, x: Tensor) -> Tensor:
    """x [row, ...] with the component of some rows replaced."""
    x = x.clone()
    for row, part in cells:
        if part.kind == "mlp":
            x[row] = replacement
        elif part.kind == "head":
            x[row, :, part.at] = replacement[:, part.at]
        else:
            x[row, part.at] = replacement[part.at]
    return x


N_STRONGEST = 10  # heads with the strongest estimates, which run first
THIRDS = 3


@dataclass(frozen=True, eq=False)
class AttributionEstimates:
    """Estimated change of the logit difference with each component replaced: gradient × change of the component.

    The logit difference is the logit of the answer minus that of the alternative, or log p of the answer if there is no alternative.
    `by_point` has all numbers: [head] for heads, [] for an MLP, [token] for the residual stream after a layer. The other arrays are those
    of the last stack.
    """

    to: To
    position: int
    answer: int
    alternative: int | None
    lead: float  # the logit difference in the run itself
    heads: np.ndarray  # float32 [layer, head]
    mlps: np.ndarray  # float32 [layer]
    resid: np.ndarray | None  # float32 [layer, token], the residual stream after each layer; None without another run
    by_point: Mapping[str, np.ndarray]
    last_stack: str
    acts: np.ndarray  # int64 [layer, head]: the token at which a head would change the logit difference most

    def of(self, part: Component) -> float:
        """The estimate of one component. Raises KeyError if it has none."""
        estimates = self.by_point[part.point(self.last_stack)]
        return float(estimates if part.kind == "mlp" else estimates[part.at])

    @property
    def parts(self) -> tuple[Component, ...]:
        """Every component with an estimate, in the order of the pass."""
        parts: list[Component] = []
        for point, numbers in self.by_point.items():
            stack, _, layer, *_ = point.split(".")
            if point.endswith("hook_mlp_out"):
                parts.append(Component("mlp", int(layer), 0, stack))
            elif point.endswith("hook_z"):
                site = "cross_attn" if ".cross_attn." in point else "attn"
                parts += [Component("head", int(layer), head, stack, site) for head in range(len(numbers))]
            else:
                parts += [Component("resid", int(layer), token, stack) for token in range(len(numbers))]
        return tuple(parts)

    def to_frame(self) -> dataframes.DataFrame:
        """One row for each component. Needs pandas."""
        parts = self.parts
        return dataframes.of_columns(
            {**dataframes.columns_of(parts, Component), "estimate": [self.of(part) for part in parts]}
        )


def attribution_patching(
    run: TraceRecord,
    other: TraceRecord | None,
    answer: int,
    alternative: int | None = None,
    to: To = "other",
    position: int | None = None,
) -> AttributionEstimates:
    """Estimate by how much each head, each MLP and the residual stream at each token changes the logit difference of `answer` over
    `alternative` after `position` (None: the last real token), if it is set to its value in the other run, to zero ("zero"), or to its mean
    over the text ("mean").

    First order: Σ over tokens of ∂(logit difference)/∂component · (replacement − component), float32, from one forward and one backward
    pass of the run, and a forward pass of the other. For an encoder–decoder `by_point` has all three kinds of heads. An estimate may
    have the wrong sign, so draw no conclusion from it. Raises as patch_components(), and TextError for an answer that may not follow.
    """
    counterfactual = counterfactual_of(run, other, to, position)
    return attribution_estimates(counterfactual, gradients_of(counterfactual, answer, alternative))


@dataclass(frozen=True, eq=False)
class Gradients:
    """One forward and one backward pass of a run, by hook point, without the batch axis."""

    answer: int
    alternative: int | None
    lead: float  # the logit difference
    activations: Activations  # at joining_points() if there is a prefix, otherwise at the components
    gradients: Mapping[str, Tensor]  # of the logit difference, at every component


def gradients_of(counterfactual: Counterfactual, answer: int, alternative: int | None = None) -> Gradients:
    """The gradients of the logit difference, by autograd. Raises TextError, TooLarge, and Outdated after a training."""
    forward, prefix, loaded = counterfactual.forward, counterfactual.prefix, counterfactual.run.loaded
    for token in (answer, alternative):
        check_token(loaded, token)
    n = len(counterfactual.tokens)
    tokens, keys = (n, n) if prefix is None else (prefix.n_computed * len(prefix.ids), counterfactual.position + 1)
    needed = backward_bytes(forward, max(tokens, forward.prompt.target_len), keys)
    device.check_fits_or_retry(needed, loaded.device, f"The backward pass of a run of {keys:,} tokens", ADVICE)
    parts = component_points(counterfactual.run)
    seen: dict[str, Tensor] = {}
    forward.weights.check()
    with ExitStack() as contexts:
        contexts.enter_context(torch.inference_mode(False))
        contexts.enter_context(torch.enable_grad())
        contexts.enter_context(hooked(loaded.model, {}, outside=forward.outside))
        contexts.enter_context(hooked(loaded.model, forward.edits))
        points = parts if prefix is None else joining_points(forward)
        contexts.enter_context(hooked(loaded.model, _gradient_hooks(forward, points, seen)))
        if prefix is None:
            final = loaded.model.last_residual(*model_inputs(forward.prompt, loaded.device))
            final = final[:, : counterfactual.position + 1]
        else:  # cloned, because tensors of inference mode cannot be saved for a backward pass
            prefix = replace(prefix, cached=tuple((k.clone(), v.clone()) for k, v in prefix.cached))
            final = prefix.run(decoder_of(forward))
        logits = head_of(loaded)(final[:1, -1:])[:, 0].float()
        lead = _logit_diff(counterfactual, logits, answer, alternative)
        if counterfactual.to != "other":
            parts = [point for point in parts if not point.endswith("hook_resid_post")]
        found = torch.autograd.grad(lead, [seen[point] for point in parts], allow_unused=True)
    forward.weights.check()  # a training may have changed them in the meantime
    gradients = {
        point: torch.zeros_like(seen[point].detach()[0]) if gradient is None else gradient[0]
        for point, gradient in zip(parts, found, strict=True)
    }
    return Gradients(answer, alternative, lead.item(), activations_of(seen, final), gradients)


def _gradient_hooks(forward: Pass, points: Sequence[str], seen: dict[str, Tensor]) -> dict[str, Hook]:
    """Hooks that store the tensors at `points` in `seen`, and require gradients from the embeddings on."""

    def begin(point: str, x: Tensor) -> Tensor:
        seen[point] = x.detach().requires_grad_()  # the embedding tables need no gradients
        return seen[point]

    hooks: dict[str, Hook] = {point: lambda x, point=point: seen.__setitem__(point, x) for point in points}
    embeddings = (f"{stack}.embed.hook_embed" for stack, _ in forward.loaded.config.stacks)
    return hooks | {point: partial(begin, point) for point in embeddings}


def _logit_diff(counterfactual: Counterfactual, logits: Tensor, answer: int, alternative: int | None) -> Tensor:
    """From logits [1, vocab]: that of the answer minus that of the alternative, or log p of the answer. Raises TextError for -inf."""
    loaded = counterfactual.run.loaded
    scores = allowed_scores(logits, next_token_constraints(loaded, counterfactual.tokens, [counterfactual.position]))[0]
    for token in (answer, alternative):
        if token is not None and bool(scores[token].isneginf()):
            (label,) = labels_of(loaded, [token])
            raise TextError(f"{label!r} may not follow this text, so its score cannot change. Choose another word.")
    return scores[answer] - scores[alternative] if alternative is not None else scores.log_softmax(-1)[answer]


def backward_bytes(forward: Pass, tokens: int, keys: int) -> int:
    """Upper bound of the activations, in bytes, that a forward pass of `tokens` tokens keeps for its backward pass; actual use is rarely
    more than half of it."""
    config, itemsize = forward.loaded.config, max(4, forward.loaded.dtype.itemsize)
    experts = config.n_experts_per_token * config.d_ff + config.d_shared
    hidden = max(config.d_ff, config.d_dense, experts if config.n_experts else 0)
    width = config.n_heads * (3 * config.d_head + 2 * config.value_width)
    has_maps = config.runs_in_steps or forward.is_eager or config.position != "rotary"
    maps = 4 * config.n_heads * keys if has_maps else keys
    layers = sum(n for _, n in config.stacks)
    each = 16 * config.d_model + 5 * width + 6 * hidden + maps
    prefix = 2 * keys * width
    return layers * (tokens * each + prefix) * itemsize + 6 * config.vocab_size * 4


def attribution_estimates(counterfactual: Counterfactual, gradients: Gradients) -> AttributionEstimates:
    """Gradient × change, of every component."""
    own, prefix = gradients.activations.own, counterfactual.prefix
    replacements = counterfactual.replacements(own, gradients.activations.other)
    n, first = len(counterfactual.tokens), 0 if prefix is None else prefix.first
    by_point: dict[str, np.ndarray] = {}
    acts: dict[str, np.ndarray] = {}
    for point, gradient in gradients.gradients.items():
        product = gradient.float() * (replacements[point].float() - own[point].float())  # [pos, ..., width]
        each = product.sum(-1)  # [pos], or [pos, head]
        if point.endswith("hook_resid_post"):
            numbers = each.cpu().numpy()
            after = n - first - len(numbers)  # tokens after the position
            by_point[point] = numbers if prefix is None else np.pad(numbers, (first, after))
        else:
            by_point[point] = each.sum(0).cpu().numpy()
            acts[point] = each.abs().argmax(0).cpu().numpy() + first
    last, n_layers = counterfactual.run.config.stacks[-1]

    def of_layers(end: str, numbers: Mapping[str, np.ndarray] = by_point) -> np.ndarray:
        return np.stack([numbers[f"{last}.blocks.{layer}.{end}"] for layer in range(n_layers)])

    return AttributionEstimates(
        to=counterfactual.to,
        position=counterfactual.position,
        answer=gradients.answer,
        alternative=gradients.alternative,
        lead=gradients.lead,
        heads=of_layers("attn.hook_z"),
        mlps=of_layers("hook_mlp_out"),
        resid=of_layers("hook_resid_post") if counterfactual.to == "other" else None,
        by_point=by_point,
        last_stack=last,
        acts=of_layers("attn.hook_z", acts),
    )


def run_order(estimates: AttributionEstimates, tokens: Sequence[int] = ()) -> tuple[tuple[Component, ...], ...]:
    """Group the last stack's components in the order to run them with patch_components(): the heads with the strongest estimates; the
    last third of the layers with MLPs, from the last layer down; the residual stream at `tokens`; and the other thirds. Without another
    run the first two layers come second, because estimates are least accurate there.
    """
    n_layers, n_heads = estimates.heads.shape
    strength = np.abs(estimates.heads).ravel()
    strongest = [divmod(int(i), n_heads) for i in np.argsort(-strength, kind="stable")[:N_STRONGEST]]

    def of_layers(layers: Sequence[int]) -> tuple[Component, ...]:
        parts: list[Component] = []
        for layer in layers:
            parts += [Component("head", layer, head) for head in range(n_heads) if (layer, head) not in strongest]
            parts.append(Component("mlp", layer))
        return tuple(parts)

    first = range(2) if estimates.to != "other" and n_layers > 2 else range(0)
    rest = [layer for layer in reversed(range(n_layers)) if layer not in first]
    size = -(-n_layers // THIRDS)
    thirds = [of_layers(rest[at : at + size]) for at in range(0, len(rest), size)]
    streams = tuple(Component("resid", layer, token) for layer in reversed(range(n_layers)) for token in tokens)
    heads = tuple(Component("head", layer, head) for layer, head in strongest)
    groups = (heads, of_layers(first), thirds[0], streams, *thirds[1:])
    return tuple(group for group in groups if group)


Verdict = Literal["none", "same", "disagree", "silence", "other", "some"]
SIGNIFICANT = 0.05  # of the logit difference: a smaller change does not count


@dataclass(frozen=True)
class Evidence:
    """One head, or MLP, under each test: the change of the logit difference of an answer and its alternative, in nats."""

    head: HeadPlace | Component
    lead: LogitDiff
    before: float  # the logit difference in the run itself
    zero_ablation: float
    mean_ablation: float  # set to the mean over the tokens of this text
    patching: float | None  # set to its output in the other run, at every token; None without one

    @property
    def _changes(self) -> dict[Given, float | None]:
        return {"zero": self.zero_ablation, "mean": self.mean_ablation, "other": self.patching}

    @property
    def significant(self) -> tuple[Given, ...]:
        """The tests that change the logit difference by 5 % of it or more."""
        least = SIGNIFICANT * abs(self.before)
        return tuple(test for test, change in self._changes.items() if change is not None and abs(change) >= least)

    @property
    def verdict(self) -> Verdict:
        """Compare the significant tests: "none" is significant; they "disagree" in sign; all have the "same" sign; only "silence" (zero
        ablation) is, so the model needs the head's usual output and not its output for this text; only the "other" sentence is, so
        the head matters where the texts differ; or "some" are, with one sign."""
        significant = self.significant
        if not significant:
            return "none"
        if len({(self._changes[test] or 0) > 0 for test in significant}) > 1:
            return "disagree"
        if len(significant) == 2 + (self.patching is not None):
            return "same"
        return "silence" if significant == ("zero",) else "other" if significant == ("other",) else "some"


def three_tests(
    run: TraceRecord,
    other: TraceRecord | None,
    head: Head | Component,
    lead: LogitDiff | None = None,
) -> Evidence:
    """Ablate one head to zero, to its mean, and patch it from another run if there is one: three edited runs with one edit each.

    `head` is a HeadPlace, (layer, head) of the last stack, or a Component; an MLP is tested in the same way. `lead` comes from
    logit_diff_between(); None: of the most likely tokens of both runs. Raises as patch_paths(), logit_diff_changes() and patch_components().
    """
    if isinstance(head, Component):
        return _component_evidence(run, other, head, lead or logit_diff_between(run, other))
    place = checked_head(run.loaded, head)
    if other is not None:
        check_pair(run, other)
    lead = lead or logit_diff_between(run, other)
    zero, before = logit_diff_changes(run, None, [place], lead, "zero")
    mean, _ = logit_diff_changes(run, None, [place], lead, "mean")
    patching = None if other is None else float(logit_diff_changes(run, other, [place], lead)[0][0])
    return Evidence(place, lead, before, float(zero[0]), float(mean[0]), patching)


def _component_evidence(run: TraceRecord, other: TraceRecord | None, part: Component, lead: LogitDiff) -> Evidence:
    def change(to: Given) -> tuple[float, float]:
        (rows,) = patch_components(run, other, [part], [lead.answer, lead.alternative], to, lead.position)
        before = rows.before[0] - rows.before[1]
        return float(rows.log_p[0, 0] - rows.log_p[0, 1] - before), float(before)

    (zero, before), (mean, _) = change("zero"), change("mean")
    return Evidence(part, lead, before, zero, mean, None if other is None else change("other")[0])
