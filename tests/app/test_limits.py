"""Numbers in links: every one has bounds, however long it is written, and closed forms do not count layers one by one."""

from __future__ import annotations

import random
import resource

import pytest

import core
from app.session import idle
from app.sizes import controls
from app.transport import files
from app.transport.limits import BOUNDS, MOST_DIGITS, bounded, read, whole
from core.plan import PRESETS, with_layers

LONG = "1" * 5000  # more digits than Python reads


@pytest.mark.parametrize("name", BOUNDS)
def test_only_what_is_within_the_bounds_is_read(name: str):
    low, high = BOUNDS[name]
    assert [bounded(name, str(low)), bounded(name, str(high))] == [low, high]
    for text in (str(high + 1), str(low - 1), "199999999999999", LONG, "", " 1", "1.0", "1e3", "+1", "٣", "-0", "NaN"):
        with pytest.raises(ValueError, match="whole number"):
            bounded(name, text)


@pytest.mark.parametrize("name", controls.SIZES)
def test_every_slider_has_its_bounds_and_can_stand_where_it_says(name: str):
    low, high = BOUNDS[f"plan_{name}"]
    assert low <= min(controls.SIZES[name]) and max(controls.SIZES[name]) <= high


def test_a_number_is_read_as_it_is_written():
    draw = random.Random(0)
    for _ in range(500):
        number = draw.randrange(10 ** draw.randrange(1, MOST_DIGITS))
        assert read(str(number)) == whole(str(number), 0, number) == number
        assert read(f"{number}{draw.choice('.,-x ²')}") is None


@pytest.mark.parametrize("preset", ["gpt2", "mistral-7b", "transformer-base"])
def test_more_layers_than_anybody_could_count_are_planned(preset: str):
    """A link once pinned a thread: each million layers took it longer. With 10^15 a loop would never end."""
    config = PRESETS[preset].config
    n, target_len = 10**15, 16 if config.kind == "encoder-decoder" else 0
    one, two, deep = (
        core.plan(with_layers(config, layers), source_len=16, target_len=target_len) for layers in (1, 2, n)
    )
    each = two.parameters.total - one.parameters.total
    assert deep.parameters.total == one.parameters.total + (n - 1) * each
    assert deep.kv_cache.total == n * one.kv_cache.total


@pytest.mark.parametrize("windowed", [None, (), (0,), (1, 3), (0, 1, 2, 3, 4)])
def test_windowed_layers_are_counted_as_one_by_one(windowed: tuple[int, ...] | None):
    config = core.ModelConfig(
        vocab_size=5, d_model=8, n_heads=2, d_ff=8, n_decoder_layers=5, window=3, windowed_layers=windowed
    )
    for n in range(6):
        assert config.n_windowed(n) == sum(config.is_windowed(layer) for layer in range(n))


@pytest.mark.parametrize("value", ["0", "-3", "soon", "nan", "inf", ""])
def test_minutes_that_say_nothing_are_refused_when_the_server_starts(value: str):
    with pytest.raises(ValueError, match="HEADLIGHT_IDLE_MINUTES"):
        idle.seconds(value)
    assert (idle.seconds("0.5"), idle.seconds(idle.DEFAULT)) == (30, 1800)


END = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("before", "gives", "after", "said"),
    [
        ((1024, 524288), True, 524288, False),  # a service of systemd
        ((1024, 4096), True, 4096, True),
        ((256, END), True, files.OTHERS + 1000 * files.EACH, False),
        ((256, END), False, 256, True),  # macOS, where it does have an end
        ((END, END), True, END, False),
    ],
)
def test_a_server_asks_for_as_many_open_files_as_its_visitors_need(
    before: tuple[int, int],
    gives: bool,
    after: int,
    said: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    now = [before]

    def ask(_: int, wanted: tuple[int, int]) -> None:
        if not gives:
            raise ValueError("current limit exceeds maximum limit")
        now.append(wanted)

    monkeypatch.setattr(resource, "getrlimit", lambda _: before)
    monkeypatch.setattr(resource, "setrlimit", ask)
    files.allow(1000)
    assert now[-1] == (after, before[1])
    assert ("files open; 1,000 visitors need" in caplog.text) is said
