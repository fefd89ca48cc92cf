"""Low-rank adapters beside frozen weights (LoRA: Hu et al. 2021, arXiv:2106.09685): their numbers, and what training them keeps.

Every matrix W of the layers gets a product of two of rank r, y = W x + B A x. W may be quantized (QLoRA: Dettmers et al. 2023,
arXiv:2305.14314); tables, norms, biases and the unembedding are frozen as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ..device import dtype_name
from ..model.config import ModelConfig
from .dtypes import weight_format
from .saved import SavedItem
from .weights import Matrix, matrices, projections
from .workload import Workload

# Kept for gradients of weights that are frozen here: of norms, tables and heads. The input of a matrix stays, as A reads it.
_OF_FROZEN = ("normalised", "head input", "head dense input", "buckets")


@lru_cache(maxsize=256)
def adapted(config: ModelConfig) -> tuple[Matrix, ...]:
    """The matrices that have an adapter: all of the layers, so neither tables nor the unembedding."""
    return tuple(matrix for matrix in matrices(config) if matrix.stack and matrix.name != "embed project")


def adapter_numbers(config: ModelConfig, rank: int) -> int:
    """Numbers of all adapters of this rank: rank · (inputs + outputs) of each matrix of the layers."""
    return sum(matrix.times * rank * (matrix.rows + matrix.width) for matrix in adapted(config))


def kept_with_adapters(
    items: Iterable[SavedItem], config: ModelConfig, work: Workload, *, n: int, memory_len: int
) -> tuple[SavedItem, ...]:
    """The kept tensors of one layer where its adapters alone are trained: each keeps the rank numbers that A gives of a token."""
    own = len(list(projections(config))) + (3 if config.gated else 2)
    rows = own * n + (
        2 * n + 2 * memory_len if memory_len else 0
    )  # cross-attention's keys and values read the other text
    kept = SavedItem("adapters", work.batch * rows * work.rank * work.by, "what A gives, for the gradient of B")
    return (*kept_frozen(items), kept)


def kept_frozen(items: Iterable[SavedItem]) -> tuple[SavedItem, ...]:
    """The kept tensors without those that only the gradients of frozen weights need."""
    return tuple(item for item in items if not item.name.endswith(_OF_FROZEN) and " embed_norm " not in item.name)


def adapter_work(config: ModelConfig, work: Workload) -> int:
    """Temporary bytes of the widest adapter beside those of its layer: both parts of the gradient of what it reads and of what it
    gives, one new gradient of its own, and its frozen matrix unpacked where that is quantized."""
    tokens = work.batch * max(work.source_len, work.target_len)
    found = adapted(config)
    passing = max(matrix.rows + matrix.width for matrix in found) * (tokens + work.rank) * work.by
    return passing + (unpacked(config, work.by) if is_quantized(work) else 0)


def unpacked(config: ModelConfig, by: int) -> int:
    """Bytes of the largest matrix of the layers at `by` bytes a number: what a kernel that multiplies no 4-bit numbers makes of it."""
    return max(matrix.rows * matrix.width for matrix in adapted(config)) * by


def is_quantized(work: Workload) -> bool:
    """Whether the weights are in another format than the activations."""
    return work.weight_dtype is not None and weight_format(work.weight_dtype) != dtype_name(work.dtype)
