"""Captions and help texts of the shared setup of sizes. Names in braces are filled in where the words are used."""

from typing import Literal

from app import languages

# controls
PRESET = "Sizes of"
PRESET_HELP = "The model and the sentence above, the config.json of any model, or a known model. It sets the sliders below, and every one of them can be moved from there."
CHANGE = "Change the model"
OF_RUN = "The run above"
PASTED = "A config.json"
PASTE_BOX = "Sizes"
PASTE = "config.json of a model, as text"
PASTE_HELP = (
    "Copy the file from the model's page on the Hub, or drop it anywhere onto this page. Its weights are not needed. What Headlight reads "
    "of it goes into the address of this page, so that a link brings the same model back."
)
PASTE_FIRST = "Paste the text of a model's config.json into “Sizes” to see it here."
PASTE_NO_JSON = "This is not JSON: line {line}, column {column}: {message}. Paste the whole file, from {{ to }}."
PASTE_CUT_OFF = (
    "The text ends before the file does: {open} {brackets} still open at its end. Paste the whole file, from {{ to }}."
)
BRACKETS = ("bracket is", "brackets are")
PASTE_MORE = (
    "The config ends in line {line}, and more text follows: “{rest}”. Paste one config.json and nothing after it."
)
PASTE_PAGE = (
    "This is a web page, and not the file. On the Hub, open config.json, choose “raw”, and copy the text from there."
)
PASTE_PYTHON = "This is a Python dict (line {line}, column {column}): JSON has double quotes, true, false and null. Print it with json.dumps(…) and paste that."
PASTE_TWICE = "“{key}” is there twice, with {first} and with {second}. Leave the one that holds."
PASTE_NO_NUMBER = "“{key}” is {value}, which is no number of JSON. Write the number that the model has."
PASTE_STRANGE = "This is JSON, but nested too deep or with a number too long for the config of a model. Paste the file as it is on the Hub."
PASTE_NO_OBJECT = 'This is JSON, but not the config of a model, which is an object: {"model_type": …}.'
PASTE_TOO_LONG = "This text has {n:,} characters; the config.json of a model has a few thousand. Paste that file alone."
PASTE_NO_LINK = "This config is too long for a link ({n:,} characters; a link has room for {most:,}). Anyone who opens the link has to paste it again."
CONFIG_IN_LINK = "a whole link that this page made of a config.json; or paste the file again into “Sizes”"
PHASE = "What it does"
PHASES = {"inference": "run", "training": "train", "adapters": "train adapters"}
LABELS = {
    "batch": ("Batch", "How many texts at once: in a run for writing, how many chats."),
    "tokens": ("Tokens", "The length of each text, in tokens."),
    "source": ("Source tokens", "The length of the text that comes in, in tokens."),
    "target": ("Target tokens", "The length of the text that the decoder writes, in tokens."),
    "d_model": ("d_model", "Width of the residual stream: numbers for each token."),
    "heads": ("Heads", "Query heads of a layer; d_model is shared among them."),
    "kv_heads": ("KV heads", "Heads of keys and values. As many as heads: MHA. One: MQA. Between: GQA."),
    "layers": ("Layers", "Layers of each stack."),
    "d_ff": ("d_ff", "Width of the hidden layer of the MLP."),
    "vocab": ("Vocabulary", "How many different tokens there are."),
    "dtype": ("Data type", "The format of weights and activations: 4 bytes each for float32, 2 for the others."),
    "attention": (
        "Attention",
        "flash and efficient: one fused kernel, which never writes scores and weights. eager: they are tensors.",
    ),
    "optimizer": ("Optimizer", "Adam and AdamW hold two float32 numbers for each parameter, momentum one, SGD none."),
    "recompute": (
        "Recompute",
        "none: everything is kept for the backward pass. attention: scores and weights are computed again. "
        "full: only the input of each layer is kept.",
    ),
    "weights": (
        "Weights’ data type",
        "The format of the weights alone, scales included. int8, int4 (GPTQ, AWQ) and nf4 leave tables and norms as they are; "
        "Q4_K_M and the like are the mixes of GGUF files, as llama.cpp makes them.",
    ),
    "kv": ("KV cache’s data type", "The format of the KV cache, scales included."),
    "piece": (
        "Prompt in pieces",
        "How many tokens of a prompt go through the layers at once, over all chats: llama.cpp 512, vLLM 2,048. Only their "
        "activations are ever there.",
    ),
    "logits": (
        "Logits kept",
        "Writing needs the scores of the last position of each text alone. Some programs keep those of every position.",
    ),
    "rank": (
        "Rank of the adapters",
        "LoRA: beside each matrix of the layers, which stays as it is, two narrow ones are trained, this many numbers wide.",
    ),
    "dropout": ("Dropout", "Counts the masks that training with dropout keeps, one byte a number."),
    "devices": ("Compare cards", "Graphics cards whose memory is drawn beside this machine's."),
    "vary": ("Find the largest", "What is made larger until it no longer fits."),
    "device": ("Card", "The card whose rates are the roof."),
}
SHARE_OF_PEAK = "Share of the card's arithmetic"
SAME = "same data type"
PASTED_TITLE = "The model of this config.json"
PIECES = {"at once": 0, "512 tokens at a time": 512, "2,048 tokens at a time": 2048, "8,192 tokens at a time": 8192}
LOGITS: dict[str, Literal["last", "all"]] = {"last position": "last", "every position": "all"}
VARY = {
    "source_len": "source tokens",
    "target_len": "target tokens",
    "batch": "texts in a batch",
    "layers": "layers",
}
LAST_PICTURE = "The picture still shows the last sizes that fit together."
TABLE = "The same as a table"
CUDA = "CUDA figures: derived, not yet checked on a card."
CAPTION_SIZES = (
    "{layers} layers, d_model {d_model}, {heads} heads, {kv_heads} KV heads, d_ff {d_ff}, vocabulary {vocab}"
)
CAPTION_ATTENTION = "{way} attention"
CAPTION_RECOMPUTE = "recompute {what}"
CAPTION_RANK = "adapters of rank {n}"
CAPTION_PIECE = "prompt read {n} tokens at a time"
CAPTION_LOGITS = "logits of every position"
STEP = "Step"
STEPS = {"prefill": "whole text", "decode": "one token"}
COLUMNS = {
    "component": "Part",
    "total": "Total",
    "mib": "MiB",
    "mb": "MB",
    "n": "Tokens",
    "item": "Kept tensor",
    "term": "In the five terms",
    "why": "Why",
    "operation": "Operation",
    "times": "Layers",
    "flops": "FLOPs",
    "useful": "FLOPs of use",
    "formula": "FLOPs, one layer",
    "order": "FLOPs, O()",
    "traffic": "Bytes",
    "moved": "Numbers moved, one layer",
    "moved_order": "Numbers moved, O()",
    "intensity": "FLOPs per byte",
    "limit": "Limit",
    "model": "Model",
    "parameters": "Parameters",
    "published": "Published",
    "source": "Source",
    "layers": "Layers",
    "block": "One block",
    "vocabulary": "Vocabulary",
    "share": "%",
    "measured": "Measured MiB",
    "predicted": "Predicted MiB",
    "step": "Step",
    "microseconds": "µs at least",
}

languages.of(__name__, links=["PHASES", "SAME", "STEPS", "VARY", "PIECES", "LOGITS"])
