import json
import textwrap

import pytest
import ruamel.yaml
import yaml

from ruleop.language.templates import read_yaml


def test_children_are_printed_in_apply_order_under_their_id_and_template(project, ruleop):
    assert ruleop("render", "-f", "site.yaml").out == (
        "# config, from templates/config.yaml.j2\n"
        "apiVersion: v1\n"
        "kind: ConfigMap\n"
        "metadata:\n"
        "  name: blog-config\n"
        "  namespace: default\n"
        "data:\n"
        "  page: hello\n"
        "---\n"
        "# web, from templates/web.yaml.j2\n"
        "apiVersion: apps/v1\n"
        "kind: Deployment\n"
        "metadata:\n"
        "  name: blog\n"
        "  namespace: default\n"
        "spec:\n"
        "  replicas: 1\n"
        "  selector:\n"
        "    matchLabels:\n"
        "      app: web\n"
        "  template:\n"
        "    metadata:\n"
        "      labels:\n"
        "        app: web\n"
        "    spec:\n"
        "      containers:\n"
        "      - name: web\n"
        "        image: nginx\n"
    )


def test_a_successful_render_prints_nothing_on_stderr(project, ruleop):
    ran = ruleop("render", "-f", "site.yaml")
    assert (ran.status, ran.err) == (0, "")


def test_defaults_of_the_definition_are_filled_in_before_rendering(project, ruleop):
    project.edit("crds/sites.yaml", "default: 1", "default: 7")
    assert "replicas: 7" in ruleop("render", "-f", "site.yaml").out


def test_a_resource_can_be_read_from_stdin(project, ruleop):
    text = (project.root / "site.yaml").read_text()
    assert ruleop("render", "-f", "-", stdin=text).out == ruleop("render", "-f", "site.yaml").out


def test_the_output_is_yaml_with_the_same_values(project, ruleop):
    page = 'yes: "no" # \u00a0 {{ x }}\n\t- 0777\n'
    project.write(
        "site.yaml",
        f'apiVersion: example.com/v1\nkind: Site\nmetadata: {{name: blog}}\nspec: {{page: "{page.encode("unicode_escape").decode()}"}}\n'.replace(
            'yes: "no"', 'yes: \\"no\\"'
        ),
    )
    documents, mistakes = read_yaml(ruleop("render", "-f", "site.yaml").out, "out")
    assert not mistakes
    assert documents[0].data()["data"]["page"] == page


def test_a_waiting_child_is_rendered_as_a_comment_with_its_position(project, ruleop):
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ web.status.note }}")
    ran = ruleop("render", "-f", "site.yaml")
    assert ran.status == 0
    assert ran.out.endswith("---\n# config waits for web.status.note  templates/config.yaml.j2:4\n")


def test_a_value_of_an_existing_object_ends_the_wait_for_it(project, ruleop):
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ web.status.note }}")
    project.write("live.yaml", live("blog", status="{note: here}"))
    assert "page: here" in ruleop("render", "-f", "site.yaml", "--with", "live.yaml").out


def test_a_failed_child_is_reported_and_the_others_are_rendered(project, ruleop):
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ spec.page | required('x') | int / 0 }}")
    ran = ruleop("render", "-f", "site.yaml")
    assert ran.status == 1
    assert "kind: Deployment" in ran.out
    assert "kind: ConfigMap" not in ran.out
    assert ran.err.startswith("templates/config.yaml.j2:4")
    assert "error: config: " in ran.err
    assert "    4 │ data: {page:" in ran.err


def test_comments_name_the_resource_if_there_are_several(project, ruleop):
    project.write(
        "site.yaml",
        (project.root / "site.yaml").read_text()
        + "---\n"
        + (project.root / "site.yaml").read_text().replace("blog", "shop"),
    )
    out = ruleop("render", "-f", "site.yaml").out
    assert [line for line in out.splitlines() if line.startswith("#")] == [
        "# Site/default/blog: config, from templates/config.yaml.j2",
        "# Site/default/blog: web, from templates/web.yaml.j2",
        "# Site/default/shop: config, from templates/config.yaml.j2",
        "# Site/default/shop: web, from templates/web.yaml.j2",
    ]


def test_secrets_are_printed_and_random_values_are_new_in_each_run(project, ruleop):
    project.edit(
        "watches.yaml",
        "config: {template: config.yaml.j2}",
        "config: {template: config.yaml.j2, apply: {strategy: create-only}}",
    )
    project.write(
        "templates/config.yaml.j2",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: '{{ random_password(20) }}'}\n",
    )
    first, second = ruleop("render", "-f", "site.yaml"), ruleop("render", "-f", "site.yaml")
    assert (first.status, second.status) == (0, 0)
    assert first.out != second.out


def test_lists_of_kubectl_are_split_into_items(project, ruleop):
    site = "\n".join("    " + line for line in (project.root / "site.yaml").read_text().splitlines())
    project.write("list.yaml", f"apiVersion: v1\nkind: List\nitems:\n  -\n{site}\n")
    assert ruleop("render", "-f", "list.yaml").out == ruleop("render", "-f", "site.yaml").out


def live(name: str, status: str = "{}") -> str:
    """The Deployment as a cluster has it, with the CR as its owner."""
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  namespace: default\n"
        f"  labels: {{ruleop.dev/part-of: x}}\n"
        f"  ownerReferences:\n  - {{apiVersion: example.com/v1, kind: Site, name: {name}, uid: '1234', controller: true}}\n"
        f"spec: {{replicas: 1}}\nstatus: {status}\n"
    )


