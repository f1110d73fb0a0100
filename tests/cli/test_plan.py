import json
import re

import jsonpatch
import pytest
import yaml


def made(ruleop, *, edit=lambda obj: None) -> str:
    """What `plan` creates, as a cluster would have it, each after `edit`."""
    document = json.loads(ruleop("plan", "-f", "site.yaml", "-o", "json").out)
    objects = [action["object"] for action in document["plans"][0]["actions"]]
    for obj in objects:
        edit(obj)
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def scaled(obj) -> None:
    if obj["kind"] == "Deployment":
        obj["spec"]["replicas"] = 5


def test_a_plan_for_an_empty_cluster_creates_all_children(project, ruleop):
    ran = ruleop("plan", "-f", "site.yaml")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "Site default/blog  by the rule Site.example.com\n"
        "├─ config  not ready  ConfigMap/blog-config: about to be created\n"
        "└─ web     not ready  Deployment/blog: about to be created\n"
        "\n"
        "+ create ConfigMap/blog-config\n"
        "+ create Deployment/blog\n"
        "\n"
        "status\n"
        "    Ready        False  Progressing  ConfigMap/blog-config is not ready; Deployment/blog is not ready\n"
        "    Reconciling  True   Progressing\n"
        "    Stalled      False  Progressing\n"
        "\n"
        "2 to create.\n"
    )


def test_drift_is_reverted_in_one_patch(project, ruleop):
    project.write("live.json", made(ruleop, edit=scaled))
    out = ruleop("plan", "-f", "site.yaml", "--with", "live.json").out
    assert "~ patch Deployment/blog\n      spec.replicas: 5 -> 1\n\n" in out
    assert out.endswith("\n1 to change.\n")


def test_a_change_of_an_immutable_field_is_an_error(project, ruleop):
    def older(obj) -> None:
        if obj["kind"] == "Deployment":
            obj["spec"]["selector"]["matchLabels"] = {"app": "old"}

    project.write("live.json", made(ruleop, edit=older))
    ran = ruleop("plan", "-f", "site.yaml", "--with", "live.json")
    assert ran.status == 1
    assert "the API server would reject this change: spec.selector is immutable; rejected change: spec.sel" in words(
        ran.out
    )
    assert "~ patch Deployment" not in ran.out


def test_a_plan_without_changes_prints_nothing_to_do(project, ruleop):
    project.edit("watches.yaml", "  status:\n", "  manageStatus: false\n  status:\n")
    project.write("live.json", made(ruleop))
    out = ruleop("plan", "-f", "site.yaml", "--with", "live.json").out
    assert out.endswith("\nNothing to do.\n")
    assert "status" not in out


def test_a_name_conflict_is_reported(project, ruleop):
    project.write("live.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: blog-config}\n")
    ran = ruleop("plan", "-f", "site.yaml", "--with", "live.yaml")
    assert ran.status == 1
    assert "├─ config  name conflict  ConfigMap/blog-config\n" in ran.out
    assert (
        "! config: ConfigMap blog-config in namespace default already exists and is not managed by Site (it has no owner): "
        in words(ran.out)
    )
    assert ran.out.endswith("\n1 to create, 1 error.\n")


def test_a_child_no_longer_in_the_rules_is_deleted(project, ruleop):
    project.write("live.json", made(ruleop))
    project.edit("watches.yaml", "    config: {template: config.yaml.j2}\n", "")
    out = ruleop("plan", "-f", "site.yaml", "--with", "live.json").out
    assert "- delete ConfigMap/blog-config  no longer part of the desired state\n" in out
    assert out.endswith("\n1 to delete.\n")


def test_a_wait_is_reported_with_its_value_and_position(project, ruleop):
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ web.status.note }}")
    ran = ruleop("plan", "-f", "site.yaml")
    assert ran.status == 0
    assert "config  waiting    ConfigMap: waits for web.status.note\n" in ran.out
    assert (
        '  config waits for web.status.note\n      templates/config.yaml.j2:4  data: {page: "{{ web.status.note }}"'
        in ran.out
    )
    assert ran.out.endswith("\n1 to create, 1 waiting.\n")


def test_positions_are_relative_to_the_current_folder(project, ruleop, monkeypatch):
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ web.status.note }}")
    monkeypatch.chdir(project.root.parent)
    name = project.root.name
    assert f"  {name}/templates/config.yaml.j2:4  data: " in ruleop("plan", "-C", name, "-f", f"{name}/site.yaml").out


