"""What an atlas says of one head, as the browser is told it: numbers, and examples that open."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlencode

from core.checkpoints import catalog
from core.service import Facts

AROUND = 40  # characters of an example on either side of its token


@lru_cache(maxsize=16)
def of(model_id: str) -> dict[str, Any] | None:
    """The atlas of a model, read once."""
    return catalog.atlas_of(model_id)


def message(known: dict[str, Any], run: Facts, record: int, head: int) -> dict[str, Any]:
    """Every metric of a head with its mean and what it is in nine of ten texts, and the texts in which it stands out most."""
    place, site = run.records[record], run.site_of(record)
    found = known["heads"].get(f"{place.stack}.{place.site}.{place.layer}.{head}")
    source = known["source"]
    if found is None:
        return {"texts": 0}
    metrics = [
        {
            "name": name,
            "mean": told["mean"],
            "low": told["quantiles"][0],
            "high": told["quantiles"][-1],
            "texts": told["texts"],
        }
        for name, told in found["metrics"].items()
    ]
    asked = {"model": run.spec.id, "site": site.id, "layer": place.layer, "head": head}
    examples = [_example(known["texts"], asked, Example(*told)) for told in found["examples"]]
    return {
        "texts": source["n_texts"],
        "most_tokens": source["most_tokens"],
        "metrics": metrics,
        "stands_out": found["stands_out"],
        "examples": examples,
    }


class Example(NamedTuple):
    """One row of one text of the corpus in which a head does much of what it is named for."""

    text: int
    query: int
    value: float
    start: int  # of the query's word in the text, in characters
    stop: int


def _example(texts: dict[str, str], asked: dict[str, Any], of: Example) -> dict[str, Any]:
    """An excerpt around the row, and the link that opens it there."""
    whole = texts[str(of.text)]
    return {
        "before": whole[max(0, of.start - AROUND) : of.start],
        "word": whole[of.start : of.stop],
        "after": whole[of.stop : of.stop + AROUND],
        "value": of.value,
        "link": f"?{urlencode({**asked, 'query': of.query, 'text': whole})}",
    }
