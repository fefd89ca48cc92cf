"""Every caption and help text on the screen. Names in braces are filled in where the words are used."""

TITLE = "Headlight"
EXAMPLE = "The animal didn't cross the street because it was too tired."

# controls
VIEW = "View"
EXPLORE = "Explore"
TEXT = "Sentence"
TEXT_PLACEHOLDER = "Type a sentence and press Enter"
TARGET = "Target"
TARGET_PLACEHOLDER = "Target: what the decoder has written so far"
MODEL = "Model"
LOADING = "Loading {title}"

# sentences for a person whose request did not work
LAST_PICTURE = "The picture still shows the last sentence that worked."
BROKEN = "Something went wrong here, and it is not your fault. Your text is still in the box: try it again, or try another sentence."
UNKNOWN_MODEL = (
    "This link asks for a model called “{name}”, which is not on the list: {title} is shown. The list has {titles}."
)
UNKNOWN_PLACE = "This link asks for {what} {asked}, which {model} does not have on this sentence: {shown} is shown. There, {what} goes from {low} to {high}."
UNKNOWN_SITE = "This link asks for a kind of attention called “{asked}”, which {model} does not have. It has: {known}."
UNREADABLE = "This link asks for {what} “{asked}”, which is not a whole number: {shown} is shown."
NOTHING_YET = "Type a sentence above, or take the example, to see what every attention head does with it."
TAKE_EXAMPLE = "Take the example"

# routes
NO_MODULE = "There is no such file."
TILE_UNKNOWN_RUN = "This run is not known here any more. Reload the page and run the sentence again."
TILE_MISSING = "{name} is missing. A tile needs {names}."
TILE_NOT_A_NUMBER = "{name} must be a whole number; it is “{value}”."
TILE_OUT_OF_RANGE = "{name} ({value}) must be from {low} to {high}."

# kinds of attention: id of the site -> (title, what it does)
SITES = {
    "encoder": ("self-attention", "Every token of the sentence looks at every token of it."),
    "decoder": ("causal self-attention", "Every token looks at itself and at what came before."),
    "cross": ("cross-attention", "Every token of the target looks at the tokens of the sentence."),
}
SITE_TABS = {"encoder": "self", "decoder": "causal", "cross": "cross"}

