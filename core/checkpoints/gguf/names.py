"""Maps llama.cpp's tensor names to those of a published family, with the gguf package's table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gguf.constants import MODEL_ARCH_NAMES
from gguf.tensor_mapping import get_tensor_name_map

from ..family import Family, Row, Source

LAYER = re.compile(r"\bblk\.\d+\.")


def published_modules(arch: str, family: Family, n_layers: int) -> dict[str, str]:
    """Module names of GGUF ("blk.0.attn_q") -> the family's ("model.layers.0.self_attn.q_proj").

    The package's table has the names of all families for each tensor of an architecture; the family's rows select one.
    """
    table = get_tensor_name_map(next(each for each, name in MODEL_ARCH_NAMES.items() if name == arch), n_layers)
    modules: dict[str, str] = {}
    for row, source in family.weights.items():
        is_tensor = row.endswith((".weight", ".bias"))  # other rows name a module
        for name in _names(source, n_layers):
            module = name.rpartition(".")[0] if is_tensor and name.endswith((".weight", ".bias")) else name
            candidates = (f"{family.prefix}{module}", module)
            published = next((each for each in candidates if table.get_name(each) is not None), None)
            if published is not None:
                modules.setdefault(str(table.get_name(published)), published)
    return modules


def _names(source: Row, n_layers: int) -> Iterator[str]:
    """All names of a row, for each alternative, stack and layer."""
    module = source.module if isinstance(source, Source) else source
    for template in (module,) if isinstance(module, str) else module:
        for stack in ("encoder", "decoder") if "{stack}" in template else ("",):
            for layer in range(n_layers if "{i}" in template else 1):
                yield template.format(i=layer, stack=stack)


def without_layer(name: str) -> str:
    """ "blk.3.attn_q.weight" -> "blk.attn_q.weight"."""
    return LAYER.sub("blk.", name, count=1)