def test_uid_and_status_are_taken_from_the_live_resource(project, ruleop):
    site = yaml.safe_load((project.root / "site.yaml").read_text())
    site["metadata"] |= {"namespace": "default", "uid": "u-1", "generation": 3}
    site["status"] = {
        "note": "theirs",
        "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}],
    }
    project.write("live.json", json.dumps(site))
    plan = json.loads(ruleop("plan", "-f", "site.yaml", "--with", "live.json", "-o", "json").out)["plans"][0]
    assert plan["resource"]["uid"] == "u-1"
    assert plan["status"]["value"]["note"] == "theirs"
    out = ruleop("plan", "-f", "site.yaml", "--with", "live.json").out
    assert "    note: theirs\n" in out
    assert "    Ready        True -> False  Progressing" in out


def test_a_missing_uid_is_taken_from_the_owner_references(project, ruleop):
    project.write("live.json", made(ruleop).replace(uid(ruleop), "7777"))
    out = ruleop("plan", "-f", "site.yaml", "--with", "live.json").out
    assert "+ create" not in out
    assert "refused" not in out


def test_values_of_secrets_are_masked_in_both_formats(project, ruleop):
    project.write(
        "templates/config.yaml.j2",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: '{{ spec.page }}'}\n",
    )
    project.write("live.json", made(ruleop).replace('"(hidden)"', '"b2xkIHNlY3JldA=="'))
    for form in ("text", "json"):
        ran = ruleop("plan", "-f", "site.yaml", "--with", "live.json", "-o", form)
        assert "(hidden, after)" in ran.out
        assert not any(secret in ran.out for secret in ("hello", "aGVsbG8=", "b2xkIHNlY3JldA==", "old secret"))
    out = ruleop("plan", "-f", "site.yaml", "--with", "live.json").out
    assert "      data.password: (hidden, before) -> (hidden, after)\n" in out


def test_the_json_of_a_plan_is_deterministic(project, ruleop):
    project.write("live.json", made(ruleop, edit=scaled))
    first = ruleop("plan", "-f", "site.yaml", "--with", "live.json", "-o", "json").out
    assert first == ruleop("plan", "-f", "site.yaml", "--with", "live.json", "-o", "json").out
    assert set(json.loads(first)) == {"plans", "refused", "unmatched"}


def test_json_patches_are_rfc_6902_and_result_in_the_desired_object(project, ruleop):
    text = made(ruleop, edit=scaled)
    project.write("live.json", text)
    plan = json.loads(ruleop("plan", "-f", "site.yaml", "--with", "live.json", "-o", "json").out)["plans"][0]
    (action,) = plan["actions"]
    assert {key: action[key] for key in ("action", "child", "group", "kind", "namespace", "name", "why")} == {
        "action": "patch",
        "child": "web",
        "group": "apps",
        "kind": "Deployment",
        "namespace": "default",
        "name": "blog",
        "why": "changed",
    }
    assert action["patch"] == [{"op": "replace", "path": "/spec/replicas", "value": 1}]
    deployment = next(obj for obj in json.loads(text)["items"] if obj["kind"] == "Deployment")
    assert jsonpatch.apply_patch(deployment, action["patch"])["spec"]["replicas"] == 1


def test_the_json_of_a_plan_has_waits_problems_and_positions(project, ruleop):
    project.edit("templates/config.yaml.j2", "{{ spec.page }}", "{{ web.status.note }}")
    plan = json.loads(ruleop("plan", "-f", "site.yaml", "-o", "json").out)["plans"][0]
    assert plan["waits"] == [
        {
            "child": "config",
            "for": "web.status.note",
            "site": {"path": "templates/config.yaml.j2", "line": 4, "column": 0},
        }
    ]
    assert [child["state"] for child in plan["children"]] == ["progressing", "waiting"]


def test_several_resources_are_planned_separately(project, ruleop):
    text = (project.root / "site.yaml").read_text()
    project.write("shop.yaml", text.replace("blog", "shop"))
    out = ruleop("plan", "-f", "site.yaml", "-f", "shop.yaml").out
    assert "2 to create.\n\nSite default/shop" in out


