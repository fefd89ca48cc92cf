"""Reads chat templates, from chat_template.jinja or tokenizer_config.json, and the special tokens that they use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from ..model.chat import ChatTemplate
from ..model.templates import LONGEST_TEMPLATE
from .added_tokens import CONFIG, ROLES_FILE
from .family import shown
from .files import read_json

TEMPLATE = "chat_template.jinja"
# Default tokens of tokenizer classes in transformers.
END = "<|endoftext|>"
CLASS_TOKENS: Mapping[str, Mapping[str, str | None]] = {
    "LlamaTokenizer": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
    "GemmaTokenizer": {
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    },
    "GPT2Tokenizer": {"bos_token": END, "eos_token": END, "unk_token": END},
    "GPTNeoXTokenizer": {"bos_token": END, "eos_token": END, "unk_token": END, "pad_token": "<|padding|>"},
    "Qwen2Tokenizer": {"eos_token": END, "unk_token": END, "pad_token": END},
    "CohereTokenizer": {
        "bos_token": "<BOS_TOKEN>",
        "eos_token": "<|END_OF_TURN_TOKEN|>",
        "unk_token": "<UNK>",
        "pad_token": "<PAD>",
        "cls_token": "<CLS>",
        "sep_token": "<SEP>",
        "mask_token": "<MASK_TOKEN>",
    },
}
CLASSES = {  # of a model type, if the settings name no class
    **dict.fromkeys(("llama", "mistral", "mixtral"), "LlamaTokenizer"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text", "gemma3"), "GemmaTokenizer"),
    **dict.fromkeys(("qwen2", "qwen3", "qwen2_moe", "qwen3_moe"), "Qwen2Tokenizer"),
    **dict.fromkeys(("cohere", "cohere2"), "CohereTokenizer"),
    "gpt2": "GPT2Tokenizer",
    "gpt_neox": "GPTNeoXTokenizer",
}
DEFAULT = "default"  # name of the template for conversations without tools


def read_chat_template(folder: Path) -> tuple[ChatTemplate | None, tuple[str, ...]]:
    """The template, or None, and a notice about a template that cannot be used.

    As in transformers, a separate file takes precedence. Nothing is raised, because the model can be used without its template.
    """
    try:
        settings = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
        file = folder / TEMPLATE
        text = _own_file(file) if file.is_file() else _stated(settings.get("chat_template"))
        if text is None:
            return None, ()
        tokens = _tokens(_merged({**_of_class(folder, settings), **settings}, folder / ROLES_FILE))
    except CheckpointError as error:
        return None, (f"The chat template of this model is not used. {error}",)
    return ChatTemplate(text, tokens), ()


def settings_of(template: ChatTemplate) -> dict[str, Any]:
    """Content of a tokenizer_config.json from which read_chat_template() reads this template."""
    return {**dict(template.tokens), "chat_template": template.text}


def _own_file(path: Path) -> str:
    try:
        if path.stat().st_size > 4 * LONGEST_TEMPLATE:
            raise CheckpointError(f"{path.name} is larger than any published file of that name.")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path.name} cannot be read as text. Download it again.") from error


def _stated(value: Any) -> str | None:
    """The template in the settings: a string, or the default or only one of several named ones."""
    if value is None:
        return None
    if isinstance(value, list):
        named = {
            each["name"]: each["template"]
            for each in value
            if isinstance(each, dict) and isinstance(each.get("name"), str) and isinstance(each.get("template"), str)
        }
        value = next(iter(named.values())) if len(named) == 1 else named.get(DEFAULT)
        if value is None:
            names = f"It has {shown(', '.join(named))}" if named else "It has none with a name"
            raise CheckpointError(f"{CONFIG}: chat_template is a list without a template called {DEFAULT}. {names}.")
    if not isinstance(value, str):
        raise CheckpointError(
            f"{CONFIG}: chat_template is {shown(value)}, but it must be a text, or a list of named ones."
        )
    return value or None


def _of_class(folder: Path, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Default tokens of the tokenizer's class."""
    name = settings.get("tokenizer_class")
    if name is None and (folder / "config.json").is_file():
        kind = read_json(folder / "config.json").get("model_type")
        name = CLASSES.get(kind) if isinstance(kind, str) else None
    return CLASS_TOKENS.get(name.removesuffix("Fast"), {}) if isinstance(name, str) else {}


def _merged(settings: Mapping[str, Any], roles: Path) -> Mapping[str, Any]:
    """The settings, overridden by special_tokens_map.json, which is ignored if there is added_tokens_decoder, as in transformers."""
    if "added_tokens_decoder" in settings or not roles.is_file():
        return settings
    return {**settings, **read_json(roles)}


def _tokens(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Named special tokens, such as bos_token and names of the model's own. A value is a string or an object with its text."""
    tokens = {}
    own = [settings.get(key) for key in ("model_specific_special_tokens", "extra_special_tokens")]
    named = {key: value for part in own if isinstance(part, dict) for key, value in part.items()}
    roles = {key: value for key, value in settings.items() if key.endswith("_token")}
    for key, value in {**roles, **named}.items():
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            tokens[key] = text
    return tuple(sorted(tokens.items()))
