"""One test for all members of a family, where pytest would take longer for a test of each than the test itself takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def of_every(
    family: Iterable[T], name: Callable[[T], str] = str
) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Turn a test of one member into one of all: it tries each, and its failure names every member that fails, and why."""
    members = list(family)

    def over(test: Callable[[T], None]) -> Callable[[], None]:
        def all_of_them() -> None:
            assert members, "a family without members: the test would pass on nothing"
            failed = []
            for member in members:
                try:
                    test(member)
                except AssertionError as error:
                    failed.append(f"{name(member)}: {str(error).splitlines()[0]}")
            assert not failed, "\n".join(failed)

        # Not functools.wraps: pytest would ask for `member` as a fixture.
        all_of_them.__name__, all_of_them.__doc__ = test.__name__, test.__doc__
        all_of_them.__module__, all_of_them.__qualname__ = test.__module__, test.__qualname__
        return all_of_them

    return over
