"""LiveBytes: the bytes of tensors alive at each point of a torch program, on real, fake or meta tensors."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Counts every storage from its creation until it is freed: `live` now, `peak` at most, `peak_op` the operation of the peak.

    It agrees with PyTorch's CPU allocator except for the scratch space inside kernels. Use torch.no_grad(), not inference_mode(),
    under which compound operations are not decomposed, so that their intermediate tensors are missed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self.peak_op = ""
        self._seen: dict[int, int] = {}

    def track(self, *values: Any) -> None:
        """Count existing tensors, such as weights and inputs."""
        for value in tree_leaves(values):
            if isinstance(value, torch.Tensor):
                self._add(value, "given")

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for value in tree_leaves(out):
            if isinstance(value, torch.Tensor):
                self._add(value, str(func))
        return out

    def _add(self, tensor: torch.Tensor, op: str) -> None:
        storage = tensor.untyped_storage()
        address, n_bytes = storage._cdata, storage.nbytes()
        if address in self._seen:
            return
        self._seen[address] = n_bytes
        self.live += n_bytes
        if self.live > self.peak:
            self.peak, self.peak_op = self.live, op
        weakref.finalize(storage, self._free, address)

    def _free(self, address: int) -> None:
        self.live -= self._seen.pop(address, 0)
