"""The numbers of GGUF files: read by the gguf package's reader, unpacked by its formulas, one tensor at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...errors import CheckpointError
from ...extras import lacking
from ..family import shown
from ..files import Stored
from .header import ARRAY, Header

try:
    from gguf import GGUFReader, quants
    from gguf.constants import GGMLQuantizationType, GGUFValueType
except ModuleNotFoundError as error:
    raise CheckpointError(lacking("A GGUF file", "gguf", "gguf")) from error

Change = Callable[[Tensor], Tensor]  # of a tensor's layout: from llama.cpp's to that of the published family


class Reader(GGUFReader):
    """The package's reader, for a header that was checked.

    It makes two arrays of every entry of a list, which for a vocabulary takes seconds and hundreds of MB. The lists were read when the
    header was checked, so that here they are passed over.
    """

    def __init__(self, header: Header):
        self._list_ends = header.list_ends
        super().__init__(header.path)

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[GGUFValueType]]:
        if int(raw_type) == ARRAY:
            return self._list_ends[orig_offs] - orig_offs, [], [], [GGUFValueType.ARRAY]
        return super()._get_field_parts(orig_offs, raw_type)


def unpacked(kind: GGMLQuantizationType) -> bool:
    """Whether the package makes plain numbers of a type."""
    plain = (GGMLQuantizationType.F32, GGMLQuantizationType.F16)
    return kind in plain or hasattr(getattr(quants, kind.name, None), "dequantize_blocks")


class Packed:
    """The tensors of GGUF files by the names that the published family gives them, unpacked when one is read."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[str, Any, Change | None]] = {}

    def add(self, name: str, file: str, tensor: Any, change: Change | None) -> Stored:
        """`tensor` of the package's reader, under a name. Raises CheckpointError for a type that the package does not unpack."""
        kind = tensor.tensor_type
        if not unpacked(kind):
            known = ", ".join(each.name for each in GGMLQuantizationType if unpacked(each))
            raise CheckpointError(
                f"{file}: the tensor {shown(tensor.name)} has the type {kind.name}, which is not unpacked here. Unpacked are {known}. "
                "Choose a file of the model in one of them."
            )
        self.parts[name] = (file, tensor, change)
        shape = tuple(int(d) for d in reversed(tensor.shape.tolist()))
        if change is not None:
            try:
                shape = tuple(change(torch.empty(shape, device="meta")).shape)
            except (RuntimeError, IndexError) as error:
                raise CheckpointError(
                    f"{file}: the tensor {shown(tensor.name)} of {' × '.join(map(str, shape))} numbers does not divide into the heads that the "
                    "metadata state."
                ) from error
        return Stored(name, file, shape, "F32", self)

    def get_tensor(self, name: str) -> Tensor:
        """float32, in the family's layout."""
        _, tensor, change = self.parts[name]
        numbers = quants.dequantize(np.asarray(tensor.data), tensor.tensor_type)
        shape = tuple(int(d) for d in reversed(tensor.shape.tolist()))
        # A copy where the package hands out the bytes of the file themselves, which cannot be written to.
        own = numbers if numbers.flags.writeable and numbers.flags.owndata else numbers.copy()
        value = torch.from_numpy(own.astype(np.float32, copy=False)).reshape(shape)
        return value if change is None else change(value).contiguous()


def readers(headers: Iterable[Header]) -> list[Reader]:
    """The package's reader of each file. Raises CheckpointError where it finds fault with what passed our own check."""
    opened = []
    for header in headers:
        try:
            opened.append(Reader(header))
        except (ValueError, KeyError, IndexError, OverflowError, OSError) as error:
            raise CheckpointError(
                f"{header.name} cannot be read by the gguf package ({error}). Download it again."
            ) from error
    return opened
