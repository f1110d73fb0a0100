"""Selectors that match the Pods of no child are reported."""

from __future__ import annotations

import pytest

from tests.authoring.checking.projects import said
from tests.language.rules.projects import HEAD, watch

NAME = "{{ metadata.name }}"
WORKLOAD = (
    "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: '{{{{ metadata.name }}}}'}}\nspec:\n"
    "  selector: {{matchLabels: {selector}}}\n  template:\n    metadata:\n      labels: {labels}\n"
    "    spec: {{containers: [{{name: a, image: 'b:1'}}]}}\n"
)
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ metadata.name }}'}\nspec:\n  selector: SELECTOR\n  ports: [{port: 80}]\n"
BUDGET = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: '{{ metadata.name }}'}\nspec:\n  maxUnavailable: 1\n  selector: SELECTOR\n"
POLICY = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: '{{ metadata.name }}'}\nspec:\n  policyTypes: [Ingress]\n  podSelector: SELECTOR\n"
CLUSTER = "{apiVersion: GROUP/v1, kind: Cluster, metadata: {name: '{{ metadata.name }}'}}"


def found(
    selector: str,
    labels: str = f"{{app: '{NAME}', tier: web}}",
    *,
    selecting: str = SERVICE,
    own: str = "{tier: web}",
    kind: str = "Deployment",
    more: str = "",
    body: str = "",
) -> list[str]:
    files = {
        "templates/web.yaml": WORKLOAD.format(kind=kind, selector=own, labels=labels),
        "templates/service.yaml": selecting.replace("SELECTOR", selector),
    }
    children = f"children:\n  web: {{template: web.yaml}}\n  service: {{template: service.yaml}}\n{more}"
    return [each for each in said(watch(f"{body}\n{children}"), files) if each.startswith("RO508")]


def test_a_selector_of_no_pods_is_reported_with_the_labels_of_the_nearest() -> None:
    (only,) = found(f"{{app: '{NAME}-web', tier: web}}")
    assert only == (
        "RO508 templates/service.yaml:5:19: warning: selects the Pods of no child: app: {{ metadata.name }}-web is "
        'required, and the Pods of "web" have app: {{ metadata.name }}'
    )
    (only,) = found("{name: web}")
    assert 'name: web is required, and the Pods of "web" have no label name' in only


@pytest.mark.parametrize(
    "selector",
    [
        f"{{app: '{NAME}'}}",
        "{app: '{{ cr.metadata.name }}', tier: web}",
        "{app: '{{ full }}', tier: \"{{ vars.tier }}\"}",
        "{app: '{{ web.metadata.name }}'}",
        "{{ web.spec.selector.matchLabels }}",
        "{{ labels }}",
        "{{ spec.labels }}",
        "{app: '{{ spec.app }}'}",
        "{app: '{{ metadata.name | dns_label }}'}",
        "{{ labels | combine({'a': 'b'}) }}",
        "{'{{ spec.key }}': web}",
    ],
)
def test_a_selector_that_may_match_is_not_reported(selector: str) -> None:
    body = f"vars: {{tier: web}}\nlet: {{full: '{NAME}', labels: {{app: '{{{{ full }}}}'}}}}"
    assert found(selector, body=body) == []


def test_labels_of_lets_and_of_other_children_are_followed() -> None:
    lets = "let: {labels: {app: other}, more: {tier: db}}"
    (only,) = found("{{ labels }}", body=lets)
    assert "service.yaml:5:13: warning: selects the Pods of no child: app: other is required" in only
    (only,) = found("{tier: db}", "{{ more }}", own="{{ more }}", body=lets.replace("db", "web"))
    assert 'tier: db is required, and the Pods of "web" have tier: web' in only


@pytest.mark.parametrize(
    "labels",
    [
        "{{ spec.labels }}",
        "{tier: web, '{{ spec.key }}': a}",
        "\n        tier: web\n        {{ spec.labels | to_yaml | indent(8) }}",
        "\n        tier: web\n        {% if spec.x %}\n        name: web\n        {% endif %}",
    ],
)
def test_pods_that_may_have_more_labels_are_not_reported(labels: str) -> None:
    assert found("{name: web}", labels) == []


