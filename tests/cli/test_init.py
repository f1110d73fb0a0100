"""`ruleop init`: what it writes, prints and refuses, and that other commands take what it made."""

from __future__ import annotations

import base64
import subprocess

import pytest
import yaml

from tests.cli.test_dev import call, exported, stop
from tests.definitions import definition
from tests.docs.messages import ROOT
from tests.waiting import PATIENCE, eventually

GUESTBOOK = ROOT / "tests" / "authoring" / "scaffold" / "guestbook.yaml"
SAMPLE = """\
apiVersion: cms.example.com/v1
kind: Blog
metadata: {name: news}
spec: {image: "wordpress:6.8", replicas: 2, port: 80}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_new_project_passes_check_and_can_be_planned(here, ruleop):
    ran = ruleop("init", "app")
    assert (ran.status, ran.err) == (0, "")
    assert "By default, because not named: --group, --version, --kind." in ran.out
    assert ruleop("check", "-C", "app").out == "No errors in 1 rule, 2 children, 2 templates, 1 CRD.\n"
    assert ruleop("test", "-C", "app").out.startswith(".\n1 passed")
    assert ruleop("plan", "-C", "app", "-f", "app/examples/app-sample.yaml").out.endswith("\n2 to create.\n")


def test_the_kind_is_named_by_flags(here, ruleop):
    ran = ruleop("init", "x", "--group", "cms.example.com", "--version", "v2", "--kind", "Blog")
    assert ran.out.startswith("Blog in cms.example.com/v2\n")
    assert "By default" not in ran.out
    assert (here / "x/ruleop.yaml").read_text() == (
        "# yaml-language-server: $schema=schemas/ruleop.schema.json\nname: blog\nnamespace: blog-system\nversion: 0.1.0\n"
    )
    crd = yaml.safe_load(ruleop("generate", "crd", "-C", "x").out)
    assert crd["metadata"]["name"] == "blogs.cms.example.com"
    assert crd["spec"]["versions"][0]["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.readyReplicas",
    }


def test_the_kind_and_its_schema_come_from_a_sample(here, ruleop):
    (here / "blog.yaml").write_text(SAMPLE)
    ran = ruleop("init", ".", "--from-sample", "blog.yaml")
    assert (ran.status, ran.err) == (0, "")
    assert ruleop("check").out == "No errors in 1 rule, 2 children, 2 templates, 1 CRD.\n"
    edited = (here / "examples/news.yaml").read_text().replace("port: 80", "prot: 80")
    assert "is not in Blog's schema" in ruleop("plan", "-f", "-", stdin=edited).err


def test_an_existing_file_is_a_refusal_with_its_name_and_nothing_is_written(here, ruleop):
    (here / "app").mkdir()
    (here / "app/ruleop.yaml").write_text("mine")
    ran = ruleop("init", "app")
    assert ran.status == 2
    assert ran.err == "ruleop: app/ruleop.yaml exists: nothing was written; move it away, or name another folder\n"
    assert [path.name for path in (here / "app").rglob("*") if path.is_file()] == ["ruleop.yaml"]
    assert (here / "app/ruleop.yaml").read_text() == "mine"


def test_a_second_init_names_one_of_the_files(here, ruleop):
    ruleop("init", "app")
    assert "app/watches.yaml exists and 8 more: nothing was written" in ruleop("init", "app").err


def test_other_files_of_the_folder_stay(here, ruleop):
    (here / "notes.txt").write_text("mine")
    assert ruleop("init", ".").status == 0
    assert (here / "notes.txt").read_text() == "mine"


def test_a_readme_and_a_list_of_ignored_files_stay_as_they_are(here, ruleop):
    (here / "README.md").write_text("mine")
    (here / ".gitignore").write_text("mine")
    ran = ruleop("init", ".")
    assert ran.status == 0
    assert "- README.md exists, and was left as it is.\n- .gitignore exists, and was left as it is.\n" in ran.out
    assert "\n10 files. Try:\n" in ran.out
    assert [(here / name).read_text() for name in ("README.md", ".gitignore")] == ["mine", "mine"]
    assert ruleop("check").status == 0


@pytest.mark.slow
def test_a_definition_that_is_written_into_the_project_agrees_with_its_schema(here, ruleop):
    ruleop("init", ".")
    assert ruleop("generate", "crd", "--out", "crds").status == 0
    assert ruleop("check").out == "No errors in 1 rule, 2 children, 2 templates, 1 CRD.\n"
    crd = here / "crds/apps.example.com.yaml"
    crd.write_text(crd.read_text().replace("maximum: 65535", "maximum: 65536"))
    assert "spec.port.maximum is 65536 here, and 65535 by the schema at watches.yaml:" in ruleop("check").out


@pytest.mark.slow
def test_the_commands_in_the_readme_of_a_new_project_work(here, ruleop):
    ruleop("init", ".")
    text = (here / "README.md").read_text()
    lines = [line.partition("#")[0].split() for line in text.splitlines() if line.startswith("$ ruleop ")]
    for line in lines:
        if line[2] in ("check", "render", "test", "generate") and "--live" not in line:
            ran = ruleop(*line[2 : line.index("|") if "|" in line else None])
            assert ran.status == 0, (line, ran.err)
    assert (here / "chart/Chart.yaml").exists()
    assert (here / "Dockerfile").exists()
    assert "helm install app ./chart --namespace app-system" in text
    assert yaml.safe_load((here / "chart/Chart.yaml").read_text())["name"] == "app"


def test_a_workflow_checks_the_rules_of_a_new_project(here, ruleop):
    assert ruleop("init", "a", "--ci", "github").status == 0
    jobs = yaml.safe_load((here / "a/.github/workflows/rules.yaml").read_text())["jobs"]
    assert [*jobs] == ["check", "plan"]
    assert ruleop("init", "b", "--ci", "gitlab").status == 0
    pipeline = yaml.safe_load((here / "b/.gitlab-ci.yml").read_text())
    assert [*pipeline] == ["default", "check", "plan"]
    github = [each["run"] for each in jobs["check"]["steps"] if "run" in each]
    gitlab = [*pipeline["default"]["before_script"], *pipeline["check"]["script"]]
    assert [each.removesuffix(" -o github") for each in github] == gitlab
    assert jobs["plan"]["steps"][-1]["run"].splitlines()[-2:] == pipeline["plan"]["script"]
    ran = ruleop("init", "c", "--ci", "jenkins")
    assert (ran.status, "'github', 'gitlab'" in ran.err) == (2, True)


def test_a_workflow_that_exists_stays_as_it_is(here, ruleop):
    (here / ".gitlab-ci.yml").write_text("mine")
    ran = ruleop("init", ".", "--ci", "gitlab")
    assert (ran.status, (here / ".gitlab-ci.yml").read_text()) == (0, "mine")
    assert ".gitlab-ci.yml exists, and was left as it is." in ran.out


def test_the_generated_test_names_what_to_change_when_a_child_is_replaced(here, ruleop):
    ruleop("init", ".")
    assert "If you replace such a child" in (here / "tests/app.test.yaml").read_text()


DEFINITION = definition(
    "Zone",
    spec="{type: object, required: [size], properties: {size: {type: integer, minimum: 3}}}",
    status="",
    requires_spec=True,
)


def test_a_project_starts_from_a_definition_that_exists(here, ruleop):
    (here / "crd.yaml").write_text(DEFINITION)
    ran = ruleop("init", "op", "--from-crd", "crd.yaml")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[:5] == [
        "Zone in example.com/v1",
        "  config  ConfigMap  templates/zone/config.yaml.j2",
        "",
        "- Children are only a start: a ConfigMap with fields of the spec. Replace them.",
        "- New in the copy in crds/, because ruleop writes the status: status.conditions, status.observedGeneration.",
    ]
    assert ruleop("check", "-C", "op").out == "No errors in 1 rule, 1 child, 1 template, 1 CRD.\n"
    assert ruleop("test", "-C", "op").out.startswith(".\n1 passed")
    assert "schema:" not in (here / "op/watches.yaml").read_text()
    assert yaml.safe_load((here / "op/crds/zones.example.com.yaml").read_text())["kind"] == "CustomResourceDefinition"
    assert (
        ruleop("generate", "crd", "-C", "op", "--against", "op/crds").out == "zones.example.com: no breaking change\n"
    )
    refused = ruleop("init", "other", "--from-sample", "crd.yaml").err
    assert refused == "ruleop: zones.example.com is a CustomResourceDefinition: use --from-crd\n"


GRAPH = """\
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: blog}
spec:
  schema:
    apiVersion: v1
    group: cms.example.com
    kind: Blog
    spec: {image: string | required=true, replicas: integer | default=2, port: integer | default=80}
    status: {ready: "${config.data.ready}"}
  resources:
    - id: config
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${schema.metadata.name}"}
        data: {image: "${schema.spec.image}", ready: "${random.seededString(3, 'a')}"}
