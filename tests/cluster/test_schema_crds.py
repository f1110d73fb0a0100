"""What becomes of a custom resource, offline and on a real API server: what is dropped, what is filled in, and what is
refused, for random schemas and random objects.

    RULEOP_SCHEMA_OBJECTS=20000 pytest ... tests/cluster/test_schema_crds.py     other ones each time, and that many
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

from ruleop.kubernetes.crd import default, prune
from ruleop.kubernetes.crd_checks import check_crd
from ruleop.kubernetes.merge import same
from ruleop.kubernetes.schema.shape import FieldPath
from ruleop.kubernetes.schema.validation import validate
from tests.cluster.server import CRDS, Client, RefusedError
from tests.definitions import crd, fields, version
from tests.kubernetes.schema.chance import Chance

pytestmark = pytest.mark.real_server(
    "it says what becomes of an object; the server in memory has the same functions as ruleop"
)

JSON = Any
OBJECTS = int(os.environ.get("RULEOP_SCHEMA_OBJECTS", "0"))


def definition(properties: JSON, name: str) -> dict[str, Any]:
    return crd("Random", "drawn.example.com", version("v1", fields(spec=fields(**properties))), plural=name)


def accepted(server: Client, schema: JSON) -> bool:
    try:
        server.post(f"{CRDS}?dryRun=All", definition({"p": schema}, "tries"))
    except RefusedError:
        return False
    return True


def field(path: FieldPath) -> str:
    """The path as the server writes it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def place(text: str) -> str:
    """Without what ends a list of messages."""
    text = text.rstrip(",")
    return text if text.count("[") == text.count("]") else text.removesuffix("]")


def agree(found: set[str], error: RefusedError) -> bool:
    """What a junction or a format of numbers refuses has no field for the server; its place is in the message. What
    else the server says of a junction is the best of several. In the place of a duplicate it writes the key of a map in
    brackets."""
    junctions = set(re.findall(r'"(spec[^"]*)" must (?:not )?validate', error.message))
    formats = {place(text) for text in re.findall(r"Checked value must be of type .*? in (spec\S*)", error.message)}
    causes = {re.sub(r"\[([^\]\d][^\]]*)\]", r".\1", cause) for cause in error.causes - {"<nil>"}}
    return junctions <= found if junctions else found == causes | formats


def written(value: JSON) -> JSON:
    """The value as the server writes it: a whole number without a point."""
    if isinstance(value, dict):
        return {name: written(member) for name, member in value.items()}
    if isinstance(value, list):
        return [written(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def test_random_objects_are_defaulted_offline_as_on_the_server(server: Client) -> None:
    chance = Chance(OBJECTS or 7)
    if OBJECTS:
        chance.example()
    candidates = [chance.schema(3) for _ in range(70)]
    taken = [schema for schema in candidates if accepted(server, schema)]
    assert len(taken) > 30
    refused_here = [schema for schema in taken if check_crd(definition({"p": schema}, "tries"))]
    assert refused_here == [], "and what the server takes, so do we"
    properties = {f"p{number}": schema for number, schema in enumerate(taken)}
    crd = definition(properties, "randoms")
    path = f"{server.define(crd)}?dryRun=All&fieldValidation=Ignore"
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    outcomes = {"stored": 0, "refused": 0}
    differences = []
    for number in range(OBJECTS or 1000):
        name = chance.choice(sorted(properties))
        spec = {name: chance.value(properties[name])}
        obj = {
            "apiVersion": "drawn.example.com/v1",
            "kind": "Random",
            "metadata": {"name": f"r{number}"},
            "spec": spec,
        }
        ours = default(prune(obj, schema), schema)
        found = {field(finding.path) for finding in validate(ours, schema)}
        try:
            stored = server.post(path, obj)
        except RefusedError as error:
            outcomes["refused"] += 1
            if not agree(found, error):
                differences.append(
                    (properties[name], spec, "refused", sorted(error.causes), "here", sorted(found), error.message)
                )
            continue
        outcomes["stored"] += 1
        if found or not same(stored["spec"], written(ours["spec"])):
            differences.append(
                (
                    properties[name],
                    spec,
                    "stored",
                    stored["spec"].get(name),
                    "here",
                    ours["spec"].get(name),
                    sorted(found),
                )
            )
    assert min(outcomes.values()) > 200, outcomes
    if differences:
        smallest = sorted(differences, key=lambda each: len(json.dumps(each)))[:5]
        pytest.fail(
            f"{len(differences)} differ, such as\n"
            + "\n".join(json.dumps(each, ensure_ascii=False) for each in smallest)
        )