def test_a_value_of_the_spec_equals_itself_and_nothing_longer() -> None:
    assert found("{app: '{{ spec.app }}-a'}", "{tier: web, app: '{{ spec.app }}-a'}") == []
    assert found("{app: '{{ spec.app }}'}", "{tier: web, app: '{{ spec.other }}'}") == []
    (only,) = found("{app: '{{ spec.app }}'}", "{tier: web, app: '{{ spec.app }}-web'}")
    assert 'app: {{ spec.app }} is required, and the Pods of "web" have app: {{ spec.app }}-web' in only
    (only,) = found("{app: '{{ spec.app }}-a'}", "{tier: web, app: '{{ spec.other }}-b'}")
    assert "app: {{ spec.app }}-a is required" in only


def test_labels_that_controllers_set_are_known() -> None:
    assert found(f"{{statefulset.kubernetes.io/pod-name: '{NAME}-0'}}", kind="StatefulSet") == []


@pytest.mark.slow
def test_a_budget_is_read_with_its_expressions() -> None:
    assert found("{matchLabels: {tier: web}}", selecting=BUDGET) == []
    (only,) = found("{matchLabels: {tier: db}}", selecting=BUDGET)
    assert "tier: db is required" in only
    expression = "{matchExpressions: [{key: tier, operator: In, values: [VALUES]}]}"
    assert found(expression.replace("VALUES", "db, web"), selecting=BUDGET) == []
    (only,) = found(expression.replace("VALUES", "db, cache"), selecting=BUDGET)
    assert "tier: db or cache is required" in only
    (only,) = found("{matchExpressions: [{key: role, operator: Exists}]}", selecting=BUDGET)
    assert 'role is required, and the Pods of "web" have no label role' in only
    assert found("{matchExpressions: [{key: role, operator: DoesNotExist}]}", selecting=BUDGET) == []


def test_a_policy_may_select_pods_of_others() -> None:
    assert found("{matchLabels: {k8s-app: dns}}", selecting=POLICY) == []
    assert found("{matchLabels: {tier: db}}", selecting=POLICY) == []
    assert found("{}", selecting=POLICY) == []
    (only,) = found(f"{{matchLabels: {{app: '{NAME}-web'}}}}", selecting=POLICY)
    assert "app: {{ metadata.name }}-web is required" in only


@pytest.mark.parametrize(
    "explained",
    [
        {"body": "observe: {pods: {version: v1, kind: Pod, selector: {tier: db}}}"},
        {"more": f"  other: {{object: {CLUSTER.replace('GROUP', 'example.org')}}}\n"},
        {"more": "  other: {objects: spec.objects, kinds: [v1/Pod]}\n"},
    ],
)
def test_pods_that_others_may_make_are_not_reported(explained: dict[str, str]) -> None:
    assert found("{tier: db}", **explained) == []


def test_a_custom_kind_that_makes_no_pods_explains_nothing() -> None:
    other = CLUSTER.replace("GROUP", "monitoring.coreos.com")
    assert found("{tier: db}", more=f"  other: {{object: {other.replace('Cluster', 'Prometheus')}}}\n") == []
    assert len(found("{tier: db}", more=f"  other: {{object: {other.replace('Cluster', 'ServiceMonitor')}}}\n")) == 1


def test_a_rule_without_pods_of_its_own_selects_those_of_others() -> None:
    files = {"templates/service.yaml": SERVICE.replace("SELECTOR", "{app: web}")}
    alone = watch("children: {service: {template: service.yaml}}")
    assert [each for each in said(alone, files) if each.startswith("RO508")] == []


def test_pods_of_another_watch_may_be_selected() -> None:
    files = {
        "templates/web.yaml": WORKLOAD.format(kind="Deployment", selector="{tier: web}", labels="{tier: web}"),
        "templates/db.yaml": WORKLOAD.format(kind="StatefulSet", selector="{tier: db}", labels="{tier: db}"),
        "templates/service.yaml": SERVICE.replace("SELECTOR", "{tier: db}"),
    }
    first = watch("children: {web: {template: web.yaml}, service: {template: service.yaml}}")
    second = HEAD.replace("App", "Other") + "  children: {db: {template: db.yaml}}\n"
    assert [each for each in said(first, files) if each.startswith("RO508")] != []
    assert [each for each in said(first + second, files) if each.startswith("RO508")] == []