"""


def test_a_project_starts_from_a_graph_of_kro_with_a_sample(here, ruleop):
    (here / "rgd.yaml").write_text(GRAPH)
    (here / "blog.yaml").write_text(SAMPLE)
    ran = ruleop("init", "op", "--from-kro", "rgd.yaml", "--from-sample", "blog.yaml")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[:4] == [
        "Blog in cms.example.com/v1",
        "  config  ConfigMap  templates/blog/config.yaml.j2",
        "",
        (
            "- rgd.yaml:17: not translated: there is no counterpart of random.seededString(): "
            "${random.seededString(3, 'a')}"
        ),
    ]
    assert ruleop("check", "-C", "op").out.endswith("No errors in 1 rule, 1 child, 1 template, 1 CRD.\n")
    assert ruleop("test", "-C", "op").out.startswith(".\n1 passed")
    assert ruleop("plan", "-C", "op", "-f", "op/examples/news.yaml").out.endswith("1 to create.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("init",), "DIR is missing"),
        (("init", "file"), "file is a file: name a folder"),
        (("init", "x", "--kind", "blog"), '"blog" is not a kind: use letters and digits, the first in upper case'),
        (("init", "x", "--group", "blog"), '"blog" is not a group of custom resources: use a domain name'),
        (("init", "x", "--version", "1"), '"1" is not a version'),
        (("init", "x", "--from-sample", "none.yaml"), "none.yaml: no such file"),
        (("init", "x", "--from-sample", "blog.yaml", "--kind", "Y"), "--from-sample has the kind: leave out --group"),
        (("init", "x", "--from-sample", "blog.yaml", "--from-manifests", "blog.yaml"), "--from-sample has the kind"),
        (("init", "x", "--from-crd", "blog.yaml", "--kind", "Y"), "--from-crd has the kind: leave out --group"),
        (("init", "x", "--from-crd", "blog.yaml"), "no CustomResourceDefinition among the objects (Blog)"),
        (("init", "x", "--from-kro", "blog.yaml", "--kind", "Y"), "--from-kro has the kind: leave out --group"),
        (("init", "x", "--from-kro", "blog.yaml"), "no ResourceGraphDefinition among the objects (Blog)"),
        (("init", "x", "--lift", "spec.replicas"), "--lift names fields of manifests: use it with --from-manifests"),
    ],
)
def test_wrong_usage_is_named(here, ruleop, arguments, message):
    (here / "file").write_text("")
    (here / "blog.yaml").write_text(SAMPLE)
    ran = ruleop(*arguments)
    assert ran.status == 2
    assert message in ran.err
    assert not (here / "x").exists()


PLACEHOLDER = "existing/mail.yaml is a placeholder."
MANIFESTS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: news}
spec:
  replicas: 2
  selector: {matchLabels: {app: news}}
  template:
    metadata: {labels: {app: news}}
    spec: {containers: [{name: web, image: "nginx:1.29", envFrom: [{secretRef: {name: mail}}]}]}
---
{apiVersion: v1, kind: Secret, metadata: {name: mail}, stringData: {user: joe, password: hunter2}}
---
{apiVersion: v1, kind: Event, metadata: {name: news.1}}
"""


