"""The order in which clients prefer the versions of a group: v2 to v1, v1 to v1beta2, v1beta2 to v1alpha1, all these to
other names."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def priority(version: str) -> tuple[int, int, int, str]:
    """A key by which versions are sorted, the preferred one first."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return len(_STABILITY), 0, 0, version
    major, stability, minor = found.groups()
    return _STABILITY[stability], -int(major), -int(minor or 0), version
