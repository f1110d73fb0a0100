"""Cases are run as the operator would run them; a failed expectation is reported with its position."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.authoring.ruletests.running import FILES, SPEC, WATCHES, expected, results, shown
from tests.definitions import definition
from tests.folders import write_files

NEW = """\
    - name: a new site
      resource: site.yaml
      kinds: []
      expect:
        children:
          config: {data: {page: hello}}
          web: {spec: {replicas: 1, template: {spec: {containers: [{name: web, image: nginx}]}}}}
        absent: [service, jobs, certificate]
        status: {replicas: 0}
        conditions: {Ready: "False", Reconciling: {status: "True", reason: Progressing, message: ""}}
        actions: [add the finalizer, create config, create web]
        waits: {}
""".replace(', message: ""', "")


def test_a_new_resource_has_the_expected_children(tmp_path: Path) -> None:
    assert shown(tmp_path, NEW) == ""


def test_a_case_can_have_several_steps(tmp_path: Path) -> None:
    steps = """\
      then:
        - name: pods come
          existing: [{ready: [web]}]
          expect: {status: {replicas: 1}, conditions: {Ready: "True"}, actions: []}
        - name: it is published
          resource: {spec: {public: true, replicas: 3}}
          expect:
            actions: [patch web]
            waits: {service: web to be ready}
            children: {web: {spec: {replicas: 3, template: {spec: {containers: [{name: proxy}]}}}}}
            absent: [service]
        - name: its pods come too
          existing: [{ready: true}]
          expect: {actions: [create service], status: {replicas: 3}}
        - name: it is closed again
          resource: {spec: {public: null}}
          expect: {actions: [patch web, delete service], absent: [service]}
        - name: a pod is lost
          existing: [{patch: {web: {status: {readyReplicas: 2, availableReplicas: 2}}}}]
          expect: {status: {replicas: 2}, conditions: {Ready: "False"}}
        - name: somebody scales the Deployment
          existing: [{patch: {web: {spec: {replicas: 9}}}}]
          expect: {actions: [patch web], children: {web: {spec: {replicas: 3}}}}
        - name: somebody deletes the ConfigMap
          existing: [{delete: [config]}]
          expect: {actions: [create config]}
        - name: it is deleted, and backed up before
          deleted: true
          expect: {gone: false, children: {backup: {}}, actions: [create backup]}
        - name: the backup is done
          existing: [{ready: [backup]}]
          expect: {gone: true, children: {}, absent: [web]}
"""
    steps = steps.replace("children: {backup: {}}", "children: {backup: {kind: Job}}")
    assert shown(tmp_path, NEW + steps) == ""


def test_existing_objects_can_be_those_that_the_rules_render(tmp_path: Path) -> None:
    assert (
        shown(
            tmp_path,
            """\
    - name: ready
      resource: site.yaml
      existing:
        - from: render
          patch: {web: {status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1, readyReplicas: 1}}}
      kinds: []
      expect: {actions: [], status: {replicas: 1}, conditions: {Ready: "True"}}
    - name: everything is ready at once
      resource: site.yaml
      set: {spec: {public: true}}
      existing: [{from: render, ready: true}]
      expect: {actions: [], children: {service: {spec: {ports: [{port: 53}]}}}, conditions: {Ready: "True"}}
    """,
        )
        == ""
    )


TWO_OWNERS = """\
- name: one of two owners is deleted, and then another object
  resource: site.yaml
  existing:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: "1"}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: b, uid: "2"}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: c, uid: "3"}}
    - apiVersion: v1
      kind: ConfigMap
      metadata:
        name: d
        ownerReferences:
          - {apiVersion: v1, kind: ConfigMap, name: a, uid: "1"}
          - {apiVersion: v1, kind: ConfigMap, name: b, uid: "2"}
  then:
    - {name: the first goes, existing: [{delete: [ConfigMap/a]}]}
    - {name: another object goes, existing: [{delete: [ConfigMap/c]}], expect: {children: {ConfigMap/d: {kind: ConfigMap}}}}
    - {name: the second goes, existing: [{delete: [ConfigMap/b]}], expect: {absent: [ConfigMap/d]}}
