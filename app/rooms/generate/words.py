"""Words of Generate."""

from app import languages

TITLE = "Generate"
LINE = "Continue the text, word by word"
CANNOT_WRITE = (
    "{title} writes no next word: it reads a text, and has nothing to write one with. Take a model that writes."
)
TAKE_WRITER = "Take {title}"
WRITE_ON = "Write on with {title}"
EDITS_LEFT_OUT = "Here the model reads and writes as it is: the edits of this run change nothing of it."
TEMPERATURE_ALLOWED = "a number from 0.1 to 3, in steps of 0.1"
BEAMS_ALLOWED = "a whole number from {low} to {high}"
PATH_ALLOWED = "up to {n} whole numbers from 0 to {most} with points between them"
BAD_PATH = "The words that were taken cannot be read. Allowed: {allowed}."
BAD_CHOICE = "{name} cannot be read. Allowed: {allowed}."
TOO_MANY_LAYERED = "The layers of 1 to {n} words can be read together."
EXPORT = "what comes next, token by token"

# what the browser writes; it fills in the braces itself
COMPONENT = {
    # controls
    "first": "First column (Home)",
    "back": "One column back (←)",
    "on": "One column on (→): after the last one, one word is written",
    "play": "Play",
    "stop": "Stop",
    "stop_help": "Stop (Space): what is written stays",
    "play_help": "Play (Space): steps to the last column, then continues until you stop it",
    "how": "How the next word is chosen",
    "greedy": "greedy",
    "greedy_help": "The likeliest word each time",
    "sample": "sample",
    "sample_help": "Drawn by lot, with the chances as they are set",
    "beam": "beam",
    "beam_help": "Several texts at once; the likeliest ones so far live on. The likeliest of all may be lost on the way",
    "temperature": "temperature",
    "top_k": "top-k",
    "top_p": "top-p",
    "off": "off",
    "seed": "seed",
    "seed_help": "The same seed draws the same words",
    "beams": "beams",
    "looking": "looking with",
    "mean": "mean of all heads",
    "source": "source",
    "target": "target",
    "strip_label": "The text, token by token",
    # columns
    "title": "What comes next",
    "title_note": "height is probability; the word taken opens the next column",
    "beam_title": "{n} likely texts, kept by beam search, side by side",
    "beam_note": "with the log-probability so far, in nats; × was dropped, ■ came to its end",
    "loss_given": "loss on the given text {nats} nats = {bits} bits a token",
    "loss_own": "loss on its own words {nats} nats = {bits} bits a token",
    "reads": "reads",
    "writes": "writes",
    "surprise": "surprise",
    "bits": "bits",
    "looks": "looks at",
    "looks_but": "not {token}",
    "table_looks_but": "looks at most, {token} left out",
    "cache": "cache",
    "line_is": "1 line =",
    "other": "other",
    "branches": "branches",
    "no_branches": "Click a word that was not taken. The branch that you leave is kept here.",
    "early": "The first {n} tokens were read and count in the loss; they have no columns.",
    "figure": "Columns, one for each token: height is probability",
    "figure_keys": "Arrow keys move the ring, Home goes to the first column, Space plays and stops, 1 to 9 take one of the ten words.",
    "slice": "{word} {share}",
    "rest": "{n} more words, {share} together",
    # the fact
    "after": "After {read}",
    "own_note": "the model’s own probabilities",
    "given_note": "in the text that was given",
    "sample_note": "filled: as set; outlined: its own",
    "fact": "{word} has {share}, rank {rank} of {vocab}: {bits} of surprise.",
    "fact_given": "{word} follows. The model gave it {share}, rank {rank}: {bits} of surprise.",
    "fact_sample": "{word} had {share}; with these settings {set}, of {n} words left.",
    "fact_sample_more": "{word} had {share}; with these settings {set}, of more than {n} words left.",
    "fact_sample_all": "{word} had {share}; with these settings {set}, of all {n} words.",
    "fact_end": "Next is {word} with {share}. Press Play, or click another word.",
    "fact_end_sample": "Likeliest is {word} with {share}. Press Play to draw, or click a word.",
    "n_bits": "{n} bits",
    "no_chance": "no chance",
    "cut": "cut",
    "bar": "{word}: {own}",
    "bar_set": "{word}: its own {own}, as set {set}",
    "take": "Take “{word}” here",
    # layers
    "layers": "What each layer would say here",
    "layers_note": "rank of “{word}”",
    "layers_all": "all {n}",
    "layers_help": "A reading, not a thought: the last norm and the head are applied after every layer, which was not trained for it (logit lens).",
    "layers_caption": "What each layer would say, and the rank of “{word}”",
    "word_row": "embedding",
    "layer_row": "layer {n}",
    "layers_wait": "Reading the layers …",
    # cache
    "kv": "KV cache",
    "kv_sum": "{n} tokens × {per} = {total}",
    "kv_sum_one": "1 token × {per} = {total}",
    "kv_beams": "{n} tokens × {per} × {beams} beams = {total}",
    "without": "without it",
    "read_now": "Read now: {n} token.",
    "read_again": "Read again now: all {n}.",
    "newest": "The newest word took {ms}.",
    "timed": "At {n} tokens: {with} a word, {without} without.",
    "timed_without": "At {n} tokens: {without} a word, not {with}.",
    "time": "time both here",
    "timing": "measuring …",
    "sharing": "With {n} KV heads: {size}.",
    "sharing_one": "With 1 KV head: {size}.",
    "sharing_all": "With {n} KV heads, one a head: {size}.",
    "memory": "Its own tokens only; also the source’s keys and values, {size}, computed once.",
    # footer
    "adds_up": "every column adds up to 1",
    "same": "the same words with and without the cache",
    "not_same": "other words without the cache: {difference} between two logits",
    "read": "{n} tokens read",
    "read_one": "1 token read",
    "guide": "How to read this",
    "guide_text": "A column stands for one token that was read. Its full height is probability 1, divided among the words that may come next. The filled one was taken: it opens the next column. Grey words were given, and show how well the model foresaw them; green ones were written. The hatched part is all other words together. Surprise is −log2 of the probability of the word that came, before temperature, top-k and top-p. Words that are chosen because they are likely have little surprise: it is not the training loss.",
    "table": "Table",
    "table_caption": "Every column as numbers",
    "table_heads": [
        "position",
        "reads",
        "writes",
        "probability",
        "rank",
        "surprise in bits",
        "looks at",
        "cache in KiB",
        "ms",
    ],
    "beam_caption": "Every step of the beam search",
    "beam_heads": ["step", "beam", "text", "word", "log-probability", "kept"],
    "kept": "kept",
    "dropped": "dropped",
    "ended": "ended",
    # said
    "over_end": "The text is over: {word} was written. Step back and take another word, or begin again.",
    "over_positions": "This model has no position left. Step back, or shorten the text.",
    "over_most": "As many words are written as a link can name. Begin again with a shorter path.",
    "failed": "The server did not answer. Press Play to try again.",
    "writing": "Writing",
    "stopped": "Stopped after {n} tokens.",
    "stopped_one": "Stopped after 1 token.",
    "wrote": "{n} tokens written.",
    "wrote_one": "1 token written.",
    "loading": "Reading the text …",
    "explore_it": "Explore this text",
    "ask_what_if": "Ask What if",
    "onward_help": "Opens the text with the words that were written. From there the bar takes it to every room.",
    "begin_again": "Begin again",
    "begin_again_help": "Take back every word that was written",
    # files
    "csv_words": "words",
    "csv_beams": "beams",
    "csv_branches": "branches",
    "json_tree": "tree",
    "film_title": "{text}: what is written next",
    "film_alt": "{title}, word by word as it was written. At the end:",
    "film_nothing": "Nothing is written yet. Let the model write, then save the film.",
    "file_title": "{text}: what comes next",
    "file_path": "tokens taken: {path}",
    "file_how": "temperature {t}, top-k {k}, top-p {p}, seed {seed}",
}

languages.of(__name__)
