"""Words of Positions."""

from typing import Any

from app import languages

TITLE = "Positions"
LINE = "Where order comes in, and which heads notice"

# what a link may ask for
PLACES_ALLOWED = "every place from 0 to {most} once, such as {example}"
SWAP_ALLOWED = "two words, such as {example}"
SWAP_NONE = "nothing here, because this text has no two words"
FEATURES_ALLOWED = "one to six features from 0 to {most}, such as 0,4,10,20"
PLACE_ALLOWED = "a place from 0 to {most}"

# refusals of the routes
NOT_PLACES = "Places are whole numbers from 0, such as 0-3.5.4, one for each token."
TOO_MANY = "This lab proves it on up to {most} tokens, and this text has {n}. Shorten the text."

NOTHING_TO_SWAP = "This text has no two words that could change places. Type a sentence of two words or more."
NOT_TWO = "These are not two words of this text. It has {allowed}."

NO_GUEST = "No model is offered here whose positions are {kind}."
NO_RULE = "There is no rule {asked!r} for longer texts. It is one of {rules}."
NO_FACTOR = "A text may be longer by a factor of {allowed}, and not of {asked!r}."

# what files say
EXPORT_TOKENS = "{n} tokens"

# what the browser writes; it fills in the braces itself
COMPONENT: dict[str, Any] = {
    "keys_told": {
        "arrows": "Move along the picture: a row, a head, a word or a distance",
        "pages": "Go through the findings",
        "On a word: ← →": "The word before, or after",
        "On a word: Alt ← →": "Carry it to the next place",
        "On a word: Space, Enter": "Choose it",
        "On a handle: ← →, PgUp PgDn, Home, End": "Move it by one, by ten, or to an end",
    },
    "lab": "Lab",
    "labs": {
        "swap": "Swap two words",
        "clocks": "Clocks",
        "beyond": "Longer texts",
        "kinds": "Other kinds",
        "order": "Order",
        "two": "Two positions",
        "clock": "Two words on a line",
        "binary": "Digits to waves",
    },
    "beyond": "Beyond {n}",
    "more": "More …",
    "more_labs": "More labs",
    "count": "{i} of {n} · PgDn",
    "by_hand": "by hand",
    "findings": "Findings",
    "finding": {
        "word": "follows the word",
        "place": "follows the place",
        "drop": "no positions",
        "free": "no mask either",
        "fast": "a head for places",
        "slow": "a head for words",
        "both": "move both words",
        "turns": "unfinished turns",
        "rules": "four ways to stretch",
        "cost": "the cost",
        "gap": "pull the text apart",
        "sin": "sinusoidal",
        "lrn": "learned",
        "alibi": "ALiBi",
        "t5": "T5 buckets",
        "none": "none",
    },
    "why": {
        "": "Another head, or other words: the same clocks, with hands of their own.",
        "fast": "Only the distance is changed; query and key stay as they were in the run. Each pair of numbers is a clock of its own speed.",
        "slow": "The same clocks; this head’s longest hands are on the slow ones, which hardly move in 32 words.",
        "both": "Each hand turns, and both hands of a clock turn alike: the angle between them, and with it the score, stays.",
    },
    "guest": "{own} has {kind} positions, so this is {model}.",
    "guest_open": "Open {model}",
    # Clocks
    "clocks_wait": "The text is read once more, to see which head follows the word and which the place.",
    "clocks_of": "{n} pairs of numbers, {n} clocks, fast to slow: {q}, {k}; the face is the pair’s part of the score",
    "clocks_q": "the query’s hand",
    "clocks_k": "the key’s",
    "clocks_turn": "under each clock: words for one turn; right: mean and range",
    "adds": "blue adds",
    "takes": "purple takes off",
    "score_apart": "score of the same two words, by their distance",
    "apart_own": "{d} apart (as in the text): {score}",
    "apart_now": "{d} apart: {score}",
    "apart": "Words apart",
    "words_apart": "words apart",
    "trained_to": "trained up to {n}",
    "pair": "pair {j}",
    "pair_turn": "· {n} words",
    "others": "{n} others",
    "score_sum": "score",
    "makes": "Parts of the score",
    "makes_apart": "{d} apart",
    "from_to": "From 1 to 4 words apart",
    "pairs_turn": "pairs {a}–{b}, a turn in {low} to {high}",
    "pairs_slow": "pairs {a}–{b}, slower than the training",
    "shift_none": "as in the text",
    "shift_by": "both moved on by {n}",
    "distance_title": "Distance",
    "distance_hint": "drag the line, or ← →",
    "fact_fast": "{q} and {k} in head {head} of layer {layer}. One word apart they score {x}; four apart, the same two would score {y}. The fast clocks do that.",
    "fact_slow": "{q} and {k} in head {head} of layer {layer}: from 1 to 32 words apart the score stays between {x} and {y}. Slow clocks read the word, not its place.",
    "fact_apart": "{q} and {k} in head {head} of layer {layer}: {d} apart they would score {x}. In the text they are {own} apart and score {y}.",
    "fact_shift": "Move both words on by {n} places: every hand turns, and the score stays {x}. Only the distance between two words counts.",
    "foot_sum": "{n} pairs add up to the run’s score",
    "foot_moved_on": "moved on by {by}: no weight differs by more than {weights}",
    "head": "layer {layer}, head {head}",
    "head_n": "head {head}",
    "short_head": "L{layer} H{head}",
    "query": "Query",
    "key": "Key",
    "position": "Position",
    "distance": "key − query",
    "tokens": "{n} [token|tokens]",
    "tables": "Numbers as tables",
    # Order
    "order": "Order of the words",
    "order_trained": "as trained",
    "order_drop": "positions taken away",
    "order_words": "words moved",
    "order_places": "places moved",
    "shuffle": "Shuffle the words",
    "shuffle_help": "Puts the words in a random order; special tokens stay. Each click gives another order.",
    "site": "Which attention",
    "sites": {"encoder": "encoder", "decoder": "decoder", "cross": "cross-attention"},
    "stack": "Whose words",
    "stacks": {"encoder": "the encoder’s words", "decoder": "the decoder’s words"},
    "strip": "The words over their places. Drag a word onto another to swap them. Arrow keys choose a word, Alt and an arrow key moves it.",
    "strip_long": "The words over their places. Arrow keys choose a word.",
    "slot": "place {place}",
    "slot_none": "no place",
    "slot_moved": "from place {place}",
    "drag": "drag a word onto another",
    "drag_long": "beyond 32 tokens only Shuffle moves words",
    "said_swap": "{a} and {b} have changed places.",
    "moved": "How much each head changes",
    "moved_short": "changes",
    "grid": "{n} heads by how much of their attention moves. Now {head}: {share}. Arrow keys choose another.",
    "grid_legend": "100 % of its attention",
    "ranks": "the four that change most, the two that change least",
    "ranks_all": "every head, the one that changes most first",
    "map_trained": "As trained",
    "map_drop": "Without positions",
    "map_words": "Words moved",
    "map_places": "Places moved",
    "map_same": "Now",
    "map_rows": "every word keeps its row",
    "map_label": "{title}: {query} looks most at {key}, {share}. Arrow keys choose a row and a key.",
    "by_distance": "By distance,",
    "by_distance_note": "the mean over all words",
    "by_distance_cross": "Cross-attention looks from one text into another: there is no distance between their places.",
    "bars": "Mean weight by distance, 8 before to 8 after: most as trained {where}, {before}; there now {after}.",
    "distance_before": "{n} before",
    "distance_after": "{n} after",
    "itself": "itself",
    "legend_trained": "as trained",
    "proof": "The proof.",
    "proof_line": "Move the words. Without positions the map is the same, reordered in the same way:",
    "proof_without": "without",
    "proof_with": "with positions",
    "proof_word": "Equivariant, not invariant: the map moves, no weight changes.",
    "proof_causal": "The mask of a decoder still tells early from late, so that moving its words is more than moving its map. Swap two words takes the mask away as well: then the map moves along exactly.",
    "foot_order": "moving words or moving positions gives the same result, max |Δ| {size}",
    "foot_moved": "{far} of {n} heads redirect more than half of their attention",
    "rows": "{n} of {of} rows looked at",
    "fact_trained": "{head} as trained. Take the positions away, or drag a word onto another, and see which of the {n} heads notice.",
    "fact_bag": "Without positions a sentence is a bag of words. ",
    "fact_bag_causal": "Without positions only the mask still tells early from late. ",
    "fact_back": "The previous-token head ({head}) falls from {before} to {after}: it can no longer tell which word is previous. ",
    "fact_back_kept": "The previous-token head ({head}) goes from {before} to {after}. ",
    "fact_swapped": "You swapped {a} and {b}. ",
    "fact_swapped_places": "You swapped the places of {a} and {b}. ",
    "fact_dealt": "The words are in another order, and each place keeps its number. ",
    "fact_dealt_places": "The places are dealt out again. ",
    "fact_cell_falls": "{query} → {key} ({head}) falls from {before} to {after}",
    "fact_cell_rises": "{query} → {key} ({head}) rises from {before} to {after}",
    "fact_cell_same": "{query} → {key} ({head}) stays at {after}",
    "fact_and": "And ",
    "fact_other": ", and {key} gets {share}",
    "fact_keeps": "The previous-token head keeps {share}: it follows position, not meaning. ",
    "fact_loses": "The previous-token head ({head}) falls from {before} to {share}. ",
    "fact_mask": "The mask still tells early from late.",
    # Swap two words
    "swap_maps_label": "Two maps of {n} words. From {query}, carried along it looks most at {a}, {p}; run again most at {b}, {q}. Arrow keys choose a row.",
    "swap_moved": "Before, moved along",
    "swap_moved_note": "if only words counted",
    "swap_again": "Run again",
    "swap_again_note": "on the swapped text",
    "swap_hidden": "the mask hides it",
    "swap_cell": "{q} → {k}: {a} moved along, {b} run again",
    "swap_cell_hidden": "{q} → {k}: {a} moved along; here the mask hides it",
    "swap_pairs": "Swap these two instead.",
    "swap_first": "First word",
    "swap_second": "Second word",
    "swap_drag": "{a}: let go over another word",
    "swap_pair": "{a} ⇄ {b}",
    "swap_play": "▶ swap",
    "swap_play_help": "Shows once more how the two words change places.",
    "swap_conditions": "Run with",
    "swap_condition": {
        "trained": "as trained",
        "drop": "no positions",
        "free": "no positions, no mask",
    },
    "swap_why": {
        "word": "Of {n} heads, its map differs least from one moved along, compared with one that is not moved.",
        "place": "Of {n} heads, its map differs least from one that is not moved, compared with one moved along.",
        "drop": "All positions are the same: no two words are near or far.",
        "free": "Every word may look at every other, and none has a place.",
    },
    "swap_heads": "{n} heads",
    "swap_heads_note": "the word or the place?",
    "swap_measure": "word or place",
    "swap_grid": "{n} heads: above 0 a head follows the word, below 0 the place. Now {head}: {points} points. Arrow keys choose another.",
    "swap_legend_place": "place",
    "swap_legend_word": "word",
    "swap_legend": "±{most} points of its attention",
    "swap_points": "{points} points",
    "swap_this": "This head",
    "swap_rank": {"word": "rank {i} for the word of {n}", "place": "rank {i} for the place of {n}"},
    "swap_along": "from moved along",
    "swap_still": "from not moved",
    "swap_back": "one word back",
    "swap_differs": "differs by {p}",
    "swap_changes": "{a} → {b}",
    "swap_next": "Next word",
    "swap_next_note": "before → swapped",
    "swap_mean": "means over {rows} rows after both words",
    "swap_mean_all": "means over all {rows} rows",
    "swap_of": "{rows} of {of} rows read",
    "swap_legend_frames": "10 points more, less",
    "swap_legend_hidden": "the mask hides it",
    "fact_swap": "Swap {a} and {b}. ",
    "fact_swap_word": "Head {head} of layer {layer} follows the word: from {q} it looks at {w}, {x} before and {y} after.",
    "fact_swap_place": "Head {head} of layer {layer} follows the place: {q} gives {w} {x}, then {v}, which stands there now, {y}.",
    "fact_swap_hand": "In head {head} of layer {layer}, {q} gives {w} {x} before and {y} after; {v}, now in its place, gets {z}.",
    "fact_swap_neither": "In head {head} of layer {layer}, {q} looks at neither of them.",
    "fact_swap_back": "Without positions, the head for one word back falls from {x} to {y}: it no longer knows where back is. Only the mask still tells early from late.",
    "fact_swap_back_none": "Without positions only the mask still tells early from late: after both words, weights differ by up to {d} from a map moved along.",
    "fact_swap_exact": "Without positions the map moves along exactly: of {n} weights none differs by more than {d}. Attention alone has no order.",
    "fact_swap_exact_free": "Without positions and without the mask, the map moves along exactly: of {n} weights none differs by more than {d}. Attention alone has no order.",
    "fact_swap_most": "Of {n} weights, the largest difference from a map moved along is {d}.",
    "table_swap": "The word or the place",
    "table_swap_columns": ["layer", "head", "from moved along", "from not moved", "one back before", "one back after"],
    "table_swap_maps": "Layer {layer}, head {head}",
    "table_swap_maps_columns": ["query", "key", "moved along", "run again", "may look"],
    # Two positions
    "kind": "Kind of positions",
    "kinds": {
        "learned": "Learned",
        "sinusoidal": "Sinusoidal",
        "rotary": "Rotary",
        "alibi": "ALiBi",
        "relative": "T5 buckets",
    },
    "kind_own": "{kind} · {model}",
    "own": {
        "learned": "The model’s own table, as loaded.",
        "sinusoidal": "The model’s own table, as it adds it.",
        "rotary": "",
        "alibi": "The model’s own slopes.",
        "relative": "The model’s own numbers, as loaded.",
    },
    "rule_alone": "The rule alone is drawn: it is not this model’s.",
    "elsewhere": "{model} has no such positions: its own are {own}. Nothing is drawn for it that it does not have. A model that is {kind} shows them.",
    "go_home": "Show {model}",
    "rotary_none": "Rotary positions have no table: nothing is added to the words. Queries and keys are turned, each pair of features at its own speed. Clocks shows it on two words.",
    "periods": "Positions for one full turn",
    "periods_note": "of each pair of features",
    "periods_label": "{n} pairs of features; a full turn takes from {low} to {high} positions.",
    "table": "The table",
    "table_note": "position ↓ feature →",
    "table_label": "{n} rows of {d} features, positions {first} to {last}; blue above 0, purple below.",
    "table_tip": "position {position}, feature {feature}: {value}",
    "cut": "colours clipped at 99.5 %",
    "rows_shown": "rows {first} to {last} of {n}",
    "rows_before": "Rows before",
    "rows_after": "Rows after",
    "alike": "How alike",
    "alike_row": "to one row",
    "alike_distance": "by distance",
    "alike_note": "row {i} and every other, cosine",
    "alike_mean": "mean cosine by distance, without row 0",
    "alike_label": "Cosine of row {i} to every other; to row {j} {cosine}.",
    "alike_mean_label": "Mean cosine of two rows by distance: {one} at 1, {far} at {n}.",
    "row_handle": "Row {name}",
    "row_value": "{at}, cosine {cosine}",
    "features": "Features",
    "features_label": "Features {features} over positions {first} to {last}.",
    "feature_drop": "Leave feature {feature} out",
    "feature_more": "another",
    "feature_help": "Another feature, a whole number from 0 to {most}. Enter draws it.",
    "feature_n": "feature {feature}",
    "end": "Where it ends",
    "end_learned": "Learned: {n} rows, 0 to {last}, and no more.",
    "end_sinusoidal": "A formula: any row can be computed, but this model holds and was taught {n}.",
    "end_try": "A text of {n}",
    "end_formula": "Row 1,000 is as easy as row 10. The heads were never trained for it.",
    "closest": "Positions are added, not put beside the word, so no two rows may be equal: the nearest, {i} and {j}, are {distance} apart.",
    "closest_of": "Positions are added, not put beside the word, so no two rows may be equal: of the first {n} the nearest, {i} and {j}, are {distance} apart.",
    "trade": "Longer than the table: what each kind trades",
    "trade_columns": ["Positions", "Numbers learnt", "In a longer text"],
    "trade_rows": [
        [
            "learned",
            "Learned",
            "one vector for each place",
            "Refused: there is no row. More rows would be untrained numbers.",
        ],
        ["sinusoidal", "Sinusoidal", "none", "A row for any place, and heads that were never taught it."],
        ["rotary", "Rotary", "none", "Any distance can be turned; longer ones than in training were never taught."],
        ["alibi", "ALiBi", "none", "Made for it: what is farther only counts less."],
        [
            "relative",
            "T5 buckets",
            "one number for each bucket and head",
            "Beyond the last bucket all distances are one.",
        ],
    ],
    "trade_own": {"learned": "{n} × {d} = {product}", "sinusoidal": "none; a learned table would have {product}"},
    "rule": "The rule:",
    "rule_alibi": "what each head takes off a score at a distance",
    "rule_relative": "what each head adds to a score at a distance",
    "rule_label": "{n} heads of {whose}: from {low} to {high} over the distance.",
    "rule_nobody": "no particular model",
    "slope": "head {head}, slope 1/{slope}",
    "key_query": "key − query",
    "buckets": "The bucket",
    "buckets_note": "of each distance: near ones have one each, far ones share",
    "buckets_label": "{n} buckets over distances to {reach} on either side.",
    "foot_learned": "read from the model, not computed",
    "foot_sinusoidal": "the rows that this model adds",
    "foot_table": "{model} · {n} × {d}",
    "fact_learned": "The model was not told that {i} lies near {j}: it learnt a vector for each. Rows {i} and {j} have cosine {cosine}",
    "fact_learned_far": "The model learnt a vector for each place. Rows {i} and {j} have cosine {cosine}",
    "fact_same": "Rows {i} and {j} are one and the same: cosine {cosine}",
    "fact_less": "; {i} and {n} are nearer and less alike, {cosine}: it learnt waves of its own.",
    "fact_sinusoidal": "Sines and cosines make distance visible: rows {i} and {j} have cosine {cosine}, and so has any other pair {apart} apart, such as {a} and {b}: {again}.",
    "fact_sinusoidal_alone": "Sines and cosines make distance visible: rows {i} and {j} have cosine {cosine}.",
    "fact_rotary_table": "Rotary positions add nothing to the words: they turn queries and keys, some pairs of features fast and some slowly.",
    "fact_alibi": "ALiBi adds nothing to the words. Each head takes points off a score for every step of distance, at a slope of its own: {first} to {last} with {n} heads.",
    "fact_relative": "T5 learns one number for every bucket of distance and head: near distances have a bucket each, far ones share, and beyond {far} all are alike.",
    "fact_relative_own": "{model} learnt one number for every bucket of distance and head: near distances have a bucket each, far ones share.",
    "fact_elsewhere": "{model} has {own} positions, and other kinds are shown on models that have them.",
    # Longer texts
    "beyond_why": {
        "turns": "Words for one full turn, pair by pair. A clock that went round has shown every angle in training.",
        "rules": "How much slower each clock runs under each rule, for a text so many times as long.",
        "cost": "A page of Alice in Wonderland that the model could read as it is, measured as it goes; no rule was trained here. Lower is better.",
        "gap": "The text is run again for each gap. An empty gap is itself something the model never saw: this is no test of long texts.",
    },
    "rule_name": {"none": "as trained", "drop": "no positions"},
    "rule_times": "{rule} × {factor}",
    "rule_why": {
        "none": "as it was trained",
        "linear": "all clocks slower, fast ones too",
        "dynamic": "the base grows with the text; nothing up to {n}",
        "yarn": "fast kept, slow × {times}; q and k × {grows}",
        "llama3": "the same idea, bounds on the wavelength",
    },
    "factor": "As far as",
    "times": "× {n}",
    "factor_reach": "a text of {n}",
    "one_turn": "words for one full turn",
    "pair_axis": "pair of numbers, fast to slow",
    "pair_head": "pair",
    "trained_on": "trained on {n} words",
    "how_far": "How far round in {n} words",
    "turned": "{n} turns",
    "turns_mean": "A clock that went round has shown every angle in training: a longer text shows nothing new. One that did not has only ever shown the first part of its face.",
    "slower_by": "each clock runs slower by",
    "never": "never finished a turn →",
    "the_rules": "The rules",
    "turns_at": "Turns at word {n}",
    "as_is": "as is",
    "seen": "seen {n}",
    "loss_of": "Loss of a word",
    "loss_mean": "mean of the last {last} of {of}",
    "of_alice": "Alice",
    "measuring": "measuring …",
    "waits": "waits until the text is too long",
    "why_cost": "Why it costs",
    "cost_linear": "Linear × {n} makes neighbours look 1⁄{n} of a word apart: heads that look one word back no longer know where back is.",
    "cost_kept": "llama3 and yarn leave the clocks that turn fast as they were: {a} and {b} more.",
    "cost_dynamic": "Dynamic changes nothing until the text is longer than the training.",
    "cost_untrained": "No rule was trained here. Models that use one are trained on with it for a while, and lose less.",
    "by_gap": "as the next word, by the empty places between {a} and {b}",
    "trained_here": "trained to here: {n}",
    "empty_axis": "empty places",
    "empty_places": "Empty places",
    "places_empty": "{n} empty places",
    "gap_note": "The words before the gap keep their places, those after it stand further on, and nothing is between. A rule that divides by {n} makes the gap {n} times smaller.",
    "fact_turns": "{a} of {n} clocks never finished a turn in the {length} words of training. On a longer text they point where the model has never looked.",
    "fact_turns_none": "Each of {n} clocks finished a turn in the {length} words of training: a longer text shows no new angle of a single clock, only new ones together.",
    "fact_rules": "To read {n} times as far, slow the clocks. Linear slows all of them by {n}; yarn and llama3 leave the fast ones alone, so that one word back stays one word back.",
    "fact_rules_one": "For a text as long as in training no rule slows a clock. Move the slider to read further.",
    "fact_cost": "Stretching is not free. On a text that would have fitted, linear × {n} raises the loss from {x} to {y}; llama3 × {n} only to {z}.",
    "fact_cost_waits": "Stretching is not free. The loss of one page under each rule is being measured.",
    "fact_gap": "Leave {n} places empty after {place}: {w} falls from {x} to {y}.",
    "fact_gap_llama": " With clocks slowed as in llama3, {z}.",
    "fact_gap_waits": "The text is pulled apart, and run again for each gap.",
    "foot_beyond": "rotary base {base} · {d} numbers a head · trained on {n} tokens",
    "table_rules": "Words for one full turn",
    "table_losses_columns": ["rule", "loss"],
    "table_gap": "The next word by empty places",
    # Other kinds
    "kinds_why": {
        "sin": "Vaswani et al. 2017: the model’s own table. Shown: its first 64 places, the first 128 numbers.",
        "lrn": "Cosine of each two rows of the model’s own table. Row 0 is unlike the others. A longer text is refused.",
        "alibi": "Press et al. 2021, 8 heads: the paper’s own slopes, taken off the score before the softmax.",
        "t5": "Raffel et al. 2020, both directions: 16 buckets back, 16 ahead, as the paper has them. Each model learns its own numbers.",
        "none": "Measured, not trained so: a model trained without positions would do better.",
    },
    "place_down": "place ↓",
    "number_right": "number →, fast waves at the left, slow at the right",
    "four_waves": "Four of its waves",
    "four_numbers": "numbers {n}",
    "beside_title": "Added, not put beside it",
    "beside_said": "A place is {how} to the word: the stream stays {d} wide. Put beside it, the stream is {double} wide, and so is every matrix that reads or writes it:",
    "beside_added": "added",
    "beside_layers": "layers of {model}",
    "beside_millions": "{n} M parameters",
    "beside_put": "put beside",
    "beside_times": "{n} M, × {times}",
    "mistaken": "Can two places be mistaken?",
    "rows_of": "{model}, {kind}, {n} rows",
    "nearest": "nearest two {d} apart",
    "more_rows": "Hold any two rows",
    "more_rule": "The rule over distance",
    "rows_alike": "how alike the rows of two places are",
    "cosine_apart": "cosine, by distance",
    "added_score": "added to the score",
    "taken_off": "Taken off per word",
    "alibi_note": "Steep heads see only near words, flat ones far ones too. Nothing is learnt, and no table ends: longer texts continue along the same line.",
    "bucket_title": "bucket",
    "distance_axis": "distance: the key’s place less the query’s",
    "earlier": "earlier words: 0–15",
    "later": "later words: 17–31",
    "which_bucket": "Which bucket?",
    "bucket_columns": ["words back", "both ways", "decoder"],
    "bucket_note": "A decoder, which sees nothing later, spends all 32 on what came before: 16 distances of their own.",
    "order_left": "How much order is left?",
    "left_mask": "No positions, mask kept: an early word sees fewer words than a late one. That leaks order.",
    "left_free": "No positions, no mask: swap any two words, and every map only moves along. Largest difference: {d}.",
    "see_swap": "See it in Swap two words",
    "two_maps": "As trained and without positions",
    "darkest": "darkest: {p}",
    "fact_sin": "Every place has its own pattern of waves, added to the word. No two rows are equal: the nearest two of {n} lie {d} apart.",
    "fact_lrn": "{model} learnt its {n} rows, and made waves of its own: rows {far} apart are more alike (cosine {x}) than rows {near} apart ({y}). There is no row {last}.",
    "fact_lrn_plain": "{model} learnt its {n} rows, one for each place. There is no row {last}.",
    "fact_alibi_score": "ALiBi turns nothing and adds nothing to the words. It takes points off the score, so many per word of distance: head 0 takes {first}, head {n} {last}.",
    "fact_t5": "T5 sorts distances into {n} buckets, and learns one number for each. Up to {exact} words each distance has its own; from {from} on, all share the last.",
    "fact_none": "No positions at all. With its positions taken away, the loss of {model} on a page of Alice rises from {x} to {y}; only the mask tells early from late.",
    "fact_none_waits": "No positions at all: the loss of {model} without them is being measured.",
    "foot_kinds": "tables and rules are computed, none is drawn from memory",
    "table_slopes_columns": ["head", "slope"],
    # Two words on a line
    "no_clocks": "{model}’s positions are {own}, so it has no clocks. A model with rotary positions shows them.",
    "line": "Positions of the two words",
    "both": "Both words",
    "word_handle": "Position of {word}",
    "word_at": "{word} at {place}",
    "clock_hint": "drag a word, or the bar between them",
    "move_both": "Move both by 20",
    "reset": "Reset",
    "clocks": "{n} clocks",
    "clocks_note": "each pair of features is a hand: {q} turned by its position, {k} by its own",
    "clocks_label": "{n} clocks: the angle between two hands and what each pair adds to the score. The table below has the numbers.",
    "clocks_legend": "Bold: what the pair adds to the score. Below it: positions for one full turn.",
    "clocks_rest": "{n} more features are not turned and add {share}.",
    "score_by": "Score by distance",
    "score_label": "Score by distance; at {distance} it is {score}.",
    "future": "future",
    "distance_is": "distance {distance}",
    "score_is": "score {score}",
    "highest": "Highest at distance {distance}, looking back: there the strongest pairs agree.",
    "fact_both": "Both words moved on by {n}, and every hand turned. The angle between each pair is what it was, and so is the score: {score}.",
    "fact_clock": "Rotary positions turn {q} and {k} like the hands of clocks. A score sees only the angle between two hands, so only the distance counts: at distance {distance} the score is {score}, wherever the two words are. ",
    "fact_future": "There the key is in the future, which the mask hides.",
    "foot_shift": "the whole text moved by {by} positions: scores max |Δ| {scores}, weights {weights}",
    "foot_pairs": "{features} features, {n} pairs",
    # Digits to waves
    "digits": "Four digits, four waves",
    "digits_note": "of the same periods",
    "digits_label": "Position {t} is {binary} in binary; four waves of the same periods.",
    "digit": "digit {digit}",
    "period": "period {n}",
    "t_value": "{t}, {binary} in binary",
    "legend_digit": "binary digit",
    "legend_wave": "the smooth wave of the same period",
    "flips": "Digits that flip",
    "flips_note": "from p to p + 1",
    "step": "Length of the step",
    "step_own": "in {model}’s {d} sines and cosines",
    "step_formula": "in {d} sines and cosines of the formula",
    "step_same": "{length}, the same between any two neighbours.",
    "fact_digit": "Position {t} in binary is {binary}: slow digits to the left, fast ones to the right. One step on, {n} digit flips; waves of the same periods encode it smoothly, and every step has the same length.",
    "fact_digits": "Position {t} in binary is {binary}: slow digits to the left, fast ones to the right. One step on, {n} digits flip; waves of the same periods encode it smoothly, and every step has the same length.",
    "fact_last": "Position {t} in binary is {binary}, the last of four digits; waves of the same periods encode it smoothly, and every step has the same length.",
    "foot_waves": "‖p(t+1) − p(t)‖ is the same for every t",
    "foot_wavelengths": "wavelengths of the model: 2π to 10,000·2π",
    "foot_no_waves": "{model} has none of these waves: its positions are {own}",
    # tables
    "table_moved": "How much each head changes",
    "table_moved_columns": ["layer", "head", "moved", "one back as trained", "one back now"],
    "table_maps": "The maps of layer {layer}, head {head}",
    "table_maps_columns": ["query position", "query", "key position", "key", "as trained", "now"],
    "table_distance": "Mean weight by distance, layer {layer}, head {head}",
    "table_distance_columns": ["distance", "as trained", "now"],
    "table_places": "Words by their places",
    "table_places_columns": ["place", "word", "as trained"],
    "table_rule": "The rule over distance",
    "table_buckets": "The bucket of each distance",
    "table_buckets_columns": ["key − query", "bucket"],
    "table_periods_columns": ["pair", "positions for one full turn"],
    "table_rows": "Cosines and features",
    "cosine_to": "cosine to row {i}",
    "table_values": "The table",
    "table_values_columns": ["position", "feature", "value"],
    "table_alike_columns": ["distance", "mean cosine"],
    "table_clocks": "Clocks",
    "table_clocks_columns": [
        "feature",
        "with feature",
        "length of q",
        "length of k",
        "angle of q",
        "angle of k",
        "positions for a turn",
        "adds",
    ],
    "table_scores_columns": ["distance", "score"],
    "table_digits_columns": [
        "position",
        "binary",
        "wave 0",
        "wave 1",
        "wave 2",
        "wave 3",
        "digits that flip",
        "length of the step",
    ],
    # Python that gives the numbers of a lab again; {load}, {trace} and {again} are lines of app.export.about
    "snippet_order": """import headlight as hl
from headlight import measures

{load}
{trace}
now = {again}
for before, after in zip(run.attention, now.attention):
    if (before.stack, before.site) == ("{stack}", "{site}"):
        print(before.layer, measures.total_variation(before.pattern(), after.pattern()))  # [head]
for some in (run, now):
    print(some.attention.at({layer}, "{site}", "{stack}").pattern({head})[0])  # [query, key]
""",
    "snippet_swap": """import headlight as hl
from headlight.labs.positions import token_vs_position

{load}
{trace}
before = {condition}
after = {again}
records = [i for i, one in enumerate(run.attention) if (one.stack, one.site) == ("{stack}", "attn")]
found = token_vs_position(before, after, records, {a}, {b})
print(found.along[{layer}, {head}], found.still[{layer}, {head}])
for some in (before, after):
    print(some.attention[records[{layer}]].pattern({head})[0])  # [query, key]
""",
    "snippet_two": """import torch

import headlight as hl
from headlight.labs.positions import cosine_to

{load}
{trace}
embed = loaded.model.get_submodule("{stack}.embed")
table = embed.position_embeddings(torch.arange(loaded.config.n_ctx)).detach()
print(cosine_to(table, {i})[{j}])
print(table[:, {features}])  # [position, feature]
""",
    "snippet_rule": """import torch

import headlight as hl

{load}
{trace}
distance = torch.arange(-64, 65)  # key - query
print(run.positions[{number}].bias.of_distance(distance[None, None])[0, :, 0])  # [head, distance]
""",
    "snippet_paper": """import torch

from headlight.model.positions import alibi_slopes, relative_bucket

print(alibi_slopes(8))
print(relative_bucket(torch.arange(-64, 65), 32, 128, bidirectional=True))
""",
    "snippet_rotary": """import headlight as hl

{load}
{trace}
print(run.positions[0])
print(run.positions[0].angles())  # None where positions are not rotary
""",
    "snippet_clock": """import headlight as hl
from headlight.labs.positions import score_by_distance, before_rotary

{load}
{trace}
record = run.attention[{record}]
before = before_rotary(run, record)
q = before.q[{head}, {query}]
k = before.k[{head} // (record.n_heads // record.n_kv_heads), {key}]
stack = loaded.model.get_submodule(record.stack)
frequencies, factor = stack.frequencies(len(run.positions[0].places), {windowed}, q.device)
print(score_by_distance(q, k, frequencies, record.rule.scale, [{distance}], factor))
print(record.scores({head}, {query}, {key}))  # the same at the words' own distance
""",
    "snippet_stretch": """from pathlib import Path

import headlight as hl
from headlight.labs.positions import end_loss, with_rope_scaling, context_extensions

{load}
for one in context_extensions(loaded.config, {factor}):
    print(one.rule, one.factor, one.frequencies)
text = Path("alice.txt").read_text("utf-8")  # any text of 512 tokens
ids = loaded.tokens(text).ids[: min(512, loaded.config.n_ctx)]
print(end_loss(loaded, ids), end_loss(with_rope_scaling(loaded, "{rule}", {factor}), ids), end_loss(loaded, ids, dropped=True))
""",
    "snippet_gap": """import headlight as hl
from headlight.labs.positions import probability_by_gap, gap_after

{load}
{trace}
after = gap_after(run.source)
for rule in ("none", "linear", "yarn", "llama3"):
    print(rule, list(probability_by_gap(run, rule, {factor}, [0, {gap}], after)))
""",
    "snippet_rows": """import torch

import headlight as hl
from headlight.plan.parameters import concatenated
from headlight.labs.positions import closest_rows, cosine_by_distance

{load}
embed = loaded.model.get_submodule("{stack}.embed")
table = embed.position_embeddings(torch.arange(loaded.config.n_ctx)).detach()
print(closest_rows(table), cosine_by_distance(table[1:], 32))
print(concatenated(loaded.config))
""",
    "snippet_binary": """from headlight.model.positions import sinusoid_table

table = sinusoid_table(16, {d_model}, "interleaved")
print([(p ^ (p + 1)).bit_count() for p in range(15)])  # digits that flip from p to p + 1
print((table[1:] - table[:-1]).norm(dim=-1))  # the length of each step
""",
}

languages.of(__name__)
