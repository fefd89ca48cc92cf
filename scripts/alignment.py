"""Twenty captions with the words that translate each other, aligned by hand: what cross attention should find.

In a line of LINKS every English content word stands before the German word (or words, joined by +) that it translates.
Function words are left out. A word stands once in its sentence, so that it names its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CAPTIONS: tuple[tuple[str, str, str], ...] = (
    (
        "Ein kleiner Junge spielt mit einem roten Ball.",
        "A little boy is playing with a red ball.",
        "little:kleiner boy:Junge playing:spielt red:roten ball:Ball",
    ),
    (
        "Zwei Hunde laufen durch den tiefen Schnee.",
        "Two dogs are running through the deep snow.",
        "Two:Zwei dogs:Hunde running:laufen deep:tiefen snow:Schnee",
    ),
    (
        "Eine Frau in einem blauen Kleid sitzt auf einer Bank.",
        "A woman in a blue dress is sitting on a bench.",
        "woman:Frau blue:blauen dress:Kleid sitting:sitzt bench:Bank",
    ),
    (
        "Der alte Mann liest eine Zeitung im Park.",
        "The old man is reading a newspaper in the park.",
        "old:alte man:Mann reading:liest newspaper:Zeitung park:Park",
    ),
    (
        "Drei Kinder schwimmen in einem großen See.",
        "Three children are swimming in a large lake.",
        "Three:Drei children:Kinder swimming:schwimmen large:großen lake:See",
    ),
    (
        "Ein schwarzer Hund springt über einen Zaun.",
        "A black dog is jumping over a fence.",
        "black:schwarzer dog:Hund jumping:springt fence:Zaun",
    ),
    (
        "Auf der Straße fährt ein Mädchen ein gelbes Fahrrad.",
        "On the street a girl is riding a yellow bicycle.",
        "street:Straße girl:Mädchen riding:fährt yellow:gelbes bicycle:Fahrrad",
    ),
    (
        "Ein Mann mit Bart spielt Gitarre auf der Bühne.",
        "A man with a beard is playing guitar on the stage.",
        "man:Mann beard:Bart playing:spielt guitar:Gitarre stage:Bühne",
    ),
    (
        "Mehrere Leute stehen vor einem hohen Gebäude.",
        "Several people are standing in front of a tall building.",
        "Several:Mehrere people:Leute standing:stehen tall:hohen building:Gebäude",
    ),
    (
        "Ein Koch bereitet in der Küche Essen zu.",
        "A chef is preparing food in the kitchen.",
        "chef:Koch preparing:bereitet+zu food:Essen kitchen:Küche",
    ),
    (
        "Gestern hat ein Junge am Strand einen Fisch gefangen.",
        "Yesterday a boy caught a fish on the beach.",
        "Yesterday:Gestern boy:Junge caught:gefangen fish:Fisch beach:Strand",
    ),
    (
        "Eine Gruppe von Männern arbeitet auf einem Dach.",
        "A group of men is working on a roof.",
        "group:Gruppe men:Männern working:arbeitet roof:Dach",
    ),
    (
        "Ein Mädchen mit einem grünen Hut isst Eis.",
        "A girl with a green hat is eating ice cream.",
        "girl:Mädchen green:grünen hat:Hut eating:isst ice:Eis cream:Eis",
    ),
    (
        "Zwei Frauen tanzen auf einem Platz in der Stadt.",
        "Two women are dancing on a square in the city.",
        "Two:Zwei women:Frauen dancing:tanzen square:Platz city:Stadt",
    ),
    (
        "Ein Fußballspieler in einem weißen Trikot tritt den Ball.",
        "A soccer player in a white jersey is kicking the ball.",
        "soccer:Fußballspieler player:Fußballspieler white:weißen jersey:Trikot kicking:tritt ball:Ball",
    ),
    (
        "Im Wald steht ein braunes Pferd neben einem Baum.",
        "In the forest a brown horse is standing next to a tree.",
        "forest:Wald brown:braunes horse:Pferd standing:steht tree:Baum",
    ),
    (
        "Eine junge Frau telefoniert und trinkt dabei Kaffee.",
        "A young woman is talking on the phone while drinking coffee.",
        "young:junge woman:Frau phone:telefoniert drinking:trinkt coffee:Kaffee",
    ),
    (
        "Viele Menschen warten auf einen Zug.",
        "Many people are waiting for a train.",
        "Many:Viele people:Menschen waiting:warten train:Zug",
    ),
    (
        "Ein Arbeiter mit einem orangefarbenen Helm klettert auf eine Leiter.",
        "A worker with an orange helmet is climbing a ladder.",
        "worker:Arbeiter orange:orangefarbenen helmet:Helm climbing:klettert ladder:Leiter",
    ),
    (
        "Das Baby schläft auf einem weichen Kissen.",
        "The baby is sleeping on a soft pillow.",
        "baby:Baby sleeping:schläft soft:weichen pillow:Kissen",
    ),
)


@dataclass(frozen=True)
class Caption:
    """links: for an English word, where it stands, the places of the German words that it translates; in characters."""

    german: str
    english: str
    links: dict[tuple[int, int], tuple[tuple[int, int], ...]]


def captions() -> Iterator[Caption]:
    for german, english, links in CAPTIONS:
        found = {}
        for link in links.split():
            word, others = link.split(":")
            found[place(english, word)] = tuple(place(german, other) for other in others.split("+"))
        yield Caption(german, english, found)


def place(text: str, word: str) -> tuple[int, int]:
    """(start, stop) of a word of the text, in characters. Raises ValueError unless it stands there exactly once."""
    at = 0
    found = []
    for part in text.split():
        start = text.index(part, at)
        at = start + len(part)
        if part.rstrip(".,") == word:
            found.append((start, start + len(word)))
    if len(found) != 1:
        raise ValueError(f"{word!r} stands {len(found)} times in {text!r}")
    return found[0]