def test_an_invalid_resource_is_reported_and_the_others_are_planned(project, ruleop):
    text = (project.root / "site.yaml").read_text()
    project.write("site.yaml", text.replace("page: hello", "page: 3") + "---\n" + text.replace("blog", "shop"))
    ran = ruleop("plan", "-f", "site.yaml")
    assert ran.status == 1
    assert ran.err == "site.yaml:6:3: error: spec.page: must be a string, not 3\n    6 │   page: 3\n      │   ^\n"
    assert ran.out.startswith("Site default/shop")


def test_a_misspelled_field_is_a_warning_with_a_suggestion(project, ruleop):
    project.edit("site.yaml", "page: hello", "page: hello\n  replica: 2")
    ran = ruleop("plan", "-f", "site.yaml")
    assert ran.status == 0
    assert ran.err.startswith(
        "site.yaml:7:3: warning: spec.replica: is not in Site's schema, and the API server drops it (did you mean replicas?)\n"
    )


def test_a_resource_that_no_rule_selects_is_reported(project, ruleop):
    project.edit("watches.yaml", "  kind: Site\n", "  kind: Site\n  namespaces: [elsewhere]\n")
    ran = ruleop("plan", "-f", "site.yaml", "-o", "json")
    assert ran.status == 1
    assert json.loads(ran.out)["unmatched"] == [
        {"group": "example.com", "kind": "Site", "namespace": "default", "name": "blog"}
    ]
    assert "Site/default/blog: warning: not selected by any rule" in ran.err


def test_objects_of_unwatched_kinds_are_skipped_with_a_warning(project, ruleop):
    project.write(
        "site.yaml",
        (project.root / "site.yaml").read_text() + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n",
    )
    ran = ruleop("plan", "-f", "site.yaml")
    assert ran.status == 0
    assert ran.err == "site.yaml:8:1: warning: no rule watches v1 Namespace: skipped\n"


def test_the_output_of_plan_is_deterministic(project, ruleop):
    assert ruleop("plan", "-f", "site.yaml").out == ruleop("plan", "-f", "site.yaml").out


def uid(ruleop) -> str:
    return json.loads(ruleop("plan", "-f", "site.yaml", "-o", "json").out)["plans"][0]["resource"]["uid"]


def test_the_json_of_a_plan_can_be_the_state_of_the_next_plan(project, ruleop):
    project.write("plan.json", ruleop("plan", "-f", "site.yaml", "-o", "json").out)
    ran = ruleop("plan", "-f", "site.yaml", "--with", "plan.json")
    assert "create" not in ran.out
    assert "patch" not in ran.out
    assert "Deployment/blog: 0 of 1 pods updated" in ran.out, "it is there, and nobody has reported on it"


# -- files -------------------------------------------------------------------------------------------------------------


def names(out: str) -> list[str]:
    return [line.split()[1] for line in out.splitlines() if line.startswith("Site default/")]


def words(out: str) -> str:
    """The output without line breaks within a sentence."""
    return " ".join(out.split())


@pytest.mark.parametrize("command", ["plan", "render"])
def test_the_files_of_a_folder_are_read_in_order_as_by_kubectl(project, ruleop, command):
    site = (project.root / "site.yaml").read_text()
    for path, name in {
        "b.yml": "b",
        "a.yaml": "a",
        "inner/c.yaml": "c",
        "d.txt": "d",
        ".e.yaml": "e",
        "a.yaml.bak": "f",
    }.items():
        project.write(f"sites/{path}", site.replace("blog", name))
    project.write("sites/c.json", json.dumps(yaml.safe_load(site.replace("blog", "g"))))
    ran = ruleop(command, "-f", "sites")
    assert (ran.status, ran.err) == (0, "")
    found = (
        names(ran.out)
        if command == "plan"
        else list(dict.fromkeys(re.findall(r"^# (Site/default/.*?):", ran.out, re.MULTILINE)))
    )
    assert [each.rpartition("/")[2] for each in found] == ["a", "b", "g"]


def test_an_error_in_a_folder_names_the_file(project, ruleop):
    project.write("sites/a.yaml", (project.root / "site.yaml").read_text())
    project.write("sites/b.yaml", "kind: Site\n")
    ran = ruleop("plan", "-f", "sites/")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("sites/b.yaml:1:1: error: apiVersion is missing or not a string\n")
    assert ran.err.endswith("\nruleop: sites/b.yaml cannot be used\n")


