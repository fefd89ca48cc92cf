"""Text that a model writes before its run: the end of a text, or the target that an encoder-decoder was not given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checkpoints import Loaded
from ..edits import hooks_of
from ..errors import GenerationError
from ..model.hooks import hooked
from ..run.prompt import target_tokens
from ..run.request import Request
from .generate import stream

# How a decoder continues a text: the likeliest token each time soon turns in circles. The same text gets the same words.
CONTINUATION: dict[str, Any] = {"temperature": 0.7, "top_k": 40, "seed": 1}
LONGEST_TARGET = 128  # tokens of a target that a model writes itself


def with_continuation(
    loaded: Loaded, request: Request, each_token: Callable[[], object] = lambda: None
) -> tuple[list[str], str | None]:
    """The texts and the target of a request, with what the model writes first. `each_token` is called before every token.

    What is to be written after a text is written by the edited model, as the run itself would go on: token by token without
    a cache, since an edit is of a whole text. A target that was not given is the model's own, so that an edit can be compared.

    Raises GenerationError where the model is asked to write and cannot, or more than one text is to be continued.
    """
    texts, target = list(request.texts), request.target_text
    pair = loaded.config.kind == "encoder-decoder"
    can = (
        loaded.config.writes
        and loaded.model.head is not None
        and loaded.tokenizer is not None
        and loaded.start_id is not None
    )
    n = LONGEST_TARGET if pair and can and target is None and not request.write else request.write
    if not n:
        return texts, target
    if len(texts) != 1:
        raise GenerationError(f"One text can be continued at a time, not {len(texts)}.")
    before = target_tokens(loaded, target, None, 1, "right")[0].ids if pair else loaded.tokens(texts[0]).ids
    if loaded.config.has_position_table:
        n = min(n, loaded.config.n_ctx - len(before))
    new: list[int] = []
    if n > 0:
        how = {} if pair else CONTINUATION
        edits = hooks_of(loaded.model, request.interventions) if request.write else {}
        with hooked(loaded.model, edits):
            for step in stream(loaded, texts[0], target=target, max_tokens=n, show=1, cached=not edits, **how):
                each_token()
                if (chosen := step.chosen[0]) is not None and not chosen.ends:
                    new.append(chosen.id)
    if pair:
        return texts, append_tokens(loaded, target or "", before, new)
    return [append_tokens(loaded, texts[0], before, new)], None


def append_tokens(loaded: Loaded, text: str, before: tuple[int, ...], new: list[int]) -> str:
    """The text with what the new tokens add to it. Half of a character at the end is left out."""
    assert loaded.tokenizer is not None
    alone, joined = (loaded.tokenizer.decode([*ids], skip_special_tokens=True) for ids in (before, [*before, *new]))
    added = joined.removeprefix(alone) if joined.startswith(alone) else loaded.tokenizer.decode(new)
    return text + added.rstrip("\ufffd")
