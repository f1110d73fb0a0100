"""References of Pods to ConfigMaps, Secrets and keys that nothing provides are reported."""

from __future__ import annotations

import pytest

from tests.authoring.checking.projects import said
from tests.language.rules.projects import HEAD, watch

CONFIG = "apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n{data}\n"
POD = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ metadata.name }}'}\nspec:\n"
    "  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec:\n"
    "      containers: [{name: a, image: 'b:1', SOURCES}]\n      MORE\n"
)
NAME = "{{ metadata.name }}"
KEY = 'env: [{name: A, valueFrom: {configMapKeyRef: {name: "REF", key: KEY}}}]'


def found(
    sources: str = "",
    *,
    more: str = "",
    name: str = f"{NAME}-config",
    kind: str = "ConfigMap",
    data: str = "data: {a: b, c: d}",
    body: str = "",
    child: str = "",
    prefix: str = "",
) -> list[str]:
    files = {
        "templates/pod.yaml": prefix + POD.replace("SOURCES", sources or "env: []").replace("MORE", more),
        "templates/config.yaml": CONFIG.format(kind=kind, name=name, data=data),
    }
    watches = watch(
        f"{body}\nchildren:\n  pod: {{template: pod.yaml}}\n  config:\n    template: config.yaml\n    {child}"
    )
    return [each for each in said(watches, files) if each.startswith("RO507")]


def key(name: str, key: str = "a") -> str:
    return KEY.replace("REF", name).replace("KEY", key)


HINT = f'(the ConfigMap of the child "config" is named {NAME}-config)'
TO_DO = "make it a child, observe it, or set `optional: true`"


def missing(column: int, name: str, hint: str = f" {HINT}", line: int = 9) -> list[str]:
    return [f"RO507 templates/pod.yaml:{line}:{column}: warning: nothing provides the ConfigMap {name}{hint}: {TO_DO}"]


@pytest.mark.parametrize(
    ("sources", "column"),
    [
        (key(f"{NAME}-confg"), 96),
        (f"envFrom: [{{configMapRef: {{name: '{NAME}-confg'}}}}]", 76),
    ],
)
def test_a_misspelt_name_is_reported_with_the_nearest_child(sources: str, column: int) -> None:
    assert found(sources) == missing(column, f"{NAME}-confg")


@pytest.mark.parametrize(
    "volume",
    [
        "configMap: {{name: '{}'}}",
        "projected: {{sources: [{{configMap: {{name: '{}'}}}}]}}",
    ],
)
def test_volumes_are_read(volume: str) -> None:
    more = "volumes: [{name: v, " + volume.format(f"{NAME}-confg") + "}]"
    (only,) = found(more=more)
    assert f"nothing provides the ConfigMap {NAME}-confg {HINT}" in only
    assert found(more=more.replace("confg", "config")) == []


@pytest.mark.parametrize(
    "sources",
    [
        "env: [{name: A, valueFrom: {secretKeyRef: {name: 'X', key: k}}}]",
        "envFrom: [{secretRef: {name: X}}]",
    ],
)
def test_a_constant_name_that_nothing_provides_is_reported(sources: str) -> None:
    (only,) = found(sources)
    assert f"warning: nothing provides the Secret X: {TO_DO}" in only


def test_accounts_and_pull_secrets_are_reported_if_their_names_derive_from_the_resource() -> None:
    (account,) = found(more=f"serviceAccountName: '{NAME}-runner'")
    assert f"nothing provides the ServiceAccount {NAME}-runner: make it a child, or observe it" in account
    (pull,) = found(more=f"imagePullSecrets: [{{name: '{NAME}-pull'}}]")
    assert f"nothing provides the Secret {NAME}-pull" in pull
    assert found(more="serviceAccountName: builder") == []
    assert found(more="imagePullSecrets: [{name: registry}]") == []


