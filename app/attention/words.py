"""Captions and sentences about attention, on the screen and in exports. Names in braces are filled in where they are used."""

from typing import Any

from app.kit import words as kit

UNKNOWN_PLACE = "This link asks for {what} {asked}, which {model} does not have on this sentence: {shown} is shown. There, {what} goes from {low} to {high}."
UNKNOWN_SITE = "This link asks for a kind of attention called “{asked}”, which {model} does not have. It has: {known}."
UNREADABLE = "This link asks for {what} “{asked}”, which is not a whole number: {shown} is shown."
UNKNOWN_OPTION = "This link asks for {what} “{asked}”, which this picture does not have, so it was left out. Possible values: {allowed}."
OPTION_HEADS = "layers and heads of this model, such as 0.2,3.1"
OPTION_HIDE = "positions of tokens to leave out, such as 0,15, but not all of them"
OPTION_KEY = "the position of one token that is looked at, such as 2"
OPTION_ZOOM = "the first row and the one after the last, and so for columns, such as 0,40,10,50"
OPTION_KEEP = "whole numbers from 1 to 100"
ROUTE_CHOICE = "{name} must be one of {allowed}; it is “{value}”."
ROUTE_LARGE = "This run is too large to be sent whole. Ask for tiles and rows of it."
ROUTE_HIDES_ALL = "Every key would be hidden. Leave at least one: there would be nothing to look at."
ROUTE_MEMBERS = (
    "members may only be heads of one kind of attention: record {place} is of another kind than record {record}."
)

RUN_SHAPES = "Shapes and memory of this run"  # the table of them, and what opens it

# kinds of attention: id of the site -> (title, what it does, the same beside a head's name)
SITES = {
    "encoder": ("self-attention", "Every token of the sentence looks at every token of it.", "self-attention"),
    "decoder": ("causal self-attention", "Every token looks at itself and at what came before.", "causal"),
    "cross": ("cross-attention", "Every token of the target looks at the tokens of the sentence.", "cross-attention"),
}
SITE_TABS = {"encoder": "self", "decoder": "causal", "cross": "cross"}

