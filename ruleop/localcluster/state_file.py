"""Keeps what the cluster holds in a file, over restarts.

The file is one JSON document, replaced as a whole: a crash leaves the old one or the new one. A file that cannot be
read is left alone, and the cluster does not start.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.errors import RuleopError
from ruleop.files import read_regular, why_unreadable
from ruleop.localcluster.object_store import Resource

if TYPE_CHECKING:
    from pathlib import Path

    from ruleop.localcluster.object_store import Store

FORMAT: Final = "ruleop local cluster 1"
MAX_STATE: Final = 512 * 1024 * 1024  # bytes: some hundred thousand objects


def write_state(path: Path, store: Store, token: str) -> None:
    resources = [
        {
            "group": each.group,
            "plural": each.plural,
            "objects": [orjson.Fragment(found.data) for found in store.all(each)],
        }
        for each in store.resources()
    ]
    document = {"format": FORMAT, "token": token, "version": store.version, "resources": resources}
    other = path.with_name(f".{path.name}.new")
    try:
        with os.fdopen(os.open(other, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(orjson.dumps(document))
            file.flush()
            os.fsync(file.fileno())
        other.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            other.unlink()
        raise RuleopError(f"{path} cannot be written: {error.strerror}") from None


def read_state(path: Path, store: Store) -> str:
    """Fills an empty store, and returns the token of the address. Raises RuleopError, and then the store is empty."""
    try:
        document = orjson.loads(read_regular(path, MAX_STATE))
        resources = _checked(document)
        version, token = int(document["version"]), str(document["token"])
    except OSError as error:
        raise RuleopError(f"{path}: {why_unreadable(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RuleopError(
            f"{path} is damaged, or no state file of `ruleop cluster` ({error}); it is left as it is: "
            "name another file, or remove it"
        ) from None
    store.version = version
    for resource, objects in resources:
        for each in objects:
            store.load(resource, each)
    return token


def _checked(document: Any) -> list[tuple[Resource, list[dict[str, Any]]]]:
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']!r}")
    found = []
    for each in document["resources"]:
        for obj in each["objects"]:
            metadata = obj["metadata"]
            int(metadata["resourceVersion"])
            if not (metadata["name"] and metadata["uid"] and obj["kind"] and obj["apiVersion"]):
                raise ValueError("an object has no name, uid or kind")
        found.append((Resource(each["group"], each["plural"]), each["objects"]))
    return found
