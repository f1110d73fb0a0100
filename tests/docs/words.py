"""Words and phrases to avoid, each with the field's word for it, and where they are searched.

Text means four things: strings in the source (users read most of them), docstrings and comments, names, and the pages.
In a page, what is quoted in backticks or in a code block is not checked: it is code, output, or a message, which is
checked where it is written.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Mark(NamedTuple):
    pattern: str
    instead: str


MARKS = (
    # Statements that a reader has to turn around first.
    Mark(r"(?<!there )(?<!There )is no (?!longer|more|room|reason|such)\w+", "is not a ..., is invalid, is missing"),
    Mark(r"(of )?ours", "ruleop's"),
    Mark(r"mistakes? of ruleop|bugs? of ruleop", "an internal error"),
    Mark(r"the ones? that", "name the thing: the rule that ..., the object that ..."),
    Mark(r"whoever", "name who: users, clients, the caller"),
    Mark(r"that nobody", "name what is true: unused, unexpected, unowned"),
    Mark(r"in a way that", "unexpectedly; or the adverb that is meant"),
    Mark(r"so many", "the number, or its name: maximum, limit"),
    Mark(r"no room|(has|have) room|room for", "missing from the schema; exceeds the limit"),
    Mark(r"a field changes that cannot|(fields?|that) cannot change", "immutable field"),
    Mark(r"(is|are|was|be|as) said", "reported, printed, logged, listed"),
    Mark(r"says? (yes|no|so)", "name what happens: is permitted, reports it"),
    Mark(r"(is|are|be) another(?= ?[,.;:)]| one)", "differs, has changed"),
    Mark(r"(be|is|are) had", "available, known, obtained"),
    Mark(r"for want of", "because ... is missing"),
    Mark(r"belongs? into", "belongs in"),
    Mark(r"now and then", "periodically; and how often"),
    # Words of speech for a program that logs, reports and describes.
    Mark(r"told", "logged, reported, described; distinguished (told apart)"),
    Mark(r"tells? (it|of)", "reports, logs"),
    # Words of sight for a program that reconciles, reads and checks.
    Mark(r"looked at|looks at|looked after|looks after", "reconciled, checked, read, ignored (not looked at)"),
    Mark(r"looks? again|a look", "checks again, requeues; a reconcile"),
    # Metaphors and private nouns.
    Mark(r"in the way", "conflicting (object, name)"),
    Mark(r"obstacles?", "name conflict, conflicting object"),
    Mark(r"puts? (it |them )?back|put right", "revert, drift reverted; corrected"),
    Mark(r"fights?|fighting|fought", "field conflict"),
    Mark(r"undoes|undone", "reverts, reverted"),
    Mark(r"taken over", "adopted"),
    Mark(r"lets? go|letting go", "release, remove the finalizer"),
    Mark(r"forgets|forgotten", "removed (from the inventory, the cache)"),
    Mark(r"mended?|mending|mends", "fixed, corrected"),
    Mark(r"goes on|go on|went on|going on", "continues, resumes, keeps running"),
    Mark(r"anew", "again; restarted, recreated, listed again"),
    Mark(r"in peace", "idle, unchanged, in sync"),
    Mark(r"again and again|later and later|longer and longer", "repeatedly; backing off"),
    Mark(r"try(ing)? again|tries again|tried again", "retry, will retry, is retried"),
    Mark(r"(no longer|not|any longer|as|is|are) wanted", "desired; not desired; no longer part of the desired state"),
    Mark(r"wish|wishes", "desired state"),
    Mark(r"(the|a|no|namespaced|all) rights?(?= (to|on|that|is|are|for|only)\b)", "permission"),
    Mark(
        r"tides?|echoes|its echo|census|stocktaking|nursery",
        "the field's word: debounce, own write, collector, inventory",
    ),
    Mark(r"stands? (here|there|in|beside|above|below|twice|alone)", "is, is listed, appears; duplicate (stands twice)"),
)

NAMES = {
    "told": "reported, logged, described",
    "tell": "report, log",
    "tells": "reports",
    "said": "what it is: message, value, field",
    "say": "print, report",
    "says": "reports",
    "looks": "reads, checks",
    "wanted": "desired",
    "unwanted": "undesired",
    "wish": "desired",
    "trouble": "error, failure",
    "fight": "field_conflict",
    "fights": "field_conflicts",
    "obstacle": "name_conflict",
    "echo": "own_write",
    "bug": "internal_error",
    "room": "limit, schema",
}
"""Words of which no name (function, class, argument, variable) is made, each with a better one."""

TEST_NAMES = (
    Mark(
        r"(of|what|whatever|who|whoever|whose|it|its|they|them|their|nobody|somebody|there|ones?(?= (is|may|that|whose|who)\b))\b.*",
        "subject, verb, object: begin with the thing that is tested",
    ),
    Mark(r"\w+( \w+)?", "a sentence: the thing that is tested, and what it does"),
)
"""Names of tests that do not say what broke when they fail: headless beginnings, and names of one or two words."""

HEADLESS = Mark(r"what|why|which|how|who|whom|whose|whoever|whatever", "a noun first: The reason that, The number of")
"""The first words of docstrings that a reader has to finish before the subject is known. `Whether` is the word for
booleans."""

_ANY = re.compile("|".join(rf"\b(?:{mark.pattern})\b" for mark in MARKS), re.IGNORECASE)
_FOUND = [(mark, re.compile(rf"\b(?:{mark.pattern})\b", re.IGNORECASE)) for mark in MARKS]


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text, and the line of the file that it begins on."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    place: str
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.place}: {self.found!r}: {self.instead}"


def hits(texts: Iterator[Text], place: str) -> Iterator[Hit]:
    for text in texts:
        flat = re.sub(r"\s", " ", text.text)
        if _ANY.search(flat) is None:
            continue
        for mark, pattern in _FOUND:
            for match in pattern.finditer(flat):
                line = text.line + text.text.count("\n", 0, match.start())
                yield Hit(f"{place}:{line}", match.group(), mark.instead)


def may_have_hits(source: str) -> bool:
    """Whether a module has a word to avoid anywhere. It takes a fifth of the time that `prose` takes."""
    return _ANY.search(re.sub(r"[\s#]+", " ", source)) is not None


@functools.lru_cache(maxsize=2)
def parsed(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, in the order of `ast.walk`."""
    return tuple(ast.walk(ast.parse(source)))