"""


def test_an_object_is_collected_when_the_last_of_its_owners_is_gone(tmp_path: Path) -> None:
    assert shown(tmp_path, TWO_OWNERS) == ""


def test_an_object_of_an_owner_that_the_case_does_not_mention_stays(tmp_path: Path) -> None:
    owner = "{apiVersion: example.com/v1, kind: Site, name: other, uid: '1', controller: true}"
    existing = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: blog-config, ownerReferences: [{owner}]}}}}"
    assert expected(tmp_path, "{error: already exists}", f"existing: [{existing}], ") == ""


@pytest.mark.slow
def test_objects_of_a_loop_are_expected_by_kind_and_name(tmp_path: Path) -> None:
    case = "kinds: [], set: {spec: {jobs: [a, b]}}, "
    assert (
        expected(
            tmp_path, "{children: {Job/blog-a: {metadata: {name: blog-a}}, Job/default/blog-b: {kind: Job}}}", case
        )
        == ""
    )
    failed = expected(tmp_path, "{children: {jobs: {kind: Job}}}", case)
    assert "children.jobs: has 2 objects; name one of them: Job/blog-a, Job/blog-b" in failed
    assert (
        expected(
            tmp_path,
            "{actions: [add the finalizer, create config, create web, create Job/blog-a, create Job/blog-b]}",
            case,
        )
        == ""
    )


@pytest.mark.slow
def test_a_case_can_list_the_kinds_that_the_cluster_serves(tmp_path: Path) -> None:
    assert expected(tmp_path, "{absent: [certificate]}", "kinds: [], ") == ""
    served = "kinds: [certificates.example.com/v1 Certificate], "
    assert expected(tmp_path, "{children: {certificate: {spec: {page: hello}}}}", served) == ""
    assert expected(tmp_path, "{children: {certificate: {spec: {page: hello}}}}") == ""


def test_a_case_can_set_environment_variables_of_the_rules(tmp_path: Path) -> None:
    expect = "{children: {web: {spec: {template: {spec: {containers: [{name: web, image: caddy}]}}}}}}"
    assert expected(tmp_path, expect, "env: {IMAGE: caddy}, ") == ""
    assert "image: nginx" in expected(tmp_path, expect)


@pytest.mark.slow
def test_steps_show_the_end_of_an_item(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    watches = tmp_path / "watches.yaml"
    undo = WATCHES.replace("    backup:\n", "    undo:\n      forEachOf: jobs\n").replace("-backup", "-undo-{{ job }}")
    watches.write_text(undo, "utf-8")
    steps = """\
    - name: a
      resource: site.yaml
      set: {spec: {jobs: [a, b]}}
      expect: {absent: [undo]}
      then:
        - name: an item is removed
          resource: {spec: {jobs: [b]}}
          expect:
            actions: [create undo]
            children: {undo: {metadata: {name: blog-undo-a}}, Job/blog-a: {kind: Job}}
            waits: {jobs: "Job/default/blog-a to be deleted: Job/default/blog-undo-a is not ready"}
        - name: its end is ready
          existing: [{ready: [undo]}]
          expect: {absent: [Job/blog-a]}
        - name: it is over
          expect: {absent: [undo], children: {jobs: {metadata: {name: blog-b}}}}
        - name: deleted
          deleted: true
          expect: {children: {undo: {metadata: {name: blog-undo-b}}}}
        - name: ended
          existing: [{ready: [undo]}]
          expect: {gone: true, children: {}}
