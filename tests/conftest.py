"""Fixtures that every kind of test shares: small models that hide nothing, and the browser."""

from __future__ import annotations

import gc
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest
import torch

from core.model.config import ModelConfig
from core.model.transformer import Transformer
from scripts import browser as browsers
from tests.thorough import THOROUGH, of_part

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest_plugins = ("tests.servers", "tests.event_loop")

# The screens' tests are of a small model that opens in no time, but those that name another (docs/developing.md).
os.environ.setdefault("HEADLIGHT_DEFAULT", "minilm")
# Servers that tests start, and the tests, name runs alike.
os.environ.setdefault("HEADLIGHT_SECRET", "a secret that all tests share")
# One thread a process: these models are so small that threads would wait for each other longer than they work.
torch.set_num_threads(1)

# Sizes that differ wherever they may, so that no swapped axis goes unnoticed.
TINY: dict[str, Any] = {"vocab_size": 31, "d_model": 22, "n_heads": 4, "d_head": 8, "d_ff": 29, "n_ctx": 37}


def pytest_configure() -> None:
    """Every process of a run draws the same mutants: those that share the tests are started by this one."""
    os.environ.setdefault("MUTANTS_SEED", str(random.SystemRandom().randrange(1_000_000)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        metavar="N/OF",
        default="1/1",
        help="one part of all files of tests, such as 2/6, for a machine of its own",
    )


def left_to_thorough(items: list[pytest.Item]) -> set[pytest.Item]:
    """The tests marked `thorough`; of a test marked `thorough(but=n)`, all but n of its cases, which are spread evenly."""
    families: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("thorough"):
            families[item.nodeid.split("[")[0]].append(item)
    left: set[pytest.Item] = set()
    for family in families.values():
        marker = family[0].get_closest_marker("thorough")
        n = min(marker.kwargs.get("but", 0) if marker else 0, len(family))
        kept = {i * len(family) // n for i in range(n)}
        left |= {item for i, item in enumerate(family) if i not in kept}
    return left


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other parts, and those that `make thorough` alone runs unless THOROUGH=1.

    They are not skipped: a list of thousands would hide those that are skipped for another reason.
    """
    mine = of_part((item.path for item in items), config.getoption("--part") or "")
    later = set() if THOROUGH else left_to_thorough(items)
    kept, left_out = [], []
    for item in items:
        is_kept = item.path in mine and item not in later
        (kept if is_kept else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def pytest_collection_finish() -> None:
    """What is imported and collected by now stays to the end: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_report_header() -> str:
    return f"mutants: MUTANTS_SEED={os.environ['MUTANTS_SEED']} draws the same again"


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """What a test draws from torch does not depend on which tests this process had before."""
    torch.manual_seed(0)


class MakeModel(Protocol):
    """What the fixture `make_model` returns."""

    def __call__(self, *, seed: int = 0, **config: Any) -> Transformer: ...


@pytest.fixture(scope="session")
def make_model() -> MakeModel:
    """make_model(seed=0, **config) -> a tiny Transformer in eval mode, every parameter of it perturbed.

    Fields of ModelConfig override TINY; without layer counts it is a two-layer decoder. Perturbed, because
    fresh norms are all ones and fresh biases all zeros: a model that mixes them up would compute the same.
    """

    def make(*, seed: int = 0, **config: Any) -> Transformer:
        if not config.get("n_encoder_layers") and "n_decoder_layers" not in config:
            config["n_decoder_layers"] = 2
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = Transformer(ModelConfig(**(TINY | config)))
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(0.1 * torch.randn_like(parameter))
        return model.eval()

    return make


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of this machine's Chromium; `make test` has seen to it that there is one."""
    path = browsers.find()
    if path is None:
        pytest.skip("no Chromium or Chrome on this machine: `make test` says how to install one")
    return path


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """The one browser of this process; Playwright starts no second one next to it."""
    from tests.app.browsing import browsing  # it brings the application, which few tests of core need
    from tests.app.far import busy

    with browsing(chromium) as browser:
        yield busy(browser)