def test_manifests_become_templates_and_the_output_lists_each_object(here, ruleop):
    (here / "k8s").mkdir()
    (here / "k8s/news.yaml").write_text(MANIFESTS)
    ran = ruleop("init", "op", "--from-manifests", "k8s", "--group", "cms.example.com", "--version", "v1")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "News in cms.example.com/v1",
        "  deployment  Deployment  templates/news/deployment.yaml.j2",
        "",
        "In the spec",
        "  spec.replicas    Deployment/news:spec.replicas",
        "  spec.image       Deployment/news:spec.template.spec.containers[name=web].image",
        "  spec.mailSecret  Secret/mail:metadata.name",
        "",
        "- Event/news.1 was left out: made by controllers.",
        f"- Secret/mail was not copied: users make such a Secret, and spec.mailSecret has its name. {PLACEHOLDER}",
        "",
        "12 files in op. Try:",
        "  cd op",
        "  ruleop check",
        "  ruleop test",
        "  ruleop dev --apply existing/ --apply examples/",
    ]
    assert ruleop("check", "-C", "op").out == "No errors in 1 rule, 1 child, 1 template, 1 CRD.\n"
    planned = ruleop("plan", "-C", "op", "-f", "op/examples/news.yaml", "--with", "op/existing/mail.yaml")
    assert planned.out.endswith("\n1 to create.\n")


