"""Accelerators and the roofline: whether arithmetic or memory is the limit of an operation on each of them.

Figures are dense 16-bit tensor arithmetic with float32 sums, as makers publish them; sparse figures, twice as high, are a
common mistake. Apple's chips have no such unit: theirs is float32.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from .operations import Operation


@dataclass(frozen=True)
class Device:
    name: str
    gigabytes: int  # 10⁹ bytes
    gigabytes_per_second: int
    teraflops: float
    source: str

    @property
    def ridge(self) -> float:
        """FLOPs per byte above which arithmetic is the limit."""
        return self.teraflops * 1000 / self.gigabytes_per_second

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ridge": self.ridge}


DEVICES: tuple[Device, ...] = (
    Device("T4", 16, 320, 65.1, "float16 alone; rightnowai.co/guides/gpu-comparison/t4"),
    Device("L4", 24, 300, 125.3, "from its boost clock; hmc-tech.com/gpu/nvidia-l4-vs-nvidia-t4"),
    Device("A10", 24, 600, 125, "sysrqmts.com"),
    Device("RTX 3060 12 GB", 12, 360, 25, "sysrqmts.com"),
    Device("RTX 3090", 24, 936, 71, "half of its rate with float16 sums; holynerdvana.blogspot.com"),
    Device("RTX 4090", 24, 1008, 165.2, "waredb.com/processor/nvidia-geforce-rtx-4090"),
    Device("RTX 5090", 32, 1792, 209.5, "codesota.com/hardware/rtx-5090"),
    Device("A100 40 GB", 40, 1555, 312, "glennklockwood.com/garden/processors/A100"),
    Device("A100 80 GB", 80, 2039, 312, "SXM; glennklockwood.com/garden/processors/A100"),
    Device("L40S", 48, 864, 362, "stas00/ml-engineering, compute/accelerator"),
    Device("H100 SXM", 80, 3350, 989, "stas00/ml-engineering, compute/accelerator"),
    Device("H100 PCIe", 80, 2000, 756, "stas00/ml-engineering, compute/accelerator"),
    Device("H200", 141, 4800, 989, "SXM; stas00/ml-engineering, compute/accelerator"),
    Device("B200", 192, 8000, 2250, "HGX, 1000 W; stas00/ml-engineering, compute/accelerator"),
    Device("MI300X", 192, 5300, 1300, "stas00/ml-engineering, compute/accelerator"),
    Device("M3 Max", 128, 400, 14.2, "float32; macmegasite.com"),
    Device("M4 Max", 128, 546, 18.4, "float32; huggingface.js, hardware.ts"),
    Device("M2 Ultra", 192, 800, 27.2, "float32; huggingface.js, hardware.ts"),
)


@dataclass(frozen=True)
class Bound:
    """One operation on one device: it takes the longer of the two times, and that one is its limit."""

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
    """The least time of each operation, all its repetitions together, at the device's full rates (Williams et al. 2009)."""
    flops, bandwidth = device.teraflops * 1e12, device.gigabytes_per_second * 1e9
    return tuple(Bound(op, op.times * op.flops / flops, op.times * op.bytes / bandwidth) for op in operations)
