"""What a visitor who types waits for while others keep the server busy: a hundred who sweep at once, or two trainings.

    python -m benchmarks.crowd [--sweeps 100] [--trainers 2 50] [--sharing 50] [--seconds 30]
    python -m benchmarks.crowd --phones 200     a class of so many that answers steps of a lesson, and nothing else

The server is started as users start it. One visitor types sentences into Explore in headless Chromium, and waits for each picture;
times are taken inside the page, from Enter to the frame after the picture. That goes on alone, then while every one of a hundred
others asks at once for a sweep that nobody else asks for, then while so many others press Train, each with a seed of its own, and then
while as many press it who choose among the chips of one task, as a class does. Of the
sweeps it is told how many were answered, how many got a sentence instead, and when; of the trainings how many run, wait and are
refused, and how much memory the server and its training process have.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page

from app.rooms.train.component import TWINS
from app.shell import words
from app.transport import rate_limits, visitors
from benchmarks.capture import machine
from benchmarks.page import arm, opened, visiting
from benchmarks.phones import lesson
from core.run.request import Request
from scripts import browser as browsers
from tests.app.browsing import browsing, serving

TEXT = "Dorothy ran home over the prairie to Uncle Henry and Aunt"
PATIENCE = 120  # seconds that anybody waits for anything
WARM = 4  # sentences that are not counted


class Typist:
    """One visitor of Explore who types sentence after sentence."""

    def __init__(self, page: Page) -> None:
        self.page, self.n = page, 0

    def type(self) -> float:
        """ms from Enter to the picture of a sentence that nobody has typed before."""
        self.n += 1
        box = self.page.get_by_role("textbox", name=words.TEXT, exact=True)
        box.fill(f"The animal didn't cross street {self.n} because it was too tired.")
        arm(self.page, "keydown", "root.dataset.run !== before.run && !root.dataset.underway")
        box.press("Enter")
        return self.page.evaluate("bench.waiting")

    def until(self, enough: Callable[[], bool]) -> list[float]:
        """Times of the sentences typed until it is enough."""
        times = []
        while not enough():
            times.append(self.type())
        return times


@cache
def name_of(number: int) -> str:
    """A signed name: the server that is started here has the same secret."""
    return visitors.new_name()


def asking(url: str, number: int) -> Any:
    """An answer to a visitor of their own, whose limits are no other's."""
    cookie = f"{visitors.COOKIE}={name_of(number)}"
    return urllib.request.urlopen(urllib.request.Request(url, headers={"Cookie": cookie}), timeout=PATIENCE)


def sweeper(address: str, number: int) -> tuple[str, float, float]:
    """(what came of it, seconds to the first rows, seconds to the last)."""
    key = Request("storyteller", (TEXT,)).key
    said = {"run": key, "edits": f"temperature_{1 + number / 1000:.3f}"}  # a run, and a sweep, of its own
    begun = time.monotonic()
    try:
        with asking(f"{address}/headlight/whatif/sweep?{urlencode(said)}", number) as answer:
            head = answer.read(4)
            first = time.monotonic() - begun
            body = head + answer.read()
    except urllib.error.HTTPError as refusal:
        return f"{refusal.code}: {refusal.read(200).decode()}", 0, time.monotonic() - begun
    except OSError as error:
        return f"no answer: {error}", 0, time.monotonic() - begun
    return "answered" if b'"snippet"' in body else "a sentence", first, time.monotonic() - begun


def trainer(address: str, number: int, asked: dict[str, str], stop: threading.Event, told: dict[int, str]) -> None:
    """Watch a training until `stop`; told[number] is what was said of it last."""
    try:
        with asking(f"{address}/headlight/train/run?{urlencode(asked)}", number) as answer:
            while not stop.is_set() and (line := answer.readline()):
                told[number] = json.loads(line)["state"]
    except urllib.error.HTTPError as refusal:
        told[number] = f"{refusal.code}: {refusal.read(200).decode()}"
    except OSError:
        pass  # a run that only waits says nothing, and the line is closed with the server


def memory_of(port: str) -> dict[str, float]:
    """MiB that the server on a port and its training process hold now, by name."""
    found: dict[str, tuple[str, str]] = {}  # process id -> what it is, its status
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            command = (status.parent / "cmdline").read_bytes().decode().split("\0")
            text = status.read_text(encoding="utf-8")
        except OSError:
            continue  # it has just ended
        name = "server" if port in command else "training" if "core.service.training_process" in command else ""
        if name:
            found[status.parent.name] = name, text
    server = next(number for number, (name, _) in found.items() if name == "server")
    own = [number for number, (_, text) in found.items() if number == server or f"PPid:\t{server}\n" in text]
    return {found[number][0]: int(found[number][1].split("VmRSS:")[1].split()[0]) / 1024 for number in own}


