"""Snapshots of training runs, from which a variant continues without repeating the training before its fork."""

from __future__ import annotations

from collections import OrderedDict

from .training import State

EVERY = 5  # steps between two states of a run; storing them takes 2 % of its time
MOST_RUNS = 4
MOST_BYTES = 128 << 20  # of all states; a run of 600 steps would take about 150 MiB, and keeps every tenth step


class States:
    """States of runs by the run's description, least recently used first. Callers copy a state before they use it. Not thread-safe."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._runs: OrderedDict[object, dict[int, State]] = OrderedDict()

    def keep(self, run: object, state: State) -> None:
        """Store a state of a run. If that exceeds the limit, every second state of the run with most states is dropped."""
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
        """The latest state of a run up to this step."""
        if run not in self._runs:
            return None
        self._runs.move_to_end(run)
        latest = max((at for at in self._runs[run] if at <= step), default=None)
        return None if latest is None else self._runs[run][latest]

    @property
    def nbytes(self) -> int:
        return sum(
            x.numel() * x.element_size()
            for states in self._runs.values()
            for state in states.values()
            for x in state.tensors.values()
        )
