"""The cluster as tests use it: the fixture, the kubeconfig, the state file, the faults, the official client."""

import contextlib
import gc
import json
import socket
import threading
import urllib.error
import urllib.request
import warnings
from pathlib import Path

import pytest

from ruleop.errors import RuleopError
from ruleop.localcluster.local_cluster import MAX_STATE
from ruleop.testing import Effect, Fault, LocalCluster
from tests.waiting import PATIENCE


def call(cluster, method, path, body=None, **headers):
    """The status and the document of a request."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    request = urllib.request.Request(cluster.url + path, data, headers, method=method)  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


MAPS = "/api/v1/namespaces/default/configmaps"


def names(cluster):
    _, found = call(cluster, "GET", MAPS)
    return [each["metadata"]["name"] for each in found["items"] if each["metadata"]["name"] != "kube-root-ca.crt"]


def test_the_fixture_starts_with_an_empty_cluster(kube_cluster):
    assert names(kube_cluster) == []
    assert call(kube_cluster, "POST", MAPS, config_map("a"))[0] == 201
    assert names(kube_cluster) == ["a"]


def test_the_fixture_does_not_share_objects_with_the_previous_test(kube_cluster):
    assert names(kube_cluster) == []


def test_a_request_without_the_token_is_refused(kube_cluster):
    address = f"http://127.0.0.1:{kube_cluster.port}"
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.urlopen(address + MAPS, timeout=PATIENCE)  # noqa: S310
    refused.value.close()
    bearer = urllib.request.Request(  # noqa: S310
        address + MAPS, headers={"Authorization": f"Bearer {kube_cluster.token}"}
    )
    with urllib.request.urlopen(bearer, timeout=PATIENCE) as answer:  # noqa: S310
        assert answer.status == 200


def test_a_foreign_host_header_is_refused(kube_cluster):
    """A web page whose name resolves to this machine sends its own name."""
    status, found = call(kube_cluster, "GET", MAPS, Host="attacker.example:80")
    assert (status, found["reason"]) == (403, "Forbidden")


@pytest.mark.slow
def test_the_official_client_works_with_the_kubeconfig(kube_cluster, tmp_path):
    kubernetes = pytest.importorskip("kubernetes")
    path = tmp_path / "kubeconfig"
    kube_cluster.write_kubeconfig(path)
    assert path.stat().st_mode & 0o777 == 0o600
    client = kubernetes.config.new_client_from_config(str(path))
    api = kubernetes.client.CoreV1Api(client)
    body = kubernetes.client.V1ConfigMap(metadata=kubernetes.client.V1ObjectMeta(name="typed"), data={"a": "1"})
    made = api.create_namespaced_config_map("default", body)
    assert made.metadata.uid
    assert api.read_namespaced_config_map("typed", "default").data == {"a": "1"}
    watch = kubernetes.watch.Watch()
    events = watch.stream(api.list_namespaced_config_map, "default", timeout_seconds=1)
    assert {each["object"].metadata.name for each in events} == {"typed", "kube-root-ca.crt"}


# -- the state file ----------------------------------------------------------------------------------------------------


def test_the_state_file_keeps_objects_and_the_address(tmp_path):
    state = tmp_path / "state.json"
    with LocalCluster(state=state) as cluster:
        call(cluster, "POST", MAPS, config_map("kept", a="1"))
        _, before = call(cluster, "GET", MAPS + "/kept")
        token = cluster.token
    with LocalCluster(state=state) as cluster:
        assert cluster.token == token
        assert call(cluster, "GET", MAPS + "/kept")[1] == before
        _, made = call(cluster, "POST", MAPS, config_map("new"))
        assert int(made["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])


@pytest.mark.slow
def test_a_state_file_without_an_end_is_refused(tmp_path):
    with pytest.raises(RuleopError, match=r"^/dev/zero: cannot be read: it is not a regular file$"):
        LocalCluster(state=Path("/dev/zero"))
    state = tmp_path / "state.json"
    with state.open("wb") as file:
        file.truncate(MAX_STATE + 1)  # of a file system that stores no zeros
    with pytest.raises(RuleopError, match=r"state\.json: is larger than 524288 KiB$"):
        LocalCluster(state=state)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": "other"}', '{"format": "ruleop local cluster 1", "resources": [{}]}']
)
def test_a_damaged_state_file_is_refused_and_left_as_it_is(tmp_path, text):
    state = tmp_path / "state.json"
    state.write_text(text)
    with pytest.raises(RuleopError, match="left as it is"):
        LocalCluster(state=state)
    assert state.read_text() == text


# -- faults ------------------------------------------------------------------------------------------------------------


def test_an_error_fault_happens_the_given_number_of_times(kube_cluster):
    kube_cluster.faults.add(
        Fault(Effect.ERROR, verbs=("create",), resources=("configmaps",), times=2, status=429, retry_after=3)
    )
    status, found = call(kube_cluster, "POST", MAPS, config_map("a"))
    assert (status, found["reason"], found["details"]["retryAfterSeconds"]) == (429, "TooManyRequests", 3)
    assert call(kube_cluster, "GET", MAPS)[0] == 200, "only creations are concerned"
    assert call(kube_cluster, "POST", MAPS, config_map("a"))[0] == 429
    assert call(kube_cluster, "POST", MAPS, config_map("a"))[0] == 201
    assert kube_cluster.faults.happened(Effect.ERROR) == 2


@pytest.mark.parametrize("status", [503.0, 499, 599])
def test_an_error_fault_of_a_file_may_have_any_status_of_an_error(kube_cluster, status):
    kube_cluster.faults.add(Fault.parse({"effect": "error", "status": status}))
    assert call(kube_cluster, "GET", MAPS)[0] == status


@pytest.mark.parametrize(("effect", "exists"), [(Effect.LOSE_REQUEST, False), (Effect.LOSE_ANSWER, True)])
def test_a_lost_request_is_not_executed_and_one_with_a_lost_answer_is(kube_cluster, effect, exists):
    kube_cluster.faults.add(Fault(effect, verbs=("create",), times=1))
    with pytest.raises(OSError):
        call(kube_cluster, "POST", MAPS, config_map("a"))
    assert names(kube_cluster) == (["a"] if exists else [])


def watched(cluster, count, *, query=""):
    """The first events of a watch of the ConfigMaps, read in a thread."""
    found, done = [], threading.Event()
    url = f"{cluster.url}{MAPS}?watch=true&timeoutSeconds=60{query}"

    def read():
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310
                for line in answer:
                    event = json.loads(line)
                    if event["object"]["metadata"].get("name") != "kube-root-ca.crt":
                        found.append(event)
                    if len(found) == count:
                        break
        except OSError:
            found.append(None)
        done.set()

    threading.Thread(target=read, daemon=True).start()
    return found, done


def test_events_of_a_watch_can_arrive_twice(kube_cluster):
    kube_cluster.faults.add(Fault(Effect.DUPLICATE_EVENTS, times=None))
    found, done = watched(kube_cluster, 2)
    call(kube_cluster, "POST", MAPS, config_map("a"))
    assert done.wait(PATIENCE)
    assert [each["object"]["metadata"]["name"] for each in found] == ["a", "a"]


def test_a_watch_from_a_compacted_version_ends_with_an_expired_error(kube_cluster):
    _, made = call(kube_cluster, "POST", MAPS, config_map("a"))
    call(kube_cluster, "POST", MAPS, config_map("b"))
    kube_cluster.compact()
    version = made["metadata"]["resourceVersion"]
    found, done = watched(kube_cluster, 1, query=f"&resourceVersion={version}")
    assert done.wait(PATIENCE)
    assert (found[0]["type"], found[0]["object"]["code"]) == ("ERROR", 410)


def test_a_stale_read_returns_old_objects(kube_cluster):
    for number in range(12):
        call(kube_cluster, "POST", MAPS, config_map(f"m{number}"))
    kube_cluster.faults.add(Fault(Effect.STALE, verbs=("list",), times=1))
    stale, now = names(kube_cluster), names(kube_cluster)
    assert len(stale) == 2
    assert len(now) == 12


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("error", "must be an object, not"),
        ({}, "effect: is required"),
        ({"efect": "error"}, "efect: is an unknown field .did you mean effect"),
        ({"effect": "eror"}, 'effect: must be one of "error", .*did you mean error'),
        ({"effect": ["error"]}, "effect: must be a string, not a list"),
        ({"effect": "error", "verbs": "get"}, 'verbs: must be a list, not "get"'),
        ({"effect": "error", "verbs": ["gett"]}, r'verbs\[0\]: must be one of "get", "list", .*did you mean get'),
        ({"effect": "error", "resources": [1]}, r"resources\[0\]: must be a string, not 1"),
        ({"effect": "error", "namespace": 5}, "namespace: must be a string, not 5"),
        ({"effect": "error", "times": -1}, "times: must be at least 0, not -1"),
        ({"effect": "error", "after": None}, "after: must be an integer, not null"),
        ({"effect": "error", "status": 42}, "status: must be at least 400, not 42"),
        ({"effect": "delay", "seconds": "long"}, 'seconds: must be a number, not "long"'),
        ({"effect": "delay", "seconds": float("inf")}, "seconds: must be at most 86400, not inf"),
    ],
)
def test_an_invalid_fault_in_a_file_is_refused(document, message):
    with pytest.raises(RuleopError, match=message):
        Fault.parse(document)
    fault = Fault.parse({"effect": "error", "verbs": ["get"], "retry-after": 1})
    assert fault == Fault(Effect.ERROR, verbs=("get",), retry_after=1)


def test_the_audit_log_has_each_request_with_its_user(kube_cluster):
    kube_cluster.audit.enabled = True
    url = kube_cluster.kubeconfig("shop")["clusters"][0]["cluster"]["server"]
    for method, path, body in (("POST", MAPS, config_map("a")), ("GET", f"{MAPS}?limit=5", None)):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "test/1"}
        request = urllib.request.Request(url + path, data, headers, method=method)  # noqa: S310
        urllib.request.urlopen(request, timeout=PATIENCE).close()  # noqa: S310
    call(kube_cluster, "GET", "/version")
    created, listed, version = kube_cluster.audit.entries
    assert (created.verb, created.resource, created.namespace, created.name) == ("create", "configmaps", "default", "a")
    assert (created.user, created.user_agent, created.status) == ("shop", "test/1", 201)
    assert (listed.verb, listed.uri) == ("list", f"{MAPS}?limit=5")
    assert (version.verb, version.resource, version.user) == ("get", "", "local-admin")


def test_a_user_that_is_impersonated_is_known_in_the_audit_log_and_may_do_everything(kube_cluster):
    kube_cluster.audit.enabled = True
    headers = {"Content-Type": "application/json", "Impersonate-User": "system:serviceaccount:a:b"}
    request = urllib.request.Request(  # noqa: S310
        f"{kube_cluster.url}{MAPS}", json.dumps(config_map("a")).encode(), headers, method="POST"
    )
    urllib.request.urlopen(request, timeout=PATIENCE).close()  # noqa: S310
    call(kube_cluster, "GET", "/version")
    created, version = kube_cluster.audit.entries
    assert (created.verb, created.status, created.user) == ("create", 201, "system:serviceaccount:a:b")
    assert version.user == "local-admin"


def test_a_token_of_a_service_account_is_its_user(kube_cluster):
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    status, found = call(kube_cluster, "POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
    assert status == 201
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    request = urllib.request.Request(
        f"http://127.0.0.1:{kube_cluster.port}/apis/authentication.k8s.io/v1/selfsubjectreviews",
        json.dumps(review).encode(),
        {"Authorization": f"Bearer {found['status']['token']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
        user = json.loads(answer.read())["status"]["userInfo"]["username"]
    assert user == "system:serviceaccount:default:default"


def test_an_object_is_applied_as_kubectl_does_on_the_server(kube_cluster):
    """A field that is left out is removed, and fields of other managers stay. A copy from a cluster can be applied."""
    made = kube_cluster.call(lambda: kube_cluster.apply(config_map("a", mine="1", old="1")))
    call(kube_cluster, "PATCH", f"{MAPS}/a", {"data": {"other": "1"}}, Content_Type="application/merge-patch+json")
    again = {**made.obj, "data": {"mine": "2"}}
    assert kube_cluster.call(lambda: kube_cluster.apply(again)).obj["data"] == {"mine": "2", "other": "1"}


def test_applying_an_invalid_object_is_an_error(kube_cluster):
    for wrong, message in (
        ({**config_map("a"), "kind": "Strange"}, "does not serve v1 Strange"),
        (config_map("A"), "metadata.name: Invalid value"),
        ({**config_map("a"), "metadata": {}}, "name or generateName is required"),
        (config_map("a", field=[]), "expected string"),
    ):
        with pytest.raises(RuleopError, match=message):
            kube_cluster.call(lambda wrong=wrong: kube_cluster.apply(wrong))


@pytest.mark.slow
def test_connections_that_are_being_accepted_when_it_stops_are_closed():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(200):
            cluster = LocalCluster().start()
            clients = [socket.create_connection(("127.0.0.1", cluster.port), timeout=PATIENCE) for _ in range(5)]
            for client in clients:
                client.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for client in clients[::2]:
                client.close()
            cluster.stop()
            for client in clients[1::2]:
                with client, contextlib.suppress(ConnectionResetError):
                    while client.recv(4096):
                        pass
        del cluster
        gc.collect()
    assert [str(each.message) for each in found] == []


def test_a_request_that_is_delayed_beyond_its_timeout_is_not_carried_out(kube_cluster):
    kube_cluster.faults.add(Fault(Effect.DELAY, verbs=("create",), seconds=600))
    code, status = call(kube_cluster, "POST", f"{MAPS}?timeout=1ms", config_map("a"))
    assert (code, status["reason"]) == (504, "Timeout")
    assert call(kube_cluster, "POST", f"{MAPS}?timeout=x", config_map("a"))[0] == 400
    assert names(kube_cluster) == []


def test_a_request_that_is_delayed_is_carried_out_within_its_timeout(kube_cluster):
    kube_cluster.faults.add(Fault(Effect.DELAY, seconds=0.01))
    assert call(kube_cluster, "POST", f"{MAPS}?timeout=60s", config_map("a"))[0] == 201
    assert names(kube_cluster) == ["a"]
