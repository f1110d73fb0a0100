"""The meaning of the API server's errors, and the reactions to them.

A caller never checks a status code: `problem` is one of a dozen words, each with one reaction. Two questions apply to
all of them:

- `retryable`: may the same request succeed later without a change? A conflict is not retryable: the object has to be
  read again.
- `outcome_unknown`: was it a write that may have happened although no valid response arrived? Only a live read can
  show."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.errors import NAMED, Cause, RuleopError
from ruleop.kubernetes.permissions import ESCALATION
from ruleop.language.secrets.secrecy import holds_secret, redacted
from ruleop.messages import MAX_QUOTED
from ruleop.operator.wire.client.json_depth import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


# -- quoted values -----------------------------------------------------------------------------------------------------
#
# Leaves out the objects that the API server quotes in its messages.
#
# A message about an invalid field quotes its value, and that of `patch` or of `spec.template` is a whole object: it
# would fill a condition, so that the reason, which follows it, is cut off, and nobody may read there what an object
# contains.


# The value is a string, JSON, or in messages of older servers a literal of Go: core.PodTemplateSpec{...}.
_TYPE: Final = re.compile(r"(?:\[\]|map\[\w{1,50}\]|[&*\w.]{1,50}){0,4}(?=\{)")
_VALUE: Final = re.compile(rf'\b(?:Invalid|Unsupported|Duplicate) value: (?="|\[|{_TYPE.pattern})')
# These are linear in the text: a string that is not closed reaches to the end.
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_TOKEN: Final = re.compile(rf"{_STRING.pattern}|[{{}}\[\]]", re.DOTALL)
_PATCH: Final = '"" is invalid: patch: Invalid value: '
"""Of a merge patch whose result is invalid. The server names neither the object nor the field."""


def without_objects(message: str) -> str:
    """The message with short values only: `spec.template: Invalid value: field is immutable`."""
    shown = "".join(_parts(message))
    return shown.removeprefix(_PATCH) if shown != message else message


def _parts(message: str) -> Iterator[str]:
    position = 0
    while (found := _VALUE.search(message, position)) is not None:
        start, end = found.end(), _end(message, found.end())
        yield message[position:start]
        value = message[start:end]
        if value.startswith('"{') or (len(value) > MAX_QUOTED and value[0] != '"'):
            position = end + 2 if message.startswith(": ", end) else end
        else:
            yield value if len(value) <= MAX_QUOTED else f'{value[: MAX_QUOTED - 2]}…"'
            position = end
    yield message[position:]


def _end(message: str, start: int) -> int:
    """The end of the value that begins there."""
    if message[start] == '"':
        string = _STRING.match(message, start)
        assert string is not None
        return string.end()
    depth, type_ = 0, _TYPE.match(message, start)
    for token in _TOKEN.finditer(message, type_.end() if type_ is not None else start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth <= 0 and token[0][0] != '"':
            return token.end()
    return len(message)


# -- server errors -----------------------------------------------------------------------------------------------------


READS = frozenset({"get", "list", "watch", "discover"})


class Problem(Enum):
    """The cause of an error, and the reaction to it."""

    CONFLICT = "conflict"  # another client wrote in between: read and plan again
    EXISTS = "exists"  # the name is taken, perhaps by ruleop: read the object
    FORBIDDEN = "forbidden"  # a permission is missing: report it, retry with backoff
    INVALID = "invalid"  # the object is invalid: only another object helps
    NOT_FOUND = "not found"  # no such object, or no such kind
    GONE = "gone"  # the resourceVersion is too old: list again
    THROTTLED = "throttled"  # retry after `retry_after`
    TOO_LARGE = "too large"  # no server will accept the object
    UNSUPPORTED = "unsupported"  # the server does not support the request: use another one
    UNAUTHORIZED = "unauthorized"  # the credentials are rejected, also new ones
    SERVER = "server"  # an internal error of the server: retry later
    UNREACHABLE = "unreachable"  # no connection, so nothing was sent
    UNTRUSTED = "untrusted"  # the same, because the server's certificate was not accepted
    TIMEOUT = "timeout"  # sent, and no response arrived


_BY_STATUS: Mapping[int, Problem] = {
    400: Problem.INVALID,
    401: Problem.UNAUTHORIZED,
    403: Problem.FORBIDDEN,
    404: Problem.NOT_FOUND,
    405: Problem.UNSUPPORTED,
    406: Problem.UNSUPPORTED,
    409: Problem.CONFLICT,
    410: Problem.GONE,
    413: Problem.TOO_LARGE,
    415: Problem.UNSUPPORTED,
    422: Problem.INVALID,
    429: Problem.THROTTLED,
}

_RETRYABLE = frozenset(
    {Problem.THROTTLED, Problem.UNAUTHORIZED, Problem.SERVER, Problem.UNREACHABLE, Problem.UNTRUSTED, Problem.TIMEOUT}
)

# Of an object that is larger than etcd takes. The API server calls that an internal error (500), like transient ones.
_TOO_LARGE = ("request is too large", "trying to send message larger than max")

# No reason or cause means "immutable"; these are the sentences of Kubernetes' own validation (1.28 to 1.36) and of the
# usual rules in CRDs. Against a temporary rule ("cannot be changed during ...") another object would not help.
# These patterns and those below are linear in the text: the API server quotes values of any length.
_IMMUTABLE = re.compile(
    r"\b(?:is|are) (?:an )?immutable\b(?! (?:if|unless|while|during|until|because)\b)"
    r"|\bimmutable fields?\b"
    r"|\bupdates may not (?:change fields other than|add or remove)\b"
    r"|\bmay not (?:be changed|change) once set"
    r"|\bcannot change roleRef"
    r"|\b(?:can ?not|may not) be (?:changed|modified|updated)\b"
    r"(?! (?:if|unless|when|while|during|until|because|to|by)\b)",
    re.IGNORECASE,
)
_UPDATES = re.compile(r"\bupdates to .", re.IGNORECASE)  # "updates to parameters are forbidden"
_NO_UPDATES = re.compile(" for fields other than| are forbidden", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:if|unless|when|while)\b", re.IGNORECASE)
_BY_AUTHORIZER = re.compile(r'\bUser "[^"]*" cannot [a-z]+ (?:resource|path) "')
# Since 1.36 the API server asks first for a permission for each verb: "cannot impersonate-on:serviceaccount:create".
_NO_IMPERSONATION = re.compile(r'\bUser "[^"]*" cannot impersonate[-: ]')
_QUOTED = re.compile(r'"(?:[^"\\]++|\\.)*+("|\\?\Z)')  # a value or a name; one that is not closed reaches to the end
_SUBJECT = 400  # characters at most before "is invalid: "
_LONGEST_PATH = 1024
MAX_CAUSES = 100
MAX_NAMED = 16
_NAMING = (  # in the messages about an object that cannot be decoded, and an apply that does not match the schema
    re.compile(r'(?:unknown|duplicate) field "([^"\s]{1,253})"'),
    re.compile(r"Go struct field \w{1,100}\.([\w.]{1,253}) of type"),
    re.compile(r"(?:^|: )\s{0,8}(\.[A-Za-z][^\s:]{0,253}): ", re.MULTILINE),
)
LONGEST_RETRY_AFTER = 300.0
_NAME_IN_QUOTES = re.compile(r"'([A-Za-z]\w*)'")
_BY_VALIDATION = frozenset(
    {"FieldValueInvalid", "FieldValueForbidden"}
)  # causes of policies and webhooks have no reason


def _never_changes(complaint: str) -> bool:
    """Whether the sentence, without the values that it quotes, says that a field can never change. Lines after the
    first may show a difference between two objects."""
    words = _QUOTED.sub(lambda quoted: "" if quoted[1] == '"' else '"', complaint.partition("\n")[0])
    if '"' in words:
        return False
    condition = _CONDITION.search(words)
    end = condition.start() if condition else len(words)  # where the sentence may begin at the latest
    updates, found = _UPDATES.search(words), _IMMUTABLE.search(words)
    return (found is not None and found.start() <= end) or (
        updates is not None and updates.start() <= end and _NO_UPDATES.search(words, updates.end()) is not None
    )


class ApiError(RuleopError):
    """A request that the API server rejected or did not answer.

    As text it is what may be logged: where the request wrote a Secret, the server's words are left out. `redacted` is
    the same for any request: for objects that hold data of a Secret.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        verb: str,
        resource: str,
        text: str,
        redacted: str = "",
        status: int = 0,
        causes: tuple[Cause, ...] = (),
        retry_after: float | None = None,
    ) -> None:
        """`redacted` replaces a text that may quote what was written. `status` is 0 without a response."""
        request = f"{verb} {resource}"
        self.redacted = f"{request}: {redacted or text}"
        self.text = (redacted or text) if holds_secret(resource) else text
        super().__init__(f"{request}: {self.text}")
        self.problem = problem
        self.verb = verb
        self.resource = resource
        self.status = status
        self.causes = causes
        self.retry_after = retry_after
        self._response_text = text

    @property
    def retryable(self) -> bool:
        """The same request may succeed later without a change."""
        return self.problem in _RETRYABLE

    @property
    def outcome_unknown(self) -> bool:
        """A write that may have happened. A server that answers 500 or 504 may have stored the object before it
        failed."""
        return self.verb not in READS and self.problem in {Problem.TIMEOUT, Problem.SERVER}

    @property
    def immutable(self) -> bool:
        """The object is rejected only because it changes immutable fields: a new object could have these values."""
        if self.problem is not Problem.INVALID or self.status != 422:
            return False
        if self.causes:
            return all(cause.reason in _BY_VALIDATION and _never_changes(cause.message) for cause in self.causes)
        subject, separator, complaint = self._response_text.partition(" is invalid: ")
        if not separator or len(subject) > _SUBJECT or "\n" in subject:
            complaint = self._response_text
        return not complaint.startswith("[") and "denied" not in complaint and _never_changes(complaint)

    @property
    def not_permitted(self) -> bool:
        """No Role grants the request. Any other Forbidden comes from an admission policy or a quota, and a Role would
        not help."""
        return self.problem is Problem.FORBIDDEN and _BY_AUTHORIZER.search(self._response_text) is not None

    @property
    def cannot_impersonate(self) -> bool:
        """The client may not write as the ServiceAccount. The API server did not judge the request itself."""
        return self.problem is Problem.FORBIDDEN and _NO_IMPERSONATION.search(self._response_text) is not None

    @property
    def grants_too_much(self) -> bool:
        """A role or a binding that grants permissions which the operator does not have."""
        return self.problem is Problem.FORBIDDEN and any(words in self._response_text for words in ESCALATION)

    @property
    def held_by_others(self) -> bool:
        """An apply sets fields that other managers hold; the causes name both."""
        return self.problem is Problem.CONFLICT and any(cause.reason == "FieldManagerConflict" for cause in self.causes)

    @property
    def namespace_terminating(self) -> bool:
        """The namespace is being deleted and accepts no new objects."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.causes)


def response_error(status: int, body: bytes, *, verb: str, resource: str, retry_after: str | None = None) -> ApiError:
    """The error for a response. Its body is a Status, unless a proxy wrote it."""
    document = _parse_status(body)
    details, reason, message = _mapping(document.get("details")), _text(document, "reason"), _text(document, "message")
    causes = tuple(_causes(details.get("causes")))
    for words in ESCALATION:  # some kilobytes of rules follow
        message = message.partition(words)[0] + words if words in message else message
    problem = _problem(status, reason, message, causes)
    plain = "" if holds_secret(resource) else body[:200].decode(errors="replace").strip()
    text = without_objects(message) or plain or "no explanation"
    if str(status) not in text:
        text = f"{text} ({status}{f' {reason}' if reason else ''})"
    return ApiError(
        problem,
        verb=verb,
        resource=resource,
        text=f"the object is too large: {text}" if problem is Problem.TOO_LARGE else text,
        redacted="" if verb in READS else redacted(status, reason, causes),
        status=status,
        causes=causes or (named_fields(message) if status in {400, 500} else ()),
        retry_after=_seconds(retry_after, details.get("retryAfterSeconds")),
    )


def _causes(found: Any) -> Iterator[Cause]:
    """The first causes. What follows them is one of no known kind."""
    known = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    yield from map(_cause, known[:MAX_CAUSES])
    if len(known) > MAX_CAUSES:
        yield Cause("")


def _cause(cause: Mapping[str, Any]) -> Cause:
    field, reason, message = _text(cause, "field")[:_LONGEST_PATH], _text(cause, "reason"), _text(cause, "message")
    listed, sentence, _ = message.partition("fields other than ")[2].partition(" are forbidden")
    return Cause(field, reason, message, frozenset(_NAME_IN_QUOTES.findall(listed) if sentence else ()))


def named_fields(message: str) -> tuple[Cause, ...]:
    """The fields that the API server names in the message of a response without causes."""
    fields = (field for form in _NAMING for field in form.findall(message[:8192]))
    return tuple(Cause(field, NAMED) for field in dict.fromkeys(fields))[:MAX_NAMED]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(found: Mapping[str, Any], name: str) -> str:
    """A proxy before the API server may answer with values of any type."""
    value = found.get(name)
    return value if isinstance(value, str) else ""


def status_error(status: Mapping[str, Any], *, verb: str, resource: str) -> ApiError:
    """The same for the Status in an ERROR event of a watch."""
    code = status.get("code")
    return response_error(code if isinstance(code, int) else 500, orjson.dumps(status), verb=verb, resource=resource)


def too_many_values(error: Exception, verb: str, resource: str) -> ApiError:
    """A response whose values would not fit into memory. A list may have smaller pages."""
    problem = Problem.TOO_LARGE if verb in READS else Problem.SERVER
    return ApiError(problem, verb=verb, resource=resource, text=f"the answer is too large: {error}", status=200)


def _problem(status: int, reason: str, message: str, causes: tuple[Cause, ...]) -> Problem:
    if reason == "AlreadyExists":
        return Problem.EXISTS
    if reason in {"Expired", "Gone"}:
        return Problem.GONE
    # An apply names the object that it is for by its uid. The API server calls another object's uid an immutable field.
    if status == 422 and causes and all(cause.field == "metadata.uid" for cause in causes):
        return Problem.CONFLICT
    # Errors of etcd, and of the API server's connection to it. They have no reason of their own.
    if status == 500 and any(
        each in text for text in (message, *(cause.message for cause in causes)) for each in _TOO_LARGE
    ):
        return Problem.TOO_LARGE
    return _BY_STATUS.get(status) or (Problem.SERVER if status >= 500 else Problem.INVALID)


def _parse_status(body: bytes) -> Mapping[str, Any]:
    try:
        document = parse_json(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) and document.get("kind") == "Status" else {}


def _seconds(header: str | None, detail: Any) -> float | None:
    """The delay that the server asks for, in seconds, but not longer than a CR backs off: a gateway may ask for a
    year."""
    if header is not None and header.isascii() and header.isdigit():  # a date would need the server's clock
        return min(float(header), LONGEST_RETRY_AFTER)
    return min(float(detail), LONGEST_RETRY_AFTER) if type(detail) is int and detail > 0 else None
