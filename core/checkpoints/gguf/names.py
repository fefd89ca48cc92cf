"""Tensor names: from llama.cpp's to those of a published family, by the table of the gguf package."""

from __future__ import annotations

import re

from gguf.constants import MODEL_ARCH, MODEL_ARCH_NAMES
from gguf.tensor_mapping import get_tensor_name_map

from ..family import Family, Source

LAYER = re.compile(r"\bblk\.\d+\.")


def their_modules(arch: str, family: Family, n_layers: int) -> dict[str, str]:
    """Module names of GGUF ("blk.0.attn_q") -> the family's ("model.layers.0.self_attn.q_proj").

    The package's table has the names of all families for each tensor of an architecture; the family's own rows say which is meant.
    """
    table = get_tensor_name_map(_arch(arch), n_layers)
    found: dict[str, str] = {}
    for row, source in family.weights.items():
        source = source if isinstance(source, Source) else Source(source)
        modules = (source.module,) if isinstance(source.module, str) else source.module
        whole = row.endswith((".weight", ".bias"))  # such a row names a tensor, others a module
        stacks = ("encoder", "decoder") if any("{stack}" in module for module in modules) else ("",)
        for module in modules:
            for stack in stacks:
                for layer in range(n_layers if "{i}" in module else 1):
                    name = module.format(i=layer, stack=stack)
                    name = name.rpartition(".")[0] if whole and name.endswith((".weight", ".bias")) else name
                    for theirs in (f"{family.prefix}{name}", name):
                        if (ours := table.get_name(theirs)) is not None:
                            found.setdefault(ours, theirs)
                            break
    return found


def without_layer(name: str) -> str:
    """ "blk.3.attn_q.weight" -> "blk.attn_q.weight"."""
    return LAYER.sub("blk.", name, count=1)


def _arch(name: str) -> MODEL_ARCH:
    return next(arch for arch, named in MODEL_ARCH_NAMES.items() if named == name)
