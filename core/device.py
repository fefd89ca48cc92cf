"""Where models run and in which format: what the operator asked for, or the best that the machine has.

HEADLIGHT_DEVICE and HEADLIGHT_DTYPE are read here and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from .errors import ConfigError

DEVICE, DTYPE = "HEADLIGHT_DEVICE", "HEADLIGHT_DTYPE"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
GiB = 1 << 30


@dataclass(frozen=True)
class Budget:
    """Bytes that one process may hold from one request to the next: weights of models, and what runs left."""

    models: int
    traces: int


def pick_device(environment: Mapping[str, str] = os.environ) -> torch.device:
    """The device in HEADLIGHT_DEVICE: cpu, cuda, cuda:1, mps. Where it says auto or nothing: cuda, then mps, then cpu.

    Raises ConfigError for a word that is no device, and for a device that is not there.
    """
    wanted = environment.get(DEVICE, "").strip().lower() or "auto"
    there = devices()
    if wanted == "auto":
        return torch.device(next(name for name in ("cuda", "mps", "cpu") if name in there))
    if wanted not in there:
        raise ConfigError(f"{DEVICE} is {wanted!r}, but this machine offers {_either(['auto', *there])}.")
    return torch.device(wanted)


def devices() -> list[str]:
    """The names of all devices of this machine that torch can use."""
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
    """torch.float32 -> float32; a name stays as it is."""
    return str(dtype).removeprefix("torch.")


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether the hardware itself does: without that, bfloat16 is slower than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    can = torch.cpu.get_capabilities()
    return device.type == "cpu" and any(bool(can.get(name)) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def finest_dtype(device: torch.device) -> torch.dtype:
    """The widest floats that the device has: float64, but float32 on Apple's."""
    return torch.float32 if device.type == "mps" else torch.float64


def default_budget(device: torch.device) -> Budget:
    """Shares of the device's memory: on a card half for models and a quarter for runs, else an eighth each.

    A card is there for this alone; the memory of a machine is everybody's. What is left is for the passes themselves.
    """
    total = total_bytes(device)
    return Budget(total // 2, total // 4) if device.type == "cuda" else Budget(total // 8, total // 8)


def total_bytes(device: torch.device) -> int:
    """The device's memory: the card's, or the machine's as far as its container allows. 4 GiB where it is unknown."""
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
