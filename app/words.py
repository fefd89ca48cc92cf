"""Every caption and help text on the screen. Names in braces are filled in where the words are used."""

TITLE = "Headlight"
EXAMPLE = "The animal didn't cross the street because it was too tired."

# controls
VIEW = "View"
EXPLORE = "Explore"
TEXT = "Sentence"
TEXT_PLACEHOLDER = "Type a sentence and press Enter"
TEXT_KEYS = "Enter shows it, Shift+Enter begins a line"
TARGET = "Target"
TARGET_PLACEHOLDER = "Target; empty: the model writes it"
MODEL = "Model"
EXAMPLES = "Examples"
EXAMPLES_HELP = "Sentences that show something, each with the head that shows it."

# what a model can write, and how it learnt
STEP = "Training step"
STEP_HELP = (
    "The model as it was after so many steps of its training. The head and the token stay. Arrow keys move the slider."
)
STEP_SAYS = "Step {step} of {last}"
STEP_LEARNT = ": loss {loss} nats per token, {share} of the tokens right in that step’s batch."
STEP_UNTRAINED = "Untrained: its weights are random."
UNKNOWN_STEP = (
    "This link asks for training step “{asked}”, at which nothing was kept: {shown} is shown. Kept are {known}."
)
WRITE_ON = "Write on"
WRITE_ON_HELP = "The model adds up to {n} tokens, each drawn from the {k} likeliest at temperature {t}. The same text gets the same words."
NOTHING_WRITTEN = "{title} ends its text here: the end is the next token that it draws."
NO_ROOM = "{title} has no position left for another token. Shorten the text to let it write on."
TARGET_WRITTEN = "The model wrote this target itself."
TARGET_WRITTEN_HELP = "The likeliest token each time, up to its own end. Type a target to see that one instead."
TARGET_EDIT = "Put it into the box"
TRY = "Try: {example}"
TAKE_FITTING = "Take that example"

# while a visitor waits
WORKING = {
    "loading": "Loading {title}. The picture stays until the new one is there.",
    "waiting": "Waiting for a turn: other sentences are running.",
    "running": "Running {title}.",
    "done": "Drawing.",
}
LAYERS = "Running {title}: layer {done} of {total} done."
BYTES = "Loading {title}: {done} of {total} · {name}"
PROGRESS = "Progress"
CANCEL = "Cancel"
STOPPED = "Stopped, as you asked. Your text is still in the box."
RUN_AGAIN = "Run it"

# sentences for a person whose request did not work
LAST_PICTURE = "The picture still shows the last sentence that worked."
BROKEN = "Something went wrong here, and it is not your fault. Your text is still in the box: try it again, or try another sentence."
UNKNOWN_VIEW = "This link asks for a view called “{asked}”, which there is not: {shown} is shown. There are {known}."
UNKNOWN_MODEL = (
    "This link asks for a model called “{name}”, which is not on the list: {title} is shown. The list has {titles}."
)
UNKNOWN_PLACE = "This link asks for {what} {asked}, which {model} does not have on this sentence: {shown} is shown. There, {what} goes from {low} to {high}."
UNKNOWN_SITE = "This link asks for a kind of attention called “{asked}”, which {model} does not have. It has: {known}."
UNREADABLE = "This link asks for {what} “{asked}”, which is not a whole number: {shown} is shown."
UNKNOWN_OPTION = (
    "This link asks for {what} “{asked}”, which this picture does not have, so it was left out. There is: {allowed}."
)
OPTION_HEADS = "layers and heads of this model, such as 0.2,3.1"
OPTION_HIDE = "positions of tokens to leave out, such as 0,15, but not all of them"
OPTION_KEY = "the position of one token that is looked at, such as 2"
OPTION_KEEP = "whole numbers from 1 to 100"
NOTHING_YET = "Type a sentence above, or take the example, to see what every attention head does with it."
TAKE_EXAMPLE = "Take the example"

