"""A text that is being written, step by step: each is one turn among the passes."""

from __future__ import annotations

from collections.abc import Iterable

from ...checkpoints import Loaded
from ...device import dtype_name
from ...plan import kv_cache
from ...run.request import Request
from ...trace import Trace
from ...write.beams import grow
from ...write.generate import Draft, Sampling, admit_writing
from ...write.writing import Writer, beginning, check_path, check_room, glued, labels
from ..sweeps import LABEL_BYTES
from .answers import MOST_WRITTEN, BeamsGrown, OpenedText, Over, WrittenToken


def opened_bytes(begun: OpenedText) -> int:
    """About what an opened text takes."""
    arrays = [a for r in begun.opening.readings for a in (r.ids, r.logits, r.rest, r.rows)]
    return 2048 + begun.opening.losses.nbytes + sum(a.nbytes for a in arrays) + LABEL_BYTES * len(begun.labels)


def own_target(request: Request) -> bool:
    """Whether the target of a request's run is what the model wrote by itself, and none was given."""
    return not request.target_text and not request.write


class Labels:
    """Labels of tokens, each sent once."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.told: set[int] = set()

    def new(self, ids: Iterable[int]) -> dict[int, str]:
        """The labels of those that were not told yet."""
        found = labels(self.loaded, [token for token in dict.fromkeys(map(int, ids)) if token not in self.told])
        self.told |= found.keys()
        return found


class TextInTurns:
    """A run's text being written, step by step: every method is one turn among the passes."""

    def __init__(self, run: Trace, request: Request, path: tuple[int, ...], room: int) -> None:
        check_room(len(path), MOST_WRITTEN)
        self.run, self.loaded = run, run.loaded
        self.prompt = beginning(run, opens_target=own_target(request))
        self.writer = Writer(self.loaded, self.prompt, path, room)
        self.labels = Labels(self.loaded)

    def open(self, also: Iterable[int] = ()) -> OpenedText:
        """The prompt and the path, and the labels of other tokens in the question."""
        opening = self.writer.open()
        read = self.prompt.last_read[0]
        of_run = self.run.source if self.run.target is None else self.run.target
        ids = [i for reading in opening.readings for i in reading.ids.tolist()]
        ids += [reading.taken.id for reading in opening.readings if reading.taken]  # which may rank beyond those listed
        size = self.loaded.config.vocab_size
        labels = self.labels.new([*ids, *self.writer.path, *(i for i in also if 0 <= i < size)])
        per_token = kv_cache(self.loaded.config, n=1, dtype=dtype_name(self.loaded.dtype))
        return OpenedText(
            opening,
            read.ids,
            of_run.labels[: len(read)],
            labels,
            tuple(glued(self.loaded, [*labels, *read.ids])),
            tuple(self.loaded.end_ids),
            self.over,
            per_token,
        )

    def go_on(self, begun: OpenedText) -> None:
        """Read the prompt and the path, which were opened before."""
        self.writer.read()
        self.labels.told |= begun.labels.keys()

    def turn_to(self, path: tuple[int, ...], room: int) -> bool:
        """Stand after another path, for another reader. False where it must be read as a new one."""
        check_room(len(path), MOST_WRITTEN)
        self.run.forward.weights.check()
        if not self.writer.turn_to(path, room):
            return False
        self.writer.read()
        self.labels = Labels(self.loaded)
        return True

    @property
    def nbytes(self) -> int:
        """Of the keys and values that are held."""
        cache = self.writer.draft.cache
        return 0 if cache is None else cache.nbytes

    def write(self, how: Sampling, token: int | None = None) -> WrittenToken:
        """One more token: drawn, or given."""
        taken, reading = self.writer.write(how, token)
        ids = [taken.id] if reading is None else [taken.id, *reading.ids.tolist()]
        new = self.labels.new(ids)
        return WrittenToken(taken, reading, new, tuple(glued(self.loaded, new)), self.over)

    @property
    def over(self) -> Over:
        if self.writer.ends:
            return "end"
        if self.writer.is_over:
            return "positions"
        return "most" if len(self.writer.path) >= MOST_WRITTEN else ""


class BeamsInTurns:
    """A beam search after a run's prompt: every step is one turn among the passes."""

    def __init__(self, run: Trace, request: Request, n_beams: int, n: int) -> None:
        loaded = run.loaded
        prompt = beginning(run, opens_target=own_target(request))
        check_path(loaded, prompt, ())
        admit_writing(loaded, prompt, n_beams, n, True)
        draft = Draft(loaded, prompt, True)  # n is how far one looks, not where a text must end
        self.labels = Labels(loaded)
        self.steps = grow(loaded, draft, frozenset(loaded.end_ids), n_beams, 1.0, n)

    def grow(self) -> BeamsGrown | None:
        """The next step; None where the search is over."""
        step = next(self.steps, None)
        if step is None:
            return None
        finished = [i for beams in step.finished for beam in beams for i in beam.ids]
        new = self.labels.new([*finished, *(c.id for found in step.candidates for c in found)])
        return BeamsGrown(step, new, tuple(glued(self.labels.loaded, new)))
