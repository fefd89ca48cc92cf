"""The next word where one part of a model after the other gives what it gives in another run, nothing, or its mean."""

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
from .branches import Trunk, trunk_of
from .growing import Growing, Passed, row_bytes, stem_moments, stem_points
from .part import Part, check_part
from .sides import ADVICE, Sides, To, sides_of

BATCH_BYTES = (
    384 << 20
)  # of one batch: 300 heads and MLPs of a sentence go through SmolLM2 together, in a fifth less time than in two
WORD_ROWS = 64  # whose scores of every word are there at once


@dataclass(frozen=True, eq=False)
class PartAnswers:
    """The next word with each of some parts changed by itself, a row for each."""

    parts: tuple[Part, ...]
    first: int  # how many rows were yielded before
    before: np.ndarray  # float32 [watched]: log p of the watched tokens in the run itself
    log_p: np.ndarray  # float32 [row, watched]; the difference of two columns is that of their logits
    top: np.ndarray  # int64 [row]: the likeliest token
    top_p: np.ndarray  # float32 [row]: its probability

    def to_frame(self) -> frames.DataFrame:
        """A row for each part; log_p_0 and so on are of the watched tokens in their order. Needs pandas."""
        columns: dict[str, Sequence[object]] = frames.columns_of(self.parts, Part)
        columns |= {f"log_p_{i}": self.log_p[:, i].tolist() for i in range(self.log_p.shape[1])}
        return frames.of_columns(columns | {"top": self.top.tolist(), "top_p": self.top_p.tolist()})


def patch_parts(
    run: Trace,
    other: Trace | None,
    parts: Sequence[Part | Sequence[Part]],
    watched: Sequence[int],
    to: To = "other",
    position: int | None = None,
) -> Iterator[PartAnswers]:
    """Each of `parts` in turn gives, at every token, what it gave in the other run: log p of the `watched` tokens after `position`
    (None: the last real token), and the likeliest one. With to="zero" a head or an MLP gives nothing, with "mean" the mean
    of what it gives over the tokens of the text; `other` may then be None.

    Yields rows in the order of `parts`. An item may be a group of parts, which are computed together; parts by themselves are
    computed as many at once as fit. Between two batches it may be closed. Activation patching (Vig et al. 2020; Meng et al. 2022);
    every row is what a run of its own with that edit gives, and so it is computed where a model is no decoder, or where the run is
    edited. In a decoder a row is computed after the part that it changes and from the first token that differs on.

    Raises TextError for texts of unequal lengths, another model, or a model without an answer, InterventionError for a part that
    the run does not have, IndexError for a position, TooLarge with both numbers before anything runs, and Outdated after a training.
    """
    groups = [(item,) if isinstance(item, Part) else tuple(item) for item in parts]
    for group in groups:
        for part in group:
            check_changed(run, part, to)
    for token in watched:
        check_token(run.loaded, token)
    patching = patching_of(sides_of(run, other, to, position), watched)
    return patching.answers([list(group) for group in joined(parts)])


def joined(parts: Sequence[Part | Sequence[Part]]) -> list[tuple[Part, ...]]:
    """The groups, and what stands by itself between them as a group of its own."""
    found: list[tuple[Part, ...]] = []
    alone: list[Part] = []
    for item in parts:
        if isinstance(item, Part):
            alone.append(item)
            continue
        found += [tuple(alone)] if alone else []
        alone = []
        found.append(tuple(item))
    return [group for group in (*found, tuple(alone)) if group]


def check_changed(run: Trace, part: Part, to: To) -> None:
    """Raises InterventionError for a part that the run does not have, or that cannot be set to this."""
    check_part(run, part)
    if part.kind == "resid" and to != "other":
        raise InterventionError(
            "The stream at a word is taken from another run; it has no silence and no mean of its own. Give a run as `other`."
        )


