"""Reading CustomResourceDefinitions, and the errors for which the API server would reject them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from ruleop.kubernetes.builtin.table import object_meta
from ruleop.kubernetes.crd import CrdVersion, PrinterColumn, parse_crd
from ruleop.kubernetes.crd_checks import check_crd
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema.shape import shape_at
from ruleop.kubernetes.schema.validation import SchemaError
from tests.tables import cases

SCHEMA: dict[str, Any] = yaml.safe_load("""
type: object
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  spec:
    type: object
    required: [size]
    properties:
      size: {type: integer, minimum: 1, default: 3}
      port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
      ports:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [port, protocol]
        items:
          type: object
          required: [port]
          properties: {port: {type: integer}, protocol: {type: string, default: TCP}}
      tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      args: {type: array, items: {type: string}}
      selector: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
      template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
      values: {x-kubernetes-preserve-unknown-fields: true}
  status: {type: object, x-kubernetes-preserve-unknown-fields: true}
""")
CRD: dict[str, Any] = yaml.safe_load("""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: memcacheds.cache.example.com, annotations: {a: b}}
spec:
  group: cache.example.com
  scope: Namespaced
  names: {kind: Memcached, plural: memcacheds, shortNames: [mc], categories: [all]}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}}
      additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size, priority: 1}]
    - {name: v1alpha0, served: false, storage: false, deprecated: true}
""")
for _version in CRD["spec"]["versions"]:
    _version["schema"] = {"openAPIV3Schema": SCHEMA}


def changed(path: str, to: Any) -> dict[str, Any]:
    """The good CRD with one place changed; `...` takes the place away."""
    crd = copy.deepcopy(CRD)
    place: Any = crd
    parts = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parts[:-1]:
        place = place[part]
    if to == "...":
        del place[parts[-1]]
    else:
        place[parts[-1]] = to
    return crd


def with_schema(schema: dict[str, Any]) -> dict[str, Any]:
    crd = copy.deepcopy(CRD)
    del crd["spec"]["versions"][1]
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    return crd


ITEM = "{type: object, required: [name], properties: {name: {type: string}, n: {type: integer}}}"


def changes(text: str) -> list[Any]:
    """The good CRD with a place changed, which a line says, and its findings in the lines below."""
    found = []
    for case in cases(text):
        ((path, to),) = case.values[0].items()
        found.append(pytest.param(changed(path, to), case.values[1], id=case.id))
    return found


def found(crd: dict[str, Any]) -> list[str]:
    return [str(finding) for finding in check_crd(crd)]


ROOT = "spec.versions[0].schema.openAPIV3Schema"


def found_in_spec(spec: dict[str, Any]) -> list[str]:
    """What is found in a schema whose `spec` is this, with paths from there."""
    lines = found(with_schema({"type": "object", "properties": {"spec": spec}}))
    assert all(line.startswith(f"{ROOT}.properties.spec") for line in lines), lines
    return [line.removeprefix(f"{ROOT}.properties.spec").removeprefix(".") for line in lines]


def test_a_crd_has_the_names_and_versions_of_its_kind():
    crd = parse_crd(CRD)
    assert (crd.group, crd.kind, crd.plural, crd.name) == (
        "cache.example.com",
        "Memcached",
        "memcacheds",
        "memcacheds.cache.example.com",
    )
    assert (crd.singular, crd.list_kind) == ("memcached", "MemcachedList"), "as the server fills them in"
    assert (crd.short_names, crd.categories, crd.namespaced) == (("mc",), ("all",), True)
    version = crd.version("v1alpha1")
    assert version == CrdVersion(
        name="v1alpha1",
        served=True,
        storage=True,
        schema=SCHEMA,
        status_subresource=True,
        scale_subresource=False,
        printer_columns=(PrinterColumn("Size", "integer", ".spec.size", priority=1),),
    )
    old = crd.version("v1alpha0")
    assert old is not None
    assert (old.served, old.deprecated, old.status_subresource, old.printer_columns) == (False, True, False, ())
    assert crd.version("v2") is None


def test_names_given_in_a_crd_are_kept():
    names = {"kind": "Foo", "plural": "foos", "singular": "fu", "listKind": "FooCollection"}
    crd = parse_crd(changed("spec.names", names))
    assert (crd.singular, crd.list_kind, crd.short_names) == ("fu", "FooCollection", ())


def test_only_served_versions_are_resources():
    crd = parse_crd(CRD)
    resource = crd.resource("v1alpha1")
    assert resource is not None
    assert (resource.plural, resource.namespaced, resource.status_subresource) == ("memcacheds", True, True)
    assert resource.kind == Kind("cache.example.com", "v1alpha1", "Memcached")
    assert crd.resource("v1alpha0") is None
    assert crd.resource("v2") is None


def test_a_column_without_a_priority_is_always_shown():
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    crd = parse_crd(changed("spec.versions.0.additionalPrinterColumns", columns))
    assert crd.versions[0].printer_columns == (
        PrinterColumn("Size", "integer", ".spec.size", description="", format="", priority=0),
    )


def test_a_crd_has_its_scope_and_subresources():
    assert not parse_crd(changed("spec.scope", "Cluster")).namespaced
    version = parse_crd(changed("spec.versions.0.subresources", {"status": None, "scale": {}})).versions[0]
    assert (version.status_subresource, version.scale_subresource) == (False, True)


def test_a_crd_has_the_shape_of_its_objects():
    shape = parse_crd(CRD).shape("v1alpha1")
    assert shape is not None
    ports = shape_at(shape, ("spec", "ports"))
    assert ports is not None
    assert (ports.list_type, ports.keys, ports.key_defaults) == ("map", ("port", "protocol"), {"protocol": "TCP"})
    spec = shape.fields["spec"].fields
    assert (spec["tags"].list_type, spec["args"].list_type) == ("set", "atomic")
    assert spec["selector"].atomic
    assert (spec["port"].type, spec["port"].format) == ("scalar", "int-or-string")
    assert spec["values"].preserve_unknown
    assert shape.fields["status"].preserve_unknown
    assert shape.fields["metadata"] is object_meta(), "although the schema says only `type: object`"
    assert spec["template"].fields["metadata"] is object_meta()
    assert parse_crd(CRD).shape("v2") is None


def test_a_version_without_a_schema_has_the_shape_of_any_resource():
    shape = parse_crd(changed("spec.versions.0.schema", "...")).shape("v1alpha1")
    assert shape is not None
    assert set(shape.fields) == {"apiVersion", "kind", "metadata"}


@pytest.mark.parametrize(
    ("crd", "expected"),
    changes("""
