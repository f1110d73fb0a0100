"""Random values of `schema:` that load, as a hypothesis strategy, and the projects of them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from ruleop.authoring.checking.inferred_definitions import whole_definitions
from ruleop.language.rules import Findings
from ruleop.language.rules.checking import build_with_sources
from ruleop.language.rules.keys.definitions import Definition
from ruleop.language.rules.loading import Loaded

GROUP = "random.example.com"
API_TYPES = (
    "v1.EnvVar",
    "v1.ResourceRequirements",
    "v1.Toleration",
    "v1.LabelSelector",
    "v1.PodSpec",
    "v1.LocalObjectReference",
    "v1.Condition",
    "apps.v1.DeploymentStrategy",
    "resource.Quantity",
    "intstr.IntOrString",
    "meta.v1.Time",
)
FIELDS = ("a", "b", "c", "type", "items")
STRUCTS = ("Inner", "Outer")


@st.composite
def _string(draw: st.DrawFn, markers: tuple[str, ...]) -> str:
    shape = draw(st.sampled_from(["", 'enum="a,b,c"', "minLength=1 maxLength=3", 'pattern="^[a-z]+$"']))
    default = draw(st.sampled_from(["", "default=a", 'default="b"']))
    more = draw(st.sampled_from(["", *markers]))
    return f"string | {shape} {default} {more}"


@st.composite
def _number(draw: st.DrawFn) -> str:
    of_type = draw(st.sampled_from(["integer", "number"]))
    shape = draw(st.sampled_from(["", "minimum=0", "minimum=-1 maximum=100", 'enum="1,2,7"']))
    return f"{of_type} | {shape} {draw(st.sampled_from(['', 'default=1', 'default=7']))}"


@st.composite
def _collection(draw: st.DrawFn, structs: tuple[str, ...]) -> str:
    prefix = draw(st.sampled_from(["[]", "map[string]", "[][]", "map[string][]"]))
    item = draw(st.sampled_from(["string", "integer", "object", "boolean", *structs, *API_TYPES]))
    empty = "[]" if prefix.startswith("[]") else "{}"
    limits = draw(st.sampled_from(["", "minItems=0 maxItems=3"])) if empty == "[]" else ""
    unique = "uniqueItems=true" if prefix == "[]" and item in ("string", "integer") and draw(st.booleans()) else ""
    return f"{prefix}{item} | {limits} {unique} {draw(st.sampled_from(['', f'default={empty}']))}"


JSON_SCHEMAS: Any = st.sampled_from(
    [
        {"x-kubernetes-int-or-string": True},
        {"type": "array", "items": {"$ref": "v1.ContainerPort"}, "required": True},
        {"type": "object", "required": ["p"], "properties": {"p": {"type": "string", "nullable": True}}},
        {"$ref": "v1.Affinity"},
    ]
)
DESCRIPTION = 'description="a: b"'


def _mappings(structs: tuple[str, ...], markers: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """Fields of these structs among others; markers are of strings."""
    plain = ["boolean | default=true", "boolean", "object", *structs[:1], *API_TYPES]
    texts = st.one_of(_string(markers), _number(), _collection(structs), st.sampled_from(plain)).flatmap(
        lambda text: st.sampled_from([text, text, f"{text}{'' if '|' in text else ' |'} required=true"])
    )
    return st.recursive(
        texts | JSON_SCHEMAS,
        lambda inner: st.dictionaries(st.sampled_from(("a", "b", "c")), inner, min_size=1, max_size=3),
        max_leaves=5,
    )


# Values are never drawn and thrown away: how many would be is chance.
IN_SPEC = _mappings(STRUCTS, ("immutable=true", DESCRIPTION))
IN_INNER = _mappings((), (DESCRIPTION,))
IN_OUTER = _mappings(("Inner",), (DESCRIPTION,))


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """A schema whose structs are used in lists, so their fields are never immutable."""
    inner = draw(st.dictionaries(st.sampled_from(FIELDS), IN_INNER))
    outer = draw(st.dictionaries(st.sampled_from(FIELDS), IN_OUTER))
    types = {"Inner": {"i": "integer", **inner}, "Outer": {"o": "string", **outer}}
    return {"spec": draw(st.dictionaries(st.sampled_from(FIELDS), IN_SPEC, max_size=4)), "types": types}


def loaded(schema: dict[str, Any], **keys: Any) -> Loaded:
    watch = {"group": GROUP, "version": "v1", "kind": "Random", "schema": schema} | keys
    return build_with_sources({"watches.yaml": json.dumps([watch])}, root="/project", environ={})


def definition_of(schema: dict[str, Any], **keys: Any) -> tuple[Definition, list[str]]:
    """The whole definition, and what is wrong with it."""
    findings = Findings({})
    (definition,) = whole_definitions(loaded(schema, **keys), findings)
    return definition, [str(each) for each in findings.sorted()]
