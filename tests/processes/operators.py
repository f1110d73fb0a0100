"""What an operator that runs as a process says: at its addresses, and in its log."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any


def probe(port: int, path: str) -> tuple[int, str]:
    """The status and text of an operator's address; 0 while it does not listen."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def logged(file: Path) -> list[dict[str, Any]]:
    """Its lines so far. One without an end is still being written."""
    lines = file.read_text().rpartition("\n")[0].splitlines()
    return [_parsed(line) for line in lines]


def _parsed(line: str) -> dict[str, Any]:
    """If a kill has cut a line, the next process has written its first line behind it: only that part counts."""
    for start in (0, line.rfind('{"timestamp"')):
        with contextlib.suppress(ValueError):
            if isinstance(found := json.loads(line[start:]), dict):
                return found
    return {"event": line}
