"""Numbers that come with a link or a request: how they are read, and the least and the most that each may be."""

from __future__ import annotations

from core.checkpoints.loading import MAX_LAYERS

MOST_DIGITS = 12  # no number here has more; one of thousands of digits takes Python long to read, and then fails

# By the name in the link. Places in a picture (layer, head, query ...) are bounded by the picture and stand in no table.
BOUNDS: dict[str, tuple[int, int]] = {
    # the sliders of Memory and Compute
    "plan_batch": (1, 1 << 20),
    "plan_source": (1, 1 << 20),
    "plan_target": (1, 1 << 20),
    "plan_d_model": (1, 1 << 17),
    "plan_heads": (1, 1024),
    "plan_kv_heads": (1, 1024),
    "plan_layers": (1, MAX_LAYERS),
    "plan_d_ff": (1, 1 << 19),
    "plan_vocab": (1, 10**7),
    # the boxes of Shapes
    "batch": (1, 1 << 16),
    "length": (1, 1 << 20),
    "target_length": (1, 1 << 20),
    "typed_encoder": (0, MAX_LAYERS),
    "typed_decoder": (0, MAX_LAYERS),
    "typed_width": (1, 1 << 20),
    "typed_heads": (1, 1 << 20),
    "typed_kv": (1, 1 << 20),
    "typed_ff": (1, 1 << 20),
    "typed_vocabulary": (1, 10**7),
    "typed_context": (1, 1 << 20),
    "typed_window": (0, 1 << 20),
    "break": (0, 9),
}


def read(text: str) -> int | None:
    """The whole number that a text says; None where it says none, or one that is longer than any that is meant."""
    return int(text) if len(text) <= MOST_DIGITS and text.isascii() and text.isdecimal() else None


def whole(text: str, low: int, high: int) -> int:
    """The whole number low ≤ n ≤ high that a text says. Raises ValueError for anything else, however long the text is."""
    number = read(text)
    if number is None or not low <= number <= high:
        raise ValueError(f"not a whole number from {low} to {high}")
    return number


def is_whole(text: str, low: int, high: int) -> bool:
    """Whether whole() reads it."""
    try:
        whole(text, low, high)
    except ValueError:
        return False
    return True


def bounded(name: str, text: str) -> int:
    """The number that a link gives for one of BOUNDS. Raises ValueError."""
    return whole(text, *BOUNDS[name])
