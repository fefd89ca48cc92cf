"""Published chat templates, small tokenizers that have their special tokens, and a small chat model in a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import core
from core.checkpoints import Loaded
from core.model.chat import ChatTemplate

# As their authors published them: Apache-2.0 (SmolLM2, Qwen2.5, Mistral), MIT (Phi-3, Zephyr); of Llama 3 and Gemma the form that
# their documentation states. Without the branches for tools.
TEMPLATES: dict[str, tuple[str, str, str]] = {  # text, bos_token, eos_token
    "SmolLM2": (
        "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
        "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
        "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "<|im_start|>",
        "<|im_end|>",
    ),
    "Qwen2.5": (
        "{%- if messages[0]['role'] == 'system' %}\n"
        "    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}\n"
        "{%- else %}\n"
        "    {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}\n"
        "{%- endif %}\n"
        "{%- for message in messages %}\n"
        '    {%- if (message.role == "user") or (message.role == "system" and not loop.first) '
        'or (message.role == "assistant" and not message.tool_calls) %}\n'
        "        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n"
        "    {%- endif %}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}\n"
        "    {{- '<|im_start|>assistant\\n' }}\n"
        "{%- endif %}\n",
        "<|endoftext|>",
        "<|im_end|>",
    ),
    "Llama 3": (
        "{% set loop_messages = messages %}{% for message in loop_messages %}"
        "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}"
        "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
        "<|begin_of_text|>",
        "<|eot_id|>",
    ),
    "Gemma": (
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
        "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}"
        "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
        "<bos>",
        "<eos>",
    ),
    "Mistral": (
        "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
        "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
        "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}"
        "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}",
        "<s>",
        "</s>",
    ),
    "Phi-3": (
        "{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}"
        "{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}"
        "{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}",
        "<s>",
        "<|endoftext|>",
    ),
    "Zephyr": (
        "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n"
        "{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token }}\n"
        "{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n"
        "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}",
        "<s>",
        "</s>",
    ),
}
SPECIAL = (
    "<|endoftext|> <|im_start|> <|im_end|> <|begin_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> <bos> <eos> "
    "<start_of_turn> <end_of_turn> <s> </s> <|system|> <|user|> <|assistant|> <|end|> <unk>"
)  # of all of them


def template(name: str) -> ChatTemplate:
    text, bos, eos = TEMPLATES[name]
    return ChatTemplate(text, (("bos_token", bos), ("eos_token", eos)))


def chat_tokenizer(name: str) -> Tokenizer:
    """A byte-level tokenizer that puts the model's first token before every text, as those of Llama and Gemma do."""
    bos = TEMPLATES[name][1]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=[AddedToken(text, special=True) for text in SPECIAL.split()],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["user system assistant model helpful the name of Hello there"] * 4, trainer)
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]),
        ]
    )
    return tokenizer


def chat_model(name: str = "SmolLM2") -> Loaded:
    """A small decoder with random weights that reads conversations as a published model does."""
    tokenizer = chat_tokenizer(name)
    sizes: dict[str, Any] = {"d_model": 24, "n_heads": 3, "d_head": 8, "d_ff": 32, "n_decoder_layers": 2, "n_ctx": 512}
    built = core.build(core.ModelConfig(vocab_size=tokenizer.get_vocab_size(), **sizes), seed=3)
    return replace(built, tokenizer=tokenizer, no_tokenizer="", chat_template=template(name))


def write_chat_model(folder: Path, name: str = "SmolLM2") -> Path:
    core.save(chat_model(name), folder)
    return folder
