"""Every caption and help text of the memory and compute views. Names in braces are filled in where the words are used."""

MEMORY = "Memory"
COMPUTE = "Compute"

# controls
PRESET = "Model"
PRESET_HELP = "A known model. It sets the sliders below, and every one of them can be moved from there."
PHASE = "What it does"
PHASES = {"inference": "run", "training": "train"}
PART = "Part"
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
    "dtype": ("Numbers", "The format of weights and activations: 4 bytes each for float32, 2 for the others."),
    "attention": (
        "Attention",
        "eager: scores and weights are tensors. efficient and flash: one fused kernel, which never writes them.",
    ),
    "optimizer": ("Optimizer", "Adam and AdamW hold two float32 numbers for each parameter, momentum one, SGD none."),
    "recompute": (
        "Recompute",
        "none: everything is kept for the backward pass. attention: scores and weights are worked out again. "
        "full: only the input of each layer is kept.",
    ),
    "weights": ("Weights in", "The format of the weights alone. int8 needs one byte each."),
    "kv": ("KV cache in", "The format of the KV cache."),
    "dropout": ("Dropout", "Counts the masks that training with dropout keeps, one byte a number."),
    "devices": ("Lines for", "Graphics cards whose memory is drawn beside this machine's."),
    "vary": ("How far can it grow", "What is made larger until it no longer fits."),
    "device": ("Card", "The card whose rates are the roof."),
}
SAME = "as numbers"
VARY = {
    "source_len": "source tokens",
    "target_len": "target tokens",
    "batch": "texts in a batch",
    "layers": "layers",
}
LAST_PICTURE = "The picture still shows the last sizes that fit together."
UNREADABLE = "This link asks for {name} “{asked}”, which is not one of its values: {shown} is shown."
UNREADABLE_CHOICE = "This link asks for {name} “{asked}”, which there is not. There are: {known}."
TABLE = "The same as a table"
FITS_TABLE = "Where it breaks, as a table"
CUDA = "CUDA figures: derived, not yet checked on a card."

# exports and projector mode
SCREEN = {
    "project_keys": "Large type, controls folded away. P does it too, Page keys go through the parts, Escape leaves.",
    "files_note": "Made in this browser. Every file says which model, sizes and assumptions it shows.",
    "files_csv_help": "The exact numbers, below lines that say what they are.",
    "files_by_hand": "This browser does not let the page copy. The text is selected: copy it.",
}
CAPTION_SIZES = (
    "{layers} layers, d_model {d_model}, {heads} heads, {kv_heads} KV heads, d_ff {d_ff}, vocabulary {vocab}"
)
CAPTION_ATTENTION = "{way} attention"
CAPTION_RECOMPUTE = "recompute {what}"
ALT = "{sentence} {note}"
FILE_PARTS = "parts"
FILE_CURVES = "lengths"
FILE_FITS = "where it breaks"
FILE_KEPT = "kept tensors"
FILE_CACHE = "cache"
FILE_OPERATIONS = "operations"
FILE_ROOF = "operations and limits"
FILE_RNN = "lines"
FILE_CROSS = "terms"
FILE_PARAMETERS = "parameters"
FILE_KNOWN = "models"

# memory: parts of the view
MEMORY_PARTS = {
    "goes": "Where it goes",
    "length": "Longer texts",
    "kept": "What is kept",
    "cache": "KV cache",
}
COMPONENTS = {
    "weights": ("weights", "The parameters, and a table of sinusoids where there is one."),
    "masters": ("float32 copies", "The copy of 16-bit weights that is updated."),
    "gradients": ("gradients", "One for each parameter."),
    "optimizer": ("optimizer", "What it remembers of earlier gradients, in float32."),
    "activations": ("activations", "What autograd keeps for the backward pass."),
    "kv_cache": ("KV cache", "Keys and values of earlier tokens."),
    "transient": ("comes and goes", "The widest moment of the pass, an upper bound."),
}
BYTES_AXIS = "bytes"
GOES = "{title} takes {total} to {phase}. Largest part: {largest}, {share} %."
GOES_EAGER = "With scores and weights as tensors it would be {eager}; the fused kernel saves {saved}."
GOES_NOTE = (
    "Weights, gradients, optimizer, activations and KV cache are exact; what comes and goes is a bound from above. "
    "Not counted: the CUDA context (about 300 MB), workspaces, rounding to 512 bytes, fragmentation. "
)
PHASE_WORDS = {"inference": "run", "training": "train"}