def said(what: str, times: list[float]) -> str:
    """The median and the 95th of a hundred."""
    p95 = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    return (
        f"{what}: {len(times)} sentences, median {median(times):.0f} ms, p95 {p95:.0f} ms, longest {max(times):.0f} ms"
    )


def of_phones(n: int) -> None:
    """A teacher in a browser at a step of a lesson, and so many phones on this machine."""
    with ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory())
        address = held.enter_context(serving("app/main.py", Path(folder) / "log"))
        browser = held.enter_context(browsing(browsers.find() or ""))
        page = held.enter_context(visiting(browser)).new_page()
        page.goto(f"{address}/?view=lessons&lesson=1.3")
        page.locator(".hl.lessons .acts.room button:enabled").wait_for(timeout=1000 * PATIENCE)
        page.keyboard.press("r")
        page.locator(".classroom .share .code").wait_for()
        kept = page.evaluate("Object.values(sessionStorage).map(text => JSON.parse(text)).find(found => found.square)")
        with page.expect_request(lambda request: '"offer"' in (request.post_data or "")) as asked:
            page.keyboard.press("r")
        offer = json.loads(asked.value.post_data or "")["offer"]
        page.locator(".stepping[data-stage=ask]").wait_for()
        print(machine())
        port = int(address.rpartition(":")[2])
        with ThreadPoolExecutor(1) as other:  # Playwright has the event loop of this thread
            print(other.submit(asyncio.run, lesson(port, kept["code"], kept["key"], offer, n)).result())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--trainers", type=int, nargs="*", default=[2, 50])
    parser.add_argument("--sharing", type=int, nargs="*", default=[50])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--phones", type=int)
    options = parser.parse_args()
    if options.phones:
        return of_phones(options.phones)
    with ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory())
        os.environ[rate_limits.LIMITS] = "off"  # nobody types a sentence every tenth of a second for a minute
        address = held.enter_context(serving("app/main.py", Path(folder) / "log"))
        browser = held.enter_context(browsing(browsers.find() or ""))
        context = held.enter_context(visiting(browser))
        page = context.new_page()
        opened(page, f"{address}/?{urlencode({'model': 'Storyteller', 'text': TEXT})}")  # the run that is swept
        opened(page, address)
        typist = Typist(page)
        typist.until(lambda: typist.n >= WARM)
        print(machine())

        def later(seconds: float) -> Callable[[], bool]:
            end = time.monotonic() + seconds
            return lambda: time.monotonic() > end

        print(said("alone", typist.until(later(options.seconds / 3))), flush=True)
        with ThreadPoolExecutor(options.sweeps) as pool:
            asked = [pool.submit(sweeper, address, i) for i in range(options.sweeps)]
            print(said(f"while {options.sweeps} sweep", typist.until(lambda: all(one.done() for one in asked))))
            found = [one.result() for one in asked]
        print("  " + ", ".join(f"{n} {what}" for what, n in Counter(what for what, _, _ in found).items()))
        if ends := [(first, last) for what, first, last in found if what == "answered"]:
            firsts, lasts = zip(*ends, strict=True)
            print(
                f"  first rows after {median(firsts):.1f} s, all after {median(lasts):.1f} s, the last {max(lasts):.1f} s"
            )
        own = [(n, [{"task": "copy", "seed": str(1000 + i)} for i in range(n)]) for n in options.trainers]
        chips = [{"task": "copy", "twin": twin} for twin in TWINS]
        shared = [(n, [chips[i % len(chips)] for i in range(n)]) for n in options.sharing]
        for n, wanted in own + shared:
            kinds = len({tuple(one.items()) for one in wanted})
            stop, told = threading.Event(), dict[int, str]()
            before = memory_of(address.rpartition(":")[2])
            threads = [
                threading.Thread(target=trainer, args=(address, i, one, stop, told), daemon=True)
                for i, one in enumerate(wanted)
            ]
            for thread in threads:
                thread.start()
            end = later(PATIENCE)
            while len(told) < n and not end():
                time.sleep(0.1)
            print(said(f"while {n} press Train, for {kinds} runs", typist.until(later(options.seconds))))
            print("  " + ", ".join(f"{many} {what}" for what, many in Counter(told.values()).items()))
            after = memory_of(address.rpartition(":")[2])
            print(
                "  MiB: " + ", ".join(f"{name} {before.get(name, 0):.0f} -> {held:.0f}" for name, held in after.items())
            )
            stop.set()
            ended = later(10)
            while any(thread.is_alive() for thread in threads) and not ended():
                time.sleep(0.1)


if __name__ == "__main__":
    main()
