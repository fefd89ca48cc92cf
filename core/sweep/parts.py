"""Activation patching: the next token with one component after another replaced by its counterfactual value, zero, or its mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from .. import frames, memory
from ..errors import InterventionError
from ..model.hooks import Hook
from ..run.predictions import allowed_scores, check_token, following, head_of
from ..run.trace import Trace
from .ablations import copies
from .branches import SharedForward, shared_forward_of
from .growing import Activations, IncrementalBatch, joining_points, prefix_activations, row_bytes
from .part import Component, check_component
from .sides import ADVICE, Counterfactual, To, component_points, counterfactual_of

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

    def to_frame(self) -> frames.DataFrame:
        """One row for each component; log_p_0 and so on are the watched tokens in order. Needs pandas."""
        columns: dict[str, Sequence[object]] = frames.columns_of(self.parts, Component)
        columns |= {f"log_p_{i}": self.log_p[:, i].tolist() for i in range(self.log_p.shape[1])}
        return frames.of_columns(columns | {"top": self.top.tolist(), "top_p": self.top_p.tolist()})


def patch_components(
    run: Trace,
    other: Trace | None,
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


def check_changed(run: Trace, part: Component, to: To) -> None:
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
        memory.admit_large(most * each, device, f"Changing a part in a run of {n:,} tokens", ADVICE)
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
    may_follow = following(loaded, counterfactual.tokens, [counterfactual.position])
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
        else:
            x[row, part.at] = replacement[part.at]
    return x
