"""What Lessons says. Names in braces are filled in where the words are used."""

from typing import Any

from app import languages
from app.rooms.lessons.written import words as written_words

# to an answer; the browser says the same (browser/check.js)
NO_ANSWER = {
    "point": "This step asks you to point at something that is on the screen.",
    "drag": "This step asks for a number.",
    "shape": "This step asks for a shape: put a size into every slot.",
    "choose": "This step asks you to choose.",
    "do": "This step asks you to change something in the picture.",
}
ANSWER = {
    "row_said": "You chose {word}: {value}, rank {rank} of {n}.",
    "row_top": "This head gives most to {top}: {best}.",
    "row_right": "That is where it looks most.",
    "ranked_said": "You chose {word}: {value}, rank {rank} of {n}.",
    "ranked_top": "The largest is {top}: {best}.",
    "ranked_right": "That is the largest.",
    "plain_said": "You chose {word}.",
    "plain_top": "It is {top}.",
    "plain_right": "Correct.",
    "chosen": "You chose: {word}.",
    "chosen_top": "The answer is {top}.",
    "chosen_right": "Correct.",
    "nearly": "more than 99.9 %",
    "tied": "{top} are within 1 % of each other: each of them is right.",
    "is": "It is {true}.",
    "too_much": "You chose {word}: {far} too high.",
    "too_little": "You chose {word}: {far} too low.",
    "points": "percentage points",  # between two shares
    "point": "percentage point",
    "all_said": "You found {hit} of {of}, and pointed at {extra} that do not belong there.",
    "all_right": "You found all {of}, and nothing else.",
    "all_are": "They are: {true}.",
    "places": "{n} places",
    "done": "You did it.",
    "not_done": "The picture is not yet as the step asks.",
    "more": "{first} and {n} more",
    "and": " and ",
    "or": " or ",
}

# to a first wrong answer, which never says what is true; the browser says the same (browser/reply.js)
REPLY = {
    "row": "It stands out to us, not to this head.",
    "ranked": "Others have more.",
    "plain": "It is not this one.",
    "other": "It is not this one.",
    "too_many": "One of these does not belong there.",
    "missing": "Something is missing.",
    "high": "Too high.",
    "low": "Too low.",
    "ten": "{word} is off by a factor of more than ten.",
    "two": "{word} is off by a factor of more than two.",
    "near": "{word} is off by a factor of less than two.",
    "some": "You chose {word}.",
    "axes": "It has another number of axes.",
    "so_many": "You gave it {n}.",
    "order": "The right sizes, in another order.",
    "sizes": "Not these sizes.",
    "placed": "Sizes in their place: {n} of {of}.",
    "not_yet": "It is not done yet.",
    "gets": "{word} gets {value} here, rank {rank} of {n}.",
    "seen_by": "Head {head} of layer {layer} does look there: {value}.",
}
ROW_MISTAKES = {
    "itself": "You took the word that looks.",
    "earlier": "You took the same word, said earlier.",
    "rests": "You took a place where heads rest.",
    "twice": "You took a word that is said twice.",
    "before": "You took the word before.",
    "stands_out": REPLY["row"],
}

# why what is on the screen cannot answer
NO_RUN = "There is no run on the screen yet."
ONE_KEY = "{word} may look at one token only here, so there is nothing to choose between."
NO_SITE = "{model} has no {site}. This step is about it."
NO_WRITER = "{model} does not write: it reads a text whole, and has no next word."
NO_ENCODER = (
    "{model} has no encoder. A decoder’s causal mask tells early from late by itself, so this step needs an encoder."
)
NO_TABLE = "{model} has no table of positions, so no text runs past its end."
NO_SINUSOIDS = "{model} has no sinusoids to look at."
NO_PADDING = "Nothing is padded here: the sentence that is looked at is the longest of the batch. Choose a shorter one."
FEW_WORDS = "This text has fewer than two words, so none can change places."
ONE_TOKEN = "This text is one token long. The step needs two or more."
NOTHING_HIDDEN = "Nothing is hidden from {word}, so a mask can take nothing from it. Choose a mask, or an earlier row."
NO_SUM = "{model} has no sum of its stream and attention alone: both sublayers read the same stream."
NO_NORM = "There is no LayerNorm at this step of {model}."
NO_SIZES = "This step counts a model of known sizes. Choose one of them instead of the run above."
NOTHING_FITS = "Not even one token fits: it takes {bytes} bytes. Give it more memory, or smaller sizes."
NO_PAIR = "{model} has one stack. This step needs an encoder and a decoder."
NO_CACHE = "{model} is an encoder: it reads a text whole and keeps no keys and values for later."
TEXT_ENDS = "{model} ends its text here, so there is no word after the next. Take another beginning."
NO_TWIN = "This step is about a race of two. Choose a twin, and press Train."
NO_TRAINING = "{run} has not been trained here yet. Press Train, say what you expect, then look."
NO_STEP = "{run} has not reached step {step} yet. It is there in a few seconds."
NEVER_RIGHT = "{run} never has 90 % right, so there is no such step."

