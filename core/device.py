"""Devices, and the memory that is free on them; requests that would not fit are refused."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .errors import ConfigError, TooLarge

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


def highest_precision(device: torch.device) -> torch.dtype:
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


def check_fits(needed: int, free: int, what: str, advice: str = SHORTER) -> None:
    """Raise TooLarge, with both numbers, if `needed` exceeds `free`. `what` starts the message, `advice` ends it."""
    if needed > free:
        raise TooLarge(f"{what} would need {_mib(needed)}, and {_mib(free)} are free. {advice}")


def check_fits_or_retry(needed: int, device: torch.device, what: str, advice: str = SHORTER) -> None:
    """check_fits() for requests that are often small: up to SMALL bytes the free memory is not read."""
    if needed > SMALL:
        check_fits(needed, free_bytes(device), what, advice)


@contextmanager
def oom_guard(device: torch.device, what: str, advice: str = SHORTER) -> Iterator[None]:
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
