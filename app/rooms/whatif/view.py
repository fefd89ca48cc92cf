"""Draws What if: the request box, and the stage with the run that is swept."""

from __future__ import annotations

from app.attention import picture
from app.kit import stage
from app.rooms.whatif import ahead, changes, words
from app.rooms.whatif.component import STAGE
from app.session import screen
from app.session.screen import Screen
from app.shell import run


def show() -> None:
    """The room, in the script of a visitor."""
    shown = run.on_screen()
    if shown is None:
        return
    followed = stage.follow(STAGE, shown.facts, shown.facts)
    shown.say(*followed.notes)
    facts = shown.facts
    model = screen.model_of(shown.request)
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
        "steps": changes.steps(shown.request),
        "parts": changes.has_parts(facts),
        "pair": changes.own_pair(facts),
        "long": changes.is_long(facts),
        "device": facts.device,
        "dtype": facts.dtype,
        "link": Screen("whatif", shown.request).said(),
    }
    stage.draw(STAGE, followed, header)
    ahead.begin(followed.values, facts)
