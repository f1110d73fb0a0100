"""The answers that kubectl asks for: tables with the columns of the kind."""

import json
import urllib.request

from tests.definitions import ANYTHING, crd, version
from tests.waiting import PATIENCE

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
COLUMNS = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
CRD = crd("App", "example.com", version("v1", ANYTHING, additionalPrinterColumns=COLUMNS))


def call(cluster, method, path, body=None, accept=TABLE):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Accept": accept}
    request = urllib.request.Request(cluster.url + path, data, headers, method=method)  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
        return json.loads(answer.read())


def test_a_list_is_a_table_with_the_columns_of_its_kind(kube_cluster):
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    path = "/apis/apps/v1/namespaces/default/deployments"
    call(kube_cluster, "POST", path, deployment, "application/json")
    table = call(kube_cluster, "GET", path)
    titles = [each["name"] for each in table["columnDefinitions"]]
    row = dict(zip(titles, table["rows"][0]["cells"], strict=True))
    assert (row["Name"], row["Containers"], row["Images"], row["Selector"]) == ("d", "c", "i:1", "app=x")
    assert row["Ready"].endswith("/2")
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_a_custom_kind_has_the_columns_of_its_crd(kube_cluster):
    call(kube_cluster, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD, "application/json")
    path = "/apis/example.com/v1/namespaces/default/apps"
    app = {"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "a"}, "spec": {"size": 3}}
    made = call(kube_cluster, "POST", f"{path}?includeObject=Object", app)
    assert [each["name"] for each in made["columnDefinitions"]] == ["Name", "Size"]
    assert made["rows"][0]["cells"] == ["a", 3]
    assert call(kube_cluster, "GET", f"{path}/a")["rows"][0]["cells"] == ["a", 3]


def test_the_row_of_a_finished_pod_has_a_condition(kube_cluster):
    path = "/api/v1/namespaces/default/pods"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    call(kube_cluster, "POST", path, pod, "application/json")
    table = call(kube_cluster, "PUT", f"{path}/p/status?dryRun=All", {**pod, "status": {"phase": "Failed"}})
    assert [each["type"] for each in table["rows"][0]["conditions"]] == ["Completed"]
