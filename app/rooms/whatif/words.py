"""Every word of What if. Names in braces are filled in where the words are used."""

from typing import Any

from app.kit import words as kit

TITLE = "What if"
LINE = "which head does this answer depend on?"

SITES = {"encoder": "encoder", "decoder": "decoder", "cross": "cross-attention"}
AT_STEP = "{title}, step {step}"
NO_CAUSAL_MASK = "This model is an encoder: it has no causal mask."
EDITS_ALLOWED = (
    "edits as Headlight writes them, such as ablate_decoder_L0_H5 or temperature_4, joined by ~: "
    "silence a head here and press “Keep” to see one"
)
EDITS_UNREADABLE = "The edits of the run on the screen cannot be read. Allowed: {allowed}."
AGAINST_ALLOWED = "another sentence of at most 2,000 characters, or a link to a screen of Headlight whose model is here"
OTHER_ALLOWED = "a model that is offered here, such as storyteller or copy@00122"
MOVED_ALLOWED = "a head by its kind of attention, layer and number, such as decoder.5.3"
PATCH_NEEDS_TEXT = (
    "Whose head? Type another sentence beside “another sentence”, with the same number of tokens. "
    "Then each head in turn is replaced by the same head there."
)

# changes, by their text in a link, else by their kind
CHANGES = {
    "nocausal": "no causal mask",
    "nopositions": "no positions",
    "noscale": "no 1/√d",
}
CHANGES_BY_KIND = {
    "temperature": "an attention temperature of {value:g}",
    "ablate": "layer {layer} head {head} silent",
    "scale": "layer {layer} head {head} times {factor:g}",
    "window": "a window of {size}",
}

# files
NPZ_TOO_LARGE = "Every weight of both runs is more than a file of this page holds. Try a shorter text."
CAPTION_TEXT = "“{text}”"
CAPTION_EDITS = "edits: {edits}"
TABLE_SWEEP = "sweep"
TABLE_WORDS = "words"
TABLE_MOVED = "heads that moved"

