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
    "fit": "Does it fit",
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
KEPT_OTHER = "With {attention} attention it keeps {kept} MiB"
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

# does it fit: the sentence at the top
FIT_SENTENCE = {
    "in": " in",
    "bit": "bit,",
    "comma": ",",
    "tokens": "tokens",
    "to": "to",
    "times": "×",
    "chat": "chat,",
    "chats": "chats,",
    "text": "text,",
    "texts": "texts,",
    "on": "on",
}
FIT_LABELS = {
    "model": "Model",
    "bits": "Bits of a weight",
    "gguf": "GGUF type",
    "source": "Tokens",
    "target": "Tokens written",
    "batch": "Texts at once",
    "phase": "What it does",
    "card": "Card or machine",
    "cards": "How many cards",
    "zoom": "Scale",
    "as_in": "As in",
}
GGUF = "GGUF"
FIT_PHASES = {"inference": "writing", "training": "training", "adapters": "LoRA"}
FIT_PHASES_READ = {"inference": "reading", "training": "training", "adapters": "LoRA"}
TOKENS_HELP = "A whole number of tokens; 32k is 32,768 and 1M is 1,048,576."
TOKENS_WRONG = "“{said}” is no number of tokens from {low} to {high}. Type a whole number, such as 4,096, or 32k."
MACHINE = "this machine"
OWN_CARD = "{n:g} GB"
OWN_MEMORY = "a memory of your own"
OWN_WRONG = "“{said}” is no memory. Type {allowed}."
SEVERAL = "{n} cards"
ONE_CARD = "1 card"
MODEL_OF_RUN = "{title}, your run"
OF_CONFIG = "a config.json …"

# the verdict
FITS = "Fits:"
TOO_MUCH = "{size} too much:"
OF_BUDGET = " of {budget}."
OF_BUDGET_EACH = " of {budget} on the fullest of {n} cards."
UP_TO = " Up to "
TOKENS = "{n} tokens"
TAUGHT = ", taught {n}."
ALL_ROWS = " All "
ALL_ROWS_TOKENS = "{n} tokens"
ALL_ROWS_END = " of its table."
NO_MORE = " Longer texts take no more."
WEIGHTS_ALONE = " Weights alone: {size}."
ROOM_FOR = "Room for"
FITS_WITH = "Fits with"
NOTHING_FITS = "Nothing here makes it fit: a smaller model does."
OFFERS = {
    "attention": "a fused kernel",
    "logits": "the last logits alone",
    "piece": "pieces of {n}",
    "wasteful": "the way of a server",
    "bits": "{n} bit",
    "cache": "an 8-bit cache",
    "recompute": "recomputing every layer",
    "tokens": "{n} tokens",
    "chats": "{n} chats",
    "chats_fewer": "{n} chats instead of {before}",
    "chats_one": "1 chat instead of {before}",
    "texts": "{n} texts",
    "texts_fewer": "{n} texts instead of {before}",
    "texts_one": "1 text instead of {before}",
    "optimizer": "plain SGD",
    "rank": "LoRA",
    "card": "{n}",
    "cards": "{n} cards",
}
EACH_CARD = "{size} each"
NOTE_FITS = "By an upper bound {n} tokens fit; {more} may not."
NOTE_NONE = "Not even one token fits."
NOTE_TABLE = "Its table of positions ends at {n}."
NOTE_WIDEST = "Widest moment: {moment}."
NOTE_BEYOND = (
    "It runs at {n}; memory says nothing about whether it answers well: it was taught texts of up to {taught}."
)
NOTE_SECOND = "A second text would need {size} in all."
MOMENTS = {
    "embedding": "the token vectors",
    "projections": "q, k and v",
    "qk norm": "the norm of q and k",
    "rotary turn": "the turning of q and k",
    "softmax and sum": "attention",
    "scores and weights": "scores and weights",
    "output projection": "the output projection",
    "MLP": "the MLP",
    "norm": "a norm",
    "head": "the logits",
    "loss": "the loss",
    "layer": "the backward pass of a layer",
    "table": "the gradient of the word table",
}
EXAMPLES = {
    "here": "this model, here",
    "text": "your sentence",
    "llama": "Llama 3, 32k",
    "four": "4 chats",
    "train": "train GPT-2",
    "lora": "LoRA",
    "textbook": "textbook way",
}