apiVersion: apiextensions.k8s.io/v1beta1
>> apiVersion: must be apiextensions.k8s.io/v1, not 'apiextensions.k8s.io/v1beta1'; v1beta1 was removed in Kubernetes 1.22
spec: ...
>> spec: is required, and must be a mapping
spec.names: []
>> spec.names: is required, and must be a mapping
spec.group: ...
>> spec.group: is required, and must be a string
spec.names.kind: 1
>> spec.names.kind: is required, and must be a string
spec.names.plural: ''
>> spec.names.plural: is required, and must be a string
spec.names.shortNames: mc
>> spec.names.shortNames: must be a list of strings
spec.names.categories: [1]
>> spec.names.categories: must be a list of strings
spec.scope: Namespace
>> spec.scope: must be Namespaced or Cluster, not 'Namespace'
spec.versions: []
>> spec.versions: must be a list with at least one version
spec.versions: {}
>> spec.versions: must be a list with at least one version
spec.versions.1: v1
>> spec.versions[1]: must be a mapping
spec.versions.1.name: ...
>> spec.versions[1].name: is required, and must be a string
spec.versions.0.schema: [1]
>> spec.versions[0].schema.openAPIV3Schema: must be a mapping
spec.versions.0.schema.openAPIV3Schema: []
>> spec.versions[0].schema.openAPIV3Schema: must be a mapping
spec.versions.0.subresources: [status]
>> spec.versions[0].subresources: must be a mapping
spec.versions.0.additionalPrinterColumns: {a: 1}
>> spec.versions[0].additionalPrinterColumns: must be a list of mappings
spec.versions.0.additionalPrinterColumns: [a]
>> spec.versions[0].additionalPrinterColumns: must be a list of mappings
"""),
)
def test_a_document_that_is_not_a_crd_is_an_error_with_its_path(crd: dict[str, Any], expected: list[str]):
    with pytest.raises(SchemaError) as caught:
        parse_crd(crd)
    assert [str(caught.value)] == expected == [str(caught.value.finding)]


def test_an_empty_document_is_not_a_crd():
    with pytest.raises(SchemaError, match=r"^kind: must be CustomResourceDefinition, not None$"):
        parse_crd({})


def test_a_valid_crd_has_no_findings():
    assert found(CRD) == []


@pytest.mark.parametrize(
    ("crd", "expected"),
    changes("""