"""
    assert shown(tmp_path, steps) == ""


# -- what fails --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ("{children: {wbe: {kind: x}}}", "children.wbe: the rule has no child wbe (did you mean web?)"),
        ("{absent: [servise]}", "absent: the rule has no child servise (did you mean service?)"),
        ("{children: {service: {kind: x}}}", "children.service: does not exist: `when` is false"),
        ("{children: {Service/x: {kind: x}}}", "children.Service/x: Service/x does not exist; there are ConfigMap/blog-config"),
        ("{absent: [web]}", "absent.web: exists: Deployment/blog"),
        ("{children: {}}", "children.config: ConfigMap/blog-config exists, and is not expected"),
        ("{exact: true, children: {web: {kind: x}}}", "children.config: ConfigMap/blog-config exists, and is not expected"),
        ('{conditions: {Redy: "True"}}', "conditions.Redy: the CR has no such condition (did you mean Ready?)"),
        ("{waits: {web: x}}", "waits.web: does not wait: Deployment/blog"),
        ("{waits: {wbe: x}}", "waits.wbe: the rule has no child wbe (did you mean web?)"),
        ("{error: x}", 'error: expected "x", but there is no error'),
        ("{gone: true}", "gone: the CR still exists: Deployment/blog: its controller has not seen the latest change"),
        ("{status: {}}", "status: differs"),
    ],
)  # fmt: skip
def test_each_failed_expectation_has_a_message(tmp_path: Path, expect: str, message: str) -> None:
    assert message in expected(tmp_path, expect, "kinds: [], ")


def test_an_error_that_is_not_expected_fails(tmp_path: Path) -> None:
    failed = expected(tmp_path, "{absent: [web]}", "set: {spec: {page: forbidden}}, ")
    assert "error: not expected: spec: spec.page must not be forbidden" in failed
    assert "at watches.yaml:6:7" in failed
    assert expected(tmp_path, "{error: must not be forbidden, absent: [web]}", "set: {spec: {page: forbidden}}, ") == ""


def test_an_invalid_resource_is_an_error(tmp_path: Path) -> None:
    assert expected(tmp_path, "{error: 'spec.replicas: must be at least 0'}", "set: {spec: {replicas: -1}}, ") == ""
    failed = expected(tmp_path, "{absent: [web]}", "set: {spec: {replicas: -1}}, ")
    assert "error: not expected: spec.replicas: must be at least 0" in failed


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("{name: a, resource: sit.yaml, ", "sit.yaml: cannot be read: No such file or directory; names are relative to the test file"),
        ("{name: a, resource: {apiVersion: example.com/v1, kind: Sit}, ", "resource has no custom resource of this project, and a case needs one (did you mean Site?)"),
        ("{name: a, resource: site.yaml, set: {spec: {pge: x}}, ", "spec.pge: is not in Site's schema, and the API server drops it (did you mean page?)"),
        ("{name: a, resource: site.yaml, existing: [{from: render, patch: {web: {status: {availableReplica: 1}}}}], ", "Deployment: status.availableReplica: is an unknown field (did you mean availableReplicas?)"),
        ("{name: a, resource: site.yaml, existing: [{from: render, patch: {wbe: {status: {}}}}], ", "no rule has a child wbe (did you mean web?)"),
    ],
)  # fmt: skip
def test_a_case_that_cannot_be_run_fails(tmp_path: Path, case: str, message: str) -> None:
    assert message in shown(tmp_path, f"- {case} expect: {{status: {{replicas: 0}}}}}}\n")


def test_a_case_stops_at_the_first_step_that_fails(tmp_path: Path) -> None:
    [result] = results(
        tmp_path,
        """\
    - name: a
      resource: site.yaml
      expect: {absent: [service]}
      then:
        - expect: {absent: [config]}
        - {name: last, expect: {absent: [web]}}
    """,
    )
    assert [(each.step, each.what) for each in result.failures] == [("step 1", "absent.config")]


def test_a_foreign_object_is_a_name_conflict(tmp_path: Path) -> None:
    existing = "existing: [{apiVersion: v1, kind: ConfigMap, metadata: {name: blog-config}}], "
    assert expected(tmp_path, "{error: already exists, children: {web: {kind: Deployment}}}", existing) == ""


def test_an_exact_expectation_compares_all_fields(tmp_path: Path) -> None:
    config = "config: {metadata: {name: blog-config}, data: {page: hello}}"
    web = "web: {kind: Deployment}"
    failed = expected(tmp_path, f"{{exact: true, children: {{{config}, {web}}}}}", "kinds: [], ")
    assert "children.config" not in failed
    assert "children.web: Deployment/blog differs" in failed
    assert "+ spec:" in failed


def test_passwords_are_the_same_in_each_run(tmp_path: Path) -> None:
    first, second = (results(tmp_path, NEW) for _ in range(2))
    assert [each.failures for each in first] == [each.failures for each in second]


def test_an_object_that_the_api_server_would_reject_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    template = tmp_path / "templates/web.yaml.j2"
    template.write_text(template.read_text().replace("containerPort: 80", "containerPort: '80'"))
    failed = expected(tmp_path, "{children: {web: {kind: Deployment}}}", "kinds: [], ")
    assert (
        "error: not expected: web: Deployment/blog: spec.template.spec.containers[0].ports[0].containerPort" in failed
    )
    assert "at templates/web.yaml.j2:15" in failed
    assert expected(tmp_path, "{error: containerPort}", "kinds: [], ") == ""


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ("{absent: [Deploymnet/blog]}", "absent: no child has the kind Deploymnet (did you mean Deployment?)"),
        ("{children: {Deploymnet/blog: {kind: x}}}", "no child has the kind Deploymnet (did you mean Deployment?)"),
        ("{children: {web: {spec: {pausd: null}}}}", "children.web: Deployment/blog: spec.pausd: is an unknown field (did you mean paused?)"),
    ],
)  # fmt: skip
def test_an_expectation_that_would_always_hold_fails(tmp_path: Path, expect: str, message: str) -> None:
    assert message in expected(tmp_path, expect, "kinds: [], ")


def test_a_missing_child_has_the_place_that_decides(tmp_path: Path) -> None:
    closed = expected(tmp_path, "{children: {service: {kind: Service}}}")
    assert "does not exist: `when` is false\n    at watches.yaml:19:13" in closed


def test_rules_that_never_come_to_rest_are_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    watches = tmp_path / "watches.yaml"
    longer = "{{ live.config.data.page | default('') ~ 'x' }}"
    watches.write_text(watches.read_text().replace('{{ spec.page }}"\n    web', f'{longer}"\n    web'))
    failed = expected(tmp_path, "{children: {web: {kind: Deployment}}}")
    assert "error: not expected: each of 20 passes writes something" in failed


def test_a_step_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    failed = shown(
        tmp_path,
        """\
    - name: a
      resource: site.yaml
      expect: {absent: [service]}
      then:
        - {name: second, existing: [{delete: [service]}], expect: {absent: [service]}}
    """,
    )
    assert "second: not run: service does not exist before this step" in failed


# -- like a cluster ----------------------------------------------------------------------------------------------------


def test_objects_have_the_defaults_of_the_api_server(tmp_path: Path) -> None:
    web = "web: {spec: {strategy: {type: RollingUpdate}, template: {spec: {restartPolicy: Always}}}}"
    service = "service: {spec: {type: ClusterIP, ports: [{port: 53, name: tcp, protocol: TCP, targetPort: 53}]}}"
    case = "set: {spec: {public: true}}, existing: [{from: render, ready: true}], "
    assert expected(tmp_path, f"{{actions: [], children: {{{web}, {service}}}}}", case) == ""


def test_an_exact_expectation_leaves_out_what_the_api_server_fills_in(tmp_path: Path) -> None:
    config = "config: {data: {page: hello}}"
    web = (
        "web: {spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, "
        "spec: {containers: [{name: web, image: nginx, ports: [{containerPort: 80}]}]}}}}"
    )
    job = "job: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: nginx}]}}}}"
    children = f"{{exact: true, children: {{{config}, {web}, {job.replace('job:', 'jobs:', 1)}}}}}"
    case = "kinds: [], set: {spec: {jobs: [a]}}, "
    assert expected(tmp_path, children, case) == ""
    patched = "existing: [{from: render, patch: {web: {spec: {revisionHistoryLimit: 3}}}}], "
    assert "+   revisionHistoryLimit: 3" in expected(tmp_path, children, case + patched)


def test_a_change_of_an_immutable_field_is_rejected(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    template = tmp_path / "templates/web.yaml.j2"
    template.write_text(template.read_text().replace("app: web}", "app: web, page: {{ spec.page }}}"))
    failed = shown(
        tmp_path,
        """\
    - name: a
      resource: site.yaml
      expect: {absent: [service]}
      then: [{resource: {spec: {page: other}}, expect: {children: {web: {kind: Deployment}}}}]
    """,
    )
    assert "spec.selector: Invalid value" in failed
    assert "field is immutable" in failed
    assert "at templates/web.yaml.j2:7" in failed


def test_a_server_side_apply_removes_the_fields_that_the_rules_no_longer_have(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    (tmp_path / "watches.yaml").write_text("""\
- group: example.com
  version: v1
  kind: Site
  children:
    config: {template: config.yaml.j2, apply: {strategy: server-side}}
