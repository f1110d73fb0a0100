"""Reads the numbers of protobuf fields of the built-in types from the Go types of the pinned Kubernetes modules."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
API: Final = "k8s.io/api"
MACHINERY: Final = "k8s.io/apimachinery"
PACKAGES: Final = {
    f"{MACHINERY}/pkg/apis/meta/v1": "io.k8s.apimachinery.pkg.apis.meta.v1",
    **{
        f"{API}/{name}": f"io.k8s.api.{name.replace('/', '.')}"
        for name in (
            "admissionregistration/v1",
            "apps/v1",
            "authentication/v1",
            "authorization/v1",
            "autoscaling/v1",
            "autoscaling/v2",
            "batch/v1",
            "certificates/v1",
            "coordination/v1",
            "core/v1",
            "discovery/v1",
            "events/v1",
            "flowcontrol/v1",
            "networking/v1",
            "node/v1",
            "policy/v1",
            "rbac/v1",
            "resource/v1",
            "scheduling/v1",
            "storage/v1",
        )
    },
}
_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(r'^\t(?:\w+ )?\s*([*\[\]\w.]+)\s+`json:"([^"]*)"[^`]*? protobuf:"[^,]*,(\d+)', re.MULTILINE)


def read_protobuf() -> dict[str, dict[str, Any]]:
    """By the name of a type in OpenAPI, and by number: the name of a field, after an asterisk if it is written although
    it is empty; for a struct that is inlined, its fields."""
    found: dict[str, dict[str, Any]] = {}
    for path, prefix in PACKAGES.items():
        texts = [file.read_text() for file in sorted(_folder(path).glob("*.go")) if not _is_generated(file.name)]
        structs = {name: body for text in texts for name, body in _STRUCT.findall(text)}
        found |= {f"{prefix}.{name}": fields for name in structs if (fields := _fields(structs, name))}
    return found


def _folder(path: str) -> Path:
    module = API if path.startswith(API + "/") else MACHINERY
    found = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", module],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(found.stdout.strip(), path.removeprefix(module + "/"))


def _is_generated(name: str) -> bool:
    return name.startswith("zz_") or name.endswith(("_test.go", ".pb.go", "_generated.go"))


def _fields(structs: dict[str, str], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for type_, tag, number in _FIELD.findall(structs[name]):
        field, *options = tag.split(",")
        is_written = type_.startswith("*") or not {"omitempty", "omitzero"} & set(options)
        found[number] = _fields(structs, type_) if "inline" in options else f"{'*' if is_written else ''}{field}"
    return found
