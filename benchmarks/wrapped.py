"""Which published architectures core.wrap sees: a tiny random model of each, as transformers runs it, against its own maps.

    python -m benchmarks.wrapped             the table of all rows
    python -m benchmarks.wrapped glm cohere  the rows with these words in their names

The rows are those of benchmarks.coverage, and so are the bounds. Patterns come from the queries, keys, masks and scales that were
recorded; `explains` is how far pattern · v is from what the model's own attention function returned. `silenced` is how much the
logits move when one head is silenced: 0 would mean that edits reach nothing.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass

import torch
import transformers as hf
from transformers.utils import logging

import core
from benchmarks.coverage import LENGTHS, LOGITS, PATTERNS, ROWS, VOCAB, Row, difference, made, theirs

# Rows whose attention is written out by hand, or that have none; tests hold the table to this.
REFUSED = frozenset(
    (
        "DeBERTa",
        "DeBERTa v2 and v3",
        "MPNet",
        "RemBERT",
        "Longformer",
        "XLNet",
        "GPT-Neo",
        "GPT-J",
        "BLOOM",
        "MPT",
        "Falcon 7B",
        "Falcon 40B",
        "CodeGen",
        "XGLM",
        "GPT-1",
        "Mamba 1",
        "Mamba 2",
        "RWKV",
        "LED",
        "ProphetNet",
        "FSMT",
    )
)
IN_PART = frozenset(("LongT5",))  # its encoder's attention is written out, its decoder's is seen


@dataclass(frozen=True)
class Seen:
    """The outcome of a row: at parity, refused with a sentence, or recorded and different."""

    row: Row
    pattern: float | None = None  # the largest difference of a weight; None where it was refused
    logit: float | None = None
    explains: float | None = None
    silenced: float | None = None
    sentence: str = ""  # of the refusal, or what is not among the records

    @property
    def at_parity(self) -> bool:
        found = (self.pattern, self.logit, self.explains)
        bounds = (PATTERNS, LOGITS, LOGITS)
        return all(one is not None and one <= bound for one, bound in zip(found, bounds, strict=True))


def tried(row: Row) -> Seen:
    """The outcome of one row."""
    model = made(row)
    ids = torch.randint(5, VOCAB, (1, LENGTHS[0]), generator=torch.Generator().manual_seed(1))
    other = torch.randint(5, VOCAB, (1, LENGTHS[1]), generator=torch.Generator().manual_seed(2))
    target = other if model.config.is_encoder_decoder else None
    try:
        wrapped = core.wrap(model)
    except core.HeadlightError as refusal:
        return Seen(row, sentence=str(refusal))
    maps, scores = theirs(model, ids, target)
    texts = {"ids": ids[0].tolist(), "target_ids": None if target is None else target[0].tolist()}
    run = core.trace(wrapped, **texts)
    record = run.attention[-1]
    assert record.layer is not None and record.site != "unknown"
    edit = core.edits.Ablate(record.stack, record.layer, 1, record.site)  # type: ignore[arg-type]
    other_run = core.trace(wrapped, **texts, interventions=[edit])
    n = len(scores)
    if wrapped.model.head is None:
        mine, changed = (one.last_residual(torch.arange(n))[0] for one in (run, other_run))
    else:
        mine, changed = (one.activation("head.hook_logits") for one in (run, other_run))
    return Seen(
        row,
        difference([record.pattern() for record in run.attention if ".part" not in record.name], maps),
        difference([mine], [scores]),
        max(record.receipt().fused_error or 0.0 for record in run.attention),
        (changed - mine).abs().max().item(),
        " ".join(wrapped.notices),
    )


def main(words: list[str]) -> None:
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    rows = [row for row in ROWS if not words or any(word.lower() in row.name.lower() for word in words)]
    print(f"transformers {hf.__version__}")
    print(f"{'':26} {'pattern':>9} {'logit':>9} {'explains':>9} {'silenced':>9}")
    found = []
    for row in rows:
        try:
            result = tried(row)
        except Exception as error:  # transformers may lack the class, or not build it at this size
            print(f"{row.name:26} not tried: {type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        found.append(result)
        if result.pattern is None:
            print(f"{row.name:26} refused: {result.sentence[:150]}", flush=True)
            continue
        numbers = " ".join(f"{x or 0:9.1e}" for x in (result.pattern, result.logit, result.explains, result.silenced))
        verdict = "" if result.at_parity else "  differs"
        print(f"{row.name:26} {numbers}{verdict} {result.sentence[:120]}", flush=True)
    at_parity = sum(result.at_parity for result in found)
    refused = sum(result.pattern is None for result in found)
    print(f"{at_parity} of {len(rows)} at parity, {refused} refused, {len(rows) - at_parity - refused} neither")


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    main(sys.argv[1:])