# what the component writes; it fills in the braces itself, each part in its own colour
COMPONENT = {
    "heads": "All heads",
    "heads_size": "{kind} · {layers} × {heads}",
    "layers": ["{n} layer", "{n} layers"],
    "heads_count": ["{n} head", "{n} heads"],
    "head_numbers": ["head {n}", "heads {n}"],
    "heads_help": "Rows are layers, columns are heads. Small pictures use a square-root scale, so that faint patterns show.",
    "heads_label": "All heads, one small picture each. Arrow keys move between heads and layers.",
    "hint": "Rows are layers, columns are heads. Arrow keys move, Enter locks. Hover any token: everything follows.",
    "shared_all": "Each {n} heads under one blue bar share a key head.",
    "shared": "Heads {heads} share one key head.",
    "place": "Layer {layer} · Head {head}",
    "axes": "query ↓  key →",
    "axes_help": "Each row is a query: a token that looks. Each column is a key: a token that is looked at. A row's weights sum to 1.",
    "kind": "Kind of attention",
    "shown_as": "Shown as",
    "map": "map",
    "table": "table",
    "map_label": "Attention weights, query down and key across. Arrow keys move the cell, Enter locks the query, Escape releases it.",
    "strip_label": "Tokens. Arrow keys move, Enter locks a token as the query, Escape releases it.",
    "strip_keys_label": "Tokens of the sentence, shaded by how much the query looks at them.",
    "source": "source",
    "target": "target",
    "looks": "What {query} looks at",
    "looks_all": "What this head looks at",
    "gives": "{query} gives {share} of its attention to {key}, rank {rank} of {n}.",
    "gives_nothing": "{query} may look at nothing: every key is masked, and its row is all zeros.",
    "gives_masked": "{query} may not look at {key}: it is {reason}.",
    "gives_all": "On average, tokens give {share} of their attention to {key}. Choose a token to see what it looks at.",
    "entropy": "Entropy {bits}: about {tokens} tokens’ worth.",
    "entropy_mean": "The whole head averages {bits}.",
    "entropy_help": "How spread out the attention is. 0 bits: all of it on one token. Each bit more doubles the number of tokens that share it.",
    "choose": "Choose a token to see what it looks at.",
    "free": "Nothing is masked: this token sees both sides.",
    "free_cross": "Nothing is masked: the whole sentence may be seen.",
    "free_last": "Nothing is masked in this row.",
    "free_all": "Nothing is masked in this head.",
    "hidden": "{hidden} of {n} keys are masked: {reasons}.",
    "shares": "Shares its keys and values with {heads}.",
    "lines": "Lines",
    "lines_help": "Queries on top, keys below. For each query, the fewest lines that carry 80 % of its attention.",
    "lines_note": "keep 80 % of each row",
    "alike": "Heads like this one",
    "alike_help": "Correlation of the maps, each weight taken relative to its row's mean: 1 is the same pattern.",
    "sums": "rows sum to 1",
    "sums_help": "Every row of this layer sums to 1 within {error}.",
    "sums_off": "rows sum to 1 only within {error}",
    "masked_zero": "masked cells are 0",
    "fused": "equals the fused kernel, max |Δ| {error}",
    "fused_help": "These weights times the values give what PyTorch's fused attention kernel returned in the run; the largest difference in this layer is {error}.",
    "fused_none": "edited: the fused kernel did not run here",
    "run": "{n} tokens · {ms} ms · {device} {dtype}",
    "run_pair": "{n} + {m} tokens · {ms} ms · {device} {dtype}",
    "colour": "colour",
    "linear": "linear",
    "log": "log",
    "per_row": "per row",
    "per_row_top": "row’s largest",
    "colour_help": "linear: 0 to 1. log: from 0.0001 to 1, so that small weights show. per row: each row up to its own largest weight.",
    "tip_value": "{value} ({share}), rank {rank} of {n}",
    "tip_masked": "masked: {reason}",
    "position": "position {i}",
    "loading": "fetching",
    "offline": "The server did not answer. The picture is the last one that arrived.",
    "col_rank": "Rank",
    "col_key": "Key",
    "col_position": "Position",
    "col_weight": "Weight",
    "table_caption": "What {query} looks at, layer {layer}, head {head}",
    "table_caption_all": "Weight that each key gets on average, layer {layer}, head {head}",
    "masked_word": "masked: {reason}",
    "sampled": "This picture shows {how}. Zoom in for every weight.",
    "zoom_in": "Zoom in",
    "zoom_out": "Zoom out",
    "zoom_fit": "Whole map",
    "more": "Showing the first {shown} of {n}, largest weights first.",
}

# why a cell is masked: what the model's rule calls it -> in words, after "it is"
REASONS = {
    "future": "in the future",
    "padding": "padding",
    "outside the window": "outside the window",
    "edited": "cut by an edit",
    "masked by the caller": "masked by the caller",
}

# the table of shapes
STEPS = "Shapes and memory of this run"
STEPS_CAPTION = (
    "Every tensor of the pass, in order. Greyed rows were never materialised: the fused kernel works through them in tiles, "
    "and this is what they would have cost."
)
STEPS_COLUMNS = {
    "name": "Step",
    "axes": "Axes",
    "shape": "Shape",
    "dtype": "Type",
    "mib": "MiB",
    "mb": "MB",
    "held": "In memory",
    "note": "Note",
}
MATERIALISED = "yes"
NEVER = "never materialised"
DEVICE = "{device}, {dtype} · {ms} ms for the pass · this trace holds {held} · {models} in memory"