# the column, the curve and what stands around them
FIT_PARTS = {
    "weights": "weights",
    "masters": "float32 copies",
    "gradients": "gradients",
    "optimizer": "optimizer",
    "activations": "activations",
    "kv_cache": "cache",
    "transient": "at work",
    "lost": "fragments",
}
LOST_HELP = "Memory between tensors that no tensor fits into."
BUDGET_LINE = "{name}: {size}"
BUDGET_FREE = "{name}: {size} free"
AS_HIGH = "{line}, {times} × as high ↑"
KEPT_BY_DRIVER = "driver and program {size}"
KEPT_BY_OTHERS = "in use by others {size}"
TAUGHT_TO = "taught to {n}"
TABLE_TO = "its table ends at {n}"
TOKENS_AXIS = "tokens"
ZOOM = {"need": "what it takes", "card": "the whole card"}
ZOOM_MACHINE = {"need": "what it takes", "card": "the whole machine"}
PREDICT = "predict first"
PREDICT_ALLOWED = "on, or a number of tokens, for example 60000"
PREDICT_ASK = "Where does it stop fitting? Drag the orange line, then see. Weights {weights}; each token adds {token}."
PREDICT_SEE = "See"
PREDICT_AGAIN = "Again"
PREDICT_STOPS = "It stops at {n} tokens. You said {guess}."
PREDICT_NEVER = "It never stops: longer texts take no more. You said {guess}."
PREDICT_TABLE = "It never stops for want of memory: its table of {n} positions ends first. You said {guess}."
PREDICT_NOTHING = "Not even one token fits: the weights are too much. You said {guess}."
FOOT_FORMS = "Weights and cache are exact; at work is an upper bound."
FOOT_PIECES = "Weights and cache are exact; at work is an upper bound for a kernel that needs no mask."
FOOT_WEIGHTS = "{n} weights"
FOOT_UNIT = "1 GiB = 2³⁰ bytes"
FOOT_PAPER = "Cards: on paper, from what drivers report."
FILE_FIT = "lengths, part by part"
IN_ALL = "in all"
FITS_COLUMN = "fits"
YES, NO = "yes", "no"
FIT_NOTE = (
    "Each length takes weights, cache, and the widest moment of the pass. The line is what a model may take: "
    "what the card has, less what its driver and the program keep, or what is free on this machine."
)

# the tabs beside it
TAB = "Beside the answer"
FIT_TABS = {
    "assumptions": "Assumptions",
    "layer": "One layer",
    "training": "Training",
    "cache": "Cache",
    "cards": "Cards",
    "compute": "Compute",
}
AS_IN = {"server": "a server", "transformers": "transformers", "textbook": "the textbook"}
ASSUME = {
    "fused": "One fused kernel: the n × n scores never exist.",
    "eager": "Scores and weights are tensors of n × n.",
    "last": "The last position alone is asked for its next word.",
    "all": "Every position is asked for its next word.",
    "pieces": "The text is read in pieces of {n} tokens.",
    "whole": "The text is read at once.",
    "kv": "Keys and values in {n} bit.",
    "mha": "Each of the {heads} heads has keys of its own.",
    "gqa": "{heads} heads share {sets} sets of keys.",
    "mqa": "All {heads} heads share one set of keys.",
    "driver": "Of {all} the driver keeps {kept}, the program {context}.",
    "apple": "Of {all} the system lends a program {offered}.",
    "machine": "{kept} of {all} are in use by others.",
    "own": "A memory of {all}, all of it for the model.",
    "fragments_none": "Fragments are not counted.",
    "fragments": "{n} % of what is not weights is lost in fragments.",
    "window": "{n} of {layers} layers look back {window} tokens.",
    "recompute_none": "Every activation is kept for the backward pass.",
    "recompute_attention": "Attention is computed again in the backward pass.",
    "recompute_full": "Each layer is computed again from its input.",
    "optimizer": "{name} keeps {n} numbers for each weight.",
    "optimizer_none": "Plain SGD keeps nothing for a weight.",
    "optimizer_one": "{name} keeps one number for each weight.",
    "rank": "Adapters of rank {n} are trained: {share} of the weights.",
    "bits": "A weight takes {bits} bit on average: {n} weights.",
}
ASSUME_LABELS = {
    "kernel": "Attention",
    "logits": "Logits",
    "piece": "How the text is read",
    "kv": "Keys and values",
    "kv_heads": "Sets of keys",
    "fragments": "Fragments",
    "recompute": "Recompute",
    "optimizer": "Optimizer",
    "rank": "Rank",
}
ASSUME_OPTIONS = {
    "fused": "fused",
    "eager": "eager",
    "last": "last",
    "all": "all",
    "whole": "whole",
    "none": "none",
    "attention": "attention",
    "full": "full",
    "sgd": "SGD",
    "momentum": "momentum",
    "adamw": "AdamW",
}
BESIDE = "{option}: {size}"
NO_CHANGE = "{option}: no change"
CHECKED = "Checked here, MiB"
CHECKED_SAID = "{n} runs: within {runs} % of what PyTorch allocated. Training: up to {trainings} % too much. Resident: up to {resident} % more."
CHECKED_COLUMNS = ("", "said", "allocated", "resident")

