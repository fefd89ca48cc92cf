"""A finished run in plain data, for a page that asks no Service: all that the picture of Explore is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import Refused
from ..read.head_roles import opening_of
from ..run.attention import Receipt
from ..run.from_attentions import AttentionsRecord, not_drawn
from ..run.notebook_picture import still
from ..run.recorder import Held
from ..trace import Trace
from .answers import Facts, SiteId
from .facts import facts_of
from .maps.answers import HeadDone, MapTransform, Thumbnails, WholeRun
from .maps.compute import Map, array, row, tile
from .maps.heads import thumbnails_of, whole_of


@dataclass(frozen=True, eq=False)
class OneRun:
    """One run, seen from one text. `whole` has every weight of it; of a run with too many that is None, and there are small pictures.

    head(record, head, query) computes one head of such a run, and begin(record, head) says at which query to begin to read a head.
    norms are ‖value · W_O‖ by kind of attention, [layer, head, key], and receipts are those of the records, in the order of the pass:
    both may be left out, and the page then says that it does not have them. still(record, head) is a picture for who allows no scripts, as HTML.
    """

    facts: Facts
    whole: WholeRun | None
    begin: Callable[[int, int], int]
    small: Sequence[Thumbnails] = ()
    head: Callable[[int, int, int | None], HeadDone] | None = None
    norms: Mapping[SiteId, np.ndarray] | None = None
    receipts: Sequence[Receipt] = ()
    still: Callable[[int, int], str] | None = None


def one_run(run: Trace, key: str, most: int) -> OneRun:
    """A run of at most `most` weights with all of them, a larger one with small pictures of its heads.

    `key` names the run on the page. The look that the page opens on takes one more pass of the model; where the model has no logits
    that say anything of looks, it is the look that stands out most.
    """
    run = run if run.texts == 1 else run.text(run.index)
    if why := not_drawn(run):
        raise Refused(why)
    facts = facts_of(run, key)
    if not facts.sites:
        raise Refused("This run recorded no attention, so there is nothing to show. Trace a model that has attention.")

    def begin(record: int, head: int) -> int:
        return opening_of(run, record, head).query

    if facts.weights > most:
        small = [thumbnails_of(record) for record in run.attention]
        return OneRun(facts, None, begin, small, partial(_head, run), still=partial(_still, run))
    whole = whole_of(run, facts.sites, looks=facts.non_finite is None)
    # Values that a long run does not hold would take another pass for each of its records.
    if not all(isinstance(record.values, Held) for record in run.attention):
        alone = [record.receipt() for record in run.attention] if isinstance(run, AttentionsRecord) else []
        return OneRun(facts, whole, begin, receipts=alone, still=partial(_still, run))
    norms: dict[SiteId, np.ndarray] = {
        site.id: np.stack([array(run.attention[i].value_norms()) for i in site.records]).astype(np.float32)
        for site in facts.sites
        if all(run.attention[i].output is not None for i in site.records)  # which is not known of a wrapped model
    }
    receipts = [record.receipt() for record in run.attention]
    return OneRun(facts, whole, begin, norms=norms, receipts=receipts, still=partial(_still, run))


def _still(run: Trace, record: int, head: int) -> str:
    found = run.attention[record]
    queries, keys = run.tokens_of(found)
    return still(repr(run).strip("<>"), found, head, queries.labels, keys.labels)


def _head(run: Trace, record: int, head: int, query: int | None) -> HeadDone:
    shown = Map(run, MapTransform(record, head))
    reach = len(shown.queries), len(shown.keys)
    every = tile(shown, (0, reach[0]), (0, reach[1]))
    return HeadDone(record, head, query, reach, every, None if query is None else row(shown, query))
