"""wrote() and lens_columns(): direct logit attribution of the tokens of a text, and the logit lens at each of them."""

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
from ..run.predictions import head_of
from ..run.prompt import Prompt
from ..trace import trace_tokens
from .writing import DETAILED, LOGIT_BYTES, check_writes, layer_streams, whole_path

HEADS = 6  # of each token: the heads that add most to its logit
LOOKS = 6  # of each token: the attention edges that add most to its logit


@dataclass(frozen=True)
class Look:
    """An attention edge of one head. `adds` is its direct contribution to the logit of the next token."""

    layer: int
    head: int
    key: int
    weight: float
    adds: float


@dataclass(frozen=True)
class HeadWrote:
    """One head: the direct contribution of all its edges to a logit, and the edge that contributes most."""

    adds: float
    most: Look


@dataclass(frozen=True)
class Wrote:
    """Attribution of the token after `position`: the heads and edges that add most to its logit, largest first."""

    position: int
    token: int
    heads: tuple[HeadWrote, ...]
    looks: tuple[Look, ...]


@dataclass(frozen=True)
class LensColumn:
    """Logit lens after `position`, from the embedding on: the most likely token of each layer, and the actual next token."""

    position: int
    token: int  # the actual next token
    ids: tuple[int, ...]
    probs: tuple[float, ...]
    own: tuple[float, ...]  # probability of the actual token
    ranks: tuple[int, ...]  # rank of the actual token


def wrote(loaded: Loaded, prompt: Prompt, path: Sequence[int]) -> tuple[Wrote, ...]:
    """Attribute each token of the path, and the prompt's last one before it, in one pass over the whole text.

    Only direct contributions are counted (Elhage et al. 2021); effects through later layers belong to those. Empty for a model whose logits
    are not a sum over edges. Raises GenerationError, and TooLarge.
    """
    check_writes(loaded)
    ids, n_prompt = whole_path(loaded, prompt, path)
    rows = range(max(0, min(n_prompt - 1, len(ids) - 1 - DETAILED)), len(ids) - 1)
    if not rows:
        return ()
    read = (from_ids(None, ids[:-1]),)
    run = trace_tokens(loaded, *((read, None) if prompt.targets is None else (prompt.sources, read)), ()).text(0)
    if not has_looks(run):
        return ()

    def best(edges: Looked) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """[row, head] of the sums, the keys that add most, their weights, and their contributions."""
        adds, keys = edges.additions.max(-1)
        weights = edges.weights.gather(-1, keys[..., None])[..., 0]
        return edges.additions.sum(-1).T, keys.T, weights.T, adds.T

    layers = each_look(asked(run, list(rows), [ids[position + 1] for position in rows], None), best)
    # [row, layer · head]
    sums, keys, weights, adds = (torch.stack(part, 1).flatten(1).cpu() for part in zip(*layers, strict=True))
    n_heads = loaded.config.n_heads

    def look(row: int, at: int) -> Look:
        return Look(at // n_heads, at % n_heads, int(keys[row, at]), weights[row, at].item(), adds[row, at].item())

    def top(contributions: Tensor, k: int) -> list[int]:
        return contributions.topk(min(k, len(contributions))).indices.tolist()

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
    """lens() at many ascending positions of one text in one pass: the most likely token of each layer, and the rank of the actual one.

    Raises IndexError for a position without a next token, and GenerationError.
    """
    check_writes(loaded)
    ids, n_prompt = whole_path(loaded, prompt, path)
    if bad := [position for position in positions if not 0 <= position < len(ids) - 1]:
        raise IndexError(f"position {bad[0]} of {len(ids) - 1} that are followed by a token")
    positions = sorted(set(positions))
    if not positions:
        return ()
    stack, head = loaded.model.stacks[-1], head_of(loaded)
    actual = torch.tensor([ids[position + 1] for position in positions], device=loaded.device)[:, None]
    may_follow = loaded.next_tokens.following(ids[:-1], [position + 1 for position in positions], n_prompt)
    layers: list[Tensor] = []  # [row, 4]
    for stream in layer_streams(loaded, prompt, ids[:-1], positions):
        blocks = []
        with torch.inference_mode():
            for rows in row_blocks(len(positions), loaded.config.vocab_size * 4, LOGIT_BYTES):
                logits = allowed_only(head(stack.norm(stream[rows])[None])[0].float(), may_follow[rows])
                probs = logits.softmax(-1)
                best, tokens = probs.max(-1)
                ranks = 1 + (logits > logits.gather(-1, actual[rows])).sum(-1)
                own = probs.gather(-1, actual[rows])[:, 0]
                blocks.append(torch.stack([x.cpu().double() for x in (tokens, best, own, ranks)], 1))
        layers.append(torch.cat(blocks))
    columns = []
    for position, numbers in zip(positions, torch.stack(layers, 1), strict=True):
        tokens, best, own, ranks = numbers.T.tolist()
        words, ranks = tuple(map(int, tokens)), tuple(map(int, ranks))
        columns.append(LensColumn(position, ids[position + 1], words, tuple(best), tuple(own), ranks))
    return tuple(columns)