@pytest.mark.parametrize(
    "ref",
    [
        f"{NAME}-config",
        "{{ cr.metadata.name }}-config",
        "{{ metadata.name ~ '-config' }}",
        "{{ full }}",
        "{{ names.config }}",
        "{{ config.metadata.name }}",
        "{{ live.config.metadata.name }}",
        "{{ metadata.name }}-{{ vars.suffix }}",
        "{{ spec.config }}",
        "{{ spec.config | default(metadata.name ~ '-confg') }}",
        "{{ spec.prefix }}-confg",
        "{{ settings.metadata.name }}",
        f"{NAME}-settings",
        "kube-root-ca.crt",
    ],
)
def test_a_name_with_an_explanation_is_not_reported(ref: str) -> None:
    body = (
        f"vars: {{suffix: config}}\nlet: {{full: '{NAME}-config', names: {{config: '{{{{ full }}}}'}}}}\n"
        f"observe: {{settings: {{version: v1, kind: ConfigMap, name: '{NAME}-settings'}}}}"
    )
    assert found(key(ref), body=body) == []


@pytest.mark.parametrize(
    ("name", "child"),
    [
        (f"{NAME}-{{{{ item }}}}", "forEach: spec.list"),
        ("{{ metadata.name | dns_label('config') }}", ""),
        ("{{ full }}", ""),
        (f"{NAME}{{% if spec.x is defined %}}-other{{% else %}}-config{{% endif %}}", ""),
    ],
)
def test_a_child_whose_name_may_be_the_same_explains_a_reference(name: str, child: str) -> None:
    assert found(key(f"{NAME}-config"), name=f'"{name}"', child=child, body=f"let: {{full: '{NAME}-config'}}") == []


def test_names_that_a_template_sets_are_followed() -> None:
    prefix = "{% set full = metadata.name ~ '-confg' %}\n"
    assert found(key("{{ full }}"), prefix=prefix) == missing(96, f"{NAME}-confg", line=10)
    assert found(key("{{ full }}"), prefix=prefix.replace("confg", "config")) == []
    twice = "{% set full = metadata.name ~ '-confg' %}{% set full = full ~ '-x' %}\n"
    assert found(key("{{ full }}"), prefix=twice) == []
    macro = "{% set full = metadata.name ~ '-confg' %}{% macro ref(full) %}{{ full }}{% endmacro %}\n"
    assert found(key("{{ ref(metadata.name ~ '-config') }}"), prefix=macro) == []


def test_an_optional_reference_is_not_reported() -> None:
    optional = f"envFrom: [{{configMapRef: {{name: '{NAME}-confg', optional: true}}}}]"
    assert found(optional) == []
    assert found(optional.replace("true", "'{{ spec.x }}'")) == []
    assert found(optional.replace("true", "false")) != []


@pytest.mark.parametrize(
    ("kind", "name", "data"),
    [
        ("Certificate", f"{NAME}-cert", f"spec: {{secretName: '{NAME}-tls'}}"),
        ("Cluster", f"{NAME}", "spec: {}"),
        ("SealedSecret", f"{NAME}-tls", "spec: {}"),
    ],
)
def test_an_object_of_a_custom_kind_may_make_the_secret(kind: str, name: str, data: str) -> None:
    text = CONFIG.format(kind=kind, name=f"'{name}'", data=data).replace("v1\n", "example.org/v1\n", 1)
    pod = POD.replace("SOURCES", f"envFrom: [{{secretRef: {{name: '{NAME}-tls'}}}}]").replace("MORE", "")
    watches = watch("children:\n  pod: {template: pod.yaml}\n  other: {template: other.yaml}")
    files = {"templates/pod.yaml": pod, "templates/other.yaml": text}
    assert [each for each in said(watches, files) if each.startswith("RO507")] == []
    monitor = files | {"templates/other.yaml": text.replace("example.org", "monitoring.coreos.com")}
    has_name = f"{NAME}-tls" in text
    assert ([each for each in said(watches, monitor) if each.startswith("RO507")] == []) is has_name


@pytest.mark.parametrize(
    "more", ["args: ['--secret={{ metadata.name }}-tls']", "command: [make, '{{ metadata.name }}-tls']"]
)
def test_a_program_may_make_the_secret_that_its_arguments_name(more: str) -> None:
    sources = f"envFrom: [{{secretRef: {{name: '{NAME}-tls'}}}}]"
    assert found(sources) != []
    assert found(f"{more}, {sources}") == []