def test_existing_objects_can_be_read_from_a_folder(project, ruleop):
    project.write("live/all.json", made(ruleop, edit=scaled))
    assert "~ patch Deployment/blog" in ruleop("plan", "-f", "site.yaml", "--with", "live").out


EMOJI = "\U0001f600"
LONG = "k" * 2000


def resource(**spec) -> str:
    return json.dumps(
        {
            "apiVersion": "example.com/v1",
            "kind": "Site",
            "metadata": {"name": "blog", "managedFields": [{"fieldsV1": {LONG: {}}}]},
            "spec": spec,
        }
    )


@pytest.mark.parametrize("how", ["-f FILE", "-f -", "-f DIR"])
def test_a_resource_in_json_is_read_as_json(project, ruleop, how):
    text = resource(page=EMOJI)
    assert "\\ud83d\\ude00" in text
    project.write("sites/site.json", text)
    ran = {
        "-f FILE": lambda: ruleop("render", "-f", "sites/site.json"),
        "-f -": lambda: ruleop("render", "-f", "-", stdin=text),
        "-f DIR": lambda: ruleop("render", "-f", "sites"),
    }[how]()
    assert (ran.status, ran.err) == (0, "")
    assert [document["data"] for document in yaml.safe_load_all(ran.out) if document["kind"] == "ConfigMap"] == [
        {"page": EMOJI}
    ]


def test_existing_objects_can_be_json(project, ruleop):
    def edit(obj) -> None:
        obj["metadata"].setdefault("annotations", {})["note"] = EMOJI
        scaled(obj)

    project.write("live.json", made(ruleop, edit=edit))
    assert "~ patch Deployment/blog" in ruleop("plan", "-f", "site.yaml", "--with", "live.json").out


@pytest.mark.parametrize("stdin", [True, False])
def test_anchors_in_a_resource_are_expanded(project, ruleop, stdin):
    text = "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: blog, labels: &l {a: x}, annotations: {<<: *l, b: &p hello}}\nspec: {page: *p}\n"
    project.write("site.yaml", text)
    ran = ruleop("render", "-f", "-", stdin=text) if stdin else ruleop("render", "-f", "site.yaml")
    assert (ran.status, ran.err) == (0, "")
    assert "page: hello" in ran.out


def test_an_alias_bomb_in_a_resource_is_refused(project, ruleop):
    lines = [
        "a0: &a0 [x, x, x, x, x, x, x, x]",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 12)),
    ]
    project.write("site.yaml", "\n".join(lines) + "\n")
    ran = ruleop("plan", "-f", "site.yaml")
    assert ran.status == 2
    assert (
        "error: the aliases of this file expand to more than 250,000 values or 8 MiB: write the values out" in ran.err
    )


def test_a_plan_is_made_for_the_time_of_an_option(project, ruleop):
    project.write(
        "watches.yaml",
        """\
- group: example.com
  version: v1
  kind: Site
  children:
    backup: {template: web.yaml.j2, schedule: 0 3 * * *}
""",
    )
    ran = ruleop("plan", "-f", "site.yaml", "--at", "2026-01-01T02:00:00Z")
    assert "Nothing to do" in ran.out
    assert "Reconciled again in 1 h 0 min: the next run of backup is due." in ran.out
    assert "+ create Deployment/blog-" in ruleop("plan", "-f", "site.yaml", "--at", "2026-01-01T03:00:00Z").out


@pytest.mark.parametrize("other", [["--live", "Site/blog"], ["--replay", "site.yaml"]])
def test_a_cluster_and_a_recorded_pass_have_a_time_of_their_own(project, ruleop, other):
    ran = ruleop("plan", *other, "--at", "2026-01-01T02:00:00Z")
    assert (ran.status, "a cluster and a recorded pass have a time of their own" in ran.err) == (2, True)


