"""`ruleop generate crd --live`: the CRDs of a project, compared with those of a cluster."""

from ruleop.localcluster import Effect, Fault
from tests.authoring.live.harness import Live

SCHEMA = """\
- group: example.com
  version: v1
  kind: Page
  schema: {spec: {size: integer | maximum=5, text: string}}
  children: {}
"""


def defined(live: Live, watches: str) -> None:
    """The project's CRD is in the cluster."""
    live.write("watches.yaml", watches)
    status, out, err = live.run("generate", "crd")
    assert (status, err) == (0, "")
    live.apply(out)


def compare(live: Live, watches: str) -> tuple[int, str, str]:
    live.write("watches.yaml", watches)
    return live.run("generate", "crd", "--live")


def test_the_definition_of_the_cluster_is_compared(sites: Live) -> None:
    defined(sites, SCHEMA)
    assert compare(sites, SCHEMA) == (0, "pages.example.com: no breaking change\n", "")
    status, out, _ = compare(sites, SCHEMA.replace("=5, text", "=4, word"))
    assert status == 1
    assert out == (
        "pages.example.com: 2 breaking changes\n  v1 spec.size: maximum lowered from 5 to 4\n  v1 spec.text: removed\n"
    )
    assert [request.method for request in sites.requests] == ["GET"] * len(sites.requests)


def test_a_version_in_which_objects_may_be_stored_is_not_removed(sites: Live) -> None:
    defined(sites, SCHEMA)
    status, out, _ = compare(sites, SCHEMA.replace("v1", "v2"))
    assert status == 1
    assert out == (
        "pages.example.com: 1 breaking change\n"
        "  v1: removed, and objects may be stored in it: the API server refuses that (status.storedVersions)\n"
    )


def test_a_definition_with_another_plural_is_found_by_its_kind(sites: Live) -> None:
    defined(sites, SCHEMA)
    _, out, _ = compare(sites, SCHEMA.replace("schema: {", "schema: {plural: leaves, "))
    assert out.splitlines()[1] == "  plural changed from pages to leaves"


def test_a_definition_that_the_cluster_does_not_have_is_new(sites: Live) -> None:
    assert compare(sites, SCHEMA) == (0, "pages.example.com: new\n", "")


def test_a_definition_in_a_file_of_the_project_is_compared_too(sites: Live) -> None:
    assert sites.run("generate", "crd", "--live") == (0, "sites.example.com: no breaking change\n", "")


def test_a_definition_that_cannot_be_read_is_an_error_and_not_a_breaking_change(sites: Live) -> None:
    sites.cluster.faults.add(Fault(Effect.ERROR, resources=("customresourcedefinitions",), status=403))
    status, out, err = compare(sites, SCHEMA)
    assert (status, out) == (2, "")
    assert "customresourcedefinitions" in err
