"""What the server says to those who teach and follow: why something cannot be, and the head of a table of votes."""

from app import languages

NO_CLASS = "No class has this code. It may have closed its door, or be over. Ask for the code again."
FULL_SERVER = "This server holds {n} classes, and that is the most. Try again in a few minutes."
FULL_CLASS = "{n} follow already, and that is the most. Look at someone else’s screen."
FULL_ADDRESS = (
    "{n} classes are open from your network, and that is the most. End one of them, or try again in a few minutes."
)
WRONG_CODES = (
    "No class has this code, and many wrong codes came from your network. The right one still opens its class: read it from the "
    "teacher’s screen."
)
ONLY_TEACHER = "Only the teacher can do this."
TOO_LONG = "This is longer than what a class needs to say."
NOT_JSON = "This is no message of a class: it must be JSON."
NOT_KNOWN = "This is no message of a class: {what}."
NOT_OPEN = "This question is not open."
NO_PLACE = "This word cannot be said: it is no word of the sentence that may be looked at."
TOO_OFTEN = "You change your word very often. Try again in a few seconds."
NOBODY_SAID = "No one has answered in this round."
NOT_REVEALED = "No one sees this before the teacher uncovers it."
NO_STEP = "This question is no longer asked. The next one comes by itself."
NO_OFFER = "This step is no longer on your screen. Open it again, and ask the room then."
NO_STAGE = "This question is at another stage by now."
NOTHING_ANSWERED = "There is nothing to keep yet: no answer of a step was shown in this class."
NO_RUN = "This run is no longer held. Show the sentence again, and the class sees it."
NO_PICTURE = "This picture is no longer on the teacher's screen."
NO_SIGNS = "{name} is the first characters of the codes of this process’s classes: some of {signs}, each once. “{value}” is not."
NO_ADDRESS = "Only this computer can open this page. Start it with ADDRESS=0.0.0.0."
NO_NETWORK = "Only this computer can open this page: it is in no network. Connect it, and share again."
NO_OUTSIDE_ADDRESS = (
    "“localhost” is what every computer calls itself, so no other one can follow this link. Open Headlight by the address that others use, "
    "and share again."
)

# the table of votes
CAPTION = "Where will “{query}” look? {votes} of a class, and the weights of layer {layer}, head {head} of {model}."
SENTENCE = "Text: {text}"
VOTES = ("1 vote", "{n} votes")
COLUMNS = "place,word,votes,share,weight"
FILE = "votes-{number}.csv"

# a class as a file, and as a page to keep
CLASS_FILE = "class"
CLASS_TITLE = "What the room answered"
CLASS_ABOUT = "Answers of a class to steps of Headlight’s lessons. Each was checked against the run that was on the wall. No names and no times were kept."
CLASS_STEP = "{number} {title}"
CLASS_ROUND = "Round {n}"
CLASS_TRUE = "The answer: {true}"
CLASS_COLUMNS = ("answer", "votes", "right")
CLASS_RIGHT = ("no", "yes")
CLASS_NO_ANSWER = "No one answered."

languages.of(__name__)
