"""A JSON merge patch, as a server applies it."""

from __future__ import annotations

import copy
from typing import Any

from ruleop.localcluster.objects.patches import merge_patch


def patched(value: Any, patch: Any) -> Any:
    """RFC 7386. Nothing of what is given is changed, nor part of what comes back."""
    return copy.deepcopy(merge_patch(value, patch))
