"""The compiled part of the trial: products with weights of a few bits, in C, built by the machine's own compiler where it has one."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_name("packed.c")
SECONDS = 60.0  # for the compiler, which takes less than one
# The first set that the compiler takes. AMD's own tuning would do without fused multiply-add.
FLAGS = (
    ("-O3", "-march=native", "-mtune=generic", "-fopenmp"),
    ("-O3", "-mcpu=native", "-fopenmp"),
    ("-O3", "-march=native", "-mtune=generic"),
    ("-O3", "-mcpu=native"),
)

# packed, groups of eight rows, blocks of 32 inputs, x, its rows, y; 0, or 1 where there was no memory
Product = Callable[[int, int, int, int, int, int], int]

log = logging.getLogger("headlight")


class Kernel(NamedTuple):
    """y [rows, outputs] = x Wᵀ, by the number of bits of a weight."""

    product: dict[int, Product]


@cache
def kernel() -> Kernel | None:
    """The compiled products; None where there is no compiler, or where it or the system refuses.

    Built once in each process, in a folder that no other user can write to and that is gone afterwards: it takes half a second,
    and so it is always that of this source and of this processor.
    """
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory(prefix="headlight-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "packed.so"
        for flags in FLAGS:
            command = [compiler, *flags, "-shared", "-fPIC", "-o", str(file), str(SOURCE)]
            try:
                done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
                if done.returncode == 0:
                    return _opened(file)
            except (OSError, subprocess.TimeoutExpired) as error:
                log.info("Packed weights are multiplied as float32: %s", error)
                return None
    log.info("Packed weights are multiplied as float32: %s compiles nothing here.", compiler)
    return None


def _opened(file: Path) -> Kernel:
    library = ctypes.CDLL(str(file))  # lets other threads run while a product is computed
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    found: dict[int, Product] = {}
    for bits in (4, 8):
        product = library[f"product{bits}"]
        product.argtypes, product.restype = [pointer, count, ctypes.c_int, pointer, count, pointer], ctypes.c_int
        found[bits] = product
    return Kernel(found)
