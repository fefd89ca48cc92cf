"""How much memory a device has left, and the refusal of what would not fit."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from .errors import TooLarge

MiB = 1 << 20


def free_bytes(device: torch.device) -> int:
    """Bytes that a run on this device may still take: the card's free memory, or what the system and its container leave."""
    if device.type == "cuda":
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + reserved
    return min(_system_free(), _container_free())


def admit(needed: int, free: int, what: str) -> None:
    """Raise TooLarge, with both numbers, unless `needed` bytes fit into `free`. `what` starts the sentence."""
    if needed > free:
        raise TooLarge(
            f"{what} would need {needed / MiB:,.0f} MiB, and {max(free, 0) / MiB:,.0f} MiB are free. "
            "Try a shorter text, fewer texts at once, or a smaller model."
        )


def _system_free() -> int:
    try:  # Linux counts what caches would give back, which is what matters here
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    if "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return 4 << 30  # nothing known: assume a small laptop


def _container_free() -> int:
    """What the control group still allows: a hosted demo often has far less than its machine."""
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            return int(Path(limit).read_text()) - int(Path(used).read_text())
        except (OSError, ValueError):  # absent, or "max"
            continue
    return 1 << 62
