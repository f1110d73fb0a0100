"""A kind is found by the names that kubectl accepts, and a name of several kinds has to be qualified."""

import pytest

from ruleop.authoring.live.open_cluster import UnknownKindError, find_kind
from ruleop.kubernetes.kinds import GroupKind
from ruleop.operator.wire.client.discovery import Catalogue, read_catalogue


def catalogue(*kinds):
    """Each as (group, kind, short name)."""
    documents = []
    for group, kind, short in kinds:
        resource = {
            "resource": f"{kind.lower()}s",
            "singularResource": kind.lower(),
            "shortNames": [short] if short else [],
            "responseKind": {"group": group, "version": "v1", "kind": kind},
            "scope": "Namespaced",
            "verbs": ["get", "list"],
        }
        versions = [{"version": "v1", "resources": [resource], "freshness": "Current"}]
        documents.append({"items": [{"metadata": {"name": group}, "versions": versions}]})
    return read_catalogue(documents, Catalogue())


KINDS = catalogue(("", "Service", "svc"), ("x.io", "Service", ""), ("x.io", "App", "a"), ("y.io", "App", ""))


def found(text, *preferred):
    return find_kind(KINDS, text, [GroupKind(*each) for each in preferred]).info.title


@pytest.mark.parametrize("text", ["App.x.io", "app.x.io", "apps.x.io", "APPS.x.io", "apps.v1.x.io", "a"])
def test_a_kind_has_several_names(text):
    assert found(text) == "apps.x.io"


def test_the_core_group_is_meant_without_a_group():
    assert found("services") == "services"
    assert found("svc") == "services"
    assert found("services.x.io") == "services.x.io"


def test_a_kind_of_the_rules_is_preferred():
    assert found("App", ("y.io", "App")) == "apps.y.io"
    assert found("Service", ("x.io", "Service")) == "services.x.io"


def test_an_ambiguous_name_has_to_be_qualified():
    with pytest.raises(UnknownKindError, match=r"^App is ambiguous: name apps.x.io or apps.y.io$"):
        found("App")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Servise", r"the cluster serves no kind 'Servise' \(did you mean [sS]ervice\?\)"),
        ("apps.z.io", "the cluster serves no kind 'apps.z.io'"),
        ("", "the cluster serves no kind ''"),
    ],
)
def test_an_unknown_name_is_an_error(text, message):
    with pytest.raises(UnknownKindError, match=message):
        found(text)
