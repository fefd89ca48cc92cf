"""A key that config.json leaves out has the default of the published class, for every class and every key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from core.checkpoints.families import DEFAULTS, FAMILIES
from core.checkpoints.family import SourceConfig
from core.checkpoints.loading import config_from, family_of
from core.errors import CheckpointError
from core.model.config import ModelConfig

NO_SIZE = ("model_type", "architectures", "transformers_version", "dtype", "torch_dtype")


def read(values: dict[str, Any]) -> ModelConfig:
    """Our config of a config.json, with values that mean the same written in one way."""
    theirs = SourceConfig(values)
    config = config_from(family_of(theirs, stored=False), theirs)
    every = tuple(range(max(config.n_encoder_layers, config.n_decoder_layers)))
    windowed = every if config.window and config.windowed_layers is None else config.windowed_layers
    return replace(config, windowed_layers=windowed, attn_scale=config.attn_scale or config.d_head**-0.5)


def opened() -> list[str]:
    """Families whose published class opens with its own defaults."""
    found = []
    for name in sorted(FAMILIES):
        if name not in CONFIG_MAPPING:
            continue
        try:
            read(CONFIG_MAPPING[name]().to_dict())
        except CheckpointError:
            continue
        found.append(name)
    return found


OPENED = opened()


def test_nearly_all_families_open_with_the_defaults_of_their_class() -> None:
    assert len(OPENED) >= 60
    assert set(DEFAULTS) <= set(OPENED)


@pytest.mark.parametrize("name", OPENED)
def test_an_absent_key_has_the_default_of_the_published_class(name: str) -> None:
    published = CONFIG_MAPPING[name]
    whole = published().to_dict()
    wrong = {}
    for key in whole:
        if key in NO_SIZE:
            continue
        cut = {one: value for one, value in whole.items() if one != key}
        try:
            theirs = read(published(**{one: value for one, value in cut.items() if one != "model_type"}).to_dict())
            ours = read(cut)
        except CheckpointError:  # a size that we require, and that no published file leaves out
            continue
        if ours != theirs:
            wrong[key] = (ours, theirs)
    assert not wrong


def test_a_value_that_is_there_wins_and_null_is_no_absent_key() -> None:
    mixtral = CONFIG_MAPPING["mixtral"]().to_dict() | {"rope_parameters": None}
    assert read(mixtral).rotary_base == 1_000_000
    assert read(mixtral | {"rope_theta": 5000.0}).rotary_base == 5000
    assert read(mixtral | {"rope_parameters": {"rope_theta": 7000.0, "rope_type": "default"}}).rotary_base == 7000
    mistral = CONFIG_MAPPING["mistral"]().to_dict()
    assert read(mistral | {"num_key_value_heads": None}).n_kv_heads in (0, mistral["num_attention_heads"])
    apertus = CONFIG_MAPPING["apertus"]().to_dict()
    scaling = {"rope_type": "default", "rope_theta": 9000.0}
    assert read(apertus | {"rope_parameters": None}).rotary_scaling is not None
    assert read(apertus | {"rope_parameters": scaling}).rotary_scaling is None