def test_a_rotation_is_shown_without_its_values(project, ruleop):
    project.write(
        "watches.yaml",
        """\
- group: example.com
  version: v1
  kind: Site
  children:
    secret:
      apply: {strategy: create-only}
      rotateEvery: 90d
      object:
        apiVersion: v1
        kind: Secret
        metadata: {name: "{{ metadata.name }}-key"}
        stringData: {key: "{{ random_password(24) }}"}
""",
    )
    owner = "{apiVersion: example.com/v1, kind: Site, name: blog, uid: u1, controller: true}"
    project.write(
        "live.yaml",
        f"""\
apiVersion: v1
kind: Secret
metadata: {{name: blog-key, creationTimestamp: 2026-01-01T00:00:00Z, ownerReferences: [{owner}]}}
stringData: {{key: ancient}}
""",
    )
    arguments = ["plan", "-f", "site.yaml", "--with", "live.yaml", "--at"]
    assert (
        "Reconciled again in 31 d 0 h: the next rotation of secret is due."
        in ruleop(*arguments, "2026-03-01T00:00:00Z").out
    )
    shown = ruleop(*arguments, "2026-04-02T00:00:00Z").out
    assert "~ rotate Secret/blog-key  its random values are regenerated" in shown
    assert "data.previous-key: (hidden, after)" in shown
    assert "ancient" not in shown


# -- all passes --------------------------------------------------------------------------------------------------------

ORDERED = """\
- group: example.com
  version: v1
  kind: Site
  children:
    web: {template: web.yaml.j2}
    config:
      dependsOn: [web]
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: after}, data: {count: "{{ web.status.readyReplicas | string }}"}}
  status: {count: "{{ config.data.count }}"}
"""


def test_all_passes_are_shown_until_one_has_nothing_to_do(project, ruleop):
    project.write("watches.yaml", ORDERED)
    ran = ruleop("plan", "-f", "site.yaml", "--until-quiet")
    assert (ran.status, ran.err) == (0, "")
    passes = re.split(r"(?m)^pass \d+$", ran.out)[1:]
    assert [re.findall(r"(?m)^[+~-] .*", each) for each in passes] == [
        ["+ create Deployment/blog"],
        [],
        ["+ create ConfigMap/after"],
        [],
    ]
    assert "1 waiting." in passes[1]
    assert "Ready        True" in passes[-1]
    assert passes[-1].endswith("\nNothing to do.\n")


def test_the_passes_are_numbered_in_the_document(project, ruleop):
    project.write("watches.yaml", ORDERED)
    plans = json.loads(ruleop("plan", "-f", "site.yaml", "--until-quiet", "-o", "json").out)["plans"]
    assert [(each["pass"], each["quiet"]) for each in plans] == [(1, False), (2, True), (3, False), (4, True)]


def test_an_error_of_the_last_pass_is_the_exit_status(project, ruleop):
    project.write(
        "watches.yaml",
        ORDERED.replace("{{ web.status.readyReplicas | string }}", "{{ web.status.readyReplicas + 'x' }}"),
    )
    ran = ruleop("plan", "-f", "site.yaml", "--until-quiet")
    assert ran.status == 1
    assert "! config: " in ran.out


def test_objects_that_exist_are_in_the_cluster_of_the_passes(project, ruleop):
    project.write("live.json", made(ruleop, edit=scaled))
    ran = ruleop("plan", "-f", "site.yaml", "--with", "live.json", "--until-quiet")
    assert ran.out.startswith("pass 1\n")
    assert "~ patch Deployment/blog\n      spec.replicas: 5 -> 1\n" in ran.out
    assert ran.out.endswith("Nothing to do.\n")


@pytest.mark.parametrize("flags", [("--live",), ("--replay", "x.json")])
def test_all_passes_are_those_of_a_file(project, ruleop, flags):
    ran = ruleop("plan", *flags, "--until-quiet")
    assert ran.status == 2
    assert "--until-quiet is for custom resources of -f" in ran.err


HASHED = """\
- group: example.com
  version: v1
  kind: Site
  children:
    access:
      forEach: "[{'id': 'joe'}, {'id': 'ann'}]"
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ item.id | sha256(8) }}"}}
    plain:
      forEach: "['joe', 'ann']"
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "plain-{{ item }}"}}
"""


def test_an_object_of_a_list_is_shown_with_its_item_where_its_name_is_a_hash(project, ruleop):
    project.write("watches.yaml", HASHED)
    out = ruleop("plan", "-f", "site.yaml").out
    assert re.findall(r"(?m)^\+ create ConfigMap/[0-9a-f]{8}  (.*)$", out) == ["access[joe]", "access[ann]"]
    assert "+ create ConfigMap/plain-joe\n" in out
    actions = json.loads(ruleop("plan", "-f", "site.yaml", "-o", "json").out)["plans"][0]["actions"]
    assert [each["item"] for each in actions] == ["access[joe]", "access[ann]", "plain[joe]", "plain[ann]"]
