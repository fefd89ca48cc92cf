"""Tensors of GGUF files, read and unpacked by the gguf package, one at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...errors import CheckpointError
from ...extras import lacking
from ..family import shown
from ..files import Stored
from .architectures import Change
from .header import ARRAY, Header

try:
    from gguf import GGUFReader, quants
    from gguf.constants import GGMLQuantizationType, GGUFValueType
except ModuleNotFoundError as error:
    raise CheckpointError(lacking("A GGUF file", "gguf", "gguf")) from error


class Reader(GGUFReader):
    """The package's reader, for a validated header.

    It skips lists, which were read with the header: the package creates two arrays per entry, which takes seconds and hundreds of MB
    for a vocabulary.
    """

    def __init__(self, header: Header):
        self._list_ends = header.list_ends
        super().__init__(header.path)

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[GGUFValueType]]:
        if int(raw_type) == ARRAY:
            return self._list_ends[orig_offs] - orig_offs, [], [], [GGUFValueType.ARRAY]
        return super()._get_field_parts(orig_offs, raw_type)


def unpacked(kind: GGMLQuantizationType) -> bool:
    """True if the package can unpack a type."""
    plain = (GGMLQuantizationType.F32, GGMLQuantizationType.F16)
    return kind in plain or hasattr(getattr(quants, kind.name, None), "dequantize_blocks")


class Packed:
    """Tensors of GGUF files under the names of the published family, unpacked when they are read."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[str, Any, Change | None]] = {}

    def add(self, name: str, file: str, tensor: Any, change: Change | None) -> Stored:
        """Register a tensor of the package's reader. Raises CheckpointError for a type that the package cannot unpack."""
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
        # Copy if the package returns a view of the file, which is read-only.
        own = numbers if numbers.flags.writeable and numbers.flags.owndata else numbers.copy()
        value = torch.from_numpy(own.astype(np.float32, copy=False)).reshape(shape)
        return value if change is None else change(value).contiguous()


def readers(headers: Iterable[Header]) -> list[Reader]:
    """The package's reader of each file. Raises CheckpointError if the package rejects a file that passed our checks."""
    opened = []
    for header in headers:
        try:
            opened.append(Reader(header))
        except (ValueError, KeyError, IndexError, OverflowError, OSError) as error:
            raise CheckpointError(
                f"{header.name} cannot be read by the gguf package ({error}). Download it again."
            ) from error
    return opened