def strings(source: str) -> Iterator[Text]:
    """The string literals of a module, of f-strings their text, without docstrings."""
    prose = {id(node) for node in _docstrings(source)}
    for node in parsed(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield Text(node.lineno, node.value)


def prose(source: str) -> Iterator[Text]:
    """The docstrings of a module, those of its constants too, and its comments; comments on lines of their own as one
    text."""
    for node in _docstrings(source):
        yield Text(node.lineno, str(node.value))
    block: Text | None = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        words, line = token.string.lstrip("# "), token.start[0]
        alone = not token.line[: token.start[1]].strip()
        if block is not None and alone and line == block.line + block.text.count("\n") + 1:
            block = Text(block.line, f"{block.text}\n{words}")
            continue
        if block is not None:
            yield block
        block = Text(line, words)
    if block is not None:
        yield block


def headless_docstrings(source: str, place: str) -> Iterator[Hit]:
    for node in _docstrings(source):
        if match := re.match(rf"\s*({HEADLESS.pattern})\b", str(node.value), re.IGNORECASE):
            yield Hit(f"{place}:{node.lineno}", match[1], HEADLESS.instead)


def names(source: str) -> Iterator[Text]:
    """The names that a module defines: its functions, classes, arguments and variables."""
    for node in parsed(source):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield Text(node.lineno, node.name)
        elif isinstance(node, ast.arg):
            yield Text(node.lineno, node.arg)
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield Text(node.lineno, node.id if isinstance(node, ast.Name) else node.attr)


def name_hits(texts: Iterator[Text], place: str) -> Iterator[Hit]:
    for text in texts:
        for word in re.findall(r"[a-z]+|[A-Z][a-z]*", text.text):
            if instead := NAMES.get(word.lower()):
                yield Hit(f"{place}:{text.line}", text.text, instead)


def names_of_tests(source: str) -> Iterator[Text]:
    """The names of the tests of a module, without the prefix and with blanks for underscores."""
    for match in re.finditer(r"^ *(?:async )?def test_(\w+)\(", source, re.MULTILINE):
        yield Text(source.count("\n", 0, match.start(1)) + 1, match[1].replace("_", " "))


def hits_in_names_of_tests(texts: Iterator[Text], place: str) -> Iterator[Hit]:
    for text in texts:
        yield from hits(iter([text]), place)
        yield from name_hits(iter([text]), place)
        for mark in TEST_NAMES:
            if re.fullmatch(mark.pattern, text.text):
                yield Hit(f"{place}:{text.line}", text.text, mark.instead)


def page(text: str) -> Iterator[Text]:
    """The paragraphs of a page, without code blocks, without what is quoted in backticks, and without generated
    tables."""
    text = re.sub(r"^<!-- (\w+): begin -->$.*?^<!-- \1: end -->$", _blank, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^( *)```.*?^ *```$", _blank, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(`{1,2})(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", _blank, text, flags=re.DOTALL)
    line = 1
    for paragraph in re.split(r"(\n\n+)", text):
        yield Text(line, paragraph)
        line += paragraph.count("\n")


def _blank(match: re.Match[str]) -> str:
    """As many lines without words."""
    return "…" + "\n" * match.group().count("\n")


def _docstrings(source: str) -> Iterator[ast.Constant]:
    for node in parsed(source):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value