POSITIONS = {  # by kind: what a model learns of them
    "sinusoidal": "Sinusoids follow from a rule.",
    "learned": "Its positions are rows of a table, and are learnt like words.",
    "rotary": "Its positions turn q and k by a rule.",
    "alibi": "Its positions lower the scores by a rule.",
    "relative": "Of positions it learns a number for each distance, in its layers.",
    "disentangled": "Of positions it learns a vector for each distance, for its scores.",
    "none": "It has no positions.",
}
RACES = {  # by twin
    "none": "The run as it is",
    "heads1": "The run with 1 head of 64",
    "heads2": "The run with 2 heads of 32",
    "heads8": "The run with 8 heads of 8",
    "heads16": "The run with 16 heads of 4",
    "postln": "The run with Post-LN",
    "postnow": "The run with Post-LN, no warm-up",
    "rate10": "The run with ten times the rate",
    "nowarmup": "The run without warm-up",
    "nomask": "The run without a mask",
    "nopositions": "The run without positions",
    "noscale": "The run without ÷ √d",
    "noresidual": "The run without residuals",
}

# what an answer was checked against
FOOTER_ROW = "Checked against this run: layer {layer}, head {head}, row {row}."
FOOTER_SITE = "Checked against this run: {site}, layer {layer}, head {head}, row {row}."
FOOTER_RUN = "Checked against this run: {what}."
FOOTER_COUNTED = "Checked against what the planner counts: {what}."
FOOTER_SMALL = "Checked against the numbers of this page: {what}."
FOOTER_WORKED = "Computed here: {what}."
FOOTER_TRAINED = "Checked against these runs: {what}."

# why a class cannot be asked
ROOM_CANNOT = {
    "shape": "A phone sends one answer, and this step wants a size in every slot: ask it aloud.",
    "do": "This step changes the picture on this screen, so no phone can answer it.",
    "several": "A phone sends one answer, and this step wants all that are right: ask it aloud.",
    "many": "A phone shows 2 to {n} answers, and this step has another number of them on this text.",
}

# the room
TITLE = "Lessons"
LINE = "say first, then look"
UNKNOWN_STEP = "This link asks for step “{asked}” of the lessons, which does not exist: {shown} is shown. There are {last} lessons; “lesson=1&at=2” is the second step of the first."
GONE = "“{asked}” is a lesson from a file of a visitor’s own, and this browser has not opened it since the server began. Open the file again: “All lessons” has the button."
NO_TRUTH = "Something went wrong here, and it is not your fault. Take the example, or another step."

