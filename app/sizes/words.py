"""Captions and help texts of the shared setup of sizes. Names in braces are filled in where the words are used."""

# controls
PRESET = "Model"
PRESET_HELP = "The model and the sentence above, or a known model. It sets the sliders below, and every one of them can be moved from there."
OF_RUN = "The run above"
PHASE = "What it does"
PHASES = {"inference": "run", "training": "train"}
LABELS = {
    "batch": ("Batch", "How many texts at once."),
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
        "eager: scores and weights are tensors. efficient and flash: one fused kernel, which never writes them.",
    ),
    "optimizer": ("Optimizer", "Adam and AdamW hold two float32 numbers for each parameter, momentum one, SGD none."),
    "recompute": (
        "Recompute",
        "none: everything is kept for the backward pass. attention: scores and weights are computed again. "
        "full: only the input of each layer is kept.",
    ),
    "weights": ("Weights’ data type", "The format of the weights alone. int8 needs one byte each."),
    "kv": ("KV cache’s data type", "The format of the KV cache."),
    "dropout": ("Dropout", "Counts the masks that training with dropout keeps, one byte a number."),
    "devices": ("Compare cards", "Graphics cards whose memory is drawn beside this machine's."),
    "vary": ("Find the largest", "What is made larger until it no longer fits."),
    "device": ("Card", "The card whose rates are the roof."),
}
SAME = "same data type"
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
STEP = "Step"
STEPS = {"prefill": "whole text", "decode": "one token"}
COLUMNS = {
    "component": "Part",
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
