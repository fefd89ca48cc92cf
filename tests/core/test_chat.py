"""Conversations: templates give the text and the ids that transformers gives, every turn is known, and a stranger's template is bounded."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import core
from core.checkpoints import Loaded
from core.checkpoints.metadata import CLASS_TOKENS, read_chat_template
from core.checkpoints.tokenizer_files import ROLES
from core.model.chat import OPENS, ChatTemplate, ChatText, chat_text
from core.model.templates import LONGEST_TEMPLATE, WORK, render
from core.run.request import Request
from core.service.engine import Engine
from tests.core.chats import TEMPLATES, chat_model, chat_tokenizer, template, write_chat_model

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "Hello there"}]
TURNS = [
    {"role": "user", "content": " user asks é "},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Why?\n"},
]
SYSTEM = {"role": "system", "content": "Be kind."}
WITHOUT_SYSTEM = ("Gemma", "Mistral")  # their templates refuse one


def turns(chat: ChatText) -> list[tuple[str, str]]:
    """Each turn with its whole text, as the spans say."""
    found: list[tuple[str, str]] = []
    for span in chat.spans:
        said = chat.text[span.start : span.end]
        if found and found[-1][0] == span.role:
            found[-1] = (span.role, found[-1][1] + said)
        else:
            found.append((span.role, said))
    return found


def messages_in(chat: ChatText) -> list[str]:
    return [chat.text[span.start : span.end] for span in chat.spans if not span.from_template]


# as in transformers


@pytest.mark.parametrize("prompt", [True, False])
@pytest.mark.parametrize("name", TEMPLATES)
def test_text_and_ids_are_those_of_transformers(name: str, prompt: bool) -> None:
    from transformers import PreTrainedTokenizerFast

    text, bos, eos = TEMPLATES[name]
    theirs = PreTrainedTokenizerFast(
        tokenizer_object=chat_tokenizer(name), bos_token=bos, eos_token=eos, chat_template=text
    )
    loaded = chat_model(name)
    chats = [HELLO, TURNS, [*TURNS[:2]], [{"role": "user", "content": f"{eos} {bos}{bos} 🎉"}]]
    chats += [] if name in WITHOUT_SYSTEM else [[SYSTEM, *TURNS]]
    for chat in chats:
        ours = loaded.chat_tokens(chat, add_generation_prompt=prompt)
        assert ours.text == theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=prompt)
        ids = theirs.apply_chat_template(chat, add_generation_prompt=prompt, return_dict=False)
        assert list(ours.ids) == ids


@pytest.mark.parametrize("name", TEMPLATES)
def test_first_token_is_there_once_where_the_template_writes_it(name: str) -> None:
    loaded, bos = chat_model(name), TEMPLATES[name][1]
    tokens = loaded.chat_tokens(HELLO)
    first = loaded.tokens("Hello").strings[0]
    assert first == bos  # the tokenizer puts it before every other text
    assert list(tokens.strings[:2]) != [bos, bos]
    assert (tokens.strings[0] == bos) == tokens.text.startswith(bos)
    assert tokens.special[0]


# the turns


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_character_is_in_its_turn(name: str) -> None:
    chat = chat_text(template(name), TURNS)
    assert [span.start for span in chat.spans] == [0, *(span.end for span in chat.spans[:-1])]
    assert chat.spans[-1].end == len(chat.text)
    assert [said.strip() for said in messages_in(chat)] == ["user asks é", "Yes.", "Why?"]
    roles = [role for role, _ in turns(chat) if role]
    own = ["system"] if name in ("SmolLM2", "Qwen2.5") else []
    waits = [] if name == "Mistral" else ["assistant"]  # Mistral's answer begins without a mark
    assert roles == [*own, "user", "assistant", "user", *waits]
    begins = {"Mistral": ("[INST]", "Yes."), "Gemma": ("<start_of_turn>user", "<start_of_turn>model")}
    user, assistant = begins.get(name, ("<|", "<|"))
    for role, said in turns(chat):
        if role in ("user", "assistant"):
            assert said.startswith(user if role == "user" else assistant), (role, said)


def test_system_turn_that_the_template_writes_itself() -> None:
    chat = chat_text(template("SmolLM2"), HELLO)
    role, said = turns(chat)[0]
    assert role == "system"
    assert (
        said == "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    )
    assert messages_in(chat) == ["Hello there"]
    given = chat_text(template("SmolLM2"), [SYSTEM, *HELLO])
    assert messages_in(given) == ["Be kind.", "Hello there"]


def test_word_that_is_in_the_marks_as_well_is_found_where_it_was_said() -> None:
    chat = chat_text(template("SmolLM2"), [{"role": "user", "content": "user"}])
    (span,) = [span for span in chat.spans if not span.from_template]
    assert chat.text[: span.start].endswith("<|im_start|>user\n")


def test_template_that_takes_contents_apart_still_says_whose_turn_it_is() -> None:
    shouts = "{% for m in messages %}[{{ m.role }}]{{ m.content | upper }}{% endfor %}"
    chat = chat_text(ChatTemplate(shouts), TURNS)
    assert "".join(chat.text[s.start : s.end] for s in chat.spans) == chat.text
    marked = chat_text(template("SmolLM2"), [{"role": "user", "content": f"a{OPENS}0"}])  # our own marks, in a message
    assert messages_in(marked) == [f"a{OPENS}0"]


def test_system_message_inside_of_the_user_turn() -> None:
    llama_2 = (
        "{% set system = '' %}{% if messages[0].role == 'system' %}{% set system = '<<SYS>>' + messages[0].content + '<</SYS>>' %}"
        "{% set messages = messages[1:] %}{% endif %}{% for m in messages %}"
        "[INST] {{ system if loop.first }}{{ m.content }} [/INST]{% endfor %}"
    )
    chat = chat_text(ChatTemplate(llama_2), [SYSTEM, *HELLO])
    assert chat.text == "[INST] <<SYS>>Be kind.<</SYS>>Hello there [/INST]"
    assert messages_in(chat) == ["Be kind.", "Hello there"]


def test_tokens_have_roles() -> None:
    run = core.trace_chat(chat_model(), HELLO)
    tokens = run.source
    assert tokens.is_chat
    said = [label for label, written in zip(tokens.labels, tokens.from_template, strict=True) if not written]
    assert "".join(said) == "Hellothere"
    users = [label for label, role in zip(tokens.labels, tokens.roles, strict=True) if role == "user"]
    assert users[0] == "<|im_start|>"
    assert users[-2:] == ["<|im_end|>", "↵"]
    assert tokens.roles[-1] == "assistant"
    plain = core.trace(chat_model(), "Hello").source
    assert not plain.is_chat
    assert set(plain.roles) == {None}
    assert len(plain.roles) == len(plain.from_template) == len(plain)
    found = core.report.summary(run)["source"]
    assert found["roles"] == list(tokens.roles)


def test_written_parts_of_a_message_are_texts_as_well() -> None:
    parts = "{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"
    said = [{"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]}]
    assert messages_in(chat_text(ChatTemplate(parts), said)) == ["one ", "two"]


# strangers' templates

LISTS = "{% set ns = namespace(a=1, b=1) %}{% for i in range(60) %}"
BAD = {
    "long range": ("{% for i in range(10**9) %}{% endfor %}", "Range too big"),
    "loops in loops": ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "too long"),
    "loops over a list": (
        "{% set l = range(9999) | list %}{% for i in l %}{% for j in l %}{% endfor %}{% endfor %}",
        "too long",
    ),
    "text times": ("{{ 'x' * 10**10 }}", "10,000,000,000"),
    "times text": ("{{ 10**10 * 'x' }}", "10,000,000,000"),
    "list times": ("{{ [0] * 10**10 }}", "as large as"),
    "power": ("{{ 9 ** (9 ** 9) }}", "a thousand digits"),
    "squares": (
        "{% set ns = namespace(x=9) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
        "digits",
    ),
    "doubled by ~": (
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "as large",
    ),
    "doubled by +": (
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "as large",
    ),
    "doubled by blocks": (
        "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}"
        "{% set ns.x = y %}{% endfor %}",
        "as large",
    ),
    "lists in lists": (LISTS + "{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a }}", "as large"),
    "compared lists": (
        LISTS + "{% set ns.a = (ns.a, ns.a) %}{% set ns.b = (ns.b, ns.b) %}{% endfor %}{{ ns.a == ns.b }}",
        "as large",
    ),
    "names in names": (LISTS + "{% set ns.a = namespace(x=ns.a, y=ns.a) %}{% endfor %}{{ ns.a }}", "as large"),
    "names in a ring": ("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "deep"),
    "literal in a loop": ("{% for i in range(99999) %}" + "x" * 100_000 + "{% endfor %}", "as large"),
    "literal in a macro": (
        "{% macro f() %}" + "x" * 100_000 + "{% endmacro %}{% for i in range(9999) %}{% set y = f() %}{% endfor %}",
        "too long",
    ),
    "macro that calls itself": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls itself"),
    "macro that branches": (
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "too long",
    ),
    "loop that calls itself": ("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "calls itself"),
    "loop that branches": (
        "{% for x in range(9) recursive %}{% if loop.depth < 30 %}{{ loop(range(9)) }}{% endif %}{% endfor %}",
        "too long",
    ),
    "recursive loop without output": (
        "{% for x in range(99999) recursive %}{% set y = "
        + "1 if x else " * 20
        + "2 %}{% if loop.depth < 9 %}{% set z = loop(range(99999)) %}{% endif %}{% endfor %}",
        "too long",
    ),
    "batch": ("{{ [1] | batch(10**9, 0) | list }}", "as large"),
    "slice": ("{{ [1] | slice(10**9) | list }}", "as large"),
    "center by filter": ("{{ 'x' | center(10**9) }}", "fills a text"),
    "wordwrap": ("{{ ('a' * 100000) | wordwrap(1, true, 'b' * 100000) }}", "as large"),
    "xmlattr": ("{{ {'a': '<' * 1000000} | xmlattr }}", "as large"),
    "class by attr": ("{{ '' | attr('__class__') }}", "the attribute __class__"),
    "class by cycler": ("{{ cycler(1).__class__ }}", "the attribute __class__"),
    "items of a cycler": ("{{ cycler(*(1,) * 10**7) }}", "as large"),
    "class": ("{{ ''.__class__.__mro__ }}", "the attribute __class__"),
    "class by name": ("{{ ''['__class__'] }}", "the attribute __class__"),
    "class by map": ("{{ [''] | map(attribute='__class__') | list }}", "the attribute __class__"),
    "class by format": ("{{ '{0.__class__}'.format(1) }}", "the attribute __class__"),
    "globals": ("{{ raise_exception.__globals__ }}", "the attribute __globals__"),
    "underscore": ("{% set ns = namespace(_x=1) %}", "the attribute _x"),
    "change of a message": ("{{ messages.append(1) }}", "the attribute append"),
    "wide format": ("{{ '{:999999999}'.format(1) }}", "width"),
    "format with a given width": ("{{ '{:{}}'.format(1, 999999999) }}", "width"),
    "old format": ("{{ '%*d' % (999999999, 1) }}", "width"),
    "format many times": ("{{ ('{0}' * 100000).format('x' * 100000) }}", "as large"),
    "center": ("{{ 'x'.center(10**9) }}", "fills a text"),
    "bytes": ("{{ (1).to_bytes(10**9) }}", "to_bytes"),
    "replace": ("{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}", "as large"),
    "replace of nothing": ("{{ ('a' * 1000000).replace('', 'b' * 1000000) }}", "as large"),
    "join": ("{{ (('a' * 10000,) * 1000) | join('b' * 10000) }}", "as large"),
    "indent": ("{{ 'x' | indent(10**9) }}", "fills a text"),
    "round": ("{{ 1.5 | round(10**9, 'ceil') }}", "digits"),
    "sum of many lists": ("{{ ([[1] * 9] * 5000) | sum(start=[]) }}", "too long"),
    "sum of lists": ("{{ ([[1] * 99] * 999) | sum(start=[]) }}", "as large"),
    "search": (
        "{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% if 'b' in s %}{% endif %}{% endfor %}",
        "too long",
    ),
    "date": ("{{ strftime_now('%1000000000d') }}", "the date"),
    "file": ("{% include '/etc/passwd' %}", "another file"),
    "module": ("{% import 'os' as os %}", "another file"),
    "parent": ("{% extends 'x' %}", "another file"),
    "open": ("{{ open('/etc/passwd') }}", "'open' is undefined"),
    "division": ("{{ 1 / 0 }}", "division by zero"),
    "no such message": ("{{ messages[9].content.x }}", "no element 9"),
    "not closed": ("{% if %}", "line 1"),
    "unknown filter": ("{{ [1] | pprint }}", "pprint"),
    "too long to read": ("x" * (LONGEST_TEMPLATE + 1), "131,072"),
    "brackets": ("{{ " + "(" * 9000 + "1" + ")" * 9000 + " }}", "nested too deeply"),
    "a long sum": ("{{ " + "+".join("1" * 20_000) + " }}", "nested too deeply"),
    "blocks": ("{% if 1 %}" * 3000 + "{% endif %}" * 3000, "nested too deeply"),
    "writes nothing": ("{# #}", "writes nothing"),
    "refuses": (
        "{{ raise_exception('roles must\nalternate') }}",
        "does not take these messages: roles must alternate.",
    ),
}


@pytest.mark.thorough(but=20)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", BAD)
def test_stranger_gets_a_sentence(case: str) -> None:
    text, why = BAD[case]
    with pytest.raises(core.errors.TextError) as refused:
        chat_text(ChatTemplate(text), HELLO)
    said = str(refused.value)
    assert why in said
    assert "\n" not in said
    assert len(said) < 500
    assert said.startswith("The chat template") and said.endswith("Read the text as it is.")


def test_long_refusal_is_shortened() -> None:
    with pytest.raises(core.errors.TextError) as refused:
        render("{{ raise_exception('no ' * 100000) }}", {})
    assert len(str(refused.value)) < 500


def test_long_conversation_is_within_bounds() -> None:
    chat = [{"role": ("user", "assistant")[i % 2], "content": f"{i} " + "word " * 800} for i in range(200)]
    found = chat_text(template("Llama 3"), chat)
    assert len(found.text) > 800_000
    assert len(messages_in(found)) == 200
    assert WORK < 1 << 23


def test_dialect() -> None:
    values = {"messages": HELLO, "tool": {"b": "<é>", "a": [1, None]}}
    cases = {
        "{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}": "01",
        "{% for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}": "02",
        "a{% generation %}b{{ messages[0].content }}{% endgeneration %}c": "abHello therec",
        "{{ tool | tojson }}": '{"b": "<é>", "a": [1, null]}',
        "{{ tool | tojson(indent=2, sort_keys=true) }}": json.dumps(
            values["tool"], indent=2, sort_keys=True, ensure_ascii=False
        ),
        "  {% if true %}\n  x\n  {% endif %}\ny": "  x\ny",
        "{{ strftime_now('%Y') | length }}": "4",
        "{% for m in messages %}{{ loop.length }}{{ loop.last }}{{ loop.index }}{% endfor %}": "1True1",
        "{{ messages | map(attribute='role') | join(', ') }}": "user",
        "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}": "1",
        "{{ '%s-%s' % ('a', 1) }}{{ '{}'.format(2) }}": "a-12",
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}": "1",
        "{% macro m(x, y='!') %}{{ x ~ y }}{% endmacro %}{{ m('a') }}": "a!",
        "{{ dict(a=1).a }}{{ dict.fromkeys(['k'], 2).k }}": "12",
        "{% for k, v in tool | items %}{{ k }}{% endfor %}{% for k, v in tool.items() %}{{ k }}{% endfor %}": "baba",
        "{{ (1, 2)[0] }}{{ messages[-1:][0].role }}": "1user",
        "{{ nothing }}{{ nothing is defined }}": "False",
    }
    for text, expected in cases.items():
        assert render(text, values) == expected, text


@pytest.mark.parametrize(
    "text",
    [
        "{% set c = cycler('a', 'b') %}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
        "{% set j = joiner(', ') %}{% for m in messages %}{{ j() }}{{ m.role }}{% endfor %}{{ j() }}",
        "{% for part in range(7) | slice(3) %}{{ part }}{% endfor %}{{ range(7) | slice(3, 'x') | list }}",
        "{% for row in range(7) | batch(3) %}{{ row }}{% endfor %}{{ range(7) | batch(3, 'x') | list }}",
        "[{{ 'x' | center(9) }}]",
        "{{ 'one two three four' | wordwrap(7) }}|{{ 'abcdefgh' | wordwrap(3, true, '/') }}",
        "<a{{ {'id': 'x\"<&', 'none': none} | xmlattr }}>{{ {'b': 1} | xmlattr(false) }}",
        "{{ messages | map('attr', 'role') | list | length }}{{ 'x' | attr('upper') is defined }}",
        "{{ [1, 2.5] | sum(start=4) }}{{ [{'n': 2}, {'n': 3}] | sum(attribute='n') }}{{ [{'n': 2}] | sum('n', 7) }}",
        "{{ [[1], [2, 3]] | sum(start=[]) }}{{ [(1,), (2,)] | sum(start=()) }}",
        "{% for x in [[1, [2, 3]], 4] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ loop.depth }}:{{ x }} {% endif %}{% endfor %}",
    ],
)
def test_dialect_is_that_of_transformers(text: str) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    (theirs,), _ = render_jinja_template([TURNS], chat_template=text)
    values = {"messages": TURNS, "tools": None, "documents": None, "add_generation_prompt": False}
    assert render(text, values) == theirs


TOKENS = (
    "{{ bos_token }}{{ eos_token }}{{ image_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
)
BOTH = {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.mark.parametrize(
    ("said", "roles"),
    [
        (BOTH, {}),
        ({}, BOTH),
        ({"pad_token": "<pad>"}, BOTH),
        ({"bos_token": None, "eos_token": "</s>"}, BOTH),
        ({"bos_token": "<a>", "eos_token": "</s>"}, {"bos_token": "<s>"}),
        ({"bos_token": "<a>"}, {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": None}),
        ({**BOTH, "added_tokens_decoder": {"1": {"content": "<s>", "special": True}}}, {"bos_token": "<a>"}),
        ({**BOTH, "image_token": "<img>"}, {}),
        ({**BOTH, "extra_special_tokens": {"image_token": "<img>"}}, {}),
        ({**BOTH, "extra_special_tokens": ["<img>"]}, {}),
        (BOTH, {"extra_special_tokens": {"image_token": "<img>"}}),
        ({**BOTH, "extra_special_tokens": {"image_token": {"__type": "AddedToken", "content": "<img>"}}}, {}),
    ],
)
def test_tokens_that_a_template_names_are_those_of_transformers(tmp_path: Path, said: Any, roles: Any) -> None:
    from transformers import AutoTokenizer

    folder = write_chat_model(tmp_path / "chat")
    base = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TOKENS}
    (folder / "tokenizer_config.json").write_text(json.dumps(base | said))
    if roles:
        (folder / "special_tokens_map.json").write_text(json.dumps(roles))
    published: Any = AutoTokenizer.from_pretrained(folder)
    ours = core.load(folder).chat_template
    assert ours is not None
    theirs = published.apply_chat_template(HELLO, tokenize=False)
    assert chat_text(ours, HELLO, add_generation_prompt=False).text == theirs


@pytest.mark.parametrize("key", ["reasoning_content", "thinking", "reasoning", "own"])
@pytest.mark.parametrize("name", ["reasoning_content", "thinking", "reasoning"])
def test_reasoning_and_null_keys_reach_the_template_as_in_transformers(key: str, name: str) -> None:
    from transformers import PreTrainedTokenizerFast

    text = "{% for m in messages %}[{{ m.role }}]({{ m.NAME }}){{ m.content }}{{ m.tool_calls is defined }}{% endfor %}"
    call = {"function": {"name": "f", "arguments": {"x": None}}}
    said: Any = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call], key: "hm"},
        {"role": "tool", "content": "ok", "tool_calls": None, "reasoning": None},
        {"role": "assistant", "content": "Yes.", "thinking": "first", key: "second"},
    ]
    shown = PreTrainedTokenizerFast(
        tokenizer_object=chat_tokenizer("SmolLM2"), chat_template=text.replace("NAME", name)
    )
    theirs = shown.apply_chat_template(said, tokenize=False)
    assert chat_text(ChatTemplate(text.replace("NAME", name)), said, add_generation_prompt=False).text == theirs


# from files


def test_chat_model_is_saved_and_loaded(tmp_path: Path) -> None:
    loaded = core.load(write_chat_model(tmp_path / "chat"))
    assert loaded.chat_template == template("SmolLM2")
    assert loaded.chat(HELLO) == chat_model().chat(HELLO)


def settings(folder: Path, **changes: Any) -> Loaded:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return core.load(folder)


def test_places_of_a_template(tmp_path: Path) -> None:
    folder = write_chat_model(tmp_path / "chat")
    named = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "{{ bos_token }}hello"}]
    loaded = settings(folder, chat_template=named, bos_token={"content": "<s>", "__type": "AddedToken"})
    assert loaded.chat(HELLO).text == "<s>hello"
    assert settings(folder, chat_template=named[:1]).chat(HELLO).text == "tools"
    (folder / "chat_template.jinja").write_text("own file")
    assert core.load(folder).chat(HELLO).text == "own file"


def test_template_that_cannot_be_used_leaves_the_model_open(tmp_path: Path) -> None:
    folder = write_chat_model(tmp_path / "chat")
    for value, why in (
        (7, "it must be a text"),
        ([{"name": "a", "template": "x"}, {"name": "b", "template": "y"}], "a, b"),
    ):
        loaded = settings(folder, chat_template=value)
        assert loaded.chat_template is None
        assert any(why in said for said in loaded.notices)
    (folder / "tokenizer_config.json").write_text("{")
    assert "not valid JSON" in " ".join(core.load(folder).notices)


# runs


def test_request_as_a_chat_is_the_run_of_the_conversation() -> None:
    loaded = chat_model()
    engine = Engine(device=torch.device("cpu"), load_model=lambda *_, **__: loaded)
    plain, chat = Request("chat", ("Hello there",)), Request("chat", ("Hello there",), chat=True)
    assert plain.key != chat.key
    run, expected = engine.run(chat), core.trace_chat(loaded, HELLO)
    assert run.source == expected.source
    assert torch.equal(run.attention[1].pattern(0), expected.attention[1].pattern(0))
    assert engine.run(plain).source == loaded.tokens("Hello there")
    with pytest.raises(core.errors.GenerationError, match="not continued before its run"):
        engine.run(Request("chat", ("Hello",), write=3, chat=True))


def test_bad_conversations_get_a_sentence() -> None:
    loaded = chat_model()
    for bad in (
        "Hello",
        {"role": "user"},
        [],
        ["Hello"],
        [{"content": "x"}],
        [{"role": "user", "content": object()}],
        5,
    ):
        with pytest.raises(core.errors.TextError) as refused:
            core.trace_chat(loaded, bad)  # pyrefly: ignore[bad-argument-type]
        assert str(refused.value)[-1] in ".]"
    with pytest.raises(core.errors.TextError, match="at most 256"):
        core.trace_chat(loaded, HELLO * 300)
    with pytest.raises(core.errors.TextError, match="has no chat template"):
        core.trace_chat(core.build(loaded.config), HELLO)


@pytest.mark.parametrize("name", CLASS_TOKENS)
def test_a_class_brings_its_own_tokens_where_the_files_name_none(name: str, tmp_path: Path) -> None:
    published = inspect.signature(getattr(transformers, name).__init__).parameters
    theirs = {key: p.default for key, p in published.items() if key.removesuffix("_token") in ROLES}
    assert {key: token for key, token in theirs.items() if token is not None} == CLASS_TOKENS[name]
    template = "{{ bos_token }}|{{ eos_token }}"
    settings = {"tokenizer_class": f"{name}Fast", "chat_template": template, "eos_token": "<end>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    found, _ = read_chat_template(tmp_path)
    assert found is not None
    assert dict(found.tokens) == {**CLASS_TOKENS[name], "eos_token": "<end>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings | {"bos_token": None}))
    found, _ = read_chat_template(tmp_path)
    assert found is not None and "bos_token" not in dict(found.tokens)


def test_the_class_of_a_model_type_counts_where_the_settings_name_none(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "{{ bos_token }}"}')
    found, _ = read_chat_template(tmp_path)
    assert found is not None and dict(found.tokens)["bos_token"] == "<s>"
