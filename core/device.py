"""Selects the device and dtype: the configured ones, or the best available.

HEADLIGHT_DEVICE and HEADLIGHT_DTYPE are read only here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .errors import ConfigError

DEVICE, DTYPE = "HEADLIGHT_DEVICE", "HEADLIGHT_DTYPE"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
GiB = 1 << 30


@dataclass(frozen=True)
class Budget:
    """Bytes that one process may keep between requests: weights of models, and traces of runs."""

    models: int
    traces: int


def pick_device(environment: Mapping[str, str] = os.environ) -> torch.device:
    """The device in HEADLIGHT_DEVICE, such as cpu, cuda, cuda:1 or mps. The default, auto, is the first available of cuda, mps, cpu.

    Raises ConfigError for a device that this machine does not have.
    """
    wanted = environment.get(DEVICE, "").strip().lower() or "auto"
    available = devices()
    if wanted == "auto":
        return torch.device(next(name for name in ("cuda", "mps", "cpu") if name in available))
    if wanted not in available:
        raise ConfigError(f"{DEVICE} is {wanted!r}, but this machine offers {_either(['auto', *available])}.")
    return torch.device(wanted)


def devices() -> list[str]:
    """The names of all devices of this machine that PyTorch can use."""
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [
        *(["cuda"] if cards else []),
        *(f"cuda:{i}" for i in range(cards)),
        *(["mps"] if torch.backends.mps.is_available() else []),
        "cpu",
    ]


def pick_dtype(device: torch.device, environment: Mapping[str, str] = os.environ) -> torch.dtype:
    """The format in HEADLIGHT_DTYPE. Where it says auto or nothing: bfloat16 on a card that multiplies it itself, else float32.

    The weights of RMS norms are float32 in any case. Raises ConfigError for other formats, and for bfloat16 where the card has none.
    """
    wanted = environment.get(DTYPE, "").strip().lower() or "auto"
    if wanted == "auto":
        return torch.bfloat16 if device.type == "cuda" and multiplies_bfloat16(device) else torch.float32
    if wanted not in DTYPES:
        raise ConfigError(f"{DTYPE} is {wanted!r}, but it must be {_either(['auto', *DTYPES])}.")
    if wanted == "bfloat16" and device.type == "cuda" and not multiplies_bfloat16(device):
        raise ConfigError(f"{DTYPE} is 'bfloat16', which this card cannot multiply. Choose auto, float32 or float16.")
    return DTYPES[wanted]


def dtype_name(dtype: object) -> str:
    """torch.float32 -> float32; names are unchanged."""
    return str(dtype).removeprefix("torch.")


def multiplies_bfloat16(device: torch.device) -> bool:
    """True if the hardware supports bfloat16. Emulated bfloat16 is slower than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    can = torch.cpu.get_capabilities()
    return device.type == "cpu" and any(bool(can.get(name)) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def finest_dtype(device: torch.device) -> torch.dtype:
    """float64, or float32 on Apple's GPUs, which lack it."""
    return torch.float32 if device.type == "mps" else torch.float64


def default_budget(device: torch.device) -> Budget:
    """Shares of the device's memory: half for models and a quarter for traces on a GPU, else an eighth each.

    Other programs use the memory of a machine too. The rest is for forward passes.
    """
    total = total_bytes(device)
    return Budget(total // 2, total // 4) if device.type == "cuda" else Budget(total // 8, total // 8)


def total_bytes(device: torch.device) -> int:
    """Memory of the GPU, or of the machine within the limits of its container; 4 GiB if unknown."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    if device.type == "mps":
        return torch.mps.recommended_max_memory()
    limits = [4 * GiB]
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):  # Windows has none
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(file).read_text(encoding="utf-8")))
        except (OSError, ValueError):  # absent, or "max"
            continue
    return min(limits)


def _either(names: list[str]) -> str:
    return ", ".join(names[:-1]) + f" or {names[-1]}"


def array(values: Tensor) -> np.ndarray:
    """A tensor as float32 on the CPU, without a copy if it is both already."""
    return values.float().cpu().numpy()