""")
    (tmp_path / "templates/config.yaml.j2").write_text("""\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ metadata.name }}-config}
data:
  page: {{ spec.page }}
  {% if spec.public %}
  public: "yes"
  {% endif %}
""")
    steps = """\
    - name: a
      resource: site.yaml
      set: {spec: {public: true}}
      expect: {children: {config: {data: {public: "yes"}}}}
      then:
        - existing: [{patch: {config: {data: {other: mine}}}}]
          resource: {spec: {public: null}}
          expect: {children: {config: {data: {page: hello, public: null, other: mine}}}, actions: [apply config]}
    """
    assert shown(tmp_path, steps) == ""


def test_an_existing_object_may_be_described_in_part(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    watches = tmp_path / "watches.yaml"
    adopted = "      template: web.yaml.j2\n      adopt: orphans\n"
    watches.write_text(watches.read_text().replace("      template: web.yaml.j2\n", adopted))
    existing = "existing: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: blog}}], kinds: [], "
    actions = "actions: [add the finalizer, create config, adopt web]"
    assert expected(tmp_path, f"{{{actions}, children: {{web: {{spec: {{replicas: 1}}}}}}}}", existing) == ""


def test_a_status_that_does_not_fit_its_schema_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    crd = tmp_path / "crds/sites.yaml"
    crd.write_text(
        definition("Site", spec=SPEC, status="{type: object, properties: {replicas: {type: integer, maximum: 1}}}")
    )
    steps = """\
    - name: a
      resource: site.yaml
      set: {spec: {replicas: 2}}
      kinds: []
      existing: [{from: render, ready: true}]
      expect: {error: "status.replicas: Invalid value: must be at most 1, not 2"}
    """
    assert shown(tmp_path, steps) == ""


def test_a_namespace_takes_its_objects_with_it(tmp_path: Path) -> None:
    steps = """\
    - name: a
      resource: site.yaml
      existing:
        - {apiVersion: v1, kind: Namespace, metadata: {name: other}}
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: in-it, namespace: other}}
      expect: {children: {ConfigMap/other/in-it: {kind: ConfigMap}}}
      then:
        - {existing: [{delete: [Namespace/other]}], expect: {absent: [ConfigMap/other/in-it]}}
    """
    assert shown(tmp_path, steps) == ""


@pytest.mark.slow
def test_an_address_of_a_service_is_the_same_in_each_run(tmp_path: Path) -> None:
    case = "set: {spec: {public: true}}, existing: [{from: render, ready: true}], "
    first, second = (expected(tmp_path, "{children: {service: {spec: {clusterIP: none}}}}", case) for _ in range(2))
    assert "+   clusterIP: 10.96." in first
    assert first == second


PROTECTED = """\
- group: example.com
  version: v1
  kind: Site
  reach: cluster
  children:
    pod:
      object:
        apiVersion: v1
        kind: Pod
        metadata: {name: "{{ metadata.name }}"}
        spec: {serviceAccountName: "{{ metadata.name }}", containers: [{name: a, image: nginx}]}
    account:
      object: {apiVersion: v1, kind: ServiceAccount, metadata: {name: "{{ metadata.name }}"}}
    claim:
      object:
        apiVersion: v1
        kind: PersistentVolumeClaim
        metadata: {name: "{{ metadata.name }}"}
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
    inside:
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: "x-{{ metadata.name }}"}}
    space:
      object: {apiVersion: v1, kind: Namespace, metadata: {name: "x-{{ metadata.name }}"}}
"""


def test_objects_that_the_api_server_protects_end_with_the_cr(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    (tmp_path / "watches.yaml").write_text(PROTECTED)
    objects = "[Pod/blog, PersistentVolumeClaim/blog, ConfigMap/x-blog/a, Namespace/x-blog]"
    steps = f"""\
    - name: a
      resource: site.yaml
      expect: {{children: {{pod: {{kind: Pod}}, inside: {{kind: ConfigMap}}, space: {{status: {{phase: Active}}}}}}}}
      then:
        - {{existing: [{{ready: true}}], expect: {{conditions: {{Ready: "True"}}, actions: []}}}}
        - {{deleted: true, expect: {{gone: true, absent: {objects}}}}}
    """
    assert shown(tmp_path, steps) == ""
