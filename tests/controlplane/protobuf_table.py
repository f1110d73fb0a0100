"""Makes the table of protobuf messages of the built-in kinds from the Go types of the pinned Kubernetes modules.

Usage: python -m tests.controlplane.protobuf_table >ruleop/localcluster/api/protobuf_table.json
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import orjson

HERE: Final = Path(__file__).resolve().parent
API: Final = "k8s.io/api"
MACHINERY: Final = "k8s.io/apimachinery"
PACKAGES: Final = {
    f"{MACHINERY}/pkg/apis/meta/v1": "meta/v1",
    **{
        f"{API}/{name}": name
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
_SPECIAL: Final = {
    f"{MACHINERY}/pkg/api/resource.Quantity": "quantity",
    f"{MACHINERY}/pkg/util/intstr.IntOrString": "int-or-string",
    f"{MACHINERY}/pkg/runtime.RawExtension": "raw",
    f"{MACHINERY}/pkg/types.UID": "string",
    f"{MACHINERY}/pkg/types.NodeName": "string",
    "meta/v1.Time": "time",
    "meta/v1.MicroTime": "micro-time",
    "meta/v1.Duration": "duration",
    "meta/v1.FieldsV1": "raw",
}
_SCALARS: Final = {
    **dict.fromkeys(("int", "int32", "int64", "uint32", "uint64"), "int"),
    "string": "string",
    "bool": "bool",
    "float64": "double",
    "[]byte": "bytes",
}
_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAMED: Final = re.compile(r"^type (\w+) (?!struct|interface|func)(\S+)$", re.MULTILINE)
_FIELD: Final = re.compile(
    r'^\t(?:(\w+) )?\s*([*\[\]\w.]+)\s+`json:"([^"]*)"[^`]*? protobuf:"[^,]*,(\d+)', re.MULTILINE
)
_IMPORT: Final = re.compile(r'^\t(?:(\w+) )?"(k8s\.io/[^"]+)"', re.MULTILINE)


class Package:
    def __init__(self, path: str, folder: Path) -> None:
        self.path, self.name = path, PACKAGES[path]
        self.texts = [file.read_text() for file in sorted(folder.glob("*.go")) if not _is_generated(file.name)]
        self.imports = {
            alias or target.rpartition("/")[2]: target for text in self.texts for alias, target in _IMPORT.findall(text)
        }
        self.named = {name: target for text in self.texts for name, target in _NAMED.findall(text)}
        self.structs = {name: body for text in self.texts for name, body in _STRUCT.findall(text)}


def _is_generated(name: str) -> bool:
    return name.startswith("zz_") or name.endswith(("_test.go", ".pb.go", "_generated.go"))


def build() -> bytes:
    packages = {path: Package(path, _folder(path)) for path in PACKAGES}
    messages = {
        f"{package.name}.{name}": fields
        for package in packages.values()
        for name, body in package.structs.items()
        if (fields := _fields(packages, package, body))
    }
    rows = [
        orjson.dumps(name) + b":" + orjson.dumps(messages[name], option=orjson.OPT_SORT_KEYS)
        for name in sorted(messages)
    ]
    return b"{\n" + b",\n".join(rows) + b"\n}\n"


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


def _fields(packages: dict[str, Package], package: Package, body: str) -> dict[str, str]:
    """By number: the name in JSON, and the type with its marks: `*` a pointer, `[]` a list, `{}` a map, `~` left out of
    the JSON if empty. A field without a name is inlined."""
    found: dict[str, str] = {}
    for _, type_, tag, number in _FIELD.findall(body):
        name, *options = tag.split(",")
        marks = "~" if "omitempty" in options or "omitzero" in options else ""
        found[number] = f"{'' if 'inline' in options else name}:{marks}{_type(packages, package, type_)}"
    return found


def _type(packages: dict[str, Package], package: Package, text: str) -> str:
    if text in _SCALARS:
        return _SCALARS[text]
    if text.startswith("*"):
        return "*" + _type(packages, package, text[1:])
    if text.startswith("[]"):
        return "[]" + _type(packages, package, text[2:])
    if text.startswith("map["):
        return "{}" + _type(packages, package, text[text.index("]") + 1 :])
    alias, _, name = text.rpartition(".")
    path = package.imports.get(alias, alias) if alias else package.path
    if f"{path}.{name}" in _SPECIAL:
        return _SPECIAL[f"{path}.{name}"]
    other = packages.get(path)
    if other is None:
        raise SystemExit(f"{package.path} uses {path}.{name}, which is not in the table")
    if f"{other.name}.{name}" in _SPECIAL:
        return _SPECIAL[f"{other.name}.{name}"]
    if name in other.structs:
        return f"{other.name}.{name}"
    target = other.named[name]
    wrapped = target.startswith(("[]", "map[")) and "protobuf.nullable" in "".join(other.texts) and name in _WRAPPERS
    return ("wrapped " if wrapped else "") + _type(packages, other, target)


_WRAPPERS: Final = frozenset({"ExtraValue", "Verbs"})
"""Named lists that are messages of their own in protobuf, with the items in field 1."""


if __name__ == "__main__":
    sys.stdout.buffer.write(build())
