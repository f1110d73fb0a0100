"""`schema` of a watch: the mistakes that loading reports, with their places, and the definitions that it makes."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ruleop.language.rules import Findings
from ruleop.language.rules.checking import build_with_sources
from ruleop.language.rules.keys.definitions import read_definition
from tests.language.rules.projects import Row, load, rows, said, table, watch

ROWS = (
    *rows("""
== a field with a mistake in the short form
schema:
  spec:
    image: string | requird=true
    size: "integer | maximum=a"
    names: ["string"]
    nothing:
>> watches.yaml:6:23: unknown marker "requird" (did you mean required?)
>> watches.yaml:7:32: maximum must be a whole number, not "a"
>> watches.yaml:8:14: the field "names" must be a type such as "string", a mapping of fields, or JSON Schema, not a list
>> watches.yaml:9:15: the field "nothing" must be a type such as "string", a mapping of fields, or JSON Schema, not empty

== unknown keys and missing ones
schema:
  status: {url: string}
  shortnames: [a]
>> watches.yaml:5:5: schema needs the key "spec"
>> watches.yaml:6:5: unknown key "shortnames" in schema (did you mean "shortNames"?)

== types of the project
schema:
  spec: {port: Prot, env: "[]Env"}
  types:
    Port: {number: integer}
    Env: {inner: "[]Env"}
    string: integer
>> watches.yaml:5:18: unknown type "Prot" (did you mean Port?)
>> watches.yaml:8:12: the type "Env" contains itself, which a CRD cannot declare: use "object" for the inner one
>> watches.yaml:9:15: a type cannot be named "string": it is a basic type

== paths of columns and scale
schema:
  spec: {size: integer, name: string}
  status: {ready: integer}
  columns:
    - {name: Size, jsonPath: .spec.sise}
    - {name: Ready, jsonPath: .status.ready}
  scale: {replicas: .spec.name, status: .spec.size}
>> watches.yaml:8:32: the schema has no field "spec.sise" (did you mean "size"?)
>> watches.yaml:10:23: spec.name must be of type integer, and is of type string
>> watches.yaml:10:43: the path must start with ".status.", not ".spec.size"

== what ruleop and the API server declare
schema:
  spec: {a: string}
  status: {conditions: "[]string"}
  metadata: {name: integer, labels: "map[string]string"}
>> watches.yaml:6:14: ruleop declares status.conditions itself: remove it
>> watches.yaml:7:16: metadata.name is text: write `name: string | maxLength=40`
>> watches.yaml:7:31: metadata can restrict "name", which is text, and not "labels"

== a built-in kind
-- watches.yaml
- version: v1
  kind: ConfigMap
  schema: {spec: {a: string}}
>> watches.yaml:3:3: ConfigMap is a built-in kind, whose fields the API server declares: remove "schema"

== a kind without a group
-- watches.yaml
- version: v1
  kind: App
  schema: {spec: {a: string}}
>> watches.yaml:2:9: crds/ has no CustomResourceDefinition of App (did you mean "App.example.com"?)
>> watches.yaml:3:3: a kind with a schema needs a group, such as example.com: the core group has built-in kinds only

== versions that would lose fields
schema:
  spec: {size: integer, name: string}
  versions:
    v1: {spec: {a: string}}
    v1alpha1: {spec: {size: string, name: string, old: string}}
    v1alpha2: {spec: {size: integer}, served: false, deprecated: true}
>> watches.yaml:7:7: v1 is the version of the watch: its fields are those of `schema` itself
>> watches.yaml:8:25: the field "size" is not the same in v1, which is stored: objects would lose it
>> watches.yaml:8:53: the field "old" is not the same in v1, which is stored: objects would lose it

== a mistake in a field of one version: what the field is, nobody knows
schema:
  spec: {size: integer}
  versions:
    v1alpha1: {spec: {size: integer | mini=3}}
>> watches.yaml:7:41: unknown marker "mini"

== a mapping that may be fields or JSON Schema
schema:
  spec:
    a: {type: string}
    b: {type: string, title: string}
>> watches.yaml:6:10: the field "a" may be JSON Schema, or a mapping with a field "type": write "string", or `type: string | required=false` for such a field
>> watches.yaml:7:10: the field "b" may be JSON Schema, or a mapping with a field "type": write "string", or `type: string | required=false` for such a field

== immutable items of a list
schema:
  spec:
    a: "[]Item"
    b: "map[string]Item"
    c: {type: array, items: {type: string, x-kubernetes-validations: [{rule: "self == oldSelf"}]}}
  types: {Item: {name: string | immutable=true}}