# what the component writes; it fills in the braces itself, each part in its own colour
COMPONENT: dict[str, Any] = kit.COMPONENT | {
    "theme": "Theme",
    "theme_auto": "same as browser",
    "theme_dark": "dark",
    "theme_help": "Light or dark, for the whole page. It is in the link.",
    "theme_light": "light",
    "heads": "All heads",
    "heads_size": "{kind} · {layers} × {heads}",
    "layers": ["{n} layer", "{n} layers"],
    "more_layers": "{layers} more below: scroll.",
    "more_heads": "{heads} more below: scroll.",
    "heads_count": ["{n} head", "{n} heads"],
    "head_numbers": ["head {n}", "heads {n}"],
    "heads_how": "Of this long text they show {how}.",
    "heads_help": "Rows are layers, columns are heads. Small pictures have the colours of the large one.",
    "heads_label": "All heads, one small picture each. Arrow keys move between heads and layers.",
    "metric": "What each small picture shows",
    "metrics": {
        "roles": [
            "by what they do",
            "The map of each head. A head is named after where the largest part of its average row goes, if that is at least 35 %, else it is mixed. The name says where attention goes, not what a head is for.",
        ],
        "maps": ["by layer", "The map of each head: rows are layers, columns are heads."],
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
    "members_chosen": "A click adds a head or takes it out; a double click shows it alone.",
    "members_chosen_touch": "Tap a small map to add a head, and again to take it out.",
    "members_all_touch": "All heads of this layer. Tap small maps to choose heads instead.",
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
    "which": "{token} ({i})",
    "hide_sink_help": "Leave out {token}, the token that gets the most on average, and renormalise each row over the rest. Attention that rests there hides all other patterns. Xiao et al. 2023, arXiv:2309.17453.",
    "hidden_label": "hidden",
    "hidden_help": "Tokens that are left out as keys. H on a token of the sentence or a cell of the map, or a double click on a token or the name of a key, hides it.",
    "hidden_none": "no token",
    "unhide": "Show {token} again",
    "unhide_all_short": "show hidden",
    "unhide_all": "show all",
    "hide_last": "One token must stay: there would be nothing to look at.",
    "left": "{share} of this row's attention remains, rescaled to 100 %.",
    "left_none": "Nothing of this row remains: all of its attention goes to what is hidden.",
    "left_norm": "What hidden tokens write is left out.",
    "words_setting": "tokens",
    "words_off": "pieces",
    "words_on": "words",
    "words_help": "words: the pieces of a word are put together. Keys are summed and queries averaged, so rows still sum to 1. Clark et al. 2019, arXiv:1906.04341.",
    "words_whole": "The tokenizer cut no word here into pieces. What it takes for words are the tokens.",
    "roles": {
        "one back": "· on average {share} goes one back",
        "one ahead": "· on average {share} goes one ahead",
        "itself": "· on average {share} stays on the token itself",
        "2–5 away": "· on average {share} goes 2–5 away",
        "same token": "· on average {share} goes to the same token",
        "induction": "· on average {share} goes to what followed before",
        "punctuation": "· on average {share} goes to punctuation",
        "one word": "· one word at a time",
    },
    "roles_rest": "· on average {share} {name}",
    "atlas": "over {n} texts",
    "atlas_help": "What this head does over a whole corpus",
    "atlas_loading": "Looking it up.",
    "atlas_title": "Layer {layer}, head {head}, over {n} texts",
    "atlas_says": "Compared with the other heads it stands out by this: {what}. On average {mean}; in nine of ten texts {low} to {high}.",
    "atlas_of": {
        "previous": "to the token before",
        "next": "to the token after",
        "self": "to the token itself",
        "sink": "to special tokens",
        "punctuation": "to punctuation",
        "induction": "to what followed before",
        "distance": "how far away it looks",
        "entropy": "entropy of a row",
    },
    "atlas_tokens": "{n} tokens",
    "atlas_bits": "{n} bits",
    "atlas_columns": ["goes", "on average", "in nine of ten texts", "texts"],
    "atlas_examples": "Where it does so most",
    "atlas_source": "Paragraphs of storybooks, the first {tokens} tokens of each.",
    "opened": "· opened by rule",
    "opened_help": "The picture opened on the link between two words that stands out most from its head's habit.",
    "axes": "query ↓  key →",
    "axes_help": "Each row is a query: a token that looks. Each column is a key: a token that is looked at. A row's weights sum to 1.",
    "kind": "Kind of attention",
    "shown_as": "Shown as",
    "map": "map",
    "table": "table",
    "lines_tab": "lines",
    "options": "Options",
    "options_label": "Options of the picture",
    "options_close": "Close",
    "scale_auto": "auto",
    "guide": "How to read this",
    "guide_of": {
        "map": "Each row is a token that looks (orange), each column one that is looked at (blue). {more}: more of the row’s attention.",
        "lines": "Each line leads from a token that looks (orange) to one that is looked at (blue). Thicker: more of its attention.",
        "table": "Each row is a token that is looked at (blue), with what it gets of the attention. The most looked at stands first.",
    },
    "guide_more": {"light": "Darker", "dark": "Brighter"},
    "guide_heads_touch": "Every small picture is a head: tap one. Tap a token to see what it looks at, and again to let it go.",
    "guide_heads": "Every small picture is a head. Click one, or use the arrow keys. Hover a token and it is highlighted everywhere; click to keep it.",
    "project_help": "Large type and few controls, for a projector. P does it too.",
    "projector_keys": "← → head · ↑ ↓ token · Page keys: every head · F freeze · S spotlight · P or Esc leaves",
    "projector_keys_led": "← → head · ↑ ↓ token · Page keys: steps of the lesson · F freeze · S spotlight · P or Esc leaves",
    "projector_off": "Projector mode is off.",
    "projector_on": "Projector mode. Arrow keys move between heads and tokens, P leaves.",
    "freeze": "Freeze",
    "spotlight": "Spotlight",
    "map_label": "Attention weights, query down and key across. Arrow keys move the cell, Enter locks the query, K the key, Escape releases them. H hides the key.",
    "strip_more": "The text goes on. Click to see more of it.",
    "strip_label": "Tokens. Arrow keys move, Enter locks a token as the query, K as the key, Escape releases it. H hides it as a key.",
    "strip_keys_label": "Tokens of the sentence, shaded by how much the query looks at them. Arrow keys move, Enter locks a token as the key, H hides it.",
    "source": "source",
    "target": "target",
    "fold_label": "How much of the map",
    "fold": "folded",
    "fold_help": "The rows around the chosen one, and the columns that they look at.",
    "whole": "whole",
    "whole_help": "All rows and all columns, to zoom into.",
    "whole_map": "The whole map, {n} × {m}. Click a row to read it.",
    "folded": "{folded} of {n} columns are folded away.",
    "folded_share": "{folded} of {n} columns are folded away; together they hold {share} of this row.",
    "unfold": "Click ⋯ to unfold.",
    "reads": "reads",
    "about_to_write": "is about to write",
    "axis_key_back": "← key",
    "looks_at_head": "looks at",
    "looked_at_head": "looked at by",
    "others": "other {n}",
    "others_help": "What the row gives to all other keys together.",
    "looks_at": "This head looks at {key}, {share}.",
    "writes": "After {query} it writes {word}, {share}.",
    "writes_guess": "After {query} its best guess is {word}, {share}.",
    "writes_next": "writes next",
    "writes_choose": "Choose a token to see what the model writes after it.",
    "writes_given": "next in the text: {word} {share}, rank {rank} of {n}",
    "writes_last": "The text ends here.",
    "gives": "{query} gives {share} of its attention to {key}, rank {rank} of {n}.",
    "gives_rest": "Of what remains, {query} gives {share} to {key}, rank {rank} of {n}.",
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
    "col_norm": "Norm",
    "gives_none_left": "All that {query} may look at is hidden.",
    "gives_nothing": "{query} may look at nothing: every key is masked, and its row is all zeros.",
    "gives_masked": "{query} may not look at {key}: it is {reason}.",
    "gives_all": "On average, tokens give {share} of their attention to {key}. Choose a token to see what it looks at.",
    "entropy": "Spread {bits}: about {tokens} tokens’ worth.",
    "entropy_mean": "On average a row spreads over {bits} bits.",
    "entropy_help": "How spread out the attention is. 0 bits: all of it on one token. Each bit more doubles the number of tokens that share it.",
    "choose": "Choose a token to see what it looks at.",
    "free": "Nothing is masked: this token sees both sides.",
    "free_cross": "Nothing is masked: the whole sentence may be seen.",
    "free_last": "Nothing is masked in this row.",
    "free_all": "Nothing is masked in this head.",
    "hidden": "{hidden} of {n} keys are masked: {reasons}.",
    "shares": "Shares its keys and values with {heads}.",
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
    "looked_at_most": "{key} is looked at most by {query}, with {share} of its attention.",
    "looked_at_none": "Nothing may look at {key}: it is masked for every query.",
    "looked_at_large": "Click to see who looks at {key}: in a text of this length that takes a moment.",
    "lines_facts": "The words and numbers beside it are of the mean of these heads.",
    "lines_title": "Layer {layer} · {n} heads",
    "lines_title_layers": "{n} heads of several layers",
    "keep": "keep",
    "keep_share": "{keep} % of each row",
    "keep_spoken": "{keep} percent of each row",
    "keep_help": "For each query, the fewest lines that carry this much of its attention.",
    "head_only": "H{head}",
    "chip_help": "Layer {layer} · Head {head}. Click adds it or takes it out; double click, or Shift+Enter, shows it alone.",
    "alike": "Heads like this one",
    "alike_help": "Correlation of the two maps over the cells that may be seen, each weight less the mean of its map: 1 is the same pattern.",
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
    "run_shapes": RUN_SHAPES,
    "run_took": "{ms} ms",
    "run_took_long": "{s} s",
    "run_goes_on": "still running",
    "to_come": "The model has not come to this layer yet.",
    "colour": "colour",
    "linear": "linear",
    "log": "log",
    "scale_said": {"linear": "", "log": "log scale", "row": "per row"},
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
    "export_picture": "Picture",
    "export_heads": "all heads",
    "export_colours": "Colours",
    "export_screen": "as on screen",
    "export_paper": "on white",
    "export_csv_help": "A line for each cell of the map on the screen, every digit.",
    "export_npz_help": "The same as arrays for numpy.",
    "export_page": "Interactive",
    "export_html_help": "A page with all heads that stays interactive without a network.",
    "export_plotly_help": "This map in Plotly, with its own zoom, pan and export.",
    "export_alt": "description",
    "export_alt_help": "What the picture shows in words: alternative text for a page or a slide.",
    "export_note": "Everything is made in this browser and says which model, head and scale it shows.",
    "export_by_hand": "This browser does not let the page copy. Select the text and copy it:",
    "export_wait": "The map is still being fetched. Try again in a moment.",
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
EXPORT_MERGED = "sub-words merged to words: keys added up, queries averaged"
EXPORT_REGION = "part of the map: queries {q0} to {q1} of {n}, keys {k0} to {k1} of {m}"
EXPORT_EDITED = "edited: {edits}"
EXPORT_SCALES = {
    "linear": "linear colour scale",
    "log": "logarithmic colour scale",
    "row": "colours of each row up to its own largest weight",
    "lines": "the fewest lines that carry {keep} % of each row, wider for more",
    "metric": "colours from 0 to the end of the number’s range",
    "heads": ", each pixel the largest weight of its patch",
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
INSPECT_BARS = {"weight": "attention weight", "norm": "norm", "row": "share of the row’s largest"}
INSPECT_QUERY = "query"
INSPECT_KEY = "key"
