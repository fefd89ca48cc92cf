"""The message of What if: the run that is swept, and its possible changes."""

from __future__ import annotations

from collections.abc import Mapping

from app.attention import picture
from app.kit import params as kit_params
from app.kit.room import Message, Run
from app.rooms.whatif import changes, words
from app.session import screen
from app.session.screen import Screen


async def message(run: Run, said: Mapping[str, str]) -> Message:
    """The message for what a link says."""
    facts = run.facts
    values, notes = kit_params.read(changes.PARAMS, facts, said)
    model = screen.model_of(run.request)
    causal = facts.config.n_decoder_layers > 0
    header = {
        "key": facts.key,
        "title": facts.spec.title,
        "kind": facts.config.kind,
        "writes": facts.writes,
        "classes": changes.classes(facts),
        "source": facts.source.labels,
        "target": None if facts.target is None else facts.target.labels,
        "turns": picture.turns(facts.source),
        "places": [
            {
                "id": place.id,
                "stack": place.stack,
                "site": place.site,
                "title": words.SITES[place.id],
                "layers": place.layers,
                "heads": place.heads,
                "kv_heads": place.kv_heads,
                "query": place.query,
                "key": place.key,
            }
            for place in changes.places(facts)
        ],
        "cannot": {} if causal else {"nocausal": words.NO_CAUSAL_MASK},
        "models": [[name, title] for name, title in changes.model_ids().items() if name.partition("@")[0] != model],
        "steps": changes.steps(run.request),
        "parts": changes.has_parts(facts),
        "pair": changes.own_pair(facts),
        "long": changes.is_long(facts),
        "device": facts.device,
        "dtype": facts.dtype,
        "link": Screen("whatif", run.request).said(),
    }
    return Message(header, values, notes, facts)
