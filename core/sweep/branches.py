"""Rows that share the first layers of a run: each row branches off at its layer, and earlier layers are not recomputed."""

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
