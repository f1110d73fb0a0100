"""Answers of the real API server, stored beside the tests, without what differs from run to run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.contract.client import Reply

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ADDRESS = re.compile(r"10\.\d+\.\d+\.\d+")


OWN_WORDS = ("creation_errors", "kind_errors", "kinds", "crds")
"""The modules of which only the code and the fields of a refusal are compared: the rules of the server in memory say by
themselves what is wrong. Of a definition, its fields are those of its author, not those of the server's own type."""

GO_WORDS = re.compile(
    r"cannot be handled as a|cannot unmarshal|cannot restore|cannot convert|unrecognized|unable to convert|no kind |"
    r"error decoding|illegal base64|invalid character|parsing time|quantities must match|Object 'apiVersion' is missing|"
    r"Object 'Kind' is missing|strict decoding|accessor error|map\[|json: |converting \(|expected [^:]*, got"
)
"""Of answers in the words of Go's decoders only the code is compared: the server in memory has its own words. So it has
for violations of the schema of a custom resource, of which the fields are compared, too."""


class Recording:
    """The stored answers of one test module."""

    def __init__(self, path: Path, *, records: bool) -> None:
        self._path, self._records = path, records
        self._stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def check(self, name: str, found: Any, namespace: str = "") -> None:
        """Compares an answer with the stored one; when recording, stores it."""
        found = normalised(found, namespace)
        if self._records:
            self._stored[name] = found
            text = json.dumps(self._stored, indent=1, sort_keys=True, ensure_ascii=False)
            self._path.write_text(text + "\n")
        stored = self._stored[name]
        if self._path.stem in OWN_WORDS and stored.get("code") == 422:
            found, stored = ((each["code"], _fields(each)) for each in (found, stored))
        if self._path.stem == "crds" and isinstance(stored, tuple):
            found, stored = found[0], stored[0]
        assert _comparable(found, stored) == _comparable(stored, stored)


def _comparable(answer: Any, stored: Any) -> Any:
    """The answer, or answers; its code alone where the stored one is in Go's words."""
    if not isinstance(answer, dict) or not isinstance(stored, dict):
        return answer
    if "code" not in stored:
        return {name: _comparable(each, stored.get(name)) for name, each in answer.items()}
    text = json.dumps(stored)
    if stored["code"] >= 400 and GO_WORDS.search(text):
        return answer.get("code")
    if stored["code"] in (405, 406, 415) or (stored["code"] == 422 and "idget" in text):
        return answer.get("code"), _fields(answer)
    # The real server checks metadata twice, and reports some mistakes as often.
    return _with_each_cause_once(answer)


def _fields(answer: Any) -> list[str]:
    """The fields of its causes. Where a value is of the wrong type, the real server has one more, without a field."""
    causes = answer.get("causes") or ((answer.get("body") or {}).get("details") or {}).get("causes") or ()
    found = causes if isinstance(causes, dict) else (each["field"] for each in causes)
    return sorted({each for each in found if each != "<nil>"})


def _with_each_cause_once(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    found = {name: _with_each_cause_once(each) for name, each in value.items()}
    if causes := found.get("causes"):
        listed = list(causes)
        found["causes"] = [each for index, each in enumerate(listed) if each not in listed[:index]]
    return found


def refusal(reply: Reply) -> dict[str, Any]:
    """What an answer says of a refused request, word for word. Its causes are sorted: some checks go through a map in
    Go, whose order is random."""
    answer = {"code": reply.status, "message": reply.body.get("message"), "causes": None}
    if reply.status == 422:
        causes = reply.body["details"]["causes"]
        causes.sort(key=lambda cause: (cause["field"], cause["reason"], cause["message"]))
        answer |= {"causes": causes, "message": reply.body["message"].partition(" is invalid")[0]}
    return answer


def normalised(value: Any, namespace: str = "") -> Any:
    """The value without managedFields, and with words for uids, times, versions, addresses and the namespace."""
    if isinstance(value, dict):
        found = {
            name: normalised(each, namespace)
            for name, each in value.items()
            if name not in ("managedFields", "resourceVersion")
        }
        for name in ("nodePort", "healthCheckNodePort"):
            if found.get(name):
                found[name] = "PORT"
        return found
    if isinstance(value, list):
        return [normalised(each, namespace) for each in value]
    if not isinstance(value, str):
        return value
    if namespace:
        value = value.replace(namespace, "NAMESPACE")
    return _ADDRESS.sub("ADDRESS", _UID.sub("UID", _TIME.sub("TIME", value)))
