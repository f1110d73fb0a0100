"""A JSON merge patch, as a server applies it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any


def patched(value: Any, patch: Any) -> Any:
    """RFC 7386. Nothing of what is given is changed, nor part of what comes back."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = copy.deepcopy(dict(value)) if isinstance(value, Mapping) else {}
    for name, each in patch.items():
        if each is None:
            result.pop(name, None)
        else:
            result[name] = patched(result.get(name), each)
    return result