LAYER_TITLE = "One {stack} layer at {batch} × {n} tokens"
LAYER_TERMS = "The textbook’s five terms: {lesson}."
LAYER_KEPT = "Autograd keeps {kept} in training; in writing a layer keeps its keys and values alone, {cache}."
LAYER_MORE = "every kept tensor"
LAYER_TABLE = "Its table of positions has {n} rows: a layer of longer texts is not shown."
TRAIN_TITLE = "A step of training, {batch} × {n} tokens"
TRAIN_COLUMNS = ("", "all of it", "activations")
TRAIN_ROWS = {
    "none": "AdamW, everything kept",
    "attention": "attention again",
    "full": "every layer again",
    "sgd": "plain SGD",
    "lora": "LoRA, rank {n}",
    "qlora": "LoRA on 4 bit",
}
TRAIN_GOES = "Weights {weights}, gradients {gradients}, optimizer {optimizer}, activations {activations}."
TRAIN_FULL = "Computing every layer again costs a third more arithmetic: {flops} instead of {once}."
CACHE_PER_TOKEN = "Each token of each text adds {size}."
CACHE_COLUMNS = ("", "a token", "at {n} tokens")
CACHE_ROWS = {
    "own": "as built, {n} sets",
    "mha": "a set for each head",
    "mqa": "one set for all",
    "q8": "8 bit",
    "q4": "4 bit",
}
CACHE_MORE = "the cache against the length"
CACHE_NONE = "An encoder reads a text once and keeps no cache."
CARDS_ONE = "On one of these"
CARDS_LINE = "the line is what it needs, {size}"
CARDS_SEVERAL = "On several {name}"
CARDS_FULLEST = "on paper, the fullest card"
CARDS_COLUMNS = ("cards", "every layer cut across all", "some layers to each")
CARDS_TRAFFIC = "Between cards, for each token of each text: {across} cut across {n}, {layers} by layers."
CARDS_HOW = (
    "Cut across (tensor parallel): weights and heads in parts; with {sets} sets of keys the cache has {sets} parts at most. "
    "Whole layers (pipeline): the word tables lie on the ends. Buffers for talking are not counted."
)
COMPUTE_ON = "On {name}, at the rates of its maker"
COMPUTE_NONE = "This machine’s rates are not known: choose a card."
COMPUTE_COLUMNS = ("", "at least", "its limit", "arithmetic used")
COMPUTE_ROWS = {"prompt": "reading {n} tokens", "token": "writing one token", "step": "one step of training"}
COMPUTE_LIMITS = {"compute": "arithmetic", "memory": "memory"}
COMPUTE_RATE = "{rate} tokens a second at most, for all chats together."
COMPUTE_WHERE = "Where the bottleneck is"
COMPUTE_WHERE_COLUMNS = ("tokens", "attention", "its limit", "limit of the matrices")
COMPUTE_DOUBLE = "Twice as much of"
COMPUTE_DOUBLE_COLUMNS = ("", "weights", "cache", "arithmetic")
COMPUTE_DOUBLED = {
    "d_model": "d_model",
    "layers": "layers",
    "source_len": "tokens",
    "batch": "texts",
    "heads": "heads",
}
COMPUTE_MOVES = "Numbers moved in a layer: {eager} for n × n maps (n² + n·d), {fused} in one fused kernel (n·d); matrices {weights} (d²), in and out of them {stream} (n·d)."

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
        "t": "The next of what it rests on; projected, alone on the screen",
        "pages": "The next example, or the one before",
        "f": "Take the first that fits",
        "v": "Predict first, or stop predicting",
        " ": "See, after a prediction",
    },
}

languages.of(__name__, links=["MEMORY_PARTS", "FIT_TABS", "ZOOM"])
