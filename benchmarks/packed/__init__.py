"""A trial of weights that stay in the few bits of their file: a linear layer reads these instead of float32, and computes the same.

A pass over a short text, and over each token that is written, takes as long as it takes to read the weights. GGUF's Q4_0, Q4_1 and
Q8_0 hold 32 neighbouring weights of a row as small whole numbers q with a common scale, w = scale · q + low. That is all that the
float32 weights are made from, so products with either are the same but for rounding, and both are added up in float32:
|difference| ≤ ROUNDING · Σ|x| · max|w| of the row. Nothing of the activations is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .build import kernel

LANES, BLOCK = 8, 32
MOST_ROWS = 64  # of x: with more, multiplying takes longer than reading, and float32 is as fast
ROUNDING = 2e-6  # bound on the difference of the two products, see above

# Bytes of a block in the file. Q4_0: scale, 16 bytes of q. Q4_1: scale, low, 16 bytes. Q8_0: scale, 32 bytes. Scales are float16.
FORMS = {"Q4_0": 18, "Q4_1": 20, "Q8_0": 34}


@dataclass(frozen=True, eq=False)
class PackedWeight:
    """A [output, input] weight in `bits` a number, laid out for the kernel: float32 [output / 8, block, bits + 1 or 2, 8].

    Of each block of eight rows: words with the q of the eight, then their scales and, with 4 bits, their lows.
    """

    bits: int
    data: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.shape[0] * LANES, self.data.shape[1] * BLOCK

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    def product(self, x: Tensor) -> Tensor:
        """x [..., input] float32 -> [..., output], on the processor. Raises MemoryError."""
        built = kernel()
        assert built is not None, "packed weights are made only where they can be multiplied"
        outputs, inputs = self.shape
        x = x.contiguous()
        y = x.new_empty(*x.shape[:-1], outputs)
        rows = x.numel() // inputs
        if built.product[self.bits](
            self.data.data_ptr(), self.data.shape[0], self.data.shape[1], x.data_ptr(), rows, y.data_ptr()
        ):
            raise MemoryError(f"There is no memory to multiply {rows} rows of {inputs} numbers.")
        return y


def pack(form: str, data: Tensor) -> PackedWeight | None:
    """The bytes of a weight as its GGUF file has them, uint8 [output, bytes of a row], laid out for the kernel.

    None where that is no gain or not possible: another form than FORMS, rows that do not come in eights, no compiler, or scales
    that are no numbers.
    """
    if form not in FORMS or data.shape[0] % LANES or data.shape[1] % FORMS[form] or kernel() is None:
        return None
    blocks = data.unflatten(1, (-1, FORMS[form]))  # [output, block, byte]
    n_scales = 2 if form == "Q4_1" else 1
    scales = blocks[..., : 2 * n_scales].contiguous().view(torch.float16).float()  # [output, block, 1 or 2]
    if not scales.isfinite().all():
        return None
    q = blocks[..., 2 * n_scales :]
    if form == "Q8_0":
        numbers, bits = q.contiguous().view(torch.int32), 8  # four bytes to a word, as they are
    else:
        # In the file byte i has weight i in its low half and weight i + 16 in its high one; a word has eight in their order.
        halves = torch.cat([q & 15, q >> 4], dim=-1).unflatten(-1, (-1, 2))
        numbers, bits = (halves[..., 0] | halves[..., 1] << 4).contiguous().view(torch.int32), 4
    if form == "Q4_0":
        scales = torch.cat([scales, -8 * scales], dim=-1)
    every = torch.cat([numbers.view(torch.float32), scales], dim=-1)  # [output, block, word]
    return PackedWeight(bits, every.unflatten(0, (-1, LANES)).permute(0, 2, 3, 1).contiguous())


class PackedLinear(nn.Linear):
    """A linear layer whose weight is there twice: as float32, for all who look at it, and packed, for products with a few rows.

    The packed form is left aside wherever it might not be the same: once the weight was written to or replaced, where it is or was
    trained, in other numbers than float32, and off the processor. Writing through `weight.data` leaves no trace in torch: call
    unpack() before it.
    """

    def __init__(self, linear: nn.Linear, packed: PackedWeight):
        nn.Module.__init__(self)
        if packed.shape != tuple(linear.weight.shape):
            raise ValueError(f"the packed weight is {packed.shape}, and the layer's {tuple(linear.weight.shape)}")
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        self.packed: PackedWeight | None = packed
        self.packed_from = (
            _mark(linear.weight),
            [linear.weight],
        )  # a list, so that torch takes it for no second parameter

    def forward(self, input: Tensor) -> Tensor:
        packed = self.packed
        if packed is None or not self._same(input):
            return super().forward(input)
        y = packed.product(input)
        return y if self.bias is None else y + self.bias

    def _same(self, x: Tensor) -> bool:
        weight = self.weight
        mark, known = self.packed_from
        if weight.requires_grad or weight is not known[0] or _mark(weight) != mark:
            self.packed = None  # for good: the weight may have been changed in ways that torch does not count
            return False
        plain = type(x) is Tensor and x.dtype == torch.float32 and x.device.type == "cpu"
        return (
            plain
            and 0 < x.numel() <= MOST_ROWS * self.in_features
            and not (x.requires_grad and torch.is_grad_enabled())
        )


def _mark(weight: Tensor) -> int:
    """How often a weight was written to. Inference tensors cannot be outside of inference mode, and have no count."""
    return -1 if weight.is_inference() else weight._version


def with_packed(model: nn.Module, packed: Mapping[str, PackedWeight]) -> None:
    """Let the linear layers of these names multiply by packed weights, which are the same as those that they have."""
    for name, weight in packed.items():
        linear = model.get_submodule(name)
        assert isinstance(linear, nn.Linear)
        parent, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(parent), leaf, PackedLinear(linear, weight))


def unpack(model: nn.Module) -> None:
    """Let all layers multiply by their float32 weights alone."""
    for module in model.modules():
        if isinstance(module, PackedLinear):
            module.packed = None
