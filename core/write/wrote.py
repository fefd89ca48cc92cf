"""wrote() and lens_columns(): what the words of a text came from, the heads that add most to each and what each layer would say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..checkpoints import Loaded
from ..model.next_tokens import allowed_only
from ..model.rules import row_blocks
from ..model.text import from_ids
from ..read.directions import asked, has_looks
from ..read.looks import Looked, each_look
from ..run.forward_pass import prepare
from ..run.predictions import head_of
from ..run.prompt import Prompt
from ..trace import trace_tokens
from .writing import DETAILED, LOGIT_BYTES, check_path, check_writes

HEADS = 6  # of a word, those that add most to it
LOOKS = 6  # of a word, the single looks that add most to it


@dataclass(frozen=True)
class Look:
    """One head's look at one token before a word is written. `adds` is what it adds to the word's logit, directly."""

    layer: int
    head: int
    key: int
    weight: float
    adds: float


@dataclass(frozen=True)
class HeadWrote:
    """One head, what all its looks together add to a word's logit, directly, and the look that adds most of it."""

    adds: float
    most: Look


@dataclass(frozen=True)
class Wrote:
    """The origin of the token after `position`: heads and single looks that add most to its logit, the most first."""

    position: int
    token: int
    heads: tuple[HeadWrote, ...]
    looks: tuple[Look, ...]


@dataclass(frozen=True)
class LensColumn:
    """The words of each layer after `position`, from the embedding on: its likeliest token; and the token that came."""

    position: int
    token: int  # that came
    ids: tuple[int, ...]
    probs: tuple[float, ...]
    own: tuple[float, ...]  # probability of the token that came
    ranks: tuple[int, ...]  # its rank


def wrote(loaded: Loaded, prompt: Prompt, path: Sequence[int]) -> tuple[Wrote, ...]:
    """For each token of the path, and the last of the prompt before it, what wrote it: of one pass over the whole text.

    Only what a head adds directly is counted (Elhage et al. 2021); what it tells later layers is in their numbers. Empty for a
    model whose logits are no sum over looks. Raises GenerationError, and TooLarge.
    """
    check_writes(loaded)
    ids, n_prompt = _whole(loaded, prompt, path)
    rows = range(max(0, min(n_prompt - 1, len(ids) - 1 - DETAILED)), len(ids) - 1)
    if not rows:
        return ()
    read = (from_ids(None, ids[:-1]),)
    run = trace_tokens(loaded, *((read, None) if prompt.targets is None else (prompt.sources, read)), ()).text(0)
    if not has_looks(run):
        return ()

    def best(found: Looked) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """[row, head] of the sums, the keys that add most, their weights, and what these add."""
        adds, keys = found.additions.max(-1)
        weights = found.weights.gather(-1, keys[..., None])[..., 0]
        return found.additions.sum(-1).T, keys.T, weights.T, adds.T

    wanted = asked(run, list(rows), [ids[position + 1] for position in rows], None)
    layers = each_look(wanted, best)
    sums, keys, weights, adds = (
        torch.stack(part, 1).flatten(1).cpu() for part in zip(*layers, strict=True)
    )  # [row, layer · head]
    n_heads = loaded.config.n_heads

    def look(row: int, at: int) -> Look:
        return Look(at // n_heads, at % n_heads, int(keys[row, at]), weights[row, at].item(), adds[row, at].item())

    def top(of: Tensor, k: int) -> list[int]:
        return of.topk(min(k, len(of))).indices.tolist()

    return tuple(
        Wrote(
            position,
            ids[position + 1],
            tuple(HeadWrote(sums[row, at].item(), look(row, at)) for at in top(sums[row], HEADS)),
            tuple(look(row, at) for at in top(adds[row], LOOKS)),
        )
        for row, position in enumerate(rows)
    )


def lens_columns(
    loaded: Loaded, prompt: Prompt, path: Sequence[int], positions: Sequence[int]
) -> tuple[LensColumn, ...]:
    """lens() after many positions of one text in one pass, which rise: the likeliest token of each layer, and the rank of the one
    that came.

    Raises IndexError for a position after which nothing came, and GenerationError.
    """
    check_writes(loaded)
    ids, n_prompt = _whole(loaded, prompt, path)
    if bad := [position for position in positions if not 0 <= position < len(ids) - 1]:
        raise IndexError(f"position {bad[0]} of {len(ids) - 1} that are followed by a token")
    positions = sorted(set(positions))
    if not positions:
        return ()
    read = (from_ids(None, ids[:-1]),)
    whole = Prompt(read) if prompt.targets is None else Prompt(prompt.sources, read)
    n, stack, head = loaded.config.n_decoder_layers, loaded.model.stacks[-1], head_of(loaded)
    points = ["decoder.blocks.0.hook_resid_pre", *(f"decoder.blocks.{i}.hook_resid_post" for i in range(n))]
    at = torch.tensor(positions, device=loaded.device)
    streams = prepare(loaded, whole, ()).moments(points, lambda _, x: x[0, at])
    came = torch.tensor([ids[position + 1] for position in positions], device=loaded.device)[:, None]
    following = loaded.next_tokens.following(ids[:-1], [position + 1 for position in positions], n_prompt)
    parts: list[Tensor] = []  # of each point [row, 4]
    with torch.inference_mode():
        for point in points:
            found = []
            for rows in row_blocks(len(positions), loaded.config.vocab_size * 4, LOGIT_BYTES):
                logits = head(stack.norm(streams[point][rows])[None])[0].float()
                logits = allowed_only(logits, following[rows])
                probs = logits.softmax(-1)
                best, words = probs.max(-1)
                own = logits.gather(-1, came[rows])
                ranks = 1 + (logits > own).sum(-1)
                among = probs.gather(-1, came[rows])[:, 0]
                found.append(torch.stack([x.cpu().double() for x in (words, best, among, ranks)], 1))
            parts.append(torch.cat(found))
    numbers = torch.stack(parts, 1)  # [row, point, 4]
    columns = []
    for row, position in enumerate(positions):
        words, best, own, ranks = numbers[row].T.tolist()
        columns.append(
            LensColumn(
                position, ids[position + 1], tuple(map(int, words)), tuple(best), tuple(own), tuple(map(int, ranks))
            )
        )
    return tuple(columns)


def _whole(loaded: Loaded, prompt: Prompt, path: Sequence[int]) -> tuple[list[int], int]:
    """All tokens, and how many of them were there before the path. Raises GenerationError for a path that cannot be read."""
    own = prompt.last_read[0].ids
    return [*own, *check_path(loaded, prompt, path)], len(own)
