"""`include`: which files of a project are read as further files of watches. A pattern goes through folders one part at a time, as a
shell's does, and a name that begins with a dot is meant only where it is written out: a mounted ConfigMap has each file once more in its
`..data`, and a repository has its `.git`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ruleop.rules.findings import Findings, meant
from ruleop.templating import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.rules.language.value_types import Word

WATCHES = "watches.yaml"


def is_inside(pattern: str) -> bool:
    return not pattern.startswith("/") and "\\" not in pattern and "\0" not in pattern and ".." not in pattern.split("/")


def plain(pattern: str) -> str:
    """Without parts that lead nowhere: each file has one path."""
    return "/".join(part for part in pattern.split("/") if part not in ("", "."))


def has_signs(pattern: str) -> bool:
    return any(sign in pattern for sign in "*?[")


def means(pattern: str, name: str) -> bool:
    """Whether one part of a pattern means this name."""
    return name == pattern or (has_signs(pattern) and not name.startswith(".") and fnmatchcase(name, pattern))


def matches(path: str, pattern: str) -> bool:
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(means, patterns, parts))


def patterns_in(text: str) -> tuple[str, ...]:
    """The patterns of a watches.yaml that may be followed, before anything else of it is looked at: to know which files to read."""
    documents, _ = read_yaml(text, WATCHES)
    found = documents[0].value.get("include") if documents and isinstance(documents[0].value, dict) else None
    items = found.value if found is not None and isinstance(found.value, list) else []
    return tuple(plain(item.value) for item in items if isinstance(item.value, str) and is_inside(item.value))


def included(words: Iterable[Word], files: Iterable[str], findings: Findings) -> Iterator[str]:
    """The files that are meant, in the order of the patterns, each once. watches.yaml itself is never one of them."""
    known = sorted(set(files) - {WATCHES})
    taken: set[str] = set()
    for word in words:
        if not is_inside(word.text):
            findings.mistake("missing-file", f'"{word.text}" leads out of the project: included files lie inside it', word.site)
            continue
        pattern = plain(word.text)
        found = [path for path in known if matches(path, pattern)]
        if pattern == WATCHES:
            findings.mistake("conflict", f"{WATCHES} cannot include itself: remove it from the list", word.site)
        elif not found and has_signs(pattern):
            findings.warning("missing-file", f'no file matches "{word.text}"', word.site)
        elif not found:
            others = [path for path in known if not path.startswith(("templates/", "crds/"))]
            findings.mistake("missing-file", f'there is no file "{word.text}"{meant(word.text, others)}', word.site)
        yield from (path for path in found if path not in taken)
        taken.update(found)