BREAKS = "{device}, {size}: "
BREAKS_FITS = "{n} {what} fit ({bytes}), {more} do not ({next})."
BREAKS_NONE = "not even 1 of the {what} fits (it takes {next})."
BREAKS_TABLE = "Its table of positions ends at {ceiling}, whatever the memory: beyond it the lines say what a longer table would take."
TABLE_ENDS = " table ends at {n}"
THIS_MACHINE = "This machine"
LENGTH_AXIS = "source tokens"
TOTAL_AXIS = "bytes in all"
LENGTH_NOTE = "Lines across are what a device has: a card's figure is 10⁹ bytes to the GB, this machine's is free now. "
MEASURE = "Measure here"
MEASURE_HELP = (
    "Runs this model with fresh weights on this machine's processor at the longest safe size, and at shorter ones."
)
MEASURING = "Running {title} on this machine's processor"
MEASURED_WHAT = "A run of this model on a single token"
MEASURED = (
    "Measured here, {ran}: at {n} tokens {measured} were alive at most, and {predicted} were predicted ({more} % more). "
    "Weights: {weights} bytes, predicted to the byte."
)
MEASURED_WEIGHTS_OFF = "Measured here, {ran}: at {n} tokens {measured} were alive at most, and {predicted} were predicted. Weights: {weights} bytes, {told} predicted."
MEASURED_KEPT = " {what}: {kept} bytes, {told} predicted."
KEPT_WORDS = {True: "Kept by autograd", False: "Held at the end, cache and nothing else"}
RAN = {
    "eager": "eager attention",
    "spelled_out": "attention spelled out with its bias or window",
    "flash": "the processor's fused kernel",
}
MEASURE_FLOAT32 = "A run here is in float32, so that it can be compared: choose float32 (it is {dtype}), and weights and cache “as numbers”."
MEASURE_PLAIN = "A run here keeps everything and drops nothing: choose recompute “none” and switch dropout off."
TOO_MUCH_WORK = "A run on a single source token would take {needed:,.0f} GFLOP, and at most {allowed:,.0f} are run here. Try a smaller batch, fewer layers, or a shorter target."
WORKER_BUSY = "Others are measuring just now. Press the button again in a few seconds."
MEASURE_BROKEN = (
    "The run did not finish, and it is not your fault. The sliders are as you left them: try a smaller model."
)

LESSON_ROW = "five terms"
KEPT_ROW = "autograd keeps"
TERMS = {
    "input": "input",
    "qkv": "q, k, v",
    "scores": "weights",
    "attn_out": "z",
    "ffn_hidden": "MLP hidden",
}
KEPT = "One {stack} layer: five terms come to {lesson}, autograd keeps {kept}."
KEPT_ALL = "In all {layers} layers: {lesson_all} and {kept_all}. "
KEPT_WHY = "The five terms leave out: {missed}."
KEPT_FUSED = " The fused kernel keeps no weights: the log-sum-exp of each row is enough to work them out again."
KEPT_NOTE = "Exact to the byte on the same layer run under autograd; masks of dropout are as a GPU keeps them."
NOTHING = "nothing"

