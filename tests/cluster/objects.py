"""Objects as people write them, from small building blocks: what ruleop applies, and what somebody else adds to it.

Names and values come from small pools, so that the two want the same fields often, sometimes with the same value.
`whole` is accepted by the server on its own; a `share` holds only what one more party has to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.cluster import everything

Strategy = st.SearchStrategy[Any]


@dataclass(frozen=True)
class Subject:
    """A kind, and what is written of it. The strategies give the object without apiVersion, kind and name."""

    api_version: str
    kind: str
    plural: str
    whole: Strategy
    share: Strategy

    @property
    def path(self) -> str:
        return f"/{'apis' if '/' in self.api_version else 'api'}/{self.api_version}/namespaces/default/{self.plural}"

    def named(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            **body,
            "metadata": {**body.get("metadata", {}), "name": name},
        }


def pick(*values: Any) -> Strategy:
    return st.sampled_from(values)


def some(**optional: Strategy) -> Strategy:
    return st.fixed_dictionaries({}, optional=optional)


def with_(required: dict[str, Strategy], **optional: Strategy) -> Strategy:
    return st.fixed_dictionaries(required, optional=optional)


def named(name: str, names: tuple[Any, ...], items: Strategy, least: int = 0, most: int = 3) -> Strategy:
    """A list of items that have different names."""
    found = st.dictionaries(pick(*names), items, min_size=least, max_size=most)
    return found.map(lambda members: [{name: key, **item} for key, item in members.items()])


def members(names: str, values: Strategy, least: int = 0) -> Strategy:
    return st.dictionaries(pick(*names.split()), values, min_size=least, max_size=3)


def subset(*values: Any, least: int = 0) -> Strategy:
    return st.lists(pick(*values), unique=True, min_size=least, max_size=3)


WORDS = pick("x", "y", "")
TEXTS = members("a b c", WORDS)
OWNERS = named(
    "uid",
    ("1111", "2222"),
    st.builds(lambda name: {"apiVersion": "example.com/v1", "kind": "Owner", "name": name}, pick("one", "two")),
)
METADATA = some(
    labels=members("a b example.com/c", pick("x", "y")),
    annotations=TEXTS,
    finalizers=subset("example.com/a", "example.com/b", "example.com/c"),
    ownerReferences=OWNERS,
)


# Pods

FROM = st.one_of(
    st.just({"fieldRef": {"fieldPath": "metadata.name"}}),
    with_({"name": pick("s", "t"), "key": pick("k")}, optional=st.booleans()).map(lambda ref: {"secretKeyRef": ref}),
    with_({"resource": pick("limits.cpu")}, divisor=pick("1", "1000m", "0")).map(lambda ref: {"resourceFieldRef": ref}),
)
ENV = named("name", ("A", "B", "C"), st.one_of(some(value=WORDS), st.builds(lambda ref: {"valueFrom": ref}, FROM)))
RESOURCES = some(
    limits=some(cpu=pick("2", "2000m"), memory=pick("1Gi", "1024Mi")),
    requests=some(cpu=pick("1", "1000m", "500m", "0.5"), memory=pick("512Mi", "0.5Gi", "536870912")),
)
HANDLER = st.one_of(
    with_({"port": pick(80, "web")}, path=pick("/", "/ready"), scheme=pick("HTTP", "HTTPS")).map(
        lambda check: {"httpGet": check}
    ),
    with_({"port": pick(80, 81)}).map(lambda check: {"tcpSocket": check}),
    st.just({"exec": {"command": ["true"]}}),
)
TIMES = some(periodSeconds=pick(5, 10), failureThreshold=pick(2, 3), initialDelaySeconds=pick(1, 2))
PROBE = st.builds(lambda handler, times: {**handler, **times}, HANDLER, TIMES)
SECURITY = some(
    runAsUser=pick(1, 2),
    runAsNonRoot=st.booleans(),
    capabilities=some(drop=subset("ALL", "CHOWN"), add=subset("SYS_TIME", least=1)),
    seccompProfile=st.just({"type": "RuntimeDefault"}),
)
VOLUME = st.one_of(
    some(medium=pick("Memory", ""), sizeLimit=pick("1Gi", "1024Mi")).map(lambda source: {"emptyDir": source}),
    with_(
        {"name": pick("cm", "cm2")},
        defaultMode=pick(420, 256),
        optional=st.booleans(),
        items=st.lists(st.just({"key": "k", "path": "p"}), max_size=1),
    ).map(lambda source: {"configMap": source}),
    with_({"secretName": pick("s")}, defaultMode=pick(420, 256)).map(lambda source: {"secret": source}),
    with_({"claimName": pick("c", "d")}, readOnly=st.booleans()).map(lambda source: {"persistentVolumeClaim": source}),
    st.lists(
        st.one_of(st.just({"configMap": {"name": "cm"}}), st.just({"serviceAccountToken": {"path": "token"}})),
        max_size=2,
    ).map(lambda sources: {"projected": {"sources": sources}}),
)
PORTS = st.lists(
    with_({"containerPort": pick(80, 53)}, protocol=pick("TCP", "UDP"), hostIP=pick("127.0.0.1")),
    unique_by=lambda port: (port["containerPort"], port.get("protocol", "TCP")),
    max_size=3,
)
TERM = st.just({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]})
AFFINITY = some(
    nodeAffinity=some(
        requiredDuringSchedulingIgnoredDuringExecution=st.lists(TERM, min_size=1, max_size=1).map(
            lambda terms: {"nodeSelectorTerms": terms}
        ),
        preferredDuringSchedulingIgnoredDuringExecution=st.lists(
            st.builds(lambda weight, term: {"weight": weight, "preference": term}, pick(1, 2), TERM), max_size=2
        ),
    ),
    podAntiAffinity=st.just({"preferredDuringSchedulingIgnoredDuringExecution": []}),
)
TOLERATIONS = st.lists(
    with_({"operator": pick("Exists")}, key=pick("a", "b"), tolerationSeconds=st.just(5)).map(
        lambda toleration: {**toleration, "effect": "NoExecute"}
    ),
    max_size=2,
)
SPREAD = st.lists(
    with_(
        {
            "topologyKey": pick("zone", "host"),
            "whenUnsatisfiable": pick("DoNotSchedule", "ScheduleAnyway"),
            "maxSkew": pick(1, 2),
        },
        labelSelector=st.just({"matchLabels": {"app": "x"}}),
        nodeTaintsPolicy=pick("Honor", "Ignore"),
    ),
    unique_by=lambda item: (item["topologyKey"], item["whenUnsatisfiable"]),
    max_size=3,
)
MOUNTS = named(
    "mountPath",
    ("/a", "/b"),
    with_({"name": pick("data", "conf", "tmp")}, readOnly=st.booleans(), subPath=pick("s")),
    most=2,
)


def container(*, whole: bool) -> Strategy:
    image = pick("app:1", "app:2")
    optional = {
        "args": st.lists(WORDS, max_size=2),
        "command": st.lists(pick("run"), max_size=1),
        "env": ENV,
        "ports": PORTS,
        "resources": RESOURCES,
        "livenessProbe": PROBE if whole else st.one_of(TIMES, PROBE),
        "readinessProbe": PROBE,
        "securityContext": SECURITY,
        "volumeMounts": MOUNTS,
        "imagePullPolicy": pick("Always", "IfNotPresent"),
        "workingDir": WORDS,
        "lifecycle": st.just({"preStop": {"exec": {"command": ["true"]}}}),
        "envFrom": st.lists(st.just({"configMapRef": {"name": "cm"}}), max_size=1),
    }
    return with_({"image": image}, **optional) if whole else some(image=image, **optional)


def pod_spec(*, whole: bool) -> Strategy:
    containers = named("name", ("app", "side", "log"), container(whole=whole), least=int(whole))
    optional = {
        "initContainers": named(
            "name",
            ("init", "sidecar"),
            with_({"image": pick("init:1")}, env=ENV, restartPolicy=st.just("Always")),
            most=2,
        ),
        "volumes": named("name", ("data", "conf", "tmp"), VOLUME),
        "tolerations": TOLERATIONS,
        "nodeSelector": TEXTS,
        "imagePullSecrets": named("name", ("s", "t"), st.just({}), most=2),
        "topologySpreadConstraints": SPREAD,
        "hostAliases": named("ip", ("1.2.3.4", "1.2.3.5"), some(hostnames=subset("h", "i", least=1)), most=2),
        "securityContext": some(fsGroup=pick(1, 2), runAsUser=pick(1), supplementalGroups=subset(1, 2)),
        "affinity": AFFINITY,
        "serviceAccountName": pick("one", "two"),
        "terminationGracePeriodSeconds": pick(0, 30, 60),
        "dnsConfig": some(
            nameservers=st.just(["1.1.1.1"]), options=named("name", ("ndots",), some(value=pick("2", "3")), most=1)
        ),
        "hostNetwork": st.just(False),
        "schedulingGates": st.just([]),
    }
    return (with_({"containers": containers}, **optional) if whole else some(containers=containers, **optional)).map(
        mounted
    )


def mounted(spec: dict[str, Any]) -> dict[str, Any]:
    """Only volumes that are there are mounted."""
    volumes = {volume["name"] for volume in spec.get("volumes", ())}
    for each in spec.get("containers", ()):
        if "volumeMounts" in each:
            each["volumeMounts"] = [mount for mount in each["volumeMounts"] if mount["name"] in volumes]
    return spec


def workload(api_version: str, kind: str, plural: str, fixed: dict[str, Any], **spec: Strategy) -> Subject:
    selector = {"matchLabels": {"app": "x"}}

    def build_whole(metadata: Any, fields: Any, labels: Any, annotations: Any, pod: Any) -> dict[str, Any]:
        template = {"metadata": {"labels": {"app": "x", **labels}, **annotations}, "spec": pod}
        return {"metadata": metadata, "spec": {**fixed, **fields, "selector": selector, "template": template}}

    def build_share(metadata: Any, fields: Any, template: Any) -> dict[str, Any]:
        return {"metadata": metadata, "spec": {**fields, **({"template": template} if template else {})}}

    annotations = some(annotations=TEXTS)
    template = some(metadata=some(labels=members("a b", WORDS), annotations=TEXTS), spec=pod_spec(whole=False))
    whole = st.builds(build_whole, METADATA, some(**spec), members("a b", WORDS), annotations, pod_spec(whole=True))
    return Subject(api_version, kind, plural, whole, st.builds(build_share, METADATA, some(**spec), template))


ROLLING = some(maxSurge=pick(1, "25%"), maxUnavailable=pick(1, 2, "50%"))
DEPLOYMENT = workload(
    "apps/v1",
    "Deployment",
    "deployments",
    {},
    replicas=pick(0, 1, 2),
    strategy=st.one_of(
        st.just({"type": "Recreate"}), with_({"type": pick("RollingUpdate")}, rollingUpdate=ROLLING), st.just({})
    ),
    minReadySeconds=pick(0, 1, 2),
    revisionHistoryLimit=pick(3, 10),
    paused=st.booleans(),
    progressDeadlineSeconds=pick(600, 60),
)
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
}
STATEFUL_SET = workload(
    "apps/v1",
    "StatefulSet",
    "statefulsets",
    {"serviceName": "db", "volumeClaimTemplates": [CLAIM]},
    replicas=pick(0, 1, 2),
    updateStrategy=st.one_of(
        st.just({"type": "OnDelete"}),
        with_({"type": pick("RollingUpdate")}, rollingUpdate=some(partition=pick(0, 1))),
        st.just({}),
    ),
    minReadySeconds=pick(0, 1),
    persistentVolumeClaimRetentionPolicy=some(
        whenDeleted=pick("Delete", "Retain"), whenScaled=pick("Delete", "Retain")
    ),
    ordinals=some(start=pick(0, 1)),
    revisionHistoryLimit=pick(3, 10),
)


# Services


def service_port(number: int, protocol: str | None, name: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {
        "port": number,
        **({"protocol": protocol} if protocol else {}),
        "name": f"{name}{number}{(protocol or 'TCP').lower()}",
        **rest,
    }


SERVICE_PORTS = st.lists(
    st.builds(
        service_port,
        pick(80, 53, 443),
        pick(None, "TCP", "UDP"),
        pick("p", "q"),
        some(targetPort=pick(8080, "web", 80), appProtocol=pick("http")),
    ),
    unique_by=lambda port: (port["port"], port.get("protocol", "TCP")),
    min_size=1,
    max_size=3,
)
AFFINE = st.one_of(
    st.just({}),
    st.just({"sessionAffinity": "None"}),
    st.just({"sessionAffinity": "ClientIP"}),
    pick(60, 10800).map(
        lambda time: {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": time}}}
    ),
)
EXTERNAL = {"externalTrafficPolicy": pick("Cluster", "Local")}
TYPE = st.one_of(
    some(type=pick("ClusterIP")),
    with_({"type": pick("NodePort")}, **EXTERNAL),
    with_(
        {"type": pick("LoadBalancer")},
        **EXTERNAL,
        loadBalancerSourceRanges=st.lists(pick("10.0.0.0/8", "192.168.0.0/16"), unique=True, max_size=2),
        allocateLoadBalancerNodePorts=st.booleans(),
        loadBalancerIP=pick("1.2.3.4"),
    ),
)
SERVICE_REST = some(
    selector=members("app tier", pick("x", "y")),
    externalIPs=st.lists(pick("1.2.3.4", "1.2.3.5"), unique=True, max_size=2),
    internalTrafficPolicy=pick("Cluster", "Local"),
    publishNotReadyAddresses=st.booleans(),
    ipFamilyPolicy=pick("SingleStack"),
)
SERVICE = Subject(
    "v1",
    "Service",
    "services",
    st.builds(
        lambda metadata, ports, affine, kind, rest: {
            "metadata": metadata,
            "spec": {"ports": ports, **affine, **kind, **rest},
        },
        METADATA,
        SERVICE_PORTS,
        AFFINE,
        TYPE,
        SERVICE_REST,
    ),
    st.builds(
        lambda metadata, ports, affine, rest: {"metadata": metadata, "spec": {**ports, **affine, **rest}},
        METADATA,
        some(ports=SERVICE_PORTS),
        AFFINE,
        SERVICE_REST,
    ),
)


# The plain ones

CONFIG = some(
    metadata=METADATA,
    data=members("a b c", pick("1", "2", "", "line\nline", "ümläut 😀")),
    binaryData=members("d e", pick("AAE=", "AQ==", "")),
)
CONFIG_MAP = Subject("v1", "ConfigMap", "configmaps", CONFIG, CONFIG)

BACKEND = st.builds(
    lambda name, port: {"service": {"name": name, "port": port}},
    pick("web", "api"),
    pick({"number": 80}, {"number": 81}, {"name": "http"}),
)
RULE = with_(
    {},
    host=pick("a.example.com", "b.example.com"),
    http=st.lists(
        st.builds(
            lambda path, kind, backend: {"path": path, "pathType": kind, "backend": backend},
            pick("/", "/x"),
            pick("Prefix"),
            BACKEND,
        ),
        min_size=1,
        max_size=2,
    ).map(lambda paths: {"paths": paths}),
)
RULES = st.lists(RULE, min_size=1, max_size=2)
TLS = {
    "ingressClassName": pick("one", "two"),
    "tls": st.lists(some(hosts=subset("a.example.com", "b.example.com"), secretName=pick("s")), max_size=2),
}
INGRESS_REST = {"rules": st.lists(RULE, max_size=2), **TLS}
INGRESS = Subject(
    "networking.k8s.io/v1",
    "Ingress",
    "ingresses",
    with_(
        {
            "metadata": METADATA,
            "spec": st.one_of(with_({"defaultBackend": BACKEND}, **INGRESS_REST), with_({"rules": RULES}, **TLS)),
        }
    ),
    some(metadata=METADATA, spec=some(defaultBackend=BACKEND, **INGRESS_REST)),
)


# Every list and map that a CRD can declare

ANY = st.recursive(
    pick("x", 1, 1.5, True, ""),
    lambda inner: st.one_of(st.lists(inner, max_size=2), members("a b c", inner)),
    max_leaves=4,
)
STRUCT = some(a=WORDS, b=pick("x", "y"))
BY_NAME = named(
    "name",
    ("one", "two", "three"),
    some(
        value=WORDS,
        filled=pick("x", "by the server"),
        tags=subset("x", "y", "z"),
        args=st.lists(WORDS, max_size=2),
        labels=TEXTS,
        inner=named("name", ("i", "j"), some(value=WORDS), most=2),
        struct=STRUCT,
    ),
)
BY_TWO = st.lists(
    with_({"host": pick("h", "i"), "port": pick(1, 2)}, weight=pick(1, 2)),
    unique_by=lambda item: (item["host"], item["port"]),
    max_size=3,
)
CUSTOM_PORTS = st.lists(
    with_({"port": pick(80, 53)}, protocol=pick("TCP", "UDP"), name=WORDS, to=pick(1, 2)),
    unique_by=lambda item: (item["port"], item.get("protocol", "TCP")),
    max_size=3,
)
SPEC = some(
    text=WORDS,
    number=pick(0, 1, 2),
    fraction=pick(0.5, 1.5, 2),
    flag=st.booleans(),
    either=pick(1, "1", "50%"),
    filled=pick("x", "by the server"),
    struct=some(a=WORDS, b=pick(1, 2), filled=pick(7, 8), deep=some(c=WORDS, d=TEXTS)),
    standing=some(a=WORDS, size=pick(3, 4)),
    plain=st.lists(WORDS, max_size=2),
    plainStructs=st.lists(some(a=WORDS, b=WORDS), max_size=2),
    atomic=st.lists(WORDS, max_size=2),
    set=subset("x", "y", "z", ""),
    numbers=subset(1, 2, 3),
    byName=BY_NAME,
    byTwo=BY_TWO,
    ports=CUSTOM_PORTS,
    atomicItems=named("name", ("one", "two"), STRUCT, most=2),
    open=TEXTS,
    granular=TEXTS,
    atomicMap=TEXTS,
    atomicStruct=STRUCT,
    structs=members("a b", some(a=WORDS, b=WORDS, filled=WORDS)),
    sets=members("a b", subset("x", "y", "z")),
    maps=members("a b", TEXTS),
    free=members("a b c", ANY),
    halfFree=st.builds(
        lambda declared, rest: {**rest, **declared},
        some(a=WORDS, list=named("name", ("i", "j"), some(value=WORDS), most=2)),
        members("u v", ANY),
    ),
    anything=ANY,
    embedded=st.builds(
        lambda rest, labels: {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "inner", **labels}, **rest},
        members("u v", ANY),
        some(labels=TEXTS),
    ),
)
CUSTOM = some(metadata=METADATA, spec=SPEC)
EVERYTHING = Subject(f"{everything.GROUP}/{everything.VERSION}", everything.KIND, everything.PLURAL, CUSTOM, CUSTOM)
