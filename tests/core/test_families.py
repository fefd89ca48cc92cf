"""The tables carry weight: every row is used by some model, and no two rows can change places unnoticed."""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
from collections.abc import Iterator
from functools import cache

import pytest
import torch
from torch import Tensor

from core.checkpoints import load, loading
from core.checkpoints.families import FAMILIES
from core.checkpoints.family import Family, SourceConfig
from core.checkpoints.files import Stored, read_json, stored_tensors
from core.errors import CheckpointError
from core.model.transformer import Transformer
from tests.core.published import COVERED, PUBLISHED, reference
from tests.thorough import THOROUGH, part

NOTICED = 1e-4  # ten times what parity allows
# Norms of q and k after they turn: each score has the product of both weights, whichever is whose.
# Biases that DeBERTa has not are zeros.
ALIKE = {
    ("deberta", "encoder.blocks.{i}.attn.k.bias", "encoder.blocks.{i}.attn.k_distance.bias"),
    ("hunyuan_v1_dense", "{stack}.blocks.{i}.attn.q_norm", "{stack}.blocks.{i}.attn.k_norm"),
}
SAMPLED = 6  # swaps of each family that a run of the tests tries


@cache
def cases() -> dict[str, list[str]]:
    """The tested models of each family."""
    found: dict[str, list[str]] = {}
    for name, case in (PUBLISHED | COVERED).items():
        found.setdefault(case.model.config_class.model_type, []).append(name)
    return found


OLD = {case.model.config_class.model_type for case in PUBLISHED.values()}
FEW = [*sorted(OLD), *part([name for name in FAMILIES if name in cases() and name not in OLD], 8)]


def build(name: str, tensors: dict[str, Stored]) -> Transformer:
    theirs = SourceConfig(read_json(reference(name).folder / "config.json"))
    return loading.assemble(theirs, tensors, torch.device("cpu"), torch.float32)[0]


def distance(model: Transformer, name: str) -> float:
    """How far the logits are from those of transformers."""
    theirs = reference(name).runs[0]
    with torch.inference_mode():
        ours: Tensor = model(theirs.source, theirs.target)
    return float("inf") if ours.shape[1:] != theirs.out.shape else (ours[0] - theirs.out).abs().max().item()


def rows_used(name: str) -> set[str]:
    """The rows of the table that one model's parameters were read through."""
    family, used = FAMILIES[load(reference(name).folder).spec.family], set()

    class Watched(dict[str, object]):
        def __getitem__(self, row: str) -> object:
            used.add(row)
            return super().__getitem__(row)

    FAMILIES[family.model_type] = dataclasses.replace(family, weights=Watched(family.weights))  # type: ignore[arg-type]
    try:
        load(reference(name).folder)
    finally:
        FAMILIES[family.model_type] = family
    return used


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("model_type", FEW)
def test_every_row_is_used(model_type: str) -> None:
    used = set().union(*(rows_used(name) for name in cases()[model_type]))
    assert used == FAMILIES[model_type].weights.keys()


def mutants(family: Family) -> Iterator[tuple[str, str, Family]]:
    """The family with two of its rows swapped, for every two that name places of the same kind, in an order by the seed."""
    pairs = [(a, b) for a, b in itertools.combinations(family.weights, 2) if ("{i}" in a) == ("{i}" in b)]
    random.Random(os.environ["MUTANTS_SEED"]).shuffle(pairs)
    for a, b in pairs:
        rows = dict(family.weights)
        rows[a], rows[b] = rows[b], rows[a]
        yield a, b, dataclasses.replace(family, weights=rows)


@pytest.mark.thorough(but=8)
@pytest.mark.parametrize("model_type", FEW)
def test_no_two_rows_can_be_swapped(model_type: str) -> None:
    """Of some swaps, other ones at each run, or of all of them: `make thorough`."""
    family = FAMILIES[model_type]
    named = {name: stored_tensors(reference(name).folder) for name in cases()[model_type]}
    loaded, survivors = 0, []
    try:
        for n, (a, b, mutant) in enumerate(mutants(family)):
            if n >= SAMPLED and loaded > 0 and not THOROUGH:
                break
            FAMILIES[model_type] = mutant
            noticed = False
            for name, tensors in named.items():
                try:
                    noticed = distance(build(name, tensors), name) > NOTICED
                except (CheckpointError, KeyError, RuntimeError):  # it does not even load
                    noticed = True
                else:
                    loaded += 1
                if noticed:
                    break
            if not noticed and (model_type, a, b) not in ALIKE:
                survivors.append((a, b))
    finally:
        FAMILIES[model_type] = family
    assert loaded > 0
    assert survivors == []