# what the browser writes; it fills in the braces itself
COMPONENT: dict[str, Any] = kit.COMPONENT | {
    "as_it_is": "as it is",
    "changed": "changed",
    "other_row": "the other",
    "source_row": "source",
    "other_source": "other source",
    "other_run": "the other run",
    "looked_at": "looked at",
    "moved_row": "moved",
    "change": "Change",
    "silence": "silence a head",
    "silence_help": "Ablation. Each head is silenced in turn: its output becomes zero, or its mean over the text.",
    "cut": "cut a look",
    "cut_help": "Each attention link, of a query to a key, is blocked in turn.",
    "patch": "take a head from another sentence",
    "patch_help": "Activation patching. Each head’s output in turn is replaced by its output for another sentence: which head carries the difference?",
    "toggles": {
        "nocausal": ["no causal mask", "Every query may look at the future."],
        "nopositions": ["no positions", "The order of the words is taken away."],
        "noscale": ["no 1/√d", "Scores are not divided by √d_head."],
    },
    "temperature": "temperature of attention",
    "temperature_help": "Scores are divided by this before the softmax: below 1 sharper, above 1 flatter.",
    "other_text": "another sentence",
    "other_text_help": "A second sentence beside the first, word by word. Of the same number of tokens it has a difference map. A link to any screen of Headlight, pasted here, compares with its model, its step of training, its text and its edits: a mask painted in Masks and words moved in Positions among them.",
    "other_text_label": "Another sentence",
    "other_model": "another model",
    "step": "step of training",
    "none": "none",
    "undo": "Undo",
    "undo_help": "Back to the plain run. Key: U.",
    "swap": "Swap sides",
    "swap_help": "The changed run becomes the one above, and what is above is compared with it. Both are in the link.",
    "keep": "Keep",
    "keep_help": "Keep this change, and sweep again with it: changes add up.",
    "kept": "Kept changes",
    "drop": "Take back: {change}",
    "heading_heads": "Which head does this answer depend on?",
    "heading_groups": "Which group of heads does this answer depend on?",
    "heading_looks": "Which look does this answer depend on?",
    "heading_patch": "Which head carries the difference?",
    "heading_with": "with the changes",
    "what": "What is changed in turn",
    "heads": "heads",
    "looks": "looks",
    "group": "What is silent at once",
    "group_off": "one head",
    "group_on": "heads that share keys",
    "group_on_help": "Grouped-query attention: several heads read the same keys and values. They are silenced together.",
    "by": "Silent means",
    "by_zero": "zero",
    "by_mean": "mean over the text",
    "by_zero_help": "The head's output becomes zero. Zero is only one way to silence.",
    "by_mean_help": "The head's output becomes its mean over the tokens of the text: it still writes, everywhere the same.",
    "only_all": "in all heads",
    "only_one": "in {head} only",
    "where": "Where it is taken",
    "where_all": "at all tokens",
    "where_last": "at the last token",
    "site": "Kind of attention",
    "map_label": "The change of the answer by each head, rows are heads and columns are layers. Arrow keys move, the change follows.",
    "map_head": "head {head}",
    "map_layer": "layer",
    "map_label_looks": "The change of the answer by each look, rows are queries and columns are keys. Arrow keys move, the change follows.",
    "legend": "change of {word}, points (colour: √)",
    "legend_turn": "turn of its vector, × 100 (colour: √)",
    "falls_by": "−100",
    "rises_by": "+100",
    "most": "most",
    "sorted": "All {n}, sorted",
    "few_heads": "{n} of {heads} heads change it by less than 2.5 points.",
    "few_groups": "{n} of {heads} groups of heads change it by less than 2.5 points.",
    "few_groups_turn": "{n} of {heads} groups of heads turn it by less than 0.0095.",
    "few_looks": "{n} of {heads} looks change it by less than 2.5 points.",
    "few_turn": "{n} of {heads} heads turn it by less than 0.0095.",
    "writes_most": " The head with the largest output here, {head}, changes it by {d}.",
    "writes_most_turn": " The head with the largest output here, {head}, turns it by {d}: rank {rank} of {heads}.",
    "together": " The {n} heads of a group read the same keys and values, and are silent together.",
    "shared": " {heads} heads share the keys and values of {kv}; each is silenced by itself.",
    "never_cut": " The first row has one key and is never cut.",
    "one_query": " The text is long: the looks of {query} alone are cut.",
    "silent": "Silence {head} and ",
    "cut_look": "If {query} may not look at {key}{where}, ",
    "in_one": " in {head}",
    "patched": "With {head} taken from the other sentence, ",
    "with": "With {changes}, ",
    "with_and": " and ",
    "of_text": "the other sentence",
    "of_link": "the linked run",
    "falls": "{word} falls from {p} to {q}.",
    "rises": "{word} rises from {p} to {q}.",
    "stays": "{word} stays at {q}.",
    "now": " The likeliest is now {word}, {p}.",
    "theirs": " {word}, the answer there, goes from {p} to {q}.",
    "turns": "the sentence’s vector turns by {d} (1 − cosine).",
    "most_moves": " {token} moves most.",
    "plain": "Nothing is changed. {word} is the likeliest, {p}.",
    "plain_turn": "Nothing is changed. Choose a head to silence it.",
    "unlike": "{word}, {p}, is the likeliest in the run above; here it is {other}, {q}. Their vocabularies differ: no probability can be held against another.",
    "predicts": "What the model predicts",
    "after": "after {token}",
    "decides": "The class of this text",
    "of_classes": "{n} classes, one of them is right",
    "of_several": "{n} classes, each by itself",
    "unlike_classes": "{word}, {p}, is the likeliest in the run above; here it is {other}, {q}. Their classes differ: no probability can be held against another.",
    "number": " {word} goes from {p} to {q}.",
    "vectors": "Which vectors moved",
    "vectors_note": "an encoder answers with vectors",
    "number_note": "beside the number: how its text turned",
    "outlined": "outlined: as it is · filled: changed",
    "turned": "1 − cosine of each token’s last vector, before and after",
    "kl": "The whole distribution moved by {bits} bits (KL).",
    "elsewhere": [
        "{n} head looks elsewhere by more than 2 % of its weight.",
        "{n} heads look elsewhere by more than 2 % of their weight.",
    ],
    "entropy": "An average row of attention had {a} bits of entropy; now {b}.",
    "loss": "The loss over the text itself goes from {a} to {b}.",
    "honest": "This answer changes: other heads may make up for a silenced one, and zero is only one way to silence.",
    "looks_elsewhere": "looks elsewhere now",
    "looks_elsewhere_there": "looks elsewhere there",
    "itself": "unchanged",
    "last_layer": "No later head reads the output of this one, so no attention changed.",
    "no_difference": "The texts differ in length, or the models in shape: there is no difference map.",
    "no_maps": "This text is too long for maps of both runs. What moved most is told in the table.",
    "difference": "difference",
    "less": "less",
    "more": "more",
    "moved_most": "what moved most",
    "query_key": "query ↓ key →",
    "moved_heads": "Heads that moved most",
    "as_table": "as tables",
    "npz": "NPZ",
    "npz_help": "Both runs as arrays for numpy: every weight before and after, and what the answer became.",
    "table_sweep": "Every change",
    "table_words": "Words",
    "table_ranked": "Heads by how far they look elsewhere",
    "column_moved": "weight that moved, %",
    "table_moved": "What moved most in {head}",
    "column_head": "head",
    "column_look": "look",
    "column_change": "change",
    "column_word": "word",
    "column_before": "before",
    "column_after": "after",
    "column_token": "token",
    "proof": "every number is a run of its own",
    "equals": "the batch equals the single run, |Δ| {d}",
    "differs": "the batch differs from the single run by {d}",
    "sweeping": "{n} of {of} …",
    "swept": "{of} runs, {ms} ms, {device} {dtype}",
    "loading": "Computing …",
    "failed": "The server does not answer. It is asked again in a moment.",
    "head_name": "L{layer} H{head}",
    "head_long": "layer {layer} head {head}",
    "heads_long": "layer {layer} heads {head}",
    "site_name": "{site} {head}",
    "how": "How to read this",
    "how_text": "Rows are layers, columns are heads. Each cell is a run of its own in which that head alone is silent, and its number is how the "
    "probability of the answer changed, in points. Where a head looks is one picture; what depends on it is another. A large effect in an "
    "early layer also breaks everything after it: it is not a place where a fact is kept. Colours are square-root scaled so that small "
    "changes show; the numbers are not. Keys: arrows move, U undoes, L switches to looks.",
    "chosen": "{place}: {change}",
    "stronger": "‹ stronger",
    "weaker": "weaker ›",
    "itself_key": "itself",
    "one_layer": "Layer in which it is cut",
    "one_head": "Head in which it is cut",
    "letter_layer": "L",
    "letter_head": "H",
    "some_head": "one head",
    "cut_where": "Where it is cut",
    "ask_after": "Ask what comes after {token}",
    "cut_of": "Cut the looks of {token}",
    "few_turn_looks": "{n} of {heads} looks turn it by less than 0.0095.",
    "alt": "{heading} {sentence}",
}