# routes
NO_MODULE = "There is no such file."
TILE_UNKNOWN_RUN = "This run is not known here any more. Reload the page and run the sentence again."
TILE_MISSING = "{name} is missing. A tile needs {names}."
TILE_NOT_A_NUMBER = "{name} must be a whole number; it is “{value}”."
ROUTE_CHOICE = "{name} must be one of {allowed}; it is “{value}”."
ROUTE_LARGE = "This run is too large to be sent whole. Ask for tiles and rows of it."
ROUTE_COLUMN = (
    "Who looks at this token would take {cells:,} weights to tell, and {most:,} is the most that is worked out for it. Choose "
    "one head, or fewer of them."
)
ROUTE_HIDES_ALL = "Every key would be hidden. Leave at least one: there would be nothing to look at."
ROUTE_MEMBERS = (
    "members may only be heads of one kind of attention: record {place} is of another kind than record {record}."
)
TILE_OUT_OF_RANGE = "{name} ({value}) must be from {low} to {high}."

# kinds of attention: id of the site -> (title, what it does, the same beside a head's name)
SITES = {
    "encoder": ("self-attention", "Every token of the sentence looks at every token of it.", "self-attention"),
    "decoder": ("causal self-attention", "Every token looks at itself and at what came before.", "causal"),
    "cross": ("cross-attention", "Every token of the target looks at the tokens of the sentence.", "cross-attention"),
}
SITE_TABS = {"encoder": "self", "decoder": "causal", "cross": "cross"}

