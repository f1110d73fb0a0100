"""Random Services, Ingresses and NetworkPolicies."""

from __future__ import annotations

from tests.contract.walk.making import EXPRESSIONS, NAME, STRINGS, TRUTH, fields, items, one_of

# No node ports and addresses: they are allocated in the whole cluster, of which one walk may leave some.
_SERVICE_PORT = fields(
    {"port": one_of(80, 81, 443, 443, 70000), "name": one_of("a", "b", "c", "d", "e", "A", "a.b")},
    {
        "protocol": one_of("TCP", "UDP", "SCTP"),
        "targetPort": one_of(80, "a", "http-metrics", "a--b"),
        "appProtocol": one_of("http", "a/b", "a b"),
    },
)
SERVICE = fields(
    {"ports": items(_SERVICE_PORT, least=1, most=3, keys=("port", "protocol"))},
    {
        "selector": STRINGS,
        "type": one_of("ClusterIP", "LoadBalancer", "ExternalName"),
        "externalIPs": items(one_of("1.2.3.4", "5.6.7.8", "127.0.0.1", "2001:db8::1")),
        "sessionAffinity": one_of("None", "ClientIP"),
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}},
        "clusterIP": one_of("None", ""),
        "loadBalancerSourceRanges": items(one_of("10.0.0.0/8", "10.0.0.1/8")),
        "loadBalancerClass": one_of("a/b", "c"),
        "publishNotReadyAddresses": TRUTH,
        "externalName": one_of("a.example.com", "a.b.", "A"),
        "externalTrafficPolicy": one_of("Local", "Cluster"),
        "internalTrafficPolicy": one_of("Local", "Cluster"),
        "trafficDistribution": one_of("PreferClose", "PreferSameZone", "x"),
    },
)
_BACKEND = fields(
    {"service": fields({"name": NAME, "port": one_of({"number": 80}, {"name": "a"}, {"number": 80, "name": "a"}, {})})}
)
_PATH = fields(
    {"pathType": one_of("Prefix", "Exact", "ImplementationSpecific"), "backend": _BACKEND},
    {"path": one_of("/", "/a", "x", "//")},
)
INGRESS = fields(
    {},
    {
        "rules": items(
            fields(
                {},
                {
                    "host": one_of("a.b", "*.c.d", "1.2.3.4", "a.*"),
                    "http": fields({"paths": items(_PATH, least=1)}),
                },
            ),
            least=1,
        ),
        "tls": items(fields({}, {"hosts": items(one_of("a.b", "*.a", "*"), least=1), "secretName": NAME})),
        "ingressClassName": NAME,
        "defaultBackend": _BACKEND,
    },
)
_PEER = one_of(
    fields({"podSelector": EXPRESSIONS}),
    fields({"podSelector": EXPRESSIONS, "namespaceSelector": EXPRESSIONS}),
    fields(
        {
            "ipBlock": fields(
                {"cidr": one_of("10.0.0.0/8", "10.0.0.1/8")},
                {"except": items(one_of("10.1.0.0/16", "11.0.0.0/16"), least=1)},
            )
        }
    ),
)
_POLICY_PORT = fields({}, {"port": one_of(80, "a"), "endPort": one_of(70, 90), "protocol": one_of("TCP", "UDP")})
POLICY = fields(
    {"podSelector": EXPRESSIONS},
    {
        "policyTypes": items(one_of("Ingress", "Egress"), least=1),
        "ingress": items(fields({}, {"from": items(_PEER, least=1), "ports": items(_POLICY_PORT, least=1)}), least=1),
        "egress": items(fields({}, {"to": items(_PEER, least=1), "ports": items(_POLICY_PORT, least=1)}), least=1),
    },
)