metadata.name: memcached.cache.example.com
>> metadata.name: must be memcacheds.cache.example.com, the plural and the group, not 'memcached.cache.example.com'
metadata: null
>> metadata.name: must be memcacheds.cache.example.com, the plural and the group, not None
spec.versions.0.storage: false
>> spec.versions: exactly one version must have storage: true, not 0
spec.versions.1.storage: true
>> spec.versions: exactly one version must have storage: true, not 2
spec.versions.1.name: v1alpha1
>> spec.versions[1].name: v1alpha1 is a duplicate
spec.versions.1.name: '1.0'
>> spec.versions[1].name: must be a version such as v1 or v1alpha1, not '1.0'
spec.preserveUnknownFields: true
>> spec.preserveUnknownFields: must be false; x-kubernetes-preserve-unknown-fields in the schema opens parts of it
spec.names.shortNames: [mc, M_C]
>> spec.names.shortNames[1]: must consist of letters, digits and dashes and start with a letter (upper case only in kinds)
spec.names.listKind: Memcached
>> spec.names.listKind: must differ from kind
spec.versions.0.schema: ...
>> spec.versions[0].schema.openAPIV3Schema: is required: without a schema the API server drops all fields
spec.versions.0.additionalPrinterColumns: [{type: int, jsonPath: spec.size}]
>> spec.versions[0].additionalPrinterColumns[0].name: is required
>> spec.versions[0].additionalPrinterColumns[0].type: must be one of boolean, date, integer, number, string (did you mean integer?)
>> spec.versions[0].additionalPrinterColumns[0].jsonPath: must be a path that starts with a dot, such as .spec.size
spec.versions.0.schema: {openAPIV3Shema: {type: object}}
>> spec.versions[0].schema.openAPIV3Shema: is an unknown field (did you mean openAPIV3Schema?)
>> spec.versions[0].schema.openAPIV3Schema: is required: without a schema the API server drops all fields
spec.versions.0.subresource: {}
>> spec.versions[0].subresource: is an unknown field (did you mean subresources?)
"""),
)
def test_errors_in_a_crd_are_found(crd: dict[str, Any], expected: list[str]):
    assert found(crd) == expected


def test_a_group_without_a_dot_is_found():
    crd = changed("spec.group", "cache")
    crd["metadata"]["name"] = "memcacheds.cache"
    assert found(crd) == ["spec.group: must be a domain name with a dot, in lower case, not 'cache'"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    cases("""
{properties: {spec: {type: string}}}
>> type: must be object at the root
{type: object, nullable: true}
>> nullable: must not be used at the root
{type: object, additionalProperties: {type: string}}
>> additionalProperties: must not be used at the root
{type: object, properties: {metadata: {type: object, required: [name], properties: {labels: {type: object}}}}}
>> properties.metadata: may restrict only name and generateName, not labels, required
{type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 9}}}}}
{type: object, required: [metadata, spec], properties: {spec: {type: object}}}
{type: object, requred: []}
>> requred: is not a keyword of a CRD's schema (did you mean required?)
{type: object, required: [spec]}
>> required[0]: spec is not a property, so no object can be valid
{type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}, list: {type: string}}, not: {properties: {spec: {properties: {size: {minimum: 1}, sice: {minimum: 1}}}, list: {items: {minLength: 1}}}}}
>> not.properties.spec.properties.sice: must also be declared outside of not in a structural schema (did you mean size?)
>> not.properties.list.items: must also be declared outside of not in a structural schema
"""),
)
def test_errors_at_the_root_of_a_schema_are_found(schema: dict[str, Any], expected: list[str]):
    assert found(with_schema(schema)) == [f"{ROOT}.{line}" for line in expected]


@pytest.mark.parametrize(
    ("spec", "expected"),
    cases("""
{properties: {a: {type: string}}}
>> type: is required in a structural schema
{type: object, properties: {a: {}}}
>> properties.a.type: is required in a structural schema
{type: object, properties: {a: {x-kubernetes-preserve-unknown-fields: true}}}
{type: object, properties: {a: {x-kubernetes-int-or-string: true}}}
{type: array}
>> items: is required: the schema of the list's items
{type: array, items: {}}
>> items.type: is required in a structural schema
{type: array, items: [{type: string}]}
>> items: must be one schema, not a list of them
{type: object, additionalProperties: {}}
>> additionalProperties.type: is required in a structural schema
{type: object, additionalProperties: true}
{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}
>> additionalProperties: cannot be combined with properties
{type: objekt}
>> type: must be one of array, boolean, integer, number, object, string, not 'objekt' (did you mean object?)
{type: 'null'}
>> type: must not be null; nullable: true beside the type allows it
{type: object, $ref: '#/x'}
>> $ref: is not supported in a CRD
{type: object, patternProperties: {}}
{type: object, patternProperties: {a: {}}}
>> patternProperties: is not supported in a CRD
{type: object, requred: [a]}
>> requred: is not a keyword of a CRD's schema (did you mean required?)
{type: string, pattern: '(?=a)'}
>> pattern: is not a valid regular expression (RE2): invalid perl operator: (?=
{type: string, pattern: ^a$}
{type: array, items: {type: string}, uniqueItems: true}
>> uniqueItems: must not be true; use x-kubernetes-list-type: set
{type: object, x-kubernetes-preserve-unknown-fields: false}
>> x-kubernetes-preserve-unknown-fields: must be true or left out
{type: object, required: [size, sice], properties: {size: {type: integer}}}
>> required[1]: sice is not a property, so no object can be valid (did you mean size?)
{type: object, required: [kind]}
>> required[0]: kind is not a property, so no object can be valid
{type: object, required: [any], additionalProperties: {type: string}}
{type: object, required: [any], x-kubernetes-preserve-unknown-fields: true}
{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
{type: object, x-kubernetes-embedded-resource: true}
>> properties: is required with x-kubernetes-embedded-resource, unless x-kubernetes-preserve-unknown-fields is true
{x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
>> type: is required in a structural schema
"""),
)
def test_errors_in_the_type_of_a_value_are_found(spec: dict[str, Any], expected: list[str]):
    assert found_in_spec(spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    cases(
        """
{type: array, items: ITEM, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name]}
{type: array, items: ITEM, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [nane]}
>> x-kubernetes-list-map-keys[0]: nane is not a property of the items (did you mean name?)
{type: array, items: ITEM, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name, name]}
>> x-kubernetes-list-map-keys[1]: name is a duplicate
{type: array, items: ITEM, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: []}
>> x-kubernetes-list-map-keys: is required with x-kubernetes-list-type: map
{type: array, items: ITEM, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n]}
>> items.properties.n: must be required or have a default, because it is a key of the list
{type: array, items: {type: string}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name]}
>> items.type: must be object in a list of type map
{type: array, items: {<<: ITEM, nullable: true}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name]}
>> items.nullable: must not be used in a list of type map
{type: array, items: {type: object, properties: {k: {type: object, default: {}, nullable: true}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k]}
>> items.properties.k.type: must be a scalar, because it is a key of the list
>> items.properties.k.nullable: must not be used for a key of the list
{type: array, items: ITEM, x-kubernetes-list-map-keys: [name]}
>> x-kubernetes-list-map-keys: needs x-kubernetes-list-type: map
{type: array, items: {type: string}, x-kubernetes-list-type: Set}
>> x-kubernetes-list-type: must be atomic, set or map, not 'Set'
{type: object, x-kubernetes-list-type: set}
>> x-kubernetes-list-type: needs type: array
{type: array, items: ITEM, x-kubernetes-list-type: set}
>> items: must be scalar or atomic in a list of type set
{type: array, items: {<<: ITEM, x-kubernetes-map-type: atomic}, x-kubernetes-list-type: set}
{type: array, x-kubernetes-list-type: set, items: {type: array, x-kubernetes-list-type: set, items: {type: string}}}
>> items: must be scalar or atomic in a list of type set
{type: array, x-kubernetes-list-type: set, items: {type: array, items: {type: string}}}
{type: object, x-kubernetes-map-type: set}
>> x-kubernetes-map-type: must be atomic or granular, not 'set'
{type: string, x-kubernetes-map-type: atomic}
>> x-kubernetes-map-type: needs type: object
""",
        ITEM=ITEM,
    ),
)
def test_errors_in_list_types_and_map_types_are_found(spec: dict[str, Any], expected: list[str]):
    assert found_in_spec(spec) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    cases("""
{type: integer, default: '3'}
>> default: does not match its own schema: must be an integer, not "3"
{type: integer, default: 0, minimum: 1}
>> default: does not match its own schema: must be at least 1, not 0
{type: object, default: {a: 1}}
>> default: has fields that the schema does not declare
{type: object, default: {}, required: [a], properties: {a: {type: string}}}
>> default.a: does not match its own schema: is required
{type: object, default: {}, required: [a], properties: {a: {type: string, default: x}}}
>> default.a: does not match its own schema: is required
{type: boolean, default: false}
{type: string, default: null}
"""),
)
def test_a_default_that_violates_its_own_schema_is_found(schema: dict[str, Any], expected: list[str]):
    assert found_in_spec(schema) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    cases("""
{type: object, properties: {a: {type: string}}, oneOf: [{required: [a]}, {properties: {a: {minLength: 1}}}]}
{type: object, properties: {a: {type: string}}, oneOf: [{properties: {a: {type: string}}}]}
>> oneOf[0].properties.a.type: is not allowed inside oneOf in a structural schema
{type: object, properties: {size: {type: string}}, allOf: [{properties: {sizes: {minLength: 1}}}]}
{type: object, additionalProperties: {type: string}, not: {properties: {a: {minLength: 1}}}}
{type: object, not: {default: {}, nullable: true, description: x}}
>> not.default: is not allowed inside not in a structural schema
>> not.description: is not allowed inside not in a structural schema
>> not.nullable: is not allowed inside not in a structural schema
{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {pattern: a}]}
{type: string, anyOf: [{type: integer}, {type: string}]}
{x-kubernetes-int-or-string: true, anyOf: [{type: string}, {type: integer}]}
>> anyOf[0].type: is not allowed inside anyOf in a structural schema
>> anyOf[1].type: is not allowed inside anyOf in a structural schema
{type: array, items: {type: object, properties: {a: {type: string}}}, not: {items: {properties: {b: {}}}}}
{type: object, anyOf: [{additionalProperties: {type: string}}]}
>> anyOf[0].additionalProperties: is not allowed inside anyOf in a structural schema
{type: object, anyOf: [{not: {$ref: '#/x', type: object}}]}
>> anyOf[0].not.$ref: is not supported in a CRD
>> anyOf[0].not.type: is not allowed inside not in a structural schema
"""),
)
def test_type_constraints_inside_all_of_any_of_and_not_are_found(spec: dict[str, Any], expected: list[str]):
    assert found_in_spec(spec) == expected


def test_several_errors_are_found_at_once():
    crd = changed(
        "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.size",
        {"type": "int"},
    )
    crd["metadata"]["name"] = "x"
    assert len(found(crd)) == 3, "the second version has the same schema as before"
