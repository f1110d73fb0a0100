"""Parts of workloads to create."""

from __future__ import annotations

from typing import Any

LABELS = {"app": "a"}


def container(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in {"name": "a", "image": "a", **fields}.items() if value is not None}


def template(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": list(containers or [container()]), **spec}}
