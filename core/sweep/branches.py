"""Rows that branch off from a run at one of its layers: what is before that layer is the run's, and is not computed again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from ..model.hooks import Hook
from ..model.transformer import Block, Stack, StackInputs
from ..run.forward_pass import Pass
from ..run.prompt import model_inputs

HELD_BYTES = 8 << 20  # of the streams of one run; of a longer text each row is a whole pass

Begin = tuple[int, int]  # number of the stack, layer: the first that may do something else than in the run


@dataclass(frozen=True, eq=False)
class Trunk:
    """A run of one text, and what each of its layers read."""

    forward: Pass
    final: Tensor  # [1, pos, d_model]: the last residual
    streams: tuple[
        tuple[Tensor, ...], ...
    ]  # of each stack, of each layer [1, pos, d_model]; () where they are not kept
    memory: Tensor | None  # [1, pos, d_model]: what the decoder reads of the encoder

    def grow(self, begins: Sequence[Begin], hooks: Mapping[str, Hook], position: int | None = None) -> Tensor:
        """The last residual [row, pos, d_model] of rows that branch off at `begins` [row], which is in the order of the pass;
        [row, d_model] of one position where one is asked for.

        The hooks see the rows that have branched off, in that order; they are of attentions alone.
        """
        forward, n_rows = self.forward, len(begins)
        model, device = forward.loaded.model, forward.loaded.device
        ids, target_ids, source_keep, target_keep, _ = model_inputs(forward.prompt, device)
        read_by = ((ids, source_keep), (target_ids, target_keep))  # of each stack; one alone reads the source
        memory = memory_keep = None
        x = self.final[:0]
        with forward.within(hooks):
            for at, (stack, streams) in enumerate(zip(model.stacks, self.streams, strict=True)):
                its_ids, keep = read_by[at]
                assert its_ids is not None
                if at:
                    assert self.memory is not None
                    memory, memory_keep = torch.cat([x, self.memory.expand(n_rows - len(x), -1, -1)]), source_keep
                x, inputs = streams[0][:0], None
                for layer, stream in enumerate(streams):
                    rows = bisect_right(begins, (at, layer))
                    if rows > len(x):
                        x = torch.cat([x, stream.expand(rows - len(x), -1, -1)])
                        read = None if memory is None else memory[:rows]
                        beside = _times(keep, rows), read, _times(memory_keep, rows)
                        inputs = stack.prepare_inputs(its_ids.expand(rows, -1), *beside)
                    if inputs is not None and stack is model.stacks[-1] and layer == len(streams) - 1:
                        x = self._last(stack, x, inputs, position)
                    elif inputs is not None:
                        x = stack.run_layer(layer, x, inputs)
                if inputs is not None:
                    x = stack.hook_final(stack.norm(x))
        return (
            x if position is None else x[:, min(position, x.shape[1] - 1)]
        )  # of one position alone it is the only one

    def _last(self, stack: Stack, x: Tensor, inputs: StackInputs, position: int | None) -> Tensor:
        """The stream after the last layer, of the position that is asked for alone where nothing else is looked at after its
        attention: its MLP is two thirds of the layer. An edit there may count positions, so it gets all of them."""
        at, name = len(stack.blocks) - 1, self.forward.loaded.config.stacks[-1][0]
        block, here = cast(Block, stack.blocks[at]), (f"{name}.blocks.{at}.", f"{name}.hook_final")
        behind = any(point.startswith(here) and "attn.hook_" not in point for point in self.forward.edits)
        if position is None or block.parallel or behind:
            return stack.run_layer(at, x, inputs)
        return block.mlp_sublayer(
            block.attention_sublayers(x, stack.layer_inputs(at, inputs))[:, position : position + 1]
        )


def trunk_of(forward: Pass, looks: Mapping[str, Hook]) -> Trunk:
    """A pass over one text, as it is run now, with other callers' looks at it. Hooks from outside that change something may have a
    memory of their own, so every row then runs them all; those that only look, as an engine's at how far a run is, change no row.
    """
    config = forward.loaded.config
    lengths = (forward.prompt.source_len, forward.prompt.target_len)  # a stack alone reads the source
    tokens = sum(n * length for (_, n), length in zip(config.stacks, lengths, strict=False))
    held = tokens * config.d_model * forward.loaded.dtype.itemsize
    if forward.edited_outside or held > HELD_BYTES:
        return Trunk(forward, forward.run(looks), (), None)
    seen: dict[str, Tensor] = {}
    layers = {
        name: [f"{name}.embed.hook_embed", *(f"{name}.blocks.{i}.hook_resid_post" for i in range(n - 1))]
        for name, n in config.stacks
    }
    memory = "encoder.hook_final" if len(layers) > 1 else None
    points = [point for found in layers.values() for point in found] + ([memory] if memory else [])
    final = forward.run({point: lambda x, point=point: seen.__setitem__(point, x) for point in points}, looks)
    streams = tuple(tuple(seen[point] for point in found) for found in layers.values())
    return Trunk(forward, final, streams, seen[memory] if memory else None)


def _times(one: Tensor | None, rows: int) -> Tensor | None:
    """[1, pos] -> [row, pos]"""
    return None if one is None else one.expand(rows, -1)