# what the rail writes; it fills in the braces itself
COMPONENT: dict[str, Any] = {
    "lesson_of": "{n} {title}",
    "step_of": "{at} of {of}",
    "all": "All lessons",
    "all_close": "Back to the step",
    "all_title": "All lessons",
    "passed": {"known": "known", "second": "known at the second try", "shown": "looked at"},
    "sum": "Known: {known} of {of}; at the second try: {second}; shown: {shown}.",
    "try_again": "You have a second try.",
    "show_me": "Show me",
    "recap": "Recap",
    "knew": "You knew {known} of {of}; {second} came at the second try",  # then, with commas between, how many were shown and are open
    "knew_shown": ["{n} was shown", "{n} were shown"],
    "knew_open": ["{n} is open", "{n} are open"],
    "asked_again": "Three questions again, about another text or other sizes.",
    "reopened": "“{step}” is open again.",
    "back_to_lesson": "Back to the lesson",
    "source": "From “{lesson}”; in {room}.",
    "waiting": "Reading what is on the screen.",
    "hint_pointed": "Say first, then look. Point in the picture, or choose here.",
    "hints": {
        "point": "Say first, then look. Choose here.",
        "drag": "Say first, then look. Type a number.",
        "shape": "Say first, then look. Put a size into every slot.",
        "choose": "Say first, then look.",
        "do": "Change it in the picture, then look.",
    },
    "hint_do": "Your answer is what the picture shows.",
    "offers": "The step’s own example can: “{text}”.",
    "take_example": "Take the example",
    "look": "Look",
    "no_number": "“{typed}” is no number. Type digits, such as 512 or 0.16.",
    "ask_room": "Ask the room",
    "ask_room_help": "Puts this question on every phone of the class. R does it too.",
    "room_waits": "The room can be asked once the picture is there.",
    "say_first": "no answer yet",
    "you_say": "your answer: {said}",
    "unsaid": "The answer: {true}.",
    "places": "{n} places",
    "answer": "Your answer",
    "slots": "The shape",
    "tiles": "Sizes",
    "slot_full": "Slot {i}: {size}. Press to take it out.",
    "slot_empty": "Slot {i}: empty.",
    "back_to_step": "Back to the step",
    "next": "Next",
    "next_lesson": "Next lesson",
    "finish": "All lessons",
    "again": "Cover it again",
    "before": "The step before",
    "after": "The next step",
    "keys": "PgUp PgDn: clicker",
    "present": "Present",
    "present_help": "Large type: the text above, the picture below. PgDn looks, then continues; PgUp goes back; B makes it black; Escape leaves.",
    "save": "Save the lesson",
    "save_help": "Questions, your answers and pictures as one page that works without this server.",
    "done_unknown": "This link’s progress (“done”) cannot be read, and yours stays as it is.",
    "page_about": "A lesson of Headlight: each answer was checked against what a model did.",
    "page_earlier": "Looked at on an earlier visit, whose answer was not kept.",
    "page_no_picture": "No picture of {room} was kept.",
    "page_picture": "{room} at the step “{title}”",
    "own": {
        "title": "A lesson of your own",
        "about": "A text file: you write the question, and the run says what is right. Drop it onto this page, or open it here.",
        "open": "Open a file",
        "write": "Write one",
        "yours": "yours",
        "reading": "{name} is read, and each step is run once.",
        "faults": ["{name} has one fault:", "{name} has {n} faults:"],
        "line": "Line {line}",
        "mend": "Mend it in Write",
        "large": written_words.LARGE,
        "unreachable": "The server does not answer. Open the file again once it does.",
        "elsewhere": written_words.OWN_ELSEWHERE,
    },
}

# what the screen Write says; it fills in the braces itself
WRITE = {
    "title": "A lesson of your own",
    "about": "You write the question; the run says what is right.",
    "back": "Back to the lessons",
    "begin": "Begin with",
    "undo": "Back to my text",
    "open": "Open a file",
    "save": "Save as a file",
    "try": "Try it",
    "text": "The lesson as text",
    "waiting": "Reading the text.",
    "running": "The step is run.",
    "trying": "Each step is run once.",
    "steps": ["1 step, no faults", "{n} steps, no faults"],
    "faults": ["1 fault", "{n} faults"],
    "line": "Line {line}",
    "hint": "- an answer · | its reply · > the end, for everybody · {p} a number from the run",
    "kept": "Kept in this browser.",
    "unkept": "This text has {n} characters, and this browser keeps {most} at most: save it as a file.",
    "blocked": "This browser keeps nothing: save the text as a file.",
    "made": "The step as visitors see it",
    "step": "Step {n}",
    "no_step": "A step begins with a line “# ” and its title.",
    "no_question": "It asks nothing yet.",
    "number": "A number is typed.",
    "shape": "A shape is put together.",
    "words": "Every word of the text can be chosen.",
    "rehearse": "Rehearse this step",
    "mend_first": "Once there are no faults, the step can be rehearsed: the run decides it.",
    "right": "right",
    "told": "A first wrong answer hears",
    "shown": "After “{text}”",
    "heads": "Heads, after “{text}”",
    "no_text": written_words.OWN_NO_TEXT,
    "large": written_words.LARGE,
    "elsewhere": written_words.OWN_ELSEWHERE,
    "unreachable": "The server does not answer. The text is kept here.",
}

languages.of(__name__)