# -- a workload and its own Pods ---------------------------------------------------------------------------------------


def test_a_workload_whose_selector_does_not_match_its_own_pods_is_an_error() -> None:
    (only,) = found("{tier: web}", f"{{tier: web, app: '{NAME}'}}", own=f"{{app: '{NAME}-web'}}")
    assert only == (
        "RO508 templates/web.yaml:5:33: the selector requires app: {{ metadata.name }}-web, and the Pods of the template "
        "have app: {{ metadata.name }}"
    )
    (only,) = found("{tier: web}", own=f"{{name: '{NAME}'}}")
    assert "the selector requires the label name, and the Pods of the template have none" in only


@pytest.mark.parametrize(
    ("own", "labels"),
    [
        (f"{{app: '{NAME}'}}", "{tier: web, app: '{{ spec.app }}'}"),
        (f"{{app: '{NAME}'}}", "{tier: web, app: web}"),
        (f"{{app: '{NAME}'}}", "{{ spec.labels }}"),
        ("{{ labels }}", "{{ labels | combine({'a': 'b'}) }}"),
        ("{{ labels }}", "{{ labels }}"),
    ],
)
def test_a_workload_that_may_be_accepted_is_not_reported(own: str, labels: str) -> None:
    assert found("{{ spec.labels }}", labels, own=own, body=f"let: {{labels: {{app: '{NAME}'}}}}") == []


def test_literals_that_the_api_server_refuses_are_reported_once() -> None:
    files = {"templates/web.yaml": WORKLOAD.format(kind="Deployment", selector="{a: b}", labels="{a: c}")}
    (only,) = said(watch("children: {web: {template: web.yaml}}"), files)
    assert only.startswith("RO406")


PORTS = "[{name: http, containerPort: 8080}, {containerPort: 9090}]"


@pytest.mark.parametrize(
    ("target", "ports", "warned"),
    [
        ("htpp", PORTS, True),
        ("htpp", "[]", True),
        ("'{{ metadata.name }}'", PORTS, True),
        ("http", PORTS, False),
        ("9090", PORTS, False),
        ("7070", PORTS, False),  # a program may listen on a port that its container does not name
        ("'{{ spec.port }}'", PORTS, False),
        ("http", "[{name: '{{ spec.port }}', containerPort: 8080}]", False),
        ("web", "{{ spec.ports }}", False),
        ("web", "[{ {{ spec.port }} }]", False),
        ("web", "\n        {% for each in spec.ports %}\n        - {name: {{ each.name }}, containerPort: 80}\n        {% endfor %}", False),
        ("web", "\n        - {name: http, containerPort: 80}\n        {{ spec.ports }}", False),
        ("web", "\n        - {name: http, containerPort: 80}\n      {{ spec.sidecars }}", False),
        ("web", "\n        - {name: http, containerPort: 80}\n      - {{ spec.sidecar }}", False),
        ("web", "\n        {% if spec.web %}\n        - {name: web, containerPort: 80}\n        {% endif %}", False),
        ("web", "[]\n      {{ spec.pod }}", False),
        ("web", "[]\n      initContainers: [{name: b, restartPolicy: Always, ports: [{name: web, containerPort: 1}]}]", False),
    ],
)  # fmt: skip
def test_a_port_of_a_service_that_its_pods_do_not_name_is_reported(target: str, ports: str, warned: bool) -> None:
    workload = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ metadata.name }}'}\nspec:\n"
        "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n"
        f"      containers:\n      - name: a\n        image: 'b:1'\n        ports: {ports}\n"
    )
    service = SERVICE.replace("SELECTOR", "{app: web}").replace("{port: 80}", f"{{port: 80, targetPort: {target}}}")
    children = "children:\n  web: {template: web.yaml}\n  service: {template: service.yaml}\n"
    everything = said(watch(children), {"templates/web.yaml": workload, "templates/service.yaml": service})
    shown = [each for each in everything if each.startswith("RO507")]
    assert not [each for each in everything if each.startswith("RO1")]
    assert bool(shown) == warned
    if target == "htpp" and ports == PORTS:
        assert shown == [
            'RO507 templates/service.yaml:6:34: warning: the Pods of "web" have no port named htpp (did you mean http?)'
        ]