CACHE = "{title} adds {per_token} for each new token of each text."
CACHE_TOTAL = "{formula}. At {n} tokens and a batch of {batch} that is {total}. "
CACHE_FORMULA = "2 · {layers} layers · {kv} KV heads · {d_head} · {by}"
CACHE_MHA = "With keys and values for each of the {heads} heads it would be {mha}, with one for all {mqa}."
CACHE_CROSS = " Cross-attention adds {cross} once, for {source} source tokens."
CACHE_WINDOW = " Its window holds {window} tokens: layers that have it stop growing there."
CACHE_NONE = "{title} is an encoder: it reads the whole text at once and keeps nothing for later, so there is no cache. Choose a decoder to see one grow."
CACHE_LINES = {"mha": "MHA: a pair for every head", "own": "this model", "mqa": "MQA: one pair for all"}
CACHE_AXIS = "tokens so far"
CACHE_BYTES = "bytes of cache"
TAKE_DECODER = "Take GPT-2 small"

# compute: parts of the view
COMPUTE_PARTS = {
    "operations": "Operations",
    "roofline": "Roofline",
    "rnn": "RNN",
    "cross": "Encoder–decoder",
    "parameters": "Parameters",
    "known": "Known models",
}
GROUPS = {
    "qkv": "q, k, v",
    "scores": "scores q kᵀ",
    "softmax": "scale, mask, softmax",
    "mix": "weights · v",
    "fused": "fused attention",
    "o": "output projection",
    "mlp": "MLP",
    "rest": "norms, residuals",
    "embed": "embedding",
    "head": "words",
}
STEP = "Step"
STEPS = {"prefill": "whole text", "decode": "one token"}
STEP_HELP = (
    "Whole text: all tokens at once, as in training and in reading a prompt. One token: the next one, with a cache."
)
NO_DECODE = "An encoder has no next token: this is the whole text."
FLOPS_AXIS = "share of all, %"
FLOPS_ROW = "FLOPs"
USEFUL_ROW = "FLOPs, causal"
TRAFFIC_ROW = "traffic"
OPERATIONS = "{title}, {what}: {flops}FLOP and {traffic} of memory traffic."
OPERATIONS_MOST = "Most FLOPs: {largest}, {share} %. Most traffic: {moves}, {moved} %."
OPERATIONS_CAUSAL = "The causal mask hides part of the scores: {useful}FLOP are of use."
OPERATIONS_ALL = "{batch} × {n} tokens"
OPERATIONS_ONE = "one token after {n}"
OPERATIONS_EACH = "one token of each of {batch} texts after {n} tokens"
OPERATIONS_NOTE = (
    "FLOPs of matrix products, two for each multiply-add, T = batch · tokens, d = d_model, q = heads · d_head, "
    "k = KV heads · d_head, b = batch, n = tokens, m = keys, h = heads, F = d_ff, V = vocabulary; biases are not in the formulas. "
)
ROOF_X = "FLOPs for each byte"
ROOF_Y = "TFLOP/s within reach"
ROOF = "On the {device} a byte has to feed {ridge:.0f} FLOPs before arithmetic is the limit."
ROOF_PREFILL = "Reading {n} tokens gives {prefill:.1f}: {prefill_limit} is the limit, {prefill_time} at the least."
ROOF_DECODE = "The next token gives {decode:.1f}: {decode_limit} is the limit, {decode_time}, {rate} tokens a second at a batch of {batch}."
ROOF_NOTE = "Numbers of 16 bits, as the makers' figures are for. All of it: the least traffic, every weight once, attention fused. "
LIMITS = {"compute": "arithmetic", "memory": "memory"}
CARDS = "Cards and their figures"
CARDS_NOTE = (
    "Change GB/s or TFLOP/s to try your own: dense 16-bit arithmetic with float32 sums. The link keeps what you change."
)
CARDS_CHANGED = "changed here; was {source}"
CARDS_UNREADABLE = "This link gives “{asked}” as a card and its figures, which does not do: it is name:GB/s:TFLOP/s, like rtx-4090:1008:165.2."
CARDS_COLUMNS = {
    "name": "Card",
    "gigabytes": "GB",
    "gigabytes_per_second": "GB/s",
    "teraflops": "TFLOP/s",
    "ridge": "FLOPs per byte",
    "source": "Source",
}
CARDS_WRONG = "{card} needs GB/s and TFLOP/s above 0 and at most {most:,}: its maker’s figures are used instead."
RNN_LINES = {
    "rnn": "RNN, 4nd²",
    "attention": "attention, scores and sum, 4n²d",
    "whole": "attention with its projections",
}
RNN = "At {n} tokens of width {d} a plain RNN layer takes {rnn}FLOP in {n} steps, one after the other."
RNN_ATTENTION = (
    "Attention takes {attention}FLOP for scores and sum, {whole}FLOP with its projections, in 1 step. "
    "Below {d} tokens attention's n²·d is the smaller term, above it the RNN's n·d²."
)
RNN_NOTE = "One layer, one text. RNN: O(n·d²), n sequential steps, n steps from the first token to the last. Self-attention: O(n²·d), 1 and 1 (Vaswani et al. 2017, table 1)."
RNN_AXIS = "tokens"
RNN_FLOPS = "FLOPs of one layer"
CROSS_TERMS = {
    "encoder": "encoder, token by token: O(n·d²)",
    "encoder_maps": "encoder self-attention: O(n²·d)",
    "decoder": "decoder, token by token: O(m·d²)",
    "decoder_maps": "decoder self-attention: O(m²·d)",
    "memory": "keys and values of the source: O(n·d²)",
    "cross_maps": "cross-attention: O(n·m·d)",
    "words": "words: O(m·d·V)",
}
CROSS = "{title} reads {n} tokens and writes {m}."
CROSS_SIZES = (
    "O(n²): {own}FLOP. O(m²): {other}FLOP. O(nm): {cross}FLOP. "
    "The projections and MLPs beside them take {linear} % of everything."
)
CROSS_WAYS = {"at_once": "target at once", "by_word": "word by word"}
CROSS_NOTE = "At once: the whole target, as in training, full maps. Word by word: with a cache of keys and values, the encoder run once. Counted like every FLOP here, and equal to the trace of the same model."
CROSS_NONE = "{title} is {kind}-only: it has one of these terms. Choose an encoder–decoder to see all three."
CROSS_AXIS = "FLOPs"
TAKE_TRANSFORMER = "Take Transformer base"
PARAMETER_PARTS = {
    "embedding": "embedding",
    "encoder": "encoder",
    "decoder": "decoder",
    "unembed": "output",
}
PARAMETERS_AXIS = "parameters"
LAYERS_AXIS = "layers of each stack"
PARAMETERS = "{title} has {total} parameters."
PARAMETERS_LAYER = "Every layer of each stack adds {layer}: a straight line. {share} % of a layer is its MLP."
TRANSLATOR = "A textbook translator: Vaswani base with two vocabularies of 32,000"
TRANSLATOR_WHY = (
    "It has {three:,} parameters, not about 65 M: a table for the source, one for the target, and an output of its own. "
    "One table for all three, as in the paper, gives {one:,}; with the paper's 37,000 words {paper:,}. "
    "A layer of its encoder has {layer:,}; 4d² + 2dF + 4d gives {lesson:,}, because it leaves the biases of the six products out."
)
KNOWN = "{n} known models, counted from their shapes."
KNOWN_WORST = "{worst} is furthest from what its authors say: {exact} against {published}."
KNOWN_NOTE = (
    "Published figures are rounded by their authors. The counts of BERT and MiniLM include a pooler, "
    "a layer that reads the first token alone; the MiniLM of Explore and Shapes runs without it."
)
KNOWN_AXIS = "parameters"
YOURS = "this one"
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
    "order": "O()",
    "traffic": "Bytes",
    "moved": "Numbers moved, one layer",
    "intensity": "FLOPs per byte",
    "limit": "Limit",
    "model": "Model",
    "parameters": "Parameters",
    "published": "Published",
    "source": "Source",
    "layers": "Layers",
    "share": "%",
    "measured": "Measured MiB",
    "predicted": "Predicted MiB",
    "step": "Step",
    "microseconds": "µs at least",
}
