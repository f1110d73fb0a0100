"""`include`: the further files of watches in a project. Patterns match folder by folder, as in a shell, and match names
that start with a dot only literally: a mounted ConfigMap has a second copy of each file in `..data`, and a repository
has `.git`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ruleop.core.rules.findings import Findings, did_you_mean_quoted
from ruleop.core.templating import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.core.rules.language.value_types import Word

WATCHES = "watches.yaml"


def is_inside(pattern: str) -> bool:
    return (
        not pattern.startswith("/") and "\\" not in pattern and "\0" not in pattern and ".." not in pattern.split("/")
    )


def normalise_pattern(pattern: str) -> str:
    """The pattern without empty parts and dots, so that each file has one path."""
    return "/".join(part for part in pattern.split("/") if part not in ("", "."))


def has_wildcards(pattern: str) -> bool:
    return any(sign in pattern for sign in "*?[")


def matches_name(pattern: str, name: str) -> bool:
    """Whether one part of a pattern matches this name."""
    return name == pattern or (has_wildcards(pattern) and not name.startswith(".") and fnmatchcase(name, pattern))


def matches(path: str, pattern: str) -> bool:
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(matches_name, patterns, parts))


def patterns_in(text: str) -> tuple[str, ...]:
    """The valid patterns of a watches.yaml, parsed before everything else to find the files to read."""
    documents, _ = read_yaml(text, WATCHES)
    found = documents[0].value.get("include") if documents and isinstance(documents[0].value, dict) else None
    items = found.value if found is not None and isinstance(found.value, list) else []
    return tuple(
        normalise_pattern(item.value) for item in items if isinstance(item.value, str) and is_inside(item.value)
    )


def included(words: Iterable[Word], files: Iterable[str], findings: Findings) -> Iterator[str]:
    """The included files in the order of the patterns, each once, without watches.yaml itself."""
    known = sorted(set(files) - {WATCHES})
    taken: set[str] = set()
    for word in words:
        if not is_inside(word.text):
            findings.mistake(
                "missing-file", f'"{word.text}" is outside of the project: included files must be inside', word.site
            )
            continue
        pattern = normalise_pattern(word.text)
        found = [path for path in known if matches(path, pattern)]
        if pattern == WATCHES:
            findings.mistake("conflict", f"{WATCHES} cannot include itself: remove it from the list", word.site)
        elif not found and has_wildcards(pattern):
            findings.warning("missing-file", f'no file matches "{word.text}"', word.site)
        elif not found:
            others = [path for path in known if not path.startswith(("templates/", "crds/"))]
            findings.mistake(
                "missing-file",
                f'the file "{word.text}" does not exist{did_you_mean_quoted(word.text, others)}',
                word.site,
            )
        yield from (path for path in found if path not in taken)
        taken.update(found)
