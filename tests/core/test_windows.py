"""Windows of config.json files that leave `sliding_window` out, or set it to null: each means what it means to the published class."""

from __future__ import annotations

from typing import Any

import pytest
import transformers as hf
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from core.checkpoints.families import FAMILIES
from core.checkpoints.from_config import read_config
from core.errors import CheckpointError
from core.model.config import ModelConfig

LAYERS = 8
SIZES: dict[str, Any] = {
    "vocab_size": 53,
    "hidden_size": 64,
    "intermediate_size": 41,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "head_dim": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
WINDOWED = sorted(
    name
    for name in FAMILIES
    if name in CONFIG_MAPPING
    and hasattr(CONFIG_MAPPING[name](), "sliding_window")
    and not name.startswith("modernbert")
)
MORE: list[dict[str, Any]] = [{}, {"use_sliding_window": True, "max_window_layers": 3}]
CASES = [
    (name, more)
    for name in WINDOWED
    for more in MORE
    if not more or "use_sliding_window" in CONFIG_MAPPING[name]().to_dict()
]


def stated(name: str, more: dict[str, Any]) -> dict[str, Any]:
    """A config.json of a family that says nothing of its window."""
    values = CONFIG_MAPPING[name](**SIZES, **more).to_dict()
    return {key: value for key, value in values.items() if key not in ("sliding_window", "layer_types")} | more


def theirs(name: str, values: dict[str, Any]) -> dict[int, int]:
    """{layer: its window} of the published class."""
    config = CONFIG_MAPPING[name](**{key: value for key, value in values.items() if key != "model_type"})
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"] * LAYERS
    window = config.sliding_window
    return {i: window for i, kind in enumerate(kinds) if kind == "sliding_attention" and window}


def ours(config: ModelConfig) -> dict[int, int]:
    assert config.window is not None or config.windowed_layers is None
    return {i: config.window for i in range(LAYERS) if config.window is not None and config.is_windowed(i)}


def refused(name: str, values: dict[str, Any]) -> bool:
    """Whether a family's configuration is one that we refuse by name."""
    return any(values.get(key) not in (None, *allowed) for key, allowed in FAMILIES[name].requires.items())


def test_the_families_that_are_tried() -> None:
    assert {"mistral", "mixtral", "qwen2", "qwen3", "phi3", "gemma2", "gemma3_text", "starcoder2", "cohere2"} <= {
        *WINDOWED
    }


@pytest.mark.parametrize(("name", "more"), CASES)
def test_a_window_that_is_left_out_is_the_classs_own(name: str, more: dict[str, Any]) -> None:
    values = stated(name, more)
    if refused(name, values):
        with pytest.raises(CheckpointError, match="is not supported"):
            read_config(values)
        return
    assert ours(read_config(values)) == theirs(name, values)


@pytest.mark.parametrize(("name", "more"), CASES)
def test_a_window_of_null_is_none(name: str, more: dict[str, Any]) -> None:
    values = stated(name, more) | {"sliding_window": None}
    if refused(name, values):
        return
    try:
        found = ours(read_config(values))
    except CheckpointError as error:  # a model with layers that have a window, and no width for it
        assert "window" in str(error)
        return
    assert found == {}
    if name != "exaone4":  # whose class divides by zero there, unless the file names the type of every layer
        assert theirs(name, values) == {}


def test_mistral_has_the_window_of_its_class() -> None:
    """Mistral-7B-v0.1 states 4096; those after it state null."""
    assert hf.MistralConfig().sliding_window == 4096
    values = stated("mistral", {})
    assert read_config(values).window == 4096
    assert read_config(values | {"sliding_window": None}).window is None
    assert read_config(values | {"sliding_window": 7}).window == 7