@dataclass(frozen=True, eq=False)
class Patching:
    """Rows that are to be computed, a batch at a time."""

    sides: Sides
    given: Mapping[str, Tensor]
    growing: Growing | None
    trunk: Trunk | None  # where no batch grows
    plain: Tensor  # [d_model]: the last residual of the run at the position
    watched: tuple[int, ...]
    before: np.ndarray  # float32 [watched]

    def most(self) -> int:
        """How many rows fit into one batch. Raises TooLarge, with both numbers, where not even one does."""
        forward, device = self.sides.forward, self.sides.run.loaded.device
        stem = self.sides.stem
        if stem is not None:
            each = row_bytes(forward, stem.n_computed, stem.first)
        else:
            each = forward.transient() + forward.loaded.config.vocab_size * 16
        most = max(1, min(BATCH_BYTES, memory.free_bytes(device) // 2) // each)
        n = self.sides.position + 1
        memory.admit_large(most * each, device, f"Changing a part in a run of {n:,} tokens", ADVICE)
        return most

    def answers(self, groups: Sequence[Sequence[Part]]) -> Iterator[PartAnswers]:
        """All rows of all groups, a batch after the other."""
        first = 0
        for group in groups:
            most = self.most()
            for start in range(0, len(group), most):
                found = self.run(group[start : start + most], first)
                first += len(found.parts)
                yield found

    def run(self, parts: Sequence[Part], first: int = 0) -> PartAnswers:
        """These rows in one batch. Raises Outdated after a training."""
        forward = self.sides.forward
        forward.weights.check()
        with torch.inference_mode():
            final = self._whole(parts) if self.growing is None else self.growing.run(parts)
            log_p, top, top_p = words_of(self.sides, final, self.watched)
        forward.weights.check()  # a training may run meanwhile
        return PartAnswers(tuple(parts), first, self.before, log_p, top, top_p)

    def _whole(self, parts: Sequence[Part]) -> Tensor:
        """The last residual [row, d_model] of edited runs, which branch off at the layer of their part where nothing forbids it."""
        assert self.trunk is not None
        config, forward = self.sides.run.config, self.sides.forward
        stacks: list[str] = [name for name, _ in config.stacks]
        last = stacks[-1]
        begins = [(stacks.index(part.stack or last), part.layer) for part in parts]
        order = sorted(range(len(parts)), key=begins.__getitem__)
        cells: dict[str, list[tuple[int, Part]]] = {}
        for row, i in enumerate(order):
            cells.setdefault(parts[i].point(last), []).append((row, parts[i]))
        hooks: dict[str, Hook] = {point: partial(changed, some, self.given[point]) for point, some in cells.items()}
        if self.trunk.streams:
            final = self.trunk.grow([begins[i] for i in order], hooks)
        else:
            final = replace(forward, prompt=copies(forward.prompt, len(parts))).run(hooks)
        rows = torch.empty_like(final[:, 0])
        rows[torch.tensor(order, device=rows.device)] = final[:, self.sides.position]
        return rows


def patching_of(sides: Sides, watched: Sequence[int], passed: Passed | None = None) -> Patching:
    """The rows to come, after one plain pass of the run; where rows grow, none is needed if `passed` has what passed stem_points(), as
    the slopes of estimates have."""
    forward, stem = sides.forward, sides.stem
    trunk = growing = None
    if stem is None:
        trunk = trunk_of(forward, {})
        plain = trunk.final[0, sides.position]
        if sides.theirs is not None:
            given = sides.theirs
        else:
            points = [point for point in sides.part_points if not point.endswith("hook_resid_post")]
            given = sides.given(forward.moments(points, lambda _, x: x[0].clone()))
    else:
        passed = passed or stem_moments(forward, stem, stem_points(forward))
        plain, given = passed.final, sides.given(passed.own, passed.theirs)
        growing = Growing(forward, stem, passed.own, given)
    with torch.inference_mode():
        before, _, _ = words_of(sides, plain[None], tuple(watched))
    made = Patching(sides, given, growing, trunk, plain, tuple(watched), before[0])
    made.most()  # refuses before the first row is asked for
    return made


def words_of(sides: Sides, final: Tensor, watched: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """From last residuals [row, d_model]: log p of the watched tokens [row, watched], the likeliest token [row], and its p [row]."""
    head = head_of(sides.run.loaded)
    what = following(sides.run.loaded, sides.tokens, [sides.position])
    log_ps, tops, shares = [], [], []
    for some in final.split(WORD_ROWS):
        scores = allowed_scores(head(some[:, None])[:, 0].float(), what * len(some))
        total = scores.logsumexp(-1)
        best, top = scores.max(-1)
        log_ps.append((scores[:, list(watched)] - total[:, None]).cpu().numpy())
        tops.append(top.cpu().numpy())
        shares.append((best - total).exp().cpu().numpy())
    return np.concatenate(log_ps), np.concatenate(tops), np.concatenate(shares)


def changed(cells: Sequence[tuple[int, Part]], given: Tensor, x: Tensor) -> Tensor:
    """x [row, ...] with the part of some rows as it is given."""
    x = x.clone()
    for row, part in cells:
        if part.kind == "head":
            x[row, part.at] = given[part.at]
        elif part.kind == "mlp":
            x[row] = given
        else:
            x[row, part.at] = given[part.at]
    return x