def test_a_child_of_another_watch_explains_a_reference() -> None:
    files = {
        "templates/pod.yaml": POD.replace("SOURCES", key(f"{NAME}-config")).replace("MORE", ""),
        "templates/config.yaml": CONFIG.format(kind="ConfigMap", name=f"{NAME}-config", data=""),
    }
    first = watch("children: {pod: {template: pod.yaml}}")
    second = HEAD.replace("App", "Other") + "  children: {config: {template: config.yaml}}\n"
    assert [each for each in said(first, files) if each.startswith("RO507")] != []
    assert [each for each in said(first + second, files) if each.startswith("RO507")] == []


# -- keys --------------------------------------------------------------------------------------------------------------


def test_a_key_that_the_child_does_not_have_is_an_error() -> None:
    assert found(key(f"{NAME}-config", "databse"), data="data: {database: b, other: c}") == [
        'RO507 templates/pod.yaml:9:131: the ConfigMap of the child "config" has no key "databse" (did you mean database?)'
    ]
    (only,) = found(key("{{ config.metadata.name }}", "x"))
    assert 'has no key "x" (it has a, c)' in only


def test_keys_of_volumes_and_secrets_are_read() -> None:
    volume = f"volumes: [{{name: v, secret: {{secretName: '{NAME}-config', items: [{{key: KEY, path: p}}]}}}}]"
    data = "stringData: {password: a}"
    (only,) = found(more=volume.replace("KEY", "pasword"), kind="Secret", data=data)
    assert 'the Secret of the child "config" has no key "pasword" (did you mean password?)' in only
    assert found(more=volume.replace("KEY", "password"), kind="Secret", data=data) == []


@pytest.mark.parametrize(
    "data",
    [
        "data: {a: b, x: c}",
        "data: {a: b}\nbinaryData: {x: 'Yg=='}",
        "data:\n  a: b\n{% if spec.y is defined %}\n  x: c\n{% endif %}",
        "data:\n  a: b\n{% for k in spec.keys %}\n  {{ k }}: c\n{% endfor %}",
        "data:\n  a: b\n  {{ spec.more | to_yaml | indent(2) }}",
        "data: {{ spec.data }}",
        "immutable: true",
        "type: kubernetes.io/service-account-token\ndata: {a: b}",
    ],
)
def test_keys_that_may_exist_are_not_reported(data: str) -> None:
    assert found(key(f"{NAME}-config", "x"), data=data) == []


def test_keys_that_others_write_are_not_reported() -> None:
    ignoring = "apply: {ignore: [data]}"
    assert found(key(f"{NAME}-config", "x"), child=ignoring) == []


CHOSEN = "{% if spec.x %}-other{% else %}-config{% endif %}"


@pytest.mark.parametrize(
    "name", [f'"{NAME}{CHOSEN}"', f">-\n          {NAME}{{# on the next line #}}\n          {CHOSEN}"]
)
def test_a_name_with_a_condition_may_be_any(name: str) -> None:
    text = POD.replace("SOURCES", key(f"{NAME}-config")).replace("MORE", "")
    config = (
        f"\n      apiVersion: v1\n      kind: ConfigMap\n      data: {{a: b}}\n      metadata:\n        name: {name}"
    )
    watches = watch(f"children:\n  pod: {{template: pod.yaml}}\n  config:\n    object: {config}")
    assert [each for each in said(watches, {"templates/pod.yaml": text}) if each.startswith("RO507")] == []


def test_a_condition_of_another_field_on_the_line_hides_nothing() -> None:
    sources = f"envFrom: [{{configMapRef: {{name: '{NAME}-confg'}}}}], args: ['{CHOSEN}']"
    assert found(sources) == missing(76, f"{NAME}-confg")


def test_a_computed_key_is_not_reported() -> None:
    assert found(key(f"{NAME}-config", "'{{ spec.key }}'")) == []


def test_the_keys_of_two_children_that_may_have_the_name_are_not_known() -> None:
    assert found(key(f"{NAME}-config", "x"), name=f"{NAME}-{{{{ item }}}}", child="forEach: spec.list") == []


