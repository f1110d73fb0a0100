"""Errors of fields as the API server writes them: those of Kubernetes' package `validation/field`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator


class FieldError(NamedTuple):
    """One reason of an error, with the field that it concerns."""

    reason: str
    message: str
    field: str = ""

    def document(self) -> dict[str, Any]:
        found = {"reason": self.reason, "message": self.message}
        return {**found, "field": self.field} if self.field else found


def _shown(value: object) -> str:
    return orjson.dumps(value).decode()


def unsupported(field: str, value: object, supported: Iterable[str]) -> FieldError:
    """A value that is not in an enumeration."""
    listed = ", ".join(f'"{each}"' for each in supported)
    return FieldError(
        "FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {listed}", field
    )


def validate_one_of(
    field: str, value: object, supported: Collection[str], *, optional: bool = False
) -> Iterator[FieldError]:
    """Validates a value of an enumeration. `optional`: it may be missing."""
    if value not in supported and not (optional and value is None):
        yield unsupported(field, value, supported)


def invalid_value(field: str, value: object, problem: str = "") -> FieldError:
    found = f"Invalid value: {_shown(value)}"
    return FieldError("FieldValueInvalid", f"{found}: {problem}" if problem else found, field)


def invalid_values(field: str, value: object, problems: Iterable[str]) -> Iterator[FieldError]:
    """One error for each problem of a value."""
    return (invalid_value(field, value, problem) for problem in problems)


def immutable_value(field: str, value: object) -> FieldError:
    return invalid_value(field, value, "field is immutable")


def required(field: str, problem: str = "") -> FieldError:
    return FieldError("FieldValueRequired", f"Required value: {problem}" if problem else "Required value", field)


def duplicate(field: str, value: object) -> FieldError:
    return FieldError("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", field)


def too_long(field: str, limit: int) -> FieldError:
    return FieldError("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def too_many(field: str, number: int, limit: int) -> FieldError:
    return FieldError("FieldValueTooMany", f"Too many: {number}: must have at most {limit} items", field)


def forbidden_value(field: str, problem: str) -> FieldError:
    return FieldError("FieldValueForbidden", f"Forbidden: {problem}", field)
