"""Shapes to merge by: the parts of the built-in kinds that the tests speak of, written out by hand so that a test shows
what it rests on."""

from __future__ import annotations

from ruleop.kubernetes.schema.shape import Shape, Unique

TEXT = Shape(type="scalar")
QUANTITY = Shape(type="scalar", format="quantity")
TEXTS = Shape(type="object", values=TEXT)  # an open map, such as labels
QUANTITIES = Shape(type="object", values=QUANTITY)
ATOMIC_LIST = Shape(type="list", items=TEXT)
SET = Shape(type="list", list_type="set", items=TEXT)


def struct(**fields: Shape) -> Shape:
    return Shape(type="object", fields=fields)


def keyed(items: Shape, *keys: str, unique: tuple[Unique, ...] = (), **defaults: object) -> Shape:
    return Shape(type="list", list_type="map", items=items, keys=keys, key_defaults=defaults, unique=unique)


METADATA = struct(
    name=TEXT,
    namespace=TEXT,
    labels=TEXTS,
    annotations=TEXTS,
    finalizers=SET,
    ownerReferences=keyed(Shape(type="object", atomic=True, fields={"uid": TEXT, "name": TEXT}), "uid"),
)
FIELD_REF = Shape(type="object", atomic=True, fields={"apiVersion": TEXT, "fieldPath": TEXT})
ENV = keyed(struct(name=TEXT, value=TEXT, valueFrom=struct(fieldRef=FIELD_REF)), "name")
PORTS = keyed(
    struct(name=TEXT, containerPort=TEXT, protocol=TEXT, hostPort=TEXT, hostIP=TEXT),
    "containerPort",
    "protocol",
    unique=(Unique("name"), Unique("hostPort", within=("protocol", "hostIP"))),
    protocol="TCP",
)
CONTAINER = struct(
    name=TEXT,
    image=TEXT,
    imagePullPolicy=TEXT,
    args=ATOMIC_LIST,
    env=ENV,
    ports=PORTS,
    resources=struct(limits=QUANTITIES, requests=QUANTITIES),
    volumeMounts=keyed(struct(mountPath=TEXT, name=TEXT), "mountPath"),
    securityContext=struct(runAsUser=TEXT, capabilities=struct(drop=ATOMIC_LIST)),
    livenessProbe=struct(periodSeconds=TEXT, httpGet=struct(path=TEXT, port=TEXT)),
)
VOLUME = Shape(
    type="object",
    retain_keys=True,
    fields={
        "name": TEXT,
        "emptyDir": struct(medium=TEXT),
        "persistentVolumeClaim": struct(claimName=TEXT),
        "configMap": struct(name=TEXT, defaultMode=TEXT),
    },
)
TOLERATIONS = Shape(type="list", items=struct(key=TEXT, operator=TEXT, effect=TEXT))
POD_SPEC = struct(
    containers=keyed(CONTAINER, "name"),
    volumes=keyed(VOLUME, "name"),
    tolerations=TOLERATIONS,
    serviceAccountName=TEXT,
    securityContext=struct(runAsUser=TEXT, fsGroup=TEXT),
    affinity=struct(nodeAffinity=struct(weight=TEXT)),
    nodeSelector=Shape(type="object", atomic=True, values=TEXT),
)
LABEL_SELECTOR = Shape(type="object", atomic=True, fields={"matchLabels": TEXTS})
STRATEGY = Shape(
    type="object", retain_keys=True, fields={"type": TEXT, "rollingUpdate": struct(maxSurge=TEXT, maxUnavailable=TEXT)}
)
DEPLOYMENT = struct(
    apiVersion=TEXT,
    kind=TEXT,
    metadata=METADATA,
    spec=struct(
        replicas=TEXT,
        selector=LABEL_SELECTOR,
        strategy=STRATEGY,
        template=struct(metadata=METADATA, spec=POD_SPEC),
    ),
)
SERVICE_PORTS = keyed(
    struct(port=TEXT, protocol=TEXT, name=TEXT, nodePort=TEXT, targetPort=TEXT),
    "port",
    "protocol",
    unique=(Unique("name", required=True), Unique("nodePort", sharing=("port",))),
    protocol="TCP",
)
SERVICE = struct(
    metadata=METADATA,
    spec=struct(ports=SERVICE_PORTS, selector=Shape(type="object", atomic=True, values=TEXT), clusterIP=TEXT),
)
CONFIG_MAP = struct(metadata=METADATA, data=TEXTS)
