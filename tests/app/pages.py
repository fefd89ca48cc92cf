"""Pages that tests borrow one after the other: one that was used before opens in a third of the time that a new browser takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, Page

FREE: WeakKeyDictionary[Browser, dict[str, list[Page]]] = WeakKeyDictionary()  # that nobody has, by how they were made


@contextmanager
def lend(browser: Browser, **options: Any) -> Iterator[Page]:
    """A page of a context with these options, which knows nothing of whoever had it before.

    `options` are those of Browser.new_context(), a viewport among them. What stays in the context is files that it has fetched,
    under addresses that hold a hash of them. Not for a test that puts a script into the page, which nobody can take out again.
    A page with which something went wrong is not used again.
    """
    free = FREE.setdefault(browser, {}).setdefault(json.dumps(options, sort_keys=True), [])
    page = free.pop() if free else browser.new_context(**options).new_page()
    try:
        yield page
        clear(page, options)
    except BaseException:
        page.context.close()
        raise
    free.append(page)


def clear(page: Page, options: dict[str, Any]) -> None:
    """Make a page as it was when it was new."""
    page.unroute_all()
    for other in page.context.pages:
        if other is not page:
            other.close()
    page.evaluate("location.protocol === 'about:' || (sessionStorage.clear(), localStorage.clear())")
    page.context.clear_permissions()
    page.context.clear_cookies()
    page.mouse.move(0, 0)
    page.goto("about:blank")  # ends its visit: the server hears of it as of a closed tab
    steps = page.context.new_cdp_session(page)
    steps.send("Page.resetNavigationHistory")  # a page keeps fifty steps at most: then one more no longer counts
    steps.detach()
    page.set_viewport_size(options["viewport"])
    page.emulate_media(
        color_scheme=options.get("color_scheme", "light"),
        reduced_motion=options.get("reduced_motion", "no-preference"),
    )
