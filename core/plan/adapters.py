"""Low-rank adapters (LoRA: Hu et al. 2021, arXiv:2106.09685): parameter counts, and memory of training them.

Every matrix W of the layers gets a product of two matrices of rank r, y = W x + B A x. W is frozen and may be quantized (QLoRA:
Dettmers et al. 2023, arXiv:2305.14314). Tables, norms, biases and the unembedding are frozen as well.
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

# Saved tensors that only the gradients of frozen norms, tables and heads need. The input of a matrix is still needed for A.
_OF_FROZEN = ("normalised", "head input", "head dense input", "buckets")


@lru_cache(maxsize=256)
def adapted(config: ModelConfig) -> tuple[Matrix, ...]:
    """The matrices with an adapter: all matrices of the layers, not tables and the unembedding."""
    return tuple(matrix for matrix in matrices(config) if matrix.stack and matrix.name != "embed project")


def adapter_numbers(config: ModelConfig, rank: int) -> int:
    """Parameters of all adapters: rank · (inputs + outputs) for each matrix of the layers."""
    return sum(matrix.times * rank * (matrix.rows + matrix.width) for matrix in adapted(config))


def kept_with_adapters(
    items: Iterable[SavedItem], config: ModelConfig, work: Workload, *, n: int, memory_len: int
) -> tuple[SavedItem, ...]:
    """Saved tensors of one layer if only its adapters are trained: each adapter saves the `rank` outputs of A for every token."""
    rows = n * (len(list(projections(config))) + (3 if config.gated else 2))
    if memory_len:  # keys and values of cross-attention have the positions of the other text
        rows += 2 * n + 2 * memory_len
    kept = SavedItem("adapters", work.batch * rows * work.rank * work.by, "what A gives, for the gradient of B")
    return (*kept_frozen(items), kept)


def kept_frozen(items: Iterable[SavedItem]) -> tuple[SavedItem, ...]:
    """Saved tensors without those that only the gradients of frozen weights need."""
    return tuple(item for item in items if not item.name.endswith(_OF_FROZEN) and " embed_norm " not in item.name)


def adapter_work(config: ModelConfig, work: Workload) -> int:
    """Temporary bytes of the largest adapter in addition to those of its layer.

    They are the gradients of its input and output, one new gradient of its weights, and its frozen matrix if that is dequantized.
    """
    rows = work.batch * max(work.source_len, work.target_len) + work.rank
    widest = max(matrix.rows + matrix.width for matrix in adapted(config))
    quantized = work.weight_dtype is not None and weight_format(work.weight_dtype) != dtype_name(work.dtype)
    return widest * rows * work.by + (unpacked(config, work.by) if quantized else 0)


def unpacked(config: ModelConfig, by: int) -> int:
    """Bytes of the largest matrix of the layers at `by` bytes a number, the size of a dequantized copy."""
    return max(matrix.rows * matrix.width for matrix in adapted(config)) * by
