"""Writes ruleop/kubernetes/builtin/builtin.json and builtin_types.json from a dump of a real API server.

    python -m tests.kubernetes.builtin.generate_builtin /tmp/openapi-v3

The folder holds the server's answers: `<path>.json` for each document of /openapi/v3 ('/' in the path written '__'),
and the aggregated discovery of /api and /apis as discovery-api.json and discovery-apis.json.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson

from ruleop.kubernetes.builtin.builtin_types import build_types
from ruleop.kubernetes.builtin.table import build_table
from tests.controlplane.protobuf_fields import read_protobuf

ROOT = Path(__file__).parents[3]


def load_dump(folder: Path) -> tuple[dict[str, Any], list[Any]]:
    """The documents by their path below /openapi/v3, and discovery."""
    index = orjson.loads((folder / "index.json").read_bytes())
    documents = {}
    for path in sorted(index["paths"]):
        file = folder / f"{path.replace('/', '__')}.json"
        if file.exists():
            documents[path] = orjson.loads(file.read_bytes())
    return documents, [orjson.loads((folder / f"discovery-{name}.json").read_bytes()) for name in ("api", "apis")]


def main() -> None:
    dump = load_dump(Path(sys.argv[1]))
    files = {"builtin.json": build_table(*dump), "builtin_types.json": build_types(*dump, read_protobuf())}
    for name, data in files.items():
        target = ROOT / "ruleop" / "kubernetes" / "builtin" / name
        target.write_bytes(data)
        sys.stdout.write(f"{target}: {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
