"""The tables of one run of the benchmark as they are printed, and all of it as JSON."""

from __future__ import annotations

import json
import platform
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

Row = dict[str, Any]


@dataclass
class Report:
    """Rows by table. `short` is the form for a processor; after `seconds` no new row is begun."""

    device: torch.device
    seconds: float
    tables: dict[str, list[Row]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def short(self) -> bool:
        return self.device.type != "cuda"

    def add(self, table: str, row: Row, ok: bool = True) -> None:
        """Print the row below those of its table. What is not `ok` misses its goal, and the command ends with 1."""
        rows = self.tables.setdefault(table, [])
        if not rows:
            print(f"\n{table}\n\n| {' | '.join(row)} |\n|{'---|' * len(row)}", flush=True)
        rows.append(row | {"ok": ok})
        print(
            f"| {' | '.join(shown(value) for value in row.values())} |{'' if ok else ' **misses its goal**'}",
            flush=True,
        )
        if not ok:
            self.failed.append(f"{table}: {' '.join(shown(value) for value in row.values())}")

    def leave_out(self, what: str, why: str) -> None:
        self.left_out.append(f"{what}: {why}")
        print(f"\nLeft out, {what}: {why}.", flush=True)

    def has_time(self, what: str) -> bool:
        """Whether another row may begin; where not, it is left out."""
        if time.monotonic() - self.began < self.seconds:
            return True
        self.leave_out(what, f"the {self.seconds / 60:g} minutes are over")
        return False

    def to_dict(self) -> dict[str, Any]:
        return {
            "device": about(self.device),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "short": self.short,
            "seconds": round(time.monotonic() - self.began, 1),
            "tables": self.tables,
            "left_out": self.left_out,
            "failed": self.failed,
        }

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2e}" if 0 < abs(value) < 0.01 else f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def about(device: torch.device) -> str:
    """What the numbers depend on, without saying whose machine it is."""
    if device.type == "cuda":
        found = torch.cuda.get_device_properties(device)
        return f"{found.name}, {found.total_memory / 2**30:.0f} GiB"
    return f"{platform.machine()} processor, {torch.get_num_threads()} threads"
