"""Captions and help texts of the memory room. Names in braces are filled in where the words are used."""

from app import languages

TITLE = "Memory"
LINE = "what fits, and what does not"
FITS_TABLE = "Where it breaks, as a table"
FILE_PARTS = "parts"
FILE_CURVES = "lengths"
FILE_FITS = "where it breaks"
FILE_KEPT = "kept tensors"
FILE_CACHE = "cache"

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
    "transient": ("temporary buffers (peak)", "The widest moment of the pass, an upper bound."),
}
BYTES_AXIS = "bytes"
GOES = "{title} takes {total} to {phase}. Largest part: {largest}, {share}."
GOES_EAGER = "With scores and weights as tensors it would be {eager}; the fused kernel saves {saved}."
GOES_PIECES = "Read in pieces of {piece} tokens, as vLLM reads a prompt, it would be {pieces}."
GOES_BEYOND = "The model was made for texts of at most {n} tokens."
GOES_LOGITS = "With the logits of every position it would be {all}."
CARD_FITS = "It fits on {n} of the {all} cards here, the smallest of them the {device}: {left} of its {offered} for programs are left."
CARD_NONE = (
    "It fits on none of the {all} cards here; the largest, {device}, offers programs {offered}, {short} too little."
)
GOES_NOTE = (
    "Weights, gradients, optimizer, activations and KV cache are exact; temporary buffers are an upper bound. "
    "Not counted: the CUDA context (about 300 MB), workspaces, rounding to 512 bytes, fragmentation. "
)
PHASE_WORDS = {"inference": "run", "training": "train"}

BREAKS = "{device}, {size}: "
BREAKS_CARD = "{device}, {offered} for programs of {all}: "
BREAKS_FITS = "by an upper bound {n} {what} fit ({bytes}), {more} may not ({next}){alive}."
BREAKS_ALIVE = "; by what is alive at once {n} fit ({bytes}), {more} do not ({next})"
BREAKS_ALL = "all {n} {what} of its table fit, {bytes}; by memory alone {more}."
BREAKS_NONE = "not even 1 of the {what} fits (it takes {next}, an upper bound)."
CHATS = "Chats at once, {n} tokens each: {chats}."
CHAT = "{device} {n}"
ALIVE = "Count what is alive"
ALIVE_HELP = (
    "The bytes above are an upper bound: a closed form, which takes the widest moment of each part as if they came together. "
    "This runs the model on nothing, size by size, and counts what is alive at once. It takes some seconds."
)
COUNTING = "Running {title} on nothing"
BREAKS_TABLE = "Its table of positions ends at {ceiling}, whatever the memory: beyond it the lines say what a longer table would take."
TABLE_ENDS = " table ends at {n}"
THIS_MACHINE = "This machine"
BUDGET = "Your memory, GB"
BUDGET_HELP = "A memory of this many GB (10⁹ bytes) beside the others: a card that is not on the list, or an exercise."
BUDGET_NAME = "{n:g} GB"
BUDGET_ALLOWED = "a number of GB from 0.001 to 1,000,000, for example 8"
SCORES_LINE = "scores, one layer"
SCORES_AT = "Scores of one layer grow with n²: {rows}."
MEASURED_LINE = "predicted, batch {batch}"
LENGTH_AXIS = "source tokens"
TOTAL_AXIS = "bytes in all"
LENGTH_NOTE = (
    "Horizontal lines are the memories of devices: of a card what its driver offers to programs, in GiB as it reports them; of this "
    "machine what is free now. A program's own CUDA context (about 300 MB) comes out of it. "
)
MEASURE = "Measure here"
MEASURE_HELP = (
    "Runs this model with fresh weights on this machine's processor at the longest safe size, and at shorter ones; "
    "with fewer texts at once where the batch is too much work."
)
MEASURING = "Running {title} on this machine's processor"
MEASURED = (
    "Measured here, {ran}: at {batch} × {n} tokens {measured} were alive at most, and {predicted} were predicted ({more} % more). "
    "Weights: {weights} bytes, predicted to the byte."
)
MEASURED_WEIGHTS_OFF = "Measured here, {ran}: at {batch} × {n} tokens {measured} were alive at most, and {predicted} were predicted. Weights: {weights} bytes, {told} predicted."
MEASURED_KEPT = " {what}: {kept} bytes, {told} predicted."
KEPT_WORDS = {True: "Kept by autograd", False: "Held at the end, cache and nothing else"}
RAN = {
    "eager": "eager attention",
    "spelled_out": "attention spelled out with its bias or window",
    "flash": "the processor's fused kernel",
}
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
TOTALS = {  # every total of the room by its one name
    "terms": "five terms, one layer",
    "terms_all": "five terms, all layers",
    "kept": "autograd keeps, one layer",
    "kept_all": "autograd keeps, all layers of the stack",
    "activations": "activations: autograd keeps, the whole model",
    "all": "memory to train, everything",
}
TOTALS_TABLE = "Each total by its name"
FILE_TOTALS = "totals"
KEPT_WHY = "The five terms leave out: {missed}."
KEPT_FUSED = " The fused kernel keeps no weights: the log-sum-exp of each row is enough to compute them again."
KEPT_NOTE = "Exact to the byte on the same layer run under autograd; masks of dropout are as a GPU keeps them."
NOTHING = "nothing"

CACHE = "{title} adds {per_token} for each new token of each text."
CACHE_TOTAL = "{formula}. At {n} tokens and a batch of {batch} that is {total}. "
CACHE_FORMULA = "2 · {layers} layers · {kv} KV heads · {d_head} · {by}"
CACHE_MHA = "With keys and values for each of the {heads} heads it would be {mha}, with one for all {mqa}."
CACHE_CROSS = " Cross-attention adds {cross} once, for {source} source tokens."
CACHE_WINDOW = " Its window holds {window} tokens: layers that have it stop growing there."
CACHE_IF = "{title} is an encoder: it keeps nothing for later. A decoder of its sizes would add {per_token} for each new token of each text."
CACHE_LINES = {"mha": "MHA: a pair for every head", "own": "this model", "mqa": "MQA: one pair for all"}
CACHE_AXIS = "tokens so far"
CACHE_BYTES = "bytes of cache"
TAKE_DECODER = "Take GPT-2 small"

# The first part: labels of what the browser draws (browser/fit.js)
FIT_WORDS = {
    "question": "The question",
    "figure": "Memory by the number of tokens: {verdict}",
    "column": "The parts of this question, as a column",
    "curve": "The same at every length, and the line of what there is",
    "handle": "Tokens",
    "guess": "Your guess, in tokens",
    "less": "less",
    "more": "more",
    "examples": "Examples",
    "tabs": "What it rests on",
    "fits": "fits",
    "not": "does not fit",
    "table": "The same as a table",
    "hide": "Hide the table",
    "keys_told": {
        "arrows": "Another number of tokens; with Shift, on the orange line, five steps at once",
        "+": "One more chat",
        "-": "One less",
        "pages": "The next example, or the one before",
        "f": "Take the first that fits",
        "v": "Predict first, or stop predicting",
        " ": "See, after a prediction",
    },
}

languages.of(__name__, links=["MEMORY_PARTS"])
