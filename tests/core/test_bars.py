"""Bars: for a person at a terminal or in a notebook alone; and Ctrl-C leaves everything as it was."""

from __future__ import annotations

import io
import sys
import threading
import types
from pathlib import Path

import pytest
import torch

import core as hl
from core import progress
from core.model.hooks import ReadHook, hooked


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def see(monkeypatch: pytest.MonkeyPatch, errors: io.StringIO, **modules: object) -> None:
    """Errors go there, for bars alone: pytest has its own for each part of a test."""
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=errors, modules={**sys.modules, **modules}))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Errors go to a terminal, and a bar is there at once."""
    found = Terminal()
    see(monkeypatch, found)
    monkeypatch.setattr(progress, "DELAY", 0)
    monkeypatch.setattr(progress, "REST", 0)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    return found


def test_a_run_shows_its_layers(terminal: Terminal) -> None:
    loaded = hl.load("copy")
    run = hl.trace(loaded, "abc=abc")
    said = terminal.getvalue()
    assert f"{loaded.spec.title}, {len(run.source.labels)} tokens" in said
    assert f"{len(run.attention)}/{len(run.attention)}" in said and "attention" in said


def test_an_encoder_decoder_counts_its_cross_attention(terminal: Terminal) -> None:
    run = hl.trace(hl.load("translator"), "Ein Hund", "A dog")
    assert f"{len(run.attention)}/{len(run.attention)}" in terminal.getvalue()


def test_loading_tells_the_bytes_of_what_takes_long(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    from core import checkpoints

    real = checkpoints.locate

    def slowly(spec, progress):
        for done in (0, 3_000_000, 10_000_000):
            progress("model.safetensors", done, 10_000_000)
        return real(spec, progress)

    monkeypatch.setattr(checkpoints, "locate", slowly)
    hl.load("copy")
    assert "model.safetensors" in terminal.getvalue() and "10.0M/10.0M" in terminal.getvalue()


def test_what_is_watched_otherwise_has_no_bar(terminal: Terminal) -> None:
    heard: list[int] = []
    loaded = hl.load("copy", progress=lambda *_: None)
    hl.trace(loaded, "abc=abc", watch=lambda so_far: heard.append(len(so_far.attention)))
    assert heard and terminal.getvalue() == ""


def test_a_pipe_a_switch_and_a_server_have_none(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = hl.load("copy")
    terminal.truncate(0)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    hl.trace(loaded, "abc=abc")
    monkeypatch.delenv("TQDM_DISABLE")
    server = threading.Thread(target=hl.trace, args=(loaded, "abc=abc"))  # as a server runs it
    server.start()
    server.join()
    assert terminal.getvalue().strip("\0") == ""
    see(monkeypatch, file := io.StringIO())
    hl.trace(loaded, "abc=abc")
    assert file.getvalue() == ""


def test_a_notebook_is_watched_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = types.SimpleNamespace(kernel=object())
    see(monkeypatch, io.StringIO(), IPython=types.SimpleNamespace(get_ipython=lambda: shell))
    assert progress.is_watched()
    del shell.kernel  # IPython in a pipe
    assert not progress.is_watched()


def test_ctrl_c_in_a_run_leaves_the_model_as_it_was(terminal: Terminal) -> None:
    loaded = hl.load("copy")
    before = hl.trace(loaded, "abc=abc").attention[1].pattern()

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    name = "decoder.blocks.1.hook_resid_mid"
    with pytest.raises(KeyboardInterrupt), hooked(loaded.model, {name: ReadHook(stop)}):
        hl.trace(loaded, "abc=abc")
    after = hl.trace(loaded, "abc=abc")
    assert torch.equal(after.attention[1].pattern(), before)
    assert not [hook for hook in loaded.model.modules() if getattr(hook, "_forward_hooks", None)]


def test_ctrl_c_while_loading_leaves_nothing_behind(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    from core import checkpoints

    def stop(*_: object) -> tuple[object, Path]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "locate", stop)
        with pytest.raises(KeyboardInterrupt):
            hl.load("copy")
    assert hl.trace(hl.load("copy"), "abc=abc").attention
