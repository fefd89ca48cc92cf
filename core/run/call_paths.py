"""CallPaths: where in a module a pass is at this moment, and which layer of its stack that is."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Place:
    """The place of a block in a list of blocks."""

    container: str
    numbers: tuple[int, ...]  # its place; several where one block stands at several
    n: int  # blocks of the list


@dataclass
class Visits:
    """The blocks of one list that a pass through the list's owner has entered so far."""

    counts: Counter[str] = field(default_factory=Counter)
    last: str | None = None
    number: int | None = None  # the layer that the last block was
    shares: bool = False  # a block followed itself: several layers have its weights
    left: list[weakref.ref[Tensor]] = field(default_factory=list)  # the results of the last block

    def enter(self, name: str, place: Place, given: list[Tensor]) -> int | None:
        """The layer that this block is now; None where that is not known."""
        before, again = self.counts[name], name == self.last
        self.counts[name] += 1
        number, *later = place.numbers
        if later:
            number = place.numbers[before] if before < len(place.numbers) else None
        elif again or self.shares:
            # The next layer, if it reads what the last one returned. If not, perhaps the first one of another text.
            self.shares = True
            goes_on = any(one() is x for one in self.left for x in given)
            number = self.number + 1 if goes_on and self.number is not None else None
        self.last, self.number = name, number
        return number


@dataclass
class Frame:
    """A submodule that the pass is inside of."""

    name: str
    since: int  # of the lineage's operations, the first that happened in it
    place: Place | None = None
    number: int | None = None  # its layer, where it is a block of a list
    counts: bool = False  # whether that number tells it from another block
    visits: dict[str, Visits] = field(default_factory=dict)


class CallPaths:
    """The submodules that a pass is inside of, outermost first, kept by hooks of all of them."""

    def __init__(self, module: nn.Module) -> None:
        self.places = dict(_places(module))
        self.outside = Frame("", 0)
        self.frames: list[Frame] = []
        self.entered = 0  # how often any submodule was

    @property
    def name(self) -> str:
        """The innermost submodule, by its path; "" for the module itself, or outside of it."""
        return self.frames[-1].name if self.frames else ""

    def enter(self, name: str, given: Any, since: int) -> None:
        owner = self.frames[-1] if self.frames else self.outside
        frame = Frame(name, since, self.places.get(name))
        if frame.place is not None:
            visits = owner.visits.setdefault(frame.place.container, Visits())
            frame.number = visits.enter(name, frame.place, tensors(given))
            frame.counts = frame.place.n > 1 or visits.shares
        self.frames.append(frame)
        self.entered += 1

    def leave(self, returned: Any) -> None:
        frame = self.frames.pop()
        owner = self.frames[-1] if self.frames else self.outside
        if frame.place is not None:
            owner.visits[frame.place.container].left = [weakref.ref(x) for x in tensors(returned)]

    def layer(self, n_heads: int) -> int | None:
        """The number of the block that the pass is in, counted from 0; None where it is in none, or in blocks of blocks.

        A block is an element of an nn.ModuleList or nn.Sequential of several of its kind, which numbers it. One that runs
        several times in a row, each time on what it returned, is as many layers. A list whose elements attend with one head
        each, and are nothing else, may be heads as well as layers.
        """
        blocks = [frame for frame in self.frames if frame.place is not None]
        if n_heads == 1 and blocks and blocks[-1] is self.frames[-1] and blocks[-1].counts:
            blocks.pop()
        telling = [frame for frame in blocks if frame.counts]
        if len(telling) > 1 or not blocks:
            return None
        return (telling or blocks)[0].number


def tensors(value: Any) -> list[Tensor]:
    """The tensors in arguments or results, however they are nested."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [x for part in value for x in tensors(part)]


def _places(module: nn.Module) -> Iterator[tuple[str, Place]]:
    """Of each submodule that is a block of one list, by its path."""
    names = {child: name for name, child in module.named_modules()}
    found: dict[str, Place | None] = {}
    for container, name in names.items():
        if isinstance(container, nn.ModuleList | nn.Sequential):
            for block in dict.fromkeys(container):
                place = _place(name, container, list(container), block)
                if place is not None:  # of two lists neither numbers it
                    found[names[block]] = None if names[block] in found else place
    return ((name, place) for name, place in found.items() if place is not None)


def _place(container: str, owner: nn.Module, blocks: list[nn.Module], block: nn.Module) -> Place | None:
    kinds = [type(one) for one in blocks]
    same = tuple(i for i, one in enumerate(blocks) if one is block)
    if isinstance(owner, nn.Sequential):  # which may begin with an embedding and end with a head
        alike = [i for i, kind in enumerate(kinds) if kind is type(block)]
        is_stack = len(alike) in (len(blocks), alike[-1] - alike[0] + 1) and (len(alike) > 1 or len(blocks) == 1)
        return Place(container, tuple(i - alike[0] for i in same), len(alike)) if is_stack else None
    if len(blocks) > 1 and len(set(kinds)) == len(kinds):
        return None  # the parts of a block, one of each kind
    return Place(container, same, len(blocks))
