"""What travels between machines: every record of the Service as it was, bit for bit, and nothing that nobody of ours wrote."""

from __future__ import annotations

import pickle
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from cluster import remote, wire
from core import errors
from core.edits import KINDS, Ablate, EditMask, Intervention
from core.run.request import Request
from core.service import MapTransform, Service

VALUES = [
    None,
    True,
    1 << 80,
    -0.0,
    float("inf"),
    5e-324,
    "ä\ud800\0",
    (),
    (1, (2.5, "three")),
    range(1, 9, 2),
    [1, [2]],
    {1: "a", ("b", 2): (3,)},
    b"\0\xff",
    np.float32(0.1),
    np.array(3, dtype=np.int64),
    np.zeros((0, 3), np.uint8),
    np.arange(24, dtype=np.float32).reshape(2, 3, 4)[:, ::2].transpose(2, 0, 1),
    Request("copy", ("a", "b"), "c", (EditMask("decoder", keys=(1, range(3, 6))), Ablate("decoder", 0, 1)), "left", 3),
    MapTransform(1, 2, "mean", ((0, 1), (2, 3)), (4,), True),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_out_as_it_went_in(value: Any) -> None:
    back = wire.unpacked(wire.packed(value))
    assert type(back) is type(value)
    if isinstance(value, np.ndarray):
        assert back.dtype == value.dtype and back.shape == value.shape
        assert back.tobytes() == value.tobytes()
    else:
        assert back == value and repr(back) == repr(value)


def test_a_number_that_is_none_keeps_its_bits() -> None:
    odd = np.array([np.nan, -np.nan, np.inf, -0.0], np.float32)
    assert wire.unpacked(wire.packed((odd,)))[0].tobytes() == odd.tobytes()


@pytest.mark.parametrize("name", sorted(wire.CALLS))
def test_all_that_a_call_takes_and_gives_may_travel(name: str) -> None:
    """So a call that is added to Service works from other machines too, or this test says which of its types does not."""
    known = {*wire.PLAIN, bytes, np.ndarray, Intervention, Any}

    def check(kind: Any, seen: frozenset[Any] = frozenset()) -> None:
        if kind in known or kind in seen or kind is Ellipsis:
            return
        if get_origin(kind) is Literal:
            return
        if get_origin(kind) in (tuple, list, dict, Union, UnionType, Sequence, Mapping, AsyncGenerator):
            for part in get_args(kind):
                check(part, seen)
            return
        assert is_dataclass(kind), f"{kind} is no plain data"
        assert kind in wire.records().values()
        for part in get_type_hints(kind).values():
            check(part, seen | {kind})

    for kind in get_type_hints(getattr(Service, name)).values():
        check(kind)


def test_every_edit_may_travel() -> None:
    assert {*KINDS.values()} <= {*wire.records().values()}


class Own:
    """No record of anybody's."""


@pytest.mark.parametrize("value", [Own(), {1, 2}, np.array([Own()]), 1j])
def test_nothing_else_may_travel(value: Any) -> None:
    with pytest.raises(TypeError, match="not named by the annotations of a Service"):
        wire.packed(value)


def header(text: str) -> bytes:
    return len(text).to_bytes(4, "little") + text.encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\1\0",
        pickle.dumps(Request("copy", ("a",))),
        header("{}"),
        header('{"record":["os.system",["true"]]}'),
        header('{"record":["core.run.request.Request",["copy"]]}'),
        header('{"record":["core.learn.watched_training.Spec",["no such task","none",0,1,0]]}'),
        header('{"array":["|O",[1],0]}'),
        header('{"array":["<f4",[1000000],0]}'),
        header('{"array":["<f4",[-1],0]}'),
        header('{"bytes":[0,1]}'),
        header('{"bytes":[-8,4]}'),
        header("[" * 100_000),
    ],
)
def test_what_nobody_of_ours_wrote_is_refused(body: bytes) -> None:
    with pytest.raises(wire.Unreadable):
        wire.unpacked(body)


def test_bytes_with_a_flaw_are_refused_or_mean_something_else() -> None:
    whole = wire.packed(({"key": "a" * 64, "of": MapTransform(1, 2)}, (Request("copy", ("abc",)),), np.arange(9.0)))
    rng = random.Random(3)
    outcomes = set()
    for _ in range(2_000):
        body = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        try:
            wire.unpacked(bytes(body[: rng.choice((None, rng.randrange(len(body))))]))
            outcomes.add("read")
        except wire.Unreadable:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


@pytest.mark.parametrize("kind", [*wire.REFUSALS.values()], ids=lambda kind: kind.__name__)
def test_a_refusal_keeps_its_kind_and_its_sentence(kind: type[Exception]) -> None:
    ((number, body),) = remote.Frames().of(wire.refusal(kind("Too long by 3.")))
    with pytest.raises(kind, match="Too long by 3") as caught:
        remote.opened(number, body)
    assert type(caught.value) is kind


def test_what_broke_stays_there() -> None:
    ((number, body),) = remote.Frames().of(wire.refusal(KeyError("/secret/place")))
    with pytest.raises(RuntimeError) as caught:
        remote.opened(number, body)
    assert "secret" not in str(caught.value) and not isinstance(caught.value, errors.HeadlightError)


def test_frames_come_out_of_any_pieces() -> None:
    whole = wire.frame(wire.VALUE, b"abc") + wire.frame(wire.BEAT) + wire.frame(wire.VALUE, b"x" * 300)
    for size in (1, 7, 1000):
        frames = remote.Frames()
        found = [one for at in range(0, len(whole), size) for one in frames.of(whole[at : at + size])]
        assert found == [(wire.VALUE, b"abc"), (wire.BEAT, b""), (wire.VALUE, b"x" * 300)]
