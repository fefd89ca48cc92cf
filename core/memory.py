"""How much memory a device has left, and the refusal of what would not fit."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from .errors import TooLarge

MiB = 1 << 20
SMALL = 16 * MiB  # what needs less is not worth a question to the system
SHORTER = "Try a shorter text, fewer texts at once, or a smaller model."

CGROUP, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# Files of a control group, version 2 and 1: the limit, what is used, and the line of memory.stat with the file cache that
# the kernel gives back as soon as a process needs memory.
CGROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
UNITS = {"bytes": 1, "B": 1} | {f"{k}iB": 1 << 10 * i for i, k in enumerate("KMGTP", 1)}
UNITS |= {f"{k}B": 1000**i for i, k in enumerate("KMGTP", 1)}
TRIED = re.compile(r"allocate:? ([\d.]+) ?(bytes|[KMGTP]i?B|B)\b")  # in the message of an allocator
OUT_OF_MEMORY = re.compile(r"out of memory|not enough memory|can't allocate memory|DefaultCPUAllocator", re.IGNORECASE)


def free_bytes(device: torch.device) -> int:
    """Bytes that a run on this device may still take: the card's free memory, or what the system and its container leave."""
    if device.type == "cuda":
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + reserved
    return min(_system_free(), container_free())


def admit(needed: int, free: int, what: str, advice: str = SHORTER) -> None:
    """Raise TooLarge, with both numbers, unless `needed` bytes fit into `free`. `what` starts the sentence, `advice` ends it."""
    if needed > free:
        raise TooLarge(f"{what} would need {_mib(needed)}, and {_mib(free)} are free. {advice}")


def admit_large(needed: int, device: torch.device, what: str, advice: str = SHORTER) -> None:
    """admit() for what is often small: the system is only asked about more than SMALL bytes."""
    if needed > SMALL:
        admit(needed, free_bytes(device), what, advice)


@contextmanager
def guarded(device: torch.device, what: str, advice: str = SHORTER) -> Iterator[None]:
    """Turn an allocator's error into TooLarge, with the bytes that it was asked for and those that are free.

    Predictions cover what we allocate, not scratch space inside kernels or what other programs take meanwhile.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        traceback.clear_frames(error.__traceback__)  # the frames that failed hold the tensors that filled the memory
        asked = TRIED.search(str(error))
        needed = f"{_mib(int(float(asked[1]) * UNITS[asked[2]]))} more" if asked else "more memory"
        raise TooLarge(f"{what} needed {needed}, and {_mib(free_bytes(device))} are free. {advice}") from None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocator of Python, numpy or torch, on any device, says that there is no memory left."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and OUT_OF_MEMORY.search(str(error)) is not None


def container_free(root: Path = CGROUP, own: Path = OWN_CGROUP) -> int:
    """Bytes that the control groups still allow: a hosted demo often has far less than its machine.

    `root` is where control groups are mounted; `own` says which ones this process is in. Pages of files that the kernel
    would drop (inactive_file) do not count as used: after a download there are gigabytes of them.
    """
    free = 1 << 62
    for folder in _control_groups(root, own):
        for limit, used, cache in CGROUP_FILES:
            try:
                allowed, taken = (
                    int((folder / limit).read_text(encoding="utf-8")),
                    int((folder / used).read_text(encoding="utf-8")),
                )
            except (OSError, ValueError):  # absent, or "max"
                continue
            free = min(free, allowed - max(0, taken - _stat(folder, cache)))
    return free


def _control_groups(root: Path, own: Path) -> list[Path]:
    """The mounted root and every group below it that holds this process, of both versions."""
    found = [root, root / "memory"]
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder = root / "memory" if controllers else root
        for part in Path(path).parts[1:]:
            folder = folder / part
            found.append(folder)
    return found


def _stat(folder: Path, name: str) -> int:
    try:
        lines = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), 0)


def _system_free() -> int:
    try:  # Linux counts what caches would give back, which is what matters here
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):  # Windows has none
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return 4 << 30  # nothing known: assume a small laptop


def _mib(n_bytes: int) -> str:
    return f"{max(n_bytes, 0) / MiB:,.0f} MiB"
