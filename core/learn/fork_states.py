"""States: what runs were at steps on their way, so that a twin which forks from one goes on from there and does not learn it again."""

from __future__ import annotations

from collections import OrderedDict

from .training import State

EVERY = 5  # steps between two states of a run: keeping them takes a fiftieth of its time
MOST_RUNS = 4  # whose states are kept
MOST_BYTES = 128 << 20  # in all; a run of Train's 600 steps takes some 150, and keeps each tenth


class States:
    """States of runs by the run's description, oldest use first. A caller that continues from a state copies it. For one thread."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._runs: OrderedDict[object, dict[int, State]] = OrderedDict()

    def keep(self, run: object, state: State) -> None:
        """Keep a state of a run. Where there is no more room, every second one goes of the run that has most."""
        states = self._runs.setdefault(run, {})
        self._runs.move_to_end(run)
        states[state.step] = state
        while len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)
        while self.nbytes > self.most_bytes:
            longest = max(self._runs.values(), key=len)
            for step in sorted(longest)[::2]:
                del longest[step]
            self._runs = OrderedDict((run, states) for run, states in self._runs.items() if states)

    def before(self, run: object, step: int) -> State | None:
        """The last state of a run that is not after this step."""
        if run not in self._runs:
            return None
        self._runs.move_to_end(run)
        there = [at for at in self._runs[run] if at <= step]
        return self._runs[run][max(there)] if there else None

    @property
    def nbytes(self) -> int:
        """Of all states."""
        return sum(
            x.numel() * x.element_size()
            for states in self._runs.values()
            for state in states.values()
            for x in state.tensors.values()
        )