def test_a_line_can_be_allowed() -> None:
    allowed = "SOURCES}]  # ruleop: allow RO507 the platform makes it"
    text = POD.replace("SOURCES}]", allowed).replace("SOURCES", "envFrom: [{secretRef: {name: X}}]").replace("MORE", "")
    found_here = said(watch("children: {pod: {template: pod.yaml}}"), {"templates/pod.yaml": text})
    assert [each for each in found_here if each.startswith(("RO507", "RO80"))] == []


# -- other objects than Pods -------------------------------------------------------------------------------------------

SERVICE = "{apiVersion: v1, kind: Service, metadata: {name: '{{ metadata.name }}-web'}, spec: {ports: [{port: 80}]}}"
WEB = (
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: '{{ metadata.name }}-web'}, spec: {selector: {matchLabels: "
    "{a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: 'b:1'}]}}}}"
)
RBAC = "apiVersion: rbac.authorization.k8s.io/v1"
ROLE = f"{{{RBAC}, kind: Role, metadata: {{name: '{NAME}-web'}}, rules: []}}"
ACCOUNT = f"{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: '{NAME}-web'}}}}"
CLAIM = (
    f"{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: '{NAME}-web'}}, spec: {{accessModes: "
    "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
)
TLS = f"{{apiVersion: v1, kind: Secret, metadata: {{name: '{NAME}-web'}}}}"
REFERRERS = {
    "scaler": (
        "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 3, "
        "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: 'REF'}}}"
    ),
    "ingress": (
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {rules: [{host: a.b, http: {paths: "
        "[{path: /, pathType: Prefix, backend: {service: {name: 'REF', port: {number: 80}}}}]}}]}}"
    ),
    "default": (
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {defaultBackend: {service: "
        "{name: 'REF', port: {number: 80}}}}}"
    ),
    "tls": (
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {tls: [{secretName: 'REF'}], rules: "
        "[{host: a.b}]}}"
    ),
    "role": (
        f"{{{RBAC}, kind: RoleBinding, metadata: {{name: a}}, roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, "
        "name: 'REF'}, subjects: []}"
    ),
    "subject": (
        f"{{{RBAC}, kind: RoleBinding, metadata: {{name: a}}, roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: "
        "ClusterRole, name: view}, subjects: [{kind: ServiceAccount, name: 'REF', namespace: '{{ metadata.namespace }}'}]}"
    ),
    "headless": (
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {serviceName: 'REF', selector: {matchLabels: "
        "{a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: 'b:1'}]}}}}"
    ),
    "claim": (
        "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: 'b:1'}], volumes: [{name: v, "
        "persistentVolumeClaim: {claimName: 'REF'}}]}}"
    ),
}
TARGETS = {
    "scaler": WEB,
    "ingress": SERVICE,
    "default": SERVICE,
    "tls": TLS,
    "role": ROLE,
    "subject": ACCOUNT,
    "headless": SERVICE,
    "claim": CLAIM,
}
KINDS = {
    "scaler": "Deployment",
    "tls": "Secret",
    "role": "Role",
    "subject": "ServiceAccount",
    "claim": "PersistentVolumeClaim",
}


def missing_of(referrer: str, ref: str, target: str | None = None, *, body: str = "", more: str = "") -> list[str]:
    """The findings of a referrer beside a child `web` of this object; "" is none."""
    object_ = TARGETS[referrer] if target is None else target
    web = f"  web:\n    object: {object_}\n" if object_ else ""
    children = f"children:\n{web}  a:\n    object: {REFERRERS[referrer].replace('REF', ref)}\n{more}"
    return [each for each in said(watch(f"{body}\n{children}")) if each.startswith("RO507")]


@pytest.mark.parametrize("referrer", REFERRERS)
def test_a_name_beside_that_of_a_child_is_reported(referrer: str) -> None:
    (only,) = missing_of(referrer, f"{NAME}-wbe")
    kind = KINDS.get(referrer, "Service")
    hint = f'(the {kind} of the child "web" is named {NAME}-web)'
    assert f"warning: nothing provides the {kind} {NAME}-wbe {hint}: make it a child, or observe it" in only


@pytest.mark.parametrize("referrer", REFERRERS)
@pytest.mark.parametrize(
    "ref",
    [
        f"{NAME}-web",
        "{{ web.metadata.name }}",
        "{{ live.web.metadata.name }}",
        "{{ spec.name }}",
        "{{ spec.name }}-wbe",
        '{{ metadata.name | dns_label("wbe") }}',
        '{{ spec.name | default(metadata.name ~ "-wbe") }}',
    ],
)
def test_a_name_that_may_be_right_is_not_reported(referrer: str, ref: str) -> None:
    assert missing_of(referrer, ref) == []


@pytest.mark.parametrize("referrer", REFERRERS)
def test_an_observed_object_explains_a_name(referrer: str) -> None:
    kind = KINDS.get(referrer, "Service")
    group = {"scaler": "group: apps, ", "role": "group: rbac.authorization.k8s.io, "}.get(referrer, "")
    for found_by in (f"name: '{NAME}-wbe'", "selector: {a: b}"):
        observed = f"observe: {{other: {{{group}version: v1, kind: {kind}, {found_by}}}}}"
        assert missing_of(referrer, f"{NAME}-wbe", body=observed) == []


@pytest.mark.parametrize("referrer", sorted(REFERRERS.keys() - {"claim"}))
def test_the_name_of_the_resource_alone_may_be_that_of_an_object_of_its_author(referrer: str) -> None:
    assert missing_of(referrer, NAME, "") == []
    assert len(missing_of(referrer, NAME)) == 1


@pytest.mark.parametrize("referrer", sorted(REFERRERS.keys() - {"claim"}))
def test_a_constant_may_be_of_the_platform(referrer: str) -> None:
    assert missing_of(referrer, "shared") == []
    similar = TARGETS[referrer].replace(f"{NAME}-web", "shared-web")
    assert len(missing_of(referrer, "shared-wbe", similar)) == 1


@pytest.mark.parametrize(
    ("referrer", "is_reported"), [("scaler", True), ("role", True), ("headless", False), ("tls", False)]
)
def test_a_name_of_a_kind_that_the_rule_does_not_make(referrer: str, *, is_reported: bool) -> None:
    assert (missing_of(referrer, f"{NAME}-wbe", "") != []) is is_reported


def test_an_object_of_a_custom_kind_may_make_the_service() -> None:
    other = f"  other: {{object: {{apiVersion: example.org/v1, kind: Cluster, metadata: {{name: '{NAME}-db'}}}}}}\n"
    assert missing_of("ingress", f"{NAME}-db-rw") != []
    assert missing_of("ingress", f"{NAME}-db-rw", more=other) == []
    assert missing_of("ingress", f"{NAME}-db", more=other) == []
    assert missing_of("ingress", f"cluster-{NAME}-db", more=other) == []
    monitor = other.replace("example.org", "monitoring.coreos.com").replace("Cluster", "ServiceMonitor")
    assert missing_of("ingress", f"{NAME}-db-rw", more=monitor) != []


def test_an_annotation_of_an_ingress_makes_its_secret() -> None:
    annotated = REFERRERS["tls"].replace("{name: a}", "{name: a, annotations: {cert-manager.io/cluster-issuer: a}}")
    children = f"children:\n  web:\n    object: {TLS}\n  a:\n    object: {annotated.replace('REF', f'{NAME}-tls')}"
    assert [each for each in said(watch(children)) if each.startswith("RO507")] == []


def test_an_account_of_another_namespace_is_not_reported() -> None:
    other = REFERRERS["subject"].replace("'{{ metadata.namespace }}'", "monitoring").replace("REF", f"{NAME}-wbe")
    assert [each for each in said(watch(f"children:\n  a:\n    object: {other}")) if each.startswith("RO507")] == []


def test_a_claim_of_a_stateful_set_is_provided() -> None:
    stateful = (
        REFERRERS["headless"]
        .replace("serviceName: 'REF', ", "")
        .replace("{name: a}, spec", f"{{name: '{NAME}'}}, spec")
    )
    templates = (
        "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: "
        "{storage: 1Gi}}}}], selector"
    )
    assert missing_of("claim", f"data-{NAME}-0", stateful.replace("selector", templates, 1)) == []
    assert len(missing_of("claim", f"other-{NAME}-0", stateful.replace("selector", templates, 1))) == 1
