"""Words of what every room may use: projector mode, the files menu, links."""

from typing import Any

from app import languages
from app.session import words as session_words

PART = "Part"
UNKNOWN_PARAM = "This link asks for {name} “{asked}”. Possible here: {allowed}. Shown instead: {shown}."
NOTHING = "nothing"
WHOLE = "a whole number from 0 to {most}"
BETWEEN = "a whole number from {low} to {high}"
NUMBER = "a number from {low} to {high}"

# what a lesson asks about
COVERED = "Covered: say first, then look."
COVERED_CHART = "A chart in which the answer is covered: say first, then look."

# edits of a run; {where} is a head, or all of them, of a layer, a stack, an attention
MOST_EDITS = 4  # in one line
EDITS_MORE = "; and {n} more"
EDITS = {
    "ablate": "{where} is silenced",
    "scale": "the output of {where} is multiplied by {factor}",
    "noscale": "scores of {where} are not divided by √d",
    "temperature": "scores of {where} are divided by {value}",
    "mask": "some looks of {where} are cut",
    "aspadding": "some tokens count as padding",
    "setmask": "the mask of {where} is replaced",
    "window": "{where} looks no further than {size} tokens",
    "nocausal": "the decoder sees the future",
    "nopadding": "padding can be looked at",
    "aftersoftmax": "the mask of {where} comes after the softmax",
    "fill": "hidden scores of {where} are {value}",
    "nopositions": "positions are taken away",
    "shuffle": "positions are shuffled with seed {seed}",
    "positions": "positions are given by hand",
    "shift": "positions are moved by {by}",
    "swap": "tokens {first} and {second} change places",
}
EDIT_MEAN = "{where} gives its mean over the text"
EDIT_ALLOWED = "{where} may look where it could not"
EDIT_MASKS = {
    "none": "{where} sees everything",
    "causal": "{where} sees no future",
    "window": "{where} sees a window of {size} tokens",
}
EDIT_HEAD = "head {head}"
EDIT_EVERY_HEAD = "every head"
EDIT_LAYER = "of layer {layer}"
EDIT_STACK = "of the {stack}"
EDIT_CROSS = "(cross-attention)"

# the bar of a projected page
PROJECTED = {
    "projection": "Projection",
    "exit": "Exit",
    "exit_help": "Back to the page with all its controls. Shortcuts: P and Escape.",
    "freeze": "Freeze",
    "freeze_help": "A moving pointer changes nothing. Shortcut: F.",
    "spotlight": "Spotlight",
    "spotlight_help": "Dims everything around the pointer, or in Explore every row but the selected one. Shortcut: S.",
}