def test_control_characters_in_existing_objects_are_escaped(project, ruleop):
    project.edit("site.yaml", "page: hello", 'page: hello\n  "re\\e[2Jplicas": 2')
    ran = ruleop("render", "-f", "site.yaml")
    assert "\x1b" not in ran.err
    assert "spec['re\\x1b[2Jplicas']: is not in Site's schema" in ran.err


@pytest.mark.parametrize("page", ["wait...", "a\n\n", "a\n...\n", "\n", "line\n", "a\u2028b: 1\n", "\u2028"])
def test_the_output_ends_with_a_line_break(project, ruleop, page):
    project.edit("site.yaml", "page: hello", f"page: {json.dumps(page)}")
    project.edit("watches.yaml", "    web: {template: web.yaml.j2}\n", "")
    project.edit("watches.yaml", '  status:\n    replicas: "{{ web.status.replicas }}"\n', "")
    out = ruleop("render", "-f", "site.yaml").out
    for parse in (yaml.safe_load, ruamel.yaml.YAML(typ="safe", pure=True).load):
        assert parse(out)["data"] == {"page": page}


def test_line_breaks_in_comments_are_escaped(project, ruleop):
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ web.status['x\u2028evil: 1'] }}")
    out = ruleop("render", "-f", "site.yaml").out
    assert "waits for" in out
    documents = [document for document in yaml.safe_load_all(out) if document]
    assert [document["kind"] for document in documents] == ["Deployment"]


GENERATED = """
  generated:
    apply: {strategy: create-only}
    object: {apiVersion: v1, kind: Secret, metadata: {name: blog-key}, stringData: {key: "{{ random_password(20) }}"}}
  reader:
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: blog-reader}, data: {volume: "{{ generated.metadata.name }}"}}
"""


def test_a_child_that_reads_only_the_name_of_a_generated_secret_is_rendered(project, ruleop):
    project.edit("watches.yaml", "  children:\n", "  children:\n" + textwrap.indent(GENERATED.strip("\n"), "  ") + "\n")
    assert "  volume: blog-key\n" in ruleop("render", "-f", "site.yaml").out
    planned = ruleop("plan", "-f", "site.yaml").out
    assert "+ create ConfigMap/blog-reader" in planned
    assert "waiting" not in planned


def test_as_json_it_is_one_document_with_objects_in_apply_order(project, ruleop):
    ran = ruleop("render", "-f", "site.yaml", "-o", "json")
    document = json.loads(ran.out)
    (resource,) = document["resources"]
    assert (ran.status, document["refused"], document["unmatched"]) == (0, [], [])
    assert resource["resource"]["name"] == "blog"
    assert [(each["child"], each["template"], each["object"]["kind"]) for each in resource["objects"]] == [
        ("config", "templates/config.yaml.j2", "ConfigMap"),
        ("web", "templates/web.yaml.j2", "Deployment"),
    ]
    assert (resource["waits"], resource["problems"]) == ([], [])


def test_as_json_a_waiting_child_and_one_that_fails_are_listed_with_their_places(project, ruleop):
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ web.status.note }}")
    project.edit("templates/web.yaml.j2", "{{ spec.replicas }}", "{{ spec.replica }}")
    ran = ruleop("render", "-f", "site.yaml", "-o", "json")
    (resource,) = json.loads(ran.out)["resources"]
    assert (ran.status, resource["objects"]) == (1, [])
    assert [each["site"]["line"] for each in resource["problems"]] == [6]
    assert [each["child"] for each in resource["waits"]] == ["config"]


def test_as_json_a_resource_that_the_server_would_reject_is_listed(project, ruleop):
    project.edit("site.yaml", "page: hello", "page: 7")
    document = json.loads(ruleop("render", "-f", "site.yaml", "-o", "json").out)
    assert document["resources"] == []
    assert [(each["name"], each["findings"][0]["field"]) for each in document["refused"]] == [("blog", "spec.page")]


TIMED = """\
- group: example.com
  version: v1
  kind: Site
  children:
    config: {template: config.yaml.j2, when: "after(metadata.creationTimestamp, '2h')"}
    backup: {template: web.yaml.j2, schedule: 0 3 * * *}
  status: {}
"""


@pytest.mark.parametrize(
    ("time", "children"),
    [
        ("2026-01-01T01:00:00Z", []),
        ("2026-01-01T02:30:00Z", ["config"]),
        ("2026-01-01T03:10:00Z", ["config", "backup"]),
        ("2026-01-01T04:10:00+01:00", ["config", "backup"]),
        ("2026-01-01T05:00:00Z", ["config"]),
    ],
)
def test_rules_read_the_time_of_an_option(project, ruleop, time, children):
    project.write("watches.yaml", TIMED)
    project.edit("site.yaml", "name: blog", "name: blog\n  creationTimestamp: 2026-01-01T00:00:00Z")
    ran = ruleop("render", "-f", "site.yaml", "--at", time)
    assert [line.split(",")[0][2:] for line in ran.out.splitlines() if line.startswith("# ")] == children


@pytest.mark.parametrize("time", ["tomorrow", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00"])
def test_a_time_has_a_date_and_a_zone(project, ruleop, time):
    ran = ruleop("render", "-f", "site.yaml", "--at", time)
    assert ran.status == 2
    assert f'--at must be a time such as 2026-01-31T12:00:00Z, not "{time}"' in ran.err


def test_a_resource_without_a_time_of_its_creation_is_created_then(project, ruleop):
    project.write("watches.yaml", TIMED)
    ran = ruleop("render", "-f", "site.yaml", "--at", "2026-01-01T03:00:00Z")
    assert "# backup," in ran.out
    assert "# config," not in ran.out
