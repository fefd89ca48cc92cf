"""plan(): everything that is known about a transformer before it runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from core.config import ModelConfig

from .dtypes import check_lengths
from .parameters import Parameters, parameters


@dataclass(frozen=True)
class Plan:
    parameters: Parameters

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def plan(
    config: ModelConfig,
    *,
    batch: int = 1,
    source_len: int,
    target_len: int = 0,
    dtype: object = "float32",
) -> Plan:
    check_lengths(config.kind, batch=batch, source_len=source_len, target_len=target_len)
    return Plan(parameters(config))
