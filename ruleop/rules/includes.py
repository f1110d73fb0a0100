"""`include`: which files of a project are read as further files of watches. A pattern goes through folders one part at a time, as a
shell's does."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ruleop.rules.findings import Findings, meant
from ruleop.templating import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.rules.values import Word

WATCHES = "watches.yaml"


def is_inside(pattern: str) -> bool:
    return not pattern.startswith("/") and "\\" not in pattern and ".." not in pattern.split("/")


def matches(path: str, pattern: str) -> bool:
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def patterns_in(text: str) -> tuple[str, ...]:
    """The patterns of a watches.yaml that may be followed, before anything else of it is looked at: to know which files to read."""
    documents, _ = read_yaml(text, WATCHES)
    found = documents[0].value.get("include") if documents and isinstance(documents[0].value, dict) else None
    items = found.value if found is not None and isinstance(found.value, list) else []
    return tuple(item.value for item in items if isinstance(item.value, str) and is_inside(item.value))


def included(words: Iterable[Word], files: Iterable[str], findings: Findings) -> Iterator[str]:
    """The files that are meant, in the order of the patterns, each once. watches.yaml itself is never one of them."""
    known = sorted(set(files) - {WATCHES})
    taken: set[str] = set()
    for word in words:
        if not is_inside(word.text):
            findings.mistake("missing-file", f'"{word.text}" leads out of the project: included files lie inside it', word.site)
            continue
        found = [path for path in known if matches(path, word.text)]
        if not found and any(sign in word.text for sign in "*?["):
            findings.warning("missing-file", f'no file matches "{word.text}"', word.site)
        elif not found:
            others = [path for path in known if not path.startswith(("templates/", "crds/"))]
            findings.mistake("missing-file", f'there is no file "{word.text}"{meant(word.text, others)}', word.site)
        yield from (path for path in found if path not in taken)
        taken.update(found)
