"""A class as files: the steps whose answer was shown, how often each answer was given, and which were right. Nothing else is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from app import languages
from app.classroom import sentences
from app.classroom.steps import Said, StepQuestion, ranked
from app.export import files
from app.kit import theme

COLUMNS = "step,round,question,answer,votes,right"
LANGUAGE, TITLE, BODY = "{{LANGUAGE}}", "{{TITLE}}", "{{BODY}}"
PAGE = f"""<!doctype html>
<html lang="{LANGUAGE}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{TITLE}</title>
<style>
{theme.variables()}
body {{ max-width: 44rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--background); }}
h1 {{ font-size: 1.36rem; }}
h2 {{ margin: 2.2rem 0 0.3rem; font-size: 1rem; }}
table {{ width: 100%; margin: 0.6rem 0; border-collapse: collapse; }}
caption {{ text-align: left; }}
th, td {{ padding: 0.2rem 0.6rem 0.2rem 0; border-bottom: 1px solid var(--line); text-align: left; }}
td:nth-child(2), th:nth-child(2) {{ width: 5rem; text-align: right; padding-right: 1.4rem; }}
td:nth-child(3), th:nth-child(3) {{ width: 5rem; }}
.right {{ font-weight: 650; color: var(--proof); }}
small {{ display: block; color: var(--mute); }}
</style>
</head>
<body>
{BODY}
</body>
</html>
"""


def csv_lines(asked: Sequence[StepQuestion]) -> Iterator[str]:
    """A line for each answer that was given: no key, no name, no time."""
    yield COLUMNS + "\r\n"
    for question in asked:
        step = question.step
        for round, tally in enumerate(question.counted, 1):
            for answer, n in ranked(tally):
                said = files.cell(step.named(answer)) if step.options else step.named(answer)
                right = sentences.CLASS_RIGHT[step.reply(answer).right]
                yield f"{files.cell(step.number)},{round},{files.cell(step.question)},{said},{n},{right}\r\n"


def page(asked: Sequence[StepQuestion]) -> str:
    """A page of its own: it asks no server and runs no script, and all that others have written is text in it."""
    parts = [f"<h1>{escape(sentences.CLASS_TITLE)}</h1>", f"<p>{escape(sentences.CLASS_ABOUT)}</p>"]
    for question in asked:
        step = question.step
        parts.append(f"<h2>{escape(sentences.CLASS_STEP.format(number=step.number, title=step.title))}</h2>")
        parts.append(f"<p>{escape(step.question)}</p>")
        parts += [_table(question, round, tally) for round, tally in enumerate(question.counted, 1)]
        parts.append(f'<p class="right">{escape(sentences.CLASS_TRUE.format(true=step.true))}</p>')
        parts += [f"<small>{escape(line)}</small>" for line in step.words]
    # The body comes last: what it says is not read as one of these names.
    found = PAGE.replace(LANGUAGE, escape(languages.current())).replace(TITLE, escape(sentences.CLASS_TITLE))
    before, after = found.split(BODY)
    return before + "\n".join(parts) + after


def _table(question: StepQuestion, round: int, tally: dict[Said, int]) -> str:
    caption = f"<caption>{escape(sentences.CLASS_ROUND.format(n=round))}</caption>" if len(question.counted) > 1 else ""
    if not tally:
        return f"<p>{escape(sentences.CLASS_ROUND.format(n=round))}: {escape(sentences.CLASS_NO_ANSWER)}</p>"
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in sentences.CLASS_COLUMNS)
    rows = "".join(_row(question, answer, n) for answer, n in ranked(tally))
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(question: StepQuestion, answer: Said, n: int) -> str:
    step = question.step
    is_right = step.reply(answer).right
    unit = f" {step.unit}" if step.unit and not step.options else ""
    cells = (
        f"<td>{escape(step.named(answer) + unit)}</td><td>{n}</td><td>{escape(sentences.CLASS_RIGHT[is_right])}</td>"
    )
    return f'<tr class="right">{cells}</tr>' if is_right else f"<tr>{cells}</tr>"
