"""What core makes of temperature, top-k, top-p and min-p, for the browser's twin of it."""

from __future__ import annotations

from typing import Any

import torch

import core
from core.write.generate import Sampling, candidates
from core.write.writer import LISTED, Writer, beginning
from tests.app import models

SETTINGS = [
    (1.0, None, None, None),
    (0.7, None, 0.9, None),
    (0.1, 40, 0.95, None),
    (3.0, 5, None, None),
    (2.0, None, 0.3, None),
    (1.3, 200, 0.5, None),
    (1.0, None, None, 0.1),
    (2.0, 40, 0.9, 0.2),
    (0.8, None, 0.95, 0.02),
]


def columns() -> dict[str, Any]:
    """Columns of a text, as they travel, and the chances of the words that they name under every setting."""
    loaded = models.load("storyteller")
    writer = Writer(loaded, beginning(core.trace(loaded, "Once upon a time there was a"), False), room=3)
    readings, logits = [writer.open().readings[-1]], [writer.logits]
    for _ in range(2):
        _, reading = writer.write(Sampling())
        assert reading is not None
        readings.append(reading)
        logits.append(writer.logits)
    found = []
    for reading, row in zip(readings, logits, strict=True):
        assert row is not None
        expected = []
        for temperature, top_k, top_p, min_p in SETTINGS:
            words, probs = candidates(row[None].double(), temperature, top_k, top_p, min_p)
            whole = torch.zeros(loaded.config.vocab_size, dtype=torch.float64).scatter(0, words[0], probs[0])
            named = whole[torch.tensor(reading.ids).long()]
            left = int((whole > 0).sum())
            expected.append(
                {
                    "settings": {
                        "temperature": temperature,
                        "topK": top_k or 0,
                        "topP": top_p or 1,
                        "minP": min_p or 0,
                    },
                    "probs": named.tolist(),
                    "rest": 1 - float(named.sum()),
                    "left": left,
                    "within": left <= LISTED or (top_p is None and min_p is None),
                }
            )
        found.append(
            {
                "ids": reading.ids.tolist(),
                "logits": reading.logits.tolist(),
                "rest": reading.rest.tolist(),
                "vocab": loaded.config.vocab_size,
                "expected": expected,
            }
        )
    return {"columns": found}
