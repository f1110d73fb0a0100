"""What the API server's refusals mean, and what to do about them.

A caller never looks at a status code: `problem` is one of a dozen words, each with one way to go on. Two questions cut across them:

- `retryable`: may the same request succeed later although nobody changes anything? A conflict is not retryable: it wants a new reading.
- `outcome_unknown`: was it a write that may have happened although no good answer came? Then only a live read can tell.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.errors import Cause, RuleopError
from ruleop.kube.client.redaction import holds_secret, redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

READS = frozenset({"get", "list", "watch", "discover"})


class Problem(Enum):
    """What went wrong, in the order of what a reader should do."""

    CONFLICT = "conflict"  # somebody else wrote in between: read again, think again
    EXISTS = "exists"  # the name is taken, perhaps by ourselves: read it
    FORBIDDEN = "forbidden"  # a right is missing: say which, look again now and then
    INVALID = "invalid"  # the object is wrong: nothing helps but another object
    NOT_FOUND = "not found"  # no such object, or no such kind
    GONE = "gone"  # the resourceVersion is too old: list again
    THROTTLED = "throttled"  # later: `retry_after` says when
    TOO_LARGE = "too large"  # no server will ever take it
    UNSUPPORTED = "unsupported"  # this server cannot do that: use another way
    UNAUTHORIZED = "unauthorized"  # the credentials are not accepted, fresh ones neither
    SERVER = "server"  # its own trouble: later
    UNREACHABLE = "unreachable"  # no connection, so nothing was sent
    UNTRUSTED = "untrusted"  # the same, because the other side could not show that it is the API server
    TIMEOUT = "timeout"  # sent, and no answer came


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

_RETRYABLE = frozenset({Problem.THROTTLED, Problem.UNAUTHORIZED, Problem.SERVER, Problem.UNREACHABLE, Problem.UNTRUSTED, Problem.TIMEOUT})

_TOO_LARGE = ("request is too large", "trying to send message larger than max")

# There is no reason or cause that says "immutable"; these are the sentences of Kubernetes' own validation (1.28 to 1.36) and of the
# usual rules in CRDs. What holds for a time only ("cannot be changed during ...") would not be helped by another object.
_IMMUTABLE = re.compile(
    r"(?:(?!\b(?:if|unless|when|while)\b).)*?"  # what comes before is no condition
    r"(?:"
    r"\b(?:is|are) (?:an )?immutable\b(?! (?:if|unless|while|during|until|because)\b)"
    r"|\bimmutable fields?\b"
    r"|\bupdates to .+ for fields other than"
    r"|\bupdates to .+ are forbidden"
    r"|\bupdates may not change fields other than"
    r"|\bmay not (?:be changed|change) once set"
    r"|\bcannot change roleRef"
    r"|\b(?:can ?not|may not) be (?:changed|modified|updated)\b(?! (?:if|unless|when|while|during|until|because|to|by)\b)"
    r")",
    re.IGNORECASE,
)
_BY_AUTHORIZER = re.compile(r'\bUser "[^"]*" cannot [a-z]+ (?:resource|path) "')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')  # a value, or a name
_WHAT = re.compile(r"[^\n]{0,400}? is invalid: ")
_FIELDS_OTHER_THAN = re.compile(r"fields other than (.+?) are forbidden")
_NAME_IN_QUOTES = re.compile(r"'([A-Za-z]\w*)'")
_BY_VALIDATION = frozenset({"FieldValueInvalid", "FieldValueForbidden"})  # of a policy, or a webhook, causes have no reason


def _never_changes(complaint: str) -> bool:
    """Whether it says in its own words, not in those that it quotes, that a field can never change. Below the first line it may show a
    difference between two objects."""
    words = _QUOTED.sub("", complaint.partition("\n")[0])
    return '"' not in words and _IMMUTABLE.match(words) is not None


class ApiError(RuleopError):
    """A request that the API server refused or did not answer.

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
        """`redacted` replaces a text that may quote what was written. `status` is 0 without an answer."""
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
        self._answer = text

    @property
    def retryable(self) -> bool:
        """The same request may succeed later, although nobody changes anything."""
        return self.problem in _RETRYABLE

    @property
    def outcome_unknown(self) -> bool:
        """A write that may have happened all the same. A server that says 500 or 504 may have stored the object before it failed."""
        return self.verb not in READS and self.problem in {Problem.TIMEOUT, Problem.SERVER}

    @property
    def immutable(self) -> bool:
        """The object is refused because it changes what may not change, and for nothing else: a new object could have it, and no other."""
        if self.problem is not Problem.INVALID or self.status != 422:
            return False
        if self.causes:
            return all(cause.reason in _BY_VALIDATION and _never_changes(cause.message) for cause in self.causes)
        complaint = _WHAT.sub("", self._answer, count=1)
        return not complaint.startswith("[") and "denied" not in complaint and _never_changes(complaint)

    @property
    def not_permitted(self) -> bool:
        """No Role grants the request. What else is Forbidden is an admission policy's or a quota's no, which no Role helps against."""
        return self.problem is Problem.FORBIDDEN and _BY_AUTHORIZER.search(self._answer) is not None

    @property
    def namespace_terminating(self) -> bool:
        """Nothing new is taken in a namespace that is being deleted."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.causes)


def answer_error(status: int, body: bytes, *, verb: str, resource: str, retry_after: str | None = None) -> ApiError:
    """What a refusing answer means. The body is a Status, unless a proxy in between wrote it."""
    answer = _status_of(body)
    details = answer.get("details") or {}
    causes = tuple(_cause(each) for each in details.get("causes") or ())
    reason, message = str(answer.get("reason") or ""), str(answer.get("message") or "")
    problem = _problem(status, reason, message, causes)
    text = message or ("" if holds_secret(resource) else body[:200].decode(errors="replace").strip()) or "no explanation"
    if str(status) not in text:
        text = f"{text} ({status}{f' {reason}' if reason else ''})"
    return ApiError(
        problem,
        verb=verb,
        resource=resource,
        text=f"the object is too large: {text}" if problem is Problem.TOO_LARGE else text,
        redacted="" if verb in READS else redacted(status, reason, causes),
        status=status,
        causes=causes,
        retry_after=_seconds(retry_after, details.get("retryAfterSeconds")),
    )


def _cause(cause: Mapping[str, Any]) -> Cause:
    field, reason, message = (str(cause.get(name) or "") for name in ("field", "reason", "message"))
    mutable = (name for names in _FIELDS_OTHER_THAN.findall(message) for name in _NAME_IN_QUOTES.findall(names))
    return Cause(field, reason, message, frozenset(mutable))


def status_error(status: Mapping[str, Any], *, verb: str, resource: str) -> ApiError:
    """The same for the Status in an ERROR event of a watch."""
    code = status.get("code")
    return answer_error(code if isinstance(code, int) else 500, orjson.dumps(status), verb=verb, resource=resource)


def _problem(status: int, reason: str, message: str, causes: tuple[Cause, ...]) -> Problem:
    if reason == "AlreadyExists":
        return Problem.EXISTS
    if reason in {"Expired", "Gone"}:
        return Problem.GONE
    # Of etcd, and of the API server's connection to it. Neither has a reason of its own.
    if status == 500 and any(each in text for text in (message, *(cause.message for cause in causes)) for each in _TOO_LARGE):
        return Problem.TOO_LARGE
    return _BY_STATUS.get(status) or (Problem.SERVER if status >= 500 else Problem.INVALID)


def _status_of(body: bytes) -> Mapping[str, Any]:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) and said.get("kind") == "Status" else {}


def _seconds(header: str | None, detail: Any) -> float | None:
    if header is not None and header.isdigit():  # Kubernetes sends seconds; the other form, a date, would need the server's clock
        return float(header)
    return float(detail) if isinstance(detail, int) and detail > 0 else None
