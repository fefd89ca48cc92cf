"""Accelerators with their memory and rates, and the roofline, which tells whether arithmetic or memory limits an operation.

Memory is in binary units, as drivers report it: a GPU sold with 24 GB has 24,564 MiB. The driver reserves a part; the rest is the total
capacity reported by PyTorch, which must hold the model and the CUDA context of the program (core.plan.place subtracts both). Rates are
the published ones of dense 16-bit tensor arithmetic with float32 accumulation. Sparse rates, twice as high, are a common mistake.
Apple's chips have no such unit: their rates are for float32.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ..memory import MiB
from .operations import Operation, ideal_bytes, total_flops

# MiB of a CUDA context with PyTorch's kernels: about 300 to 500, depending on GPU and driver. 0 for Metal, which has none in the
# memory that it offers, and for ROCm, for which no figure is known.
CONTEXT = 300


@dataclass(frozen=True)
class Device:
    name: str
    mebibytes: int  # total, as the driver reports it
    offered_mebibytes: int  # to programs
    gigabytes_per_second: int
    teraflops: float
    source: str  # of the rates
    memory_source: str
    context_mebibytes: int = CONTEXT  # of the offered memory, taken by a program without tensors

    @property
    def memory(self) -> int:
        """Bytes that a program may use."""
        return self.offered_mebibytes * MiB

    @property
    def unified(self) -> bool:
        """True if the device shares the memory of the machine."""
        return self.memory_source.startswith("unified memory")

    @property
    def kept_mebibytes(self) -> int:
        """Memory reserved by the driver."""
        return self.mebibytes - self.offered_mebibytes

    @property
    def ridge(self) -> float:
        """FLOPs per byte above which arithmetic is the limit."""
        return self.teraflops * 1000 / self.gigabytes_per_second

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {
            "ridge": self.ridge,
            "gibibytes": self.mebibytes / 1024,
            "offered": self.offered_mebibytes / 1024,
        }


def _smi(capacity: str) -> str:
    return f"memory.total of nvidia-smi; offered: the total capacity in PyTorch's out-of-memory message, {capacity}"


def _metal(share: str) -> str:
    return f"unified memory; offered: Metal's recommendedMaxWorkingSetSize, as llama.cpp logs it, {share} of all"


DEVICES: tuple[Device, ...] = (
    Device("T4", 15_360, 14_909, 320, 65.1, "float16 alone; rightnowai.co/guides/gpu-comparison/t4", _smi("14.56 GiB (14.74 with older drivers)")),
    Device("L4", 23_034, 22_558, 300, 125.3, "from its boost clock; hmc-tech.com/gpu/nvidia-l4-vs-nvidia-t4", _smi("22.03 GiB")),
    Device("A10", 23_028, 22_589, 600, 125, "sysrqmts.com", _smi("22.06 GiB, of the A10G")),
    Device("RTX 3060 12 GB", 12_288, 12_032, 360, 25, "sysrqmts.com", _smi("11.75 GiB (Kunhao-Liu/StyleGaussian#12)")),
    Device("RTX 3090", 24_576, 24_248, 936, 71, "half of its rate with float16 sums; holynerdvana.blogspot.com", _smi("23.68 GiB (wutong16/HyperDreamer#4)")),
    Device("RTX 4090", 24_564, 24_207, 1008, 165.2, "waredb.com/processor/nvidia-geforce-rtx-4090", _smi("23.64 GiB (ali-vilab/VGen#104)")),
    Device("RTX 5090", 32_607, 32_122, 1792, 209.5, "codesota.com/hardware/rtx-5090", _smi("31.37 GiB (Wan-Video/Wan2.1#465)")),
    Device("A100 40 GB", 40_960, 40_448, 1555, 312, "glennklockwood.com/garden/processors/A100", _smi("39.50 GiB (TianheWu/CoSeR#10)")),
    Device("A100 80 GB", 81_920, 81_152, 2039, 312, "SXM; glennklockwood.com/garden/processors/A100", _smi("79.25 GiB (levihsu/OOTDiffusion#235), 79.15 to 79.33 by driver")),
    Device("L40S", 46_068, 45_486, 864, 362, "stas00/ml-engineering, compute/accelerator", _smi("44.42 GiB (stepfun-ai/Step-Video-T2V#8)")),
    Device("H100 SXM", 81_559, 81_090, 3350, 989, "stas00/ml-engineering, compute/accelerator", _smi("79.19 GiB")),
    Device("H100 PCIe", 81_559, 81_090, 2000, 756, "stas00/ml-engineering, compute/accelerator", _smi("79.19 GiB, as the SXM card's")),
    Device("H200", 143_771, 143_155, 4800, 989, "SXM; stas00/ml-engineering, compute/accelerator", _smi("139.80 GiB")),
    Device("B200", 183_359, 182_630, 8000, 2250, "HGX, 1000 W; stas00/ml-engineering, compute/accelerator", _smi("178.35 GiB")),
    Device("MI300X", 196_592, 196_290, 5300, 1300, "stas00/ml-engineering, compute/accelerator", "192 GiB of ROCm's 191.98; offered: the total capacity in PyTorch's out-of-memory message, 191.69 GiB", 0),
    Device("M3 Max", 131_072, 98_304, 400, 14.2, "float32; macmegasite.com", _metal("103,079 MB, three quarters"), 0),
    Device("M4 Max", 131_072, 110_100, 546, 18.4, "float32; huggingface.js, hardware.ts", _metal("115,449 MB, 84 %"), 0),
    Device("M2 Ultra", 196_608, 147_456, 800, 27.2, "float32; huggingface.js, hardware.ts", "unified memory; offered: three quarters of it, as of the M3 Max", 0),
)  # fmt: skip


def share_of_peak(operations: Iterable[Operation], device: Device) -> float:
    """Share of a device's arithmetic, from 0 to 1, that these operations can use together with the least traffic."""
    operations = tuple(operations)
    return min(1.0, total_flops(operations) / ideal_bytes(operations) / device.ridge)


def device_named(name: str) -> Device | None:
    """The device of this name, regardless of case and hyphens: "rtx 4090", "rtx-4090"."""
    plain = name.lower().replace("-", " ").strip()
    return next((device for device in DEVICES if device.name.lower() == plain), None)


@dataclass(frozen=True)
class Bound:
    """Least time of one operation on one device: the longer of the two times, which is its limit."""

    operation: Operation
    compute_seconds: float
    memory_seconds: float

    @property
    def seconds(self) -> float:
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def limit(self) -> str:
        return "compute" if self.compute_seconds > self.memory_seconds else "memory"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.operation.name,
            "stack": self.operation.stack,
            "compute_seconds": self.compute_seconds,
            "memory_seconds": self.memory_seconds,
            "limit": self.limit,
        }


def roofline(operations: Iterable[Operation], device: Device) -> tuple[Bound, ...]:
    """Least time of each operation, with all repetitions, at the device's full rates (Williams et al. 2009)."""
    flops, bandwidth = device.teraflops * 1e12, device.gigabytes_per_second * 1e9
    return tuple(Bound(op, op.times * op.flops / flops, op.times * op.bytes / bandwidth) for op in operations)