>> watches.yaml:6:7: the API server cannot compare an item of a list with its old value: use `map[string]` instead
>> watches.yaml:8:46: the API server cannot compare an item of a list with its old value: use `map[string]` instead
"""),
    Row(
        "several watches with a schema",
        watch("name: a\nselector: {a: b}\nschema: {spec: {a: string}}") + watch("name: b\nschema: {spec: {a: string}}"),
        ["watches.yaml:11:11: another watch of App.example.com has a schema (watches.yaml:6:11): keep one"],
    ),
)


@table(*ROWS)
def test_mistakes_in_a_schema_are_reported_with_their_places(row: Row) -> None:
    assert said(row.watches) == row.said


# -- the definition ----------------------------------------------------------------------------------------------------


def document_of(body: str):
    """The CRD of a schema, with all of the status open."""
    loaded = build_with_sources({"watches.yaml": watch(body)}, root="/project", environ={})
    definition = read_definition(loaded.watches[0].draft, Findings({}))
    assert definition is not None
    return definition.document


def spec_of(body: str):
    return document_of(body)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def test_a_schema_takes_the_place_of_a_file_in_crds():
    (crd,) = load(watch("schema: {spec: {size: integer}, shortNames: [ap], scope: Cluster}")).crds
    assert (crd.name, crd.short_names, crd.namespaced) == ("apps.example.com", ("ap",), False)


def test_the_names_are_made_of_the_kind_unless_they_are_given():
    names = document_of("schema: {spec: {a: string}}")["spec"]["names"]
    assert names == {"kind": "App", "listKind": "AppList", "plural": "apps", "singular": "app"}
    given = document_of("schema: {spec: {a: string}, plural: applis, singular: appli}")
    assert given["metadata"]["name"] == "applis.example.com"
    assert given["spec"]["names"] == {
        "kind": "App",
        "listKind": "AppList",
        "plural": "applis",
        "singular": "appli",
    }


def test_ready_and_age_are_columns_by_themselves():
    version = document_of("schema: {spec: {size: integer}, columns: [{name: Size, jsonPath: .spec.size}]}")["spec"][
        "versions"
    ][0]
    assert [(each["name"], each["type"]) for each in version["additionalPrinterColumns"]] == [
        ("Size", "integer"),
        ("Ready", "string"),
        ("Age", "date"),
    ]


def test_a_nested_mapping_has_a_default_where_that_is_valid():
    spec = spec_of("""
schema:
  spec:
    a: {x: integer | default=1, deeper: {w: string | default=b}}
    b: {x: integer | default=1, z: string | required=true}
    c: {x: integer}
    d: Struct
    e: Struct | required=true
    f: "[]Struct"
  types: {Struct: {x: integer | default=1}}
""")
    assert {name for name, each in spec["properties"].items() if each.get("default") == {}} == {"a", "d"}
    assert spec["properties"]["a"]["properties"]["deeper"]["default"] == {}
    assert spec["required"] == ["e"]
    assert "default" not in spec


def test_a_spec_with_rules_is_required_and_has_no_default():
    document = document_of("""
schema:
  spec: {x: integer | default=1}
  validation: [{rule: self.x > 0, message: x is positive}]
""")
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["required"] == ["spec"]
    spec = schema["properties"]["spec"]
    assert spec["x-kubernetes-validations"] == [{"rule": "self.x > 0", "message": "x is positive"}]
    assert "default" not in spec


def test_json_schema_is_taken_as_it_is_and_may_be_required():
    spec = spec_of("""
schema:
  spec:
    port: {x-kubernetes-int-or-string: true, required: true}
    probe: {type: object, required: [path], properties: {path: {type: string}, port: {$ref: Port}}}
  types: {Port: integer | minimum=1}
""")
    assert spec["required"] == ["port"]
    assert spec["properties"]["port"] == {"x-kubernetes-int-or-string": True}
    assert spec["properties"]["probe"]["required"] == ["path"]
    assert spec["properties"]["probe"]["properties"]["port"] == {"type": "integer", "minimum": 1}


def test_a_field_that_a_served_version_lacks_is_a_mistake_and_one_that_is_not_served_may_lack_it():
    text = """
schema:
  spec: {size: integer, page: {title: string, tags: "[]string"}}
  versions:
    v1beta1: {spec: {size: integer, page: {title: string}}}
    v1alpha1: {spec: {size: integer}, served: false}
"""
    message = 'the field "tags" is missing in v1beta1: objects would lose it at a write in that version'
    assert said(watch(text)) == [f"watches.yaml:5:49: {message}"]


def test_another_version_may_be_the_stored_one():
    versions = document_of("""
schema:
  spec: {size: integer}
  versions: {v1beta1: {spec: {size: integer}, stored: true, deprecated: true}}
""")["spec"]["versions"]
    assert [(each["name"], each["served"], each["storage"], each.get("deprecated")) for each in versions] == [
        ("v1", True, False, None),
        ("v1beta1", True, True, True),
    ]


NAMES = st.sampled_from(["a", "b", "type", "items", "spec", "properties", "on-off", "é"])
BASIC = ["string", "integer | default=1", "number | minimum=0.5", "object", "boolean | default=true", "[]string"]
OTHERS = ["map[string]T", "T | required=true", "x", "", "string | immutable=true", "[]T", "string |", "v1.EnvVar"]
TEXTS = st.sampled_from([*BASIC, *OTHERS])
FIELDS = st.recursive(
    TEXTS | st.just({"$ref": "T"}) | st.just({"type": "string"}) | st.none() | st.just(["string"]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(NAMES, FIELDS, max_size=4), st.dictionaries(st.sampled_from("TU"), FIELDS, max_size=2))
@example({"a": {"type": "object", "properties": ["string"], "allOf": 3}}, {})
def test_any_fields_make_a_definition_or_mistakes(spec, types):
    text = json.dumps(
        [{"group": "example.com", "version": "v1", "kind": "App", "schema": {"spec": spec, "types": types}}]
    )
    found = said(text)
    assert all(each.startswith("watches.yaml:1:") for each in found if "warning" not in each)


@pytest.mark.parametrize("key", ["spec", "status", "types", "columns", "scale", "versions", "validation"])
@pytest.mark.parametrize("value", ["1", "text", "[1]", "{a: 1}", "null"])
def test_a_key_with_a_value_of_another_type_is_a_mistake_or_works(key, value):
    other = "" if key == "spec" else ", spec: {a: string}"
    assert all("internal" not in each for each in said(watch(f"schema: {{{key}: {value}{other}}}")))