# what the component writes; it fills in the braces itself, each part in its own colour
COMPONENT = {
    "heads": "All heads",
    "heads_size": "{kind} · {layers} × {heads}",
    "layers": ["{n} layer", "{n} layers"],
    "heads_count": ["{n} head", "{n} heads"],
    "head_numbers": ["head {n}", "heads {n}"],
    "heads_how": "Of this long text they show {how}.",
    "heads_help": "Rows are layers, columns are heads. Small pictures use a square-root scale, so that faint patterns show.",
    "heads_label": "All heads, one small picture each. Arrow keys move between heads and layers.",
    "metric": "What each small picture shows",
    "metrics": {
        "maps": ["small maps", "The map of each head, on a square-root scale, so that faint patterns show."],
        "entropy": [
            "entropy",
            "How spread out the attention is, in bits, mean over queries: 0 is all of it on one token.",
        ],
        "distance": ["distance", "How many tokens back a head looks on average; ahead counts as negative."],
        "sink": [
            "sink share",
            "The share of all attention that rests on the first token. Xiao et al. 2023, arXiv:2309.17453.",
        ],
        "previous": ["previous token", "The mean weight on the token just before."],
        "induction": [
            "induction",
            "The mean weight on tokens that followed an earlier copy of the query's token; needs a token that repeats. "
            "Olsson et al. 2022, arXiv:2209.11895.",
        ],
        "diagonal": ["diagonal", "The mean weight of each token on itself."],
    },
    "metric_none": "no token repeats",
    "metric_value": "{name} {value}",
    "metric_rows": "Worked out from {rows} evenly spaced queries of {of}.",
    "metric_sampled": "{rows} rows",
    "in_bits": "{value} bits",
    "in_tokens": "{value} tokens back",
    "in_tokens_ahead": "{value} tokens ahead",
    "sort": "sort",
    "sort_help": "List the heads by this number, those that stand out first.",
    "sorted": "Heads, highest first. Arrow keys step through them.",
    "sorted_low": "Heads, lowest first. Arrow keys step through them.",
    "sorted_more": "The first {shown} of {n} heads.",
    "blocks": {
        "encoder": "encoder self-attention",
        "decoder": "decoder causal self-attention",
        "cross": "cross-attention",
    },
    "members_chosen": "Shift+click or Space adds a head to the selection and takes it out.",
    "members_all": "All heads of this layer. Shift+click or Space chooses heads instead.",
    "shared_all": "Each {n} heads under one blue bar share a key head.",
    "shared": "Heads {heads} share one key head.",
    "place": "Layer {layer} · Head {head}",
    "title_rollout": "Attention rollout, layers 0 to {layer}",
    "title_value": "Layer {layer} · Head {head}, value-weighted",
    "title_mean": "Mean",
    "title_max": "Maximum",
    "title_layer": "{what} of all {n} heads of layer {layer}",
    "title_members": ["{what} of 1 head: {heads}", "{what} of {n} heads: {heads}"],
    "head_short": "L{layer} H{head}",
    "shows": "shows",
    "shows_help": "What the large map shows. Shift+click on small maps chooses the heads of a mean or a maximum.",
    "kinds": {
        "head": ["one head", "The weights of one head: where each query looks."],
        "mean": ["mean", "The average of the weights of several heads. Rows still sum to 1."],
        "max": [
            "max",
            "For each cell the largest weight that any of the heads gives. Rows sum to more than 1, so they are not shares.",
        ],
        "rollout": [
            "rollout",
            "Attention followed down through the layers, each layer's heads averaged and mixed half and half with the "
            "residual stream. Abnar & Zuidema 2020, arXiv:2005.00928.",
        ],
        "value": [
            "value-weighted",
            "‖weight · value · W_O‖: the length of what each key writes for each query. A key may get much attention and "
            "carry almost nothing. It is a norm and not a share, so rows do not sum to 1. Kobayashi et al. 2020, arXiv:2004.10102.",
        ],
    },
    "rollout_cross": "Rollout follows the self-attention of one stack through its layers, and cross-attention leads into another. Choose self or causal attention, or the mean over heads.",
    "note_hidden": "{tokens} hidden; rows renormalised.",
    "note_hidden_norm": "{tokens} hidden.",
    "note_merged": "Sub-words merged to words: keys summed, queries averaged.",
    "note_merged_norm": "Sub-words merged to words: norms of keys summed, of queries averaged.",
    "note_max": "Largest of the heads: rows do not sum to 1.",
    "note_norm": "Norms, not shares: rows do not sum to 1.",
    "hide_sink": "hide {token}",
    "hide_sink_help": "Leave out {token}, the token that gets the most on average, and renormalise each row over the rest. Attention that rests there hides all other patterns. Xiao et al. 2023, arXiv:2309.17453.",
    "hidden_label": "hidden",
    "hidden_help": "Tokens that are left out as keys. H on a token of the sentence or a cell of the map, or a double click on a token or the name of a key, hides it.",
    "hidden_none": "no token",
    "unhide": "Show {token} again",
    "unhide_all_short": "show hidden",
    "unhide_all": "show all",
    "hide_last": "One token must stay: there would be nothing to look at.",
    "left": "{share} of this row's attention is left; it is spread out to 100 %.",
    "left_none": "Nothing is left of this row: all of its attention goes to what is hidden.",
    "left_norm": "What hidden tokens write is left out.",
    "words_setting": "tokens",
    "words_off": "pieces",
    "words_on": "words",
    "words_help": "words: the pieces of a word are put together. Keys are summed and queries averaged, so rows still sum to 1. Clark et al. 2019, arXiv:1906.04341.",
    "words_whole": "Every word of this sentence is one token.",
    "axes": "query ↓  key →",
    "axes_help": "Each row is a query: a token that looks. Each column is a key: a token that is looked at. A row's weights sum to 1.",
    "kind": "Kind of attention",
    "shown_as": "Shown as",
    "map": "map",
    "table": "table",
    "lines_tab": "lines",
    "options": "Options",
    "options_label": "Options of the picture",
    "scale_auto": "auto",
    "guide": "How to read this",
    "guide_away": "Got it",
    "guide_of": {
        "map": "Each row is a token that looks (orange), each column one that is looked at (blue). {more}: more of the row’s attention.",
        "lines": "Each line leads from a token that looks (orange) to one that is looked at (blue). Thicker: more of its attention.",
        "table": "Each row is a token that is looked at (blue), with what it gets of the attention. The most looked at stands first.",
    },
    "guide_more": {"light": "Darker", "dark": "Brighter"},
    "guide_heads": "Every small picture is a head. Click one, or use the arrow keys. Hover a token and all follows; click to hold it.",
    "project": "Project",
    "project_help": "Large type and few controls, for a projector. P does it too.",
    "projector_keys": "← → head · ↑ ↓ token · Page keys: every head · F freeze · S spotlight · P or Esc leaves",
    "projector_on": "Projector mode. Arrow keys move between heads and tokens, P leaves.",
    "projector_off": "Projector mode is off.",
    "freeze": "Freeze",
    "spotlight": "Spotlight",
    "leave": "Leave",
    "copy_link": "Copy link",
    "copy_link_help": "A link to exactly this screen, sentence included.",
    "copied": "Link copied",
    "copy_by_hand": "Copy this link with Ctrl+C or ⌘C:",
    "close": "Close",
    "theme": "page",
    "theme_auto": "as the browser",
    "theme_light": "light",
    "theme_dark": "dark",
    "theme_help": "Light or dark, for the whole page. It is in the link.",
    "map_label": "Attention weights, query down and key across. Arrow keys move the cell, Enter locks the query, K the key, Escape releases them. H hides the key.",
    "strip_more": "The text goes on. Click to see more of it.",
    "strip_label": "Tokens. Arrow keys move, Enter locks a token as the query, K as the key, Escape releases it. H hides it as a key.",
    "strip_keys_label": "Tokens of the sentence, shaded by how much the query looks at them. Arrow keys move, Enter locks a token as the key, H hides it.",
    "source": "source",
    "target": "target",
    "looks": "What {query} looks at",
    "looks_all": "What this head looks at",
    "gives": "{query} gives {share} of its attention to {key}, rank {rank} of {n}.",
    "gives_rest": "Of what is left, {query} gives {share} to {key}, rank {rank} of {n}.",
    "gives_mean": "On the mean of these heads, {query} gives {share} to {key}, rank {rank} of {n}.",
    "gives_max": "{query} gives at most {share} to {key} in any of these heads, rank {rank} of {n}.",
    "gives_rollout": "Rollout traces {share} of {query} to {key}, rank {rank} of {n}.",
    "gives_value": "For {query}, {key} writes a vector of norm {share}, rank {rank} of {n}.",
    "gives_hidden": "{key} is hidden.",
    "all_kinds": {
        "mean": "On the mean of these heads, {key} gets the most: {share} on average.",
        "max": "{key} gets the most: on average {share} from the head that gives it most.",
        "rollout": "By rollout, most comes from {key}: {share} on average.",
        "value": "{key} writes the most: a norm of {share} on average.",
    },
    "looks_kinds": {
        "mean": "Where the mean of these heads looks",
        "max": "Where any of these heads looks",
        "rollout": "Where rollout leads",
        "value": "What this head's values carry",
    },
    "looks_value": "What is written for {query}",
    "looks_rollout": "What {query} is made of, by rollout",
    "col_norm": "Norm",
    "gives_none_left": "All that {query} may look at is hidden.",
    "gives_nothing": "{query} may look at nothing: every key is masked, and its row is all zeros.",
    "gives_masked": "{query} may not look at {key}: it is {reason}.",
    "gives_all": "On average, tokens give {share} of their attention to {key}. Choose a token to see what it looks at.",
    "entropy": "Entropy {bits}: about {tokens} tokens’ worth.",
    "entropy_mean": "The whole head averages {bits} bits.",
    "entropy_help": "How spread out the attention is. 0 bits: all of it on one token. Each bit more doubles the number of tokens that share it.",
    "choose": "Choose a token to see what it looks at.",
    "free": "Nothing is masked: this token sees both sides.",
    "free_cross": "Nothing is masked: the whole sentence may be seen.",
    "free_last": "Nothing is masked in this row.",
    "free_all": "Nothing is masked in this head.",
    "hidden": "{hidden} of {n} keys are masked: {reasons}.",
    "shares": "Shares its keys and values with {heads}.",
    "lines": "Lines",
    "lines_help": "Queries on top, keys below. For each query, the fewest lines that carry {keep} % of its attention.",
    "lines_note": "keep {keep} % of each row",
    "lines_label": "Lines from queries to the keys they look at. Up and down move between tokens, left and right between queries and keys, Enter locks, Escape releases.",
    "lines_query": "query",
    "lines_key": "key",
    "lines_masked": "masked",
    "lines_heads": "Heads whose lines are drawn",
    "lines_one": "this head",
    "lines_all": "several heads",
    "lines_capped": "The {shown} strongest of {n} lines are drawn.",
    "lines_large_key": "This text is long: these lines make up {keep} % of what the token gets.",
    "lines_large": "This text is long: point at a token on the left, or lock one, to see its lines.",
    "looked_at": "Who looks at {key}",
    "looked_at_most": "{key} is looked at most by {query}, with {share} of its attention.",
    "looked_at_none": "Nothing may look at {key}: it is masked for every query.",
    "looked_at_large": "Click to see who looks at {key}: in a text of this length that takes a moment.",
    "lines_facts": "The facts are of layer {layer}, head {head}.",
    "lines_title": "Layer {layer} · {n} heads",
    "lines_title_layers": "{n} heads of several layers",
    "keep": "keep",
    "keep_share": "{keep} % of each row",
    "keep_spoken": "{keep} percent of each row",
    "keep_help": "For each query, the fewest lines that carry this much of its attention.",
    "head_only": "H{head}",
    "chip_help": "Layer {layer} · Head {head}. Click adds it or takes it out; double click, or Shift+Enter, shows it alone.",
    "alike": "Heads like this one",
    "alike_help": "Correlation of the maps, each weight taken relative to its row's mean: 1 is the same pattern.",
    "sums": "rows sum to 1",
    "sums_each": "each head’s rows sum to 1",
    "sums_help": "Every row of this layer sums to 1 within {error}.",
    "sums_off": "rows sum to 1 only within {error}",
    "masked_zero": "masked cells are 0",
    "fused": "equals the fused kernel, max |Δ| {error}",
    "fused_help": "These weights times the values give what PyTorch's fused attention kernel returned in the run; the largest difference in this layer is {error}.",
    "fused_none": "edited: the fused kernel did not run here",
    "run": "{n} tokens · {time} · {device} {dtype}",
    "run_pair": "{n} + {m} tokens · {time} · {device} {dtype}",
    "run_took": "{ms} ms",
    "run_goes_on": "still running",
    "to_come": "The model has not come to this layer yet.",
    "colour": "colour",
    "linear": "linear",
    "log": "log",
    "per_row": "per row",
    "per_row_most": "{most}, row’s largest",
    "units": {
        "weight": "Colours stand for attention weights.",
        "norm": "Colours stand for norms of what is written, up to the largest in this picture.",
    },
    "per_row_top": "row’s largest",
    "colour_help": "linear: 0 to 1. log: from 0.0001 to 1, so that small weights show. per row: each row up to its own largest weight.",
    "tip_value": "{value} ({share}), rank {rank} of {n}",
    "tip_masked": "masked: {reason}",
    "tip_norm": "norm {value}, rank {rank} of {n}",
    "tip_max": "largest weight {value}, rank {rank} of {n}",
    "tip_hidden": "hidden by you",
    "scores": "q·k {raw}, scaled {scaled}",
    "scores_biased": "q·k {raw}, scaled with position bias {scaled}",
    "scores_loading": "q·k …",
    "positions": "positions {i}–{j}",
    "position": "position {i}",
    "loading": "fetching",
    "offline": "The server did not answer. The picture is the last one that arrived.",
    "col_rank": "Rank",
    "col_key": "Key",
    "col_position": "Position",
    "col_weight": "Weight",
    "table_caption": "What {query} looks at, {what}",
    "table_caption_all": "What each key gets on average, {what}",
    "table_head": "layer {layer}, head {head}",
    "masked_word": "masked: {reason}",
    "export": "Export",
    "export_help": "Take what is on the screen away: picture, numbers, page or code.",
    "export_picture": "Picture",
    "export_heads": "all heads",
    "export_colours": "Colours",
    "export_screen": "as on screen",
    "export_paper": "on white",
    "export_image": "Image",
    "export_png_help": "A picture with its caption, its description and the code that reproduces it inside the file.",
    "export_svg_help": "A drawing with real text, for papers and slides: it stays sharp and its words can be edited.",
    "export_numbers": "Numbers",
    "export_csv_help": "A line for each cell of the map on the screen, every digit.",
    "export_npz_help": "The same as arrays for numpy.",
    "export_page": "Interactive",
    "export_html_help": "A page with all heads that stays interactive without a network.",
    "export_plotly_help": "This map in Plotly, with its own zoom, pan and export.",
    "export_copy": "Copy",
    "export_snippet": "code",
    "export_snippet_help": "Python that gives these numbers.",
    "export_alt": "description",
    "export_alt_help": "What the picture shows in words: alternative text for a page or a slide.",
    "export_note": "Everything is made in this browser and says which model, head and scale it shows.",
    "export_busy": "working …",
    "export_saved": "{name} saved, {size}.",
    "export_copied": "Copied.",
    "export_by_hand": "This browser does not let the page copy. Select the text and copy it:",
    "export_wait": "The map is still being fetched. Try again in a moment.",
    "export_failed": "That did not work in this browser. Try another format, or a smaller size.",
    "export_opening": "Opening Plotly.",
    "export_whole_only": "This run is too large for one page: it holds all heads, up to about 100 tokens. Take the picture or the numbers.",
    "export_alt_map": "{title}. Heat map of {n} queries, down, by {m} keys, across.",
    "export_alt_lines": "{title}. Lines from {n} queries to {m} keys, wider for more attention.",
    "export_alt_heads": "{title}. A grid of small heat maps, {layers} layers down by {heads} heads across.",
    "export_hidden": "hidden by choice",
    "export_outlined": "Outlined: {head}",
    "export_units": {"weight": "attention weight", "norm": "norm"},
    "axis_query": "query ↓",
    "axis_key": "key →",
    "offline_page": "Made with Headlight. This page holds all it needs and asks no server for anything.",
    "offline_code": "The code that reproduces these numbers",
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

# exports
EXPORT_NAMES = {
    "head": "layer {layer}, head {head}",
    "value": "layer {layer}, head {head}, value-weighted",
    "head_lines": "heads {heads} (layer.head), a colour each",
    "value_lines": "heads {heads} (layer.head), value-weighted, a colour each",
    "mean": "mean of heads {heads} (layer.head)",
    "max": "max of heads {heads} (layer.head)",
    "mean_layer": "mean of all {n} heads of layer {layer}",
    "max_layer": "max of all {n} heads of layer {layer}",
    "rollout": "attention rollout from layer 0 to layer {layer}",
}
EXPORT_UNITS = {
    "weight": "attention weights",
    "norm": "weight times the norm of what the value writes",
}
EXPORT_AXES = ", query down, key across"
EXPORT_ALL_HEADS = "all heads"
EXPORT_GRID = "attention weights, layers down, heads across; in each, query down, key across"
EXPORT_METRIC_TITLE = "{metric} of all heads"
EXPORT_METRIC = "{metric} of each head, layers down, heads across"
EXPORT_OUTLINED = "outlined: {head}"
EXPORT_HIDDEN = {"weight": "hidden: {tokens}; the other weights of each row renormalised", "norm": "hidden: {tokens}"}
EXPORT_HIDDEN_CELL = "hidden"
EXPORT_MERGED = "sub-words merged to words: keys added up, queries averaged"
EXPORT_REGION = "part of the map: queries {q0} to {q1} of {n}, keys {k0} to {k1} of {m}"
EXPORT_EDITED = "edited: {edits}"
EXPORT_SCALES = {
    "linear": "linear colour scale",
    "log": "logarithmic colour scale",
    "row": "colours of each row up to its own largest weight",
    "lines": "the fewest lines that carry {keep} % of each row, wider for more",
    "metric": "colours from 0 to the end of the number’s range",
    "heads": "square-root colour scale, each pixel the largest weight of its patch",
}
EXPORT_TOO_LARGE = (
    "{rows:,} × {columns:,} cells are {cells:,}, and this file may hold {most:,}. Zoom in to the part you need, or take "
    "the code: it gives them all."
)
EXPORT_UNKNOWN = "{name} must be one of {allowed}; it is “{value}”."
INSPECT_TOO_LONG = (
    "Plotly draws at most {most} × {most} cells, and this map has {rows:,} × {columns:,}. Zoom in on the map, or choose a "
    "shorter sentence."
)
INSPECT = "Inspect in Plotly"
INSPECT_BARS = {"weight": "attention weight", "norm": "norm", "row": "share of the row’s largest"}
INSPECT_QUERY = "query"
INSPECT_KEY = "key"

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
MORE = " and {n} more"