# what the browser's part of every room writes; it fills in the braces itself
COMPONENT: dict[str, Any] = {
    "project_keys": "Large type, controls folded away. P does it too, PgUp and PgDn go through the parts, B or . makes it black, Escape leaves.",
    "keys": "Keys",
    "keys_help": "The keys of this room. ? does it too.",
    "keys_named": {
        " ": "Space",
        "home": "Home",
        "end": "End",
        "arrows": "← → ↑ ↓",
        "pages": "PgUp PgDn",
        "cells": "On the map: ← → ↑ ↓",
        "toggle": "On the map: Space, Enter",
    },
    "keys_find": "Find a head by its numbers: type 24.4, then Enter",
    "keys_heads": "Choose one of all heads from a map",
    "keys_project": "Project, and back; projected, B or . makes the page black",
    "keys_freeze": "Projected: freeze, so that a moving pointer changes nothing",
    "keys_spotlight": "Projected: spotlight",
    "keys_escape": "Close a list; exit Project",
    "keys_this": "This list",
    "files_note": "Made in this browser. Every file says which model, sizes and assumptions it shows.",
    "files_json_help": "Every word that was written, with the words written after it, and lines that describe them.",
    "files_csv_help": "The exact numbers, below lines that say what they are.",
    "csv_guard": session_words.GUARDED,
    "files_by_hand": "This browser does not let the page copy. The text is selected: copy it.",
    "close": "Close",
    "covered": COVERED,
    "copied": "Link copied",
    "copy_by_hand": "Copy this link with Ctrl+C or ⌘C:",
    "copy_link": "Copy link",
    "copy_link_help": "A link to exactly this screen, sentence included.",
    "copy_frame": "Copy frame",
    "copy_frame_help": "A line of HTML that shows exactly this screen in a course page.",
    "frame_copied": "Frame copied: paste it into the HTML of a page",
    "share_screen": "Share this screen",
    "share_screen_help": "A class follows it on its own phones, and says where a word will look before you show it. J does it too.",
    "export": "Export",
    "export_help": "Take what is on the screen away: picture, numbers, page or code.",
    "export_image": "Image",
    "export_png_help": "A picture with its caption, its description and the code that reproduces it inside the file.",
    "export_svg_help": "A drawing with real text, for papers and slides: it stays sharp and its words can be edited.",
    "export_pdf_help": "One page with real text and lines that stay sharp, with its description and its code in the file.",
    "export_film": "Film",
    "export_gif_help": "Every moment, one after the other, for any page or slide. Caption, description and code are in its comment.",
    "export_mp4_help": "The same as a video for slides, with title, description and code as its tags. Not every browser writes it.",
    "export_webm_help": "The same as a video for the web, with title, description and code as its tags.",
    "film_stop": "Stop",
    "film_stop_help": "No file is made. Escape does it too.",
    "film_drawing": "Drawing moment {i} of {n}. Escape stops it.",
    "film_writing": "Writing frame {i} of {n}. Escape stops it.",
    "film_recording": "Recording as it plays: moment {i} of {n}. Escape stops it.",
    "film_cancelled": "Stopped. No file was made.",
    "film_changed": "Something else was chosen in the room, so no file was made. Try again.",
    "film_long": "This would be {n} frames and {s} seconds; a film has at most {frames} frames and {seconds} seconds.",
    "film_large": "This would be larger than {most}. Take WebM, which is smaller, or a shorter part.",
    "film_no_mp4": "This browser does not write MP4. Take WebM or GIF.",
    "film_no_webm": "This browser does not write WebM. Take MP4 or GIF.",
    "film_untagged": "This browser writes no tags into a video: title and caption are in the picture alone.",
    "export_numbers": "Numbers",
    "export_npz_help": "Exact arrays for numpy.load.",
    "export_page": "Page",
    "export_html_help": "One file that opens in any browser, without this server and without the network.",
    "export_copy": "Copy",
    "export_snippet": "code",
    "export_snippet_help": "Python that gives these numbers.",
    "export_busy": "working …",
    "export_saved": "{name} saved, {size}.",
    "export_copied": "Copied.",
    "export_failed": "That did not work in this browser. Try another format, or a smaller size.",
    "offline_page": "Made with Headlight. This page holds all it needs and asks no server for anything.",
    "offline_code": "The code that reproduces these numbers",
    "offline_missing": "This page asks no server: it holds what had been looked at when it was saved.",
    "clearest": "This room’s clearest head here: L{layer} H{head}",
    "clearest_help": "This room’s clearest head for this text. It is shown when you ask.",
    "find_head": "Layer.head",
    "find_head_allowed": "0.0 to {layers}.{heads}, then Enter",
    "find_head_unknown": "“{asked}” is no head of this model. Write layer.head, from 0.0 to {layers}.{heads}.",
    "head_place": "Layer {layer} · Head {head}",
    "head_short": "L{layer} H{head}",
    "head_button_help": "Choose one of the {n} heads. H does it too.",
    "special_tokens": {
        "begin": "‹start of text›",
        "end": "‹end of text›",
        "turn": "‹start of turn›",
        "turn_end": "‹end of turn›",
        "padding": "‹padding›",
        "unknown": "‹unknown›",
    },
    "pin": "Pin",
    "pinned": "Pinned",
    "pin_help": "Keep this head when the text changes. Without it a new text opens on its own best finding.",
    "heads_choose": "Choose a head",
    "heads_one": "one head",
    "heads_grid": "All {n} heads. Left and right change the layer, up and down the head; Enter shows it.",
    "heads_strongest": "The heads with the most of it",
    "heads_measure": "Coloured by",
    "heads_layer": "layer",
    "heads_layer_n": "layer {layer}",
    "heads_head": "head {head}",
    "heads_at": "{name}: {value}",
    "heads_show_help": "Show this head",
    "heads_go": "Go to",
    "heads_wait": "reading …",
    "heads_and": "and",
    "heads_shared": "Heads {groups} share their keys and values.",
    "heads_shared_each": "Each {n} heads in a row share their keys and values.",
    "heads_look": "this look",
    "heads_look_title": "What each head gives from {query} to {key}",
    "heads_first": "rests",
    "heads_first_title": "What each head gives to {key}, on which most rest, on average",
    "heads_adds": "adds",
    "heads_adds_title": "What each head adds to the score of {word}, the likeliest word after {query}",
    "heads_adds_wait": "What each head adds to the score of the likeliest word after {query}",
    "heads_adds_note": "purple takes, blue adds; square-root scale",
    "heads_back": "one back",
    "heads_back_title": "What each head gives to the token just before, on average",
    "sink_said": "Most heads park on {where}, {token}: {range} of their attention here.",
    "sink_first": "the first token",
    "sink_last": "the last token",
    "sink_at": "token {i}",
    "sink_help": "The middle half of the {n} heads is between these two numbers. Rows that can see no other token are not counted. Xiao et al. 2023, arXiv:2309.17453.",
    "sink_out": "colours without it",
    "sink_out_help": "Only colours change: that token turns grey, and the others have all of the scale. Numbers stay as they are.",
    "strip": "All layers at {word}",
    "strip_stack": "{stack} at {word}",
    "strip_stacks": {"encoder": "encoder", "decoder": "decoder"},
    "strip_stream": "stream at {word}",
    "strip_own": "own",
    "strip_parts": {"attention": "attention", "cross-attention": "cross", "MLP": "MLP"},
    "strip_start": "embedding",
    "strip_end": "norm, head",
    "strip_wire": "{share} on {word}",
    "strip_says": "Layer {layer}: the stream is {a} long before it, {b} after it. It adds {parts}.",
    "strip_adds": "{name} {x}",
    "strip_says_wire": "Its cross-attention gives {word} {share}, on average over its heads.",
    "strip_logit": "To the score of {word}: {parts}.",
    "strip_says_start": "The embedding: {x} long.",
    "strip_made": "Click for how it is made.",
    "strip_says_end": "After the last layer the stream is {x} long. Its norm and the head make {word} of it: {p}.",
    "strip_says_last": "After the last layer the stream is {x} long.",
    "turn_least": "Leaving out “{w}”, the word that matters least, turns it by {d}.",
    "turn_most": "No single word counts for as much: leaving out “{w}”, the one that matters most, turns it by {d}.",
    "turn_near": "That is more than leaving out “{w}” ({d}).",
    "table_more": "{n} more numbers are in the CSV file of the Export menu.",
    "project": "Project",
    **PROJECTED,
}

languages.of(__name__)