def test_lifted_fields_are_named(here, ruleop):
    (here / "news.yaml").write_text(MANIFESTS)
    ran = ruleop("init", "op", "--from-manifests", "news.yaml", "--kind", "Blog", "--lift", "spec.replicas=size")
    assert "  spec.size        Deployment/news:spec.replicas\n" in ran.out
    assert "spec.image" not in ran.out
    (watch,) = yaml.safe_load((here / "op/watches.yaml").read_text())
    assert (watch["kind"], watch["schema"]["spec"]["size"]) == ("Blog", "integer | default=2")
    assert watch["schema"]["scale"]["replicas"] == ".spec.size"
    assert ruleop("check", "-C", "op").out == "No errors in 1 rule, 1 child, 1 template, 1 CRD.\n"


def test_lines_of_manifests_are_not_quoted_in_errors(here, ruleop):
    (here / "news.yaml").write_text("apiVersion: v1\nkind: Secret\nstringData: {password: hunter2, a\n")
    ran = ruleop("init", "op", "--from-manifests", "news.yaml")
    assert ran.status == 2
    assert "hunter2" not in ran.err


def test_the_files_of_a_new_project_are_the_same_each_time(here, ruleop):
    for folder in ("a", "b"):
        ruleop("init", folder)
    files = [path.relative_to(here / "a") for path in (here / "a").rglob("*") if path.is_file()]
    assert len(files) == 12
    assert all((here / "a" / path).read_bytes() == (here / "b" / path).read_bytes() for path in files)


@pytest.mark.slow
def test_a_new_project_becomes_ready_under_dev(here, process, ruleop):
    ruleop("init", "app")
    dev = process("dev", "-C", "app", "--apply", "app/examples/", "--once")
    out, err = dev.communicate(timeout=PATIENCE)
    assert dev.returncode == 0, err
    assert "App default/app-sample  ready" in out


@pytest.mark.slow
def test_a_project_from_manifests_becomes_ready_under_dev(here, process, ruleop):
    (here / "news.yaml").write_text(MANIFESTS)
    ruleop("init", "op", "--from-manifests", "news.yaml")
    dev = process("dev", "-C", "op", "--apply", "op/existing/", "--apply", "op/examples/", "--once")
    out, err = dev.communicate(timeout=PATIENCE)
    assert dev.returncode == 0, err
    assert "ready  Deployment/news: 2 of 2 pods" in out


@pytest.mark.slow
def test_two_custom_resources_of_an_application_live_side_by_side(here, ruleop, process):
    """Each one's pods find the Services and the configuration of their own."""
    assert ruleop("init", "op", "--from-manifests", GUESTBOOK.as_posix(), "--group", "example.com").status == 0
    sample = yaml.safe_load((here / "op/examples/redis.yaml").read_text())
    for name in ("red", "blue"):
        (here / f"op/examples/{name}.yaml").write_text(yaml.safe_dump({**sample, "metadata": {"name": name}}))
    (here / "op/examples/redis.yaml").unlink()
    started = process("dev", "-C", "op", "--apply", "op/existing/", "--apply", "op/examples/", stderr=subprocess.STDOUT)
    try:
        _, server = exported(started)
        kinds = {"deployments": "/apis/apps/v1", "services": "/api/v1", "secrets": "/api/v1"}

        def made():
            found = {
                (plural, each["metadata"]["name"]): each
                for plural, root in kinds.items()
                for each in call(server, "GET", f"{root}/namespaces/default/{plural}")["items"]
            }
            return found if {("deployments", f"{name}-frontend") for name in ("red", "blue")} <= set(found) else None

        objects = eventually("the frontends", made)
    finally:
        stop(started)
    for name in ("red", "blue"):
        assert ("services", f"{name}-leader") in objects
        frontend = objects["deployments", f"{name}-frontend"]["spec"]["template"]["spec"]
        [container] = frontend["containers"]
        env = {each["name"]: each.get("value") for each in container["env"]}
        assert env["LEADER"] == f"{name}-leader"
        assert env["FOLLOWERS"] == f"{name}-follower:6379,{name}-follower"
        assert env["REDIS_URL"] == f"redis://:$(CREDENTIAL_REQUIREPASS)@{name}-leader:6379/0"
        assert (container["image"], env["THEME"]) == ("acme/frontend:1.2", "frontend")
        config = container["envFrom"][0]["secretRef"]["name"]
        assert config == frontend["volumes"][0]["secret"]["secretName"] == f"{name}-frontend-config"
        text = base64.b64decode(objects["secrets", config]["data"]["app.ini"]).decode()
        assert f"host = {name}-leader\npassword = change-me\n" in text
        follower = objects["deployments", f"{name}-follower"]["spec"]["template"]["spec"]["containers"][0]
        assert follower["args"] == [
            "redis-server",
            "--slaveof",
            f"{name}-leader",
            "6379",
            "--masterauth",
            "$(REQUIREPASS)",
        ]
