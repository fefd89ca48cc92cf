"""Sentences that show something, each with the head that shows it: what the examples menu offers for each model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.session import models, words
from core.checkpoints import ModelSpec


@dataclass(frozen=True)
class Example:
    """A text, and the place on the screen where it shows what `title` says. tests/app/test_models.py measures every one."""

    title: str
    text: str
    layer: int
    head: int
    token: str | int  # the query to lock: a token by its label, the first of that name, or by its position
    site: str = ""  # encoder, decoder or cross; "": the model's first
    target: str = ""  # of an encoder–decoder; "": what the model writes itself. Of a chat: the answer so far
    chat: bool = False  # whether the text is a message that the model's template writes out
    other: str = ""  # a text of as many tokens that has another answer, which What if opens beside it

    def query_among(self, labels: list[str]) -> int | None:
        """Where the query is among the labels of a text; None if it is not there."""
        if isinstance(self.token, int):
            return self.token if self.token < len(labels) else None
        return labels.index(self.token) if self.token in labels else None


MARY = "When Mary and John went to the store, John gave a drink to"  # opens first
MARY_GAVE = "When Mary and John went to the store, Mary gave a drink to"
KATZE = "Die Katze sitzt auf der Matte, weil sie müde"
ROWS = "blue stone green key red shoe blue stone green key red shoe"

# From “The Fisherman and His Wife” in Grimms’ Fairy Tales, translated by Edgar Taylor and Marian Edwardes (Project Gutenberg 2591): 1,077
# words, up to the second word of a verse that comes back. A file has no new line at its end that the box would show.
FISHERMAN = Path(__file__).with_name("fisherman.txt").read_text(encoding="utf-8").rstrip("\n")

EXAMPLES: dict[str, tuple[Example, ...]] = {
    "smollm2": (
        Example(
            "The name that is missing: “to”, about to write “Mary”, looks at “Mary”", MARY, 23, 0, 13, other=MARY_GAVE
        ),
        Example(
            "A fact: “is”, about to write “Paris”, looks at “France”",
            "The capital of France is",
            23,
            4,
            "is",
            other="The capital of Italy is",
        ),
        Example(
            "A pronoun finds its noun: “it” looks at “animal”",
            "The animal didn't cross the street because it was too",
            13,
            8,
            "it",
        ),
        Example(
            "After a repeat: “red” looks at “shoe”, which followed it before",
            ROWS,
            18,
            6,
            10,
            other="blue stone green key red shoe blue stone green key red stone",
        ),
        Example(
            "A line of code: “*”, about to write “height”, looks at “height”",
            "def area(width, height):\n    return width *",
            23,
            7,
            "*",
            other="def area(width, length):\n    return width *",
        ),
        Example("In German: “sie” looks at “Kat”, where “Katze” begins", KATZE, 10, 6, "sie"),
        Example(
            "A chat: the answer, about to write “Paris”, looks at “France” in the question",
            "What is the capital of France?",
            23,
            4,
            41,
            target="The capital of France is",
            chat=True,
        ),
        Example(
            "1,000 words: “wife” looks at “I”, where “Ilsabill” followed it 913 tokens before", FISHERMAN, 18, 7, 1414
        ),
    ),
    "minilm": (
        Example("A pronoun finds its noun: “it” looks at “animal”", words.EXAMPLE, 3, 1, "it"),
        Example(
            "A verb finds its subject: “lost” looks at “keys”",
            "The keys to the old cabinet in the hall are lost.",
            3,
            1,
            "lost",
        ),
        Example("The cat sat on the mat: “on” looks at “mat”", "The cat sat on the mat.", 1, 4, "on"),
        Example("The token before: every token looks one back", words.EXAMPLE, 0, 2, "street"),
        Example(
            "The token after: most tokens look one ahead",
            "one two three four five one two three four five",
            1,
            8,
            "three",
        ),
        Example(
            "Punctuation: tokens look at commas and the full stop",
            "When the dog barked, the cat ran away, and the bird flew off.",
            3,
            11,
            "bird",
        ),
        Example(
            "The same token again: repeats look at their copies",
            "A cat sat on a mat and a cat sat on a mat.",
            2,
            9,
            "sat",
        ),
        Example("A resting place: nearly all attention goes to [CLS]", words.EXAMPLE, 4, 5, "tired"),
    ),
    "storyteller": (
        Example("The token before: every token looks one back", "Once upon a time there was a", 1, 0, "time"),
        Example("Induction: “green” was followed by “key” before, and looks there", ROWS, 3, 1, 10),
        Example(
            "Names come back: the second “Tin” looks at “Woodman”",
            "The Tin Woodman met the Scarecrow in the forest, and the Tin Woodman",
            2,
            6,
            13,
        ),
    ),
    "translator": (
        Example(
            "Alignment: “the”, which is about to write “snow”, looks at “Schnee”",
            "Ein Hund rennt durch den Schnee.",
            1,
            5,
            "the",
            site="cross",
        ),
        Example(
            "Another order of words: “the”, about to write “forest”, looks at “Wald”",
            "Im Wald steht ein braunes Pferd neben einem Baum.",
            1,
            5,
            "the",
            site="cross",
        ),
        Example(
            "The token before, in the encoder: most tokens look one back",
            "Ein kleiner Junge spielt mit einem roten Ball.",
            2,
            3,
            "Junge",
            site="encoder",
        ),
    ),
    "copy": (Example("Where to begin: “=” looks at the first letter", "iklippan=iklippan", 1, 1, "="),),
    "reverse": (Example("Backwards: “=” looks at the last letter", "nfogc=cgofn", 0, 0, "="),),
    "sort": (Example("Sorting: “=” looks at the letter that comes first", "elcgogfjp=cefggjlop", 1, 1, "="),),
    "addition": (
        Example("Column by column: the lowest digit written, it looks at the tens", "643+912=5551", 0, 0, 9),
        Example("Column by column: and another head at the tens of the other number", "643+912=5551", 0, 3, 9),
    ),
    "induction": (
        Example("Induction: each letter looks at what followed it before", "nhpcgojbalim|cgojbalim", 1, 1, 14),
        Example("The token before: this is how a letter knows what it followed", "nhpcgojbalim|cgojbalim", 0, 1, 5),
    ),
    "brackets": (Example("Closing: “=” looks at the bracket opened last", "{}[[{[=]}]]", 1, 1, "="),),
}


def shown_for(model_id: str) -> tuple[Example, ...]:
    """The examples of a model; one that has none gets those of the model that opens, which take the visitor there."""
    return EXAMPLES.get(model_id) or EXAMPLES.get(models.DEFAULT) or EXAMPLES["minilm"]


def is_first(model_id: str, text: str) -> bool:
    """Whether this is the text of a model's first example, which opens at the head that the example shows."""
    return [example.text for example in EXAMPLES.get(model_id.partition("@")[0], ())[:1]] == [text]


def other_of(model_id: str, text: str) -> str:
    """The text that stands beside one of a model's own examples in What if; "" where there is none."""
    found = EXAMPLES.get(model_id.partition("@")[0], ())
    return next((example.other for example in found if example.text == text and not example.chat), "")


def owner_of(example: Example) -> str:
    """The id of the model that an example is of."""
    return next(model for model, found in EXAMPLES.items() if example in found)


def first_text(spec: ModelSpec) -> str:
    """What stands in the box where nobody has typed anything."""
    return spec.example or words.EXAMPLE


def fits(text: str, spec: ModelSpec) -> bool:
    """Whether a text that nobody typed is one of this model's own, or one for any reader of English if it has none."""
    own = EXAMPLES.get(spec.id, () if spec.example else EXAMPLES["minilm"])
    return text == first_text(spec) or text in {example.text for example in own}


def was_typed(text: str, models: dict[str, ModelSpec]) -> bool:
    """Whether a text is the visitor's own: not empty, and none that we put into the box."""
    return bool(text) and not any(fits(text, spec) for spec in models.values())
