"""Free device memory, and rejection of requests that would not fit."""

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
SMALL = 16 * MiB  # smaller requests are not checked against free memory
SHORTER = "Try a shorter text, fewer texts at once, or a smaller model."

CGROUP, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# Files of a control group, version 2 and 1: limit, usage, and the line of memory.stat with the file cache, which the kernel
# drops as soon as a process needs memory.
CGROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
UNITS = {"bytes": 1, "B": 1} | {f"{k}iB": 1 << 10 * i for i, k in enumerate("KMGTP", 1)}
UNITS |= {f"{k}B": 1000**i for i, k in enumerate("KMGTP", 1)}
REQUESTED = re.compile(r"allocate:? ([\d.]+) ?(bytes|[KMGTP]i?B|B)\b")  # in allocators' messages
OUT_OF_MEMORY = re.compile(r"out of memory|not enough memory|can't allocate memory|DefaultCPUAllocator", re.IGNORECASE)


def free_bytes(device: torch.device) -> int:
    """Bytes that a run on this device may allocate: the GPU's free memory, or that of the system and its container."""
    if device.type == "cuda":
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + reserved
    return min(_system_free(), container_free())


def admit(needed: int, free: int, what: str, advice: str = SHORTER) -> None:
    """Raise TooLarge, with both numbers, if `needed` exceeds `free`. `what` starts the message, `advice` ends it."""
    if needed > free:
        raise TooLarge(f"{what} would need {_mib(needed)}, and {_mib(free)} are free. {advice}")


def admit_large(needed: int, device: torch.device, what: str, advice: str = SHORTER) -> None:
    """admit() for requests that are often small: up to SMALL bytes the free memory is not read."""
    if needed > SMALL:
        admit(needed, free_bytes(device), what, advice)


@contextmanager
def guarded(device: torch.device, what: str, advice: str = SHORTER) -> Iterator[None]:
    """Turn an allocator's error into TooLarge, with the requested and the free bytes.

    Predictions do not cover scratch space of kernels, or memory that other programs allocate in the meantime.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        traceback.clear_frames(error.__traceback__)  # the frames hold the tensors that filled the memory
        request = REQUESTED.search(str(error))
        needed = f"{_mib(int(float(request[1]) * UNITS[request[2]]))} more" if request else "more memory"
        raise TooLarge(f"{what} needed {needed}, and {_mib(free_bytes(device))} are free. {advice}") from None


def is_out_of_memory(error: BaseException) -> bool:
    """True for out-of-memory errors of Python, NumPy or PyTorch on any device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and OUT_OF_MEMORY.search(str(error)) is not None


def container_free(root: Path = CGROUP, own: Path = OWN_CGROUP) -> int:
    """Bytes that the control groups allow: a hosted demo often has far less than its machine.

    `root` is the mount point of control groups, and `own` the list of those of this process. Cached files that the kernel can drop
    (inactive_file) do not count as used: after a download there are gigabytes of them.
    """
    free = 1 << 62
    for folder in _control_groups(root, own):
        for limit, used, cache in CGROUP_FILES:
            try:
                allowed, taken = (int((folder / name).read_text(encoding="utf-8")) for name in (limit, used))
            except (OSError, ValueError):  # absent, or "max"
                continue
            free = min(free, allowed - max(0, taken - _stat(folder, cache)))
    return free


def _control_groups(root: Path, own: Path) -> list[Path]:
    """The mounted root and every group of this process below it, of both versions."""
    folders = [root, root / "memory"]
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return folders
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder = root / "memory" if controllers else root
        for part in Path(path).parts[1:]:
            folder = folder / part
            folders.append(folder)
    return folders


def _stat(folder: Path, name: str) -> int:
    try:
        lines = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), 0)


def _system_free() -> int:
    try:  # includes caches that Linux can drop
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
