"""A small custom resource beside sixteen with 1,000 children each: how soon an edit of it reaches its child, while
nothing else happens and while all sixteen have just been edited.

    python bench/large.py [FOLDER WITH ANOTHER VERSION]

The operator, the API server (`ruleop cluster`) and the client are three processes. Nothing is asserted.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.definitions import definition  # noqa: E402
from tests.folders import write_files  # noqa: E402
from tests.waiting import eventually  # noqa: E402

LARGE, CHILDREN, PATIENCE = 16, 1000, 600.0
RULES = """
- group: example.com
  version: v1
  kind: Thing
  children:
    config: {forEach: "{{ range(spec.n) }}", template: config.yaml.j2}
"""
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}-{{ item }}"}
data: {v: "{{ spec.v }}", name: "{{ metadata.name | upper }}", text: "{{ ('x' ~ item) | sha256 }}"}
"""
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS, MAPS = "/apis/example.com/v1/namespaces/default/things", "/api/v1/namespaces/default/configmaps"


class Client:
    def __init__(self, kubeconfig: Path) -> None:
        self.url = urlsplit(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
        self.connection = http.client.HTTPConnection(self.url.netloc)

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        self.connection.request(method, self.url.path + path, json.dumps(body), {"Content-Type": kind})
        response = self.connection.getresponse()
        data = response.read()
        assert response.status < 300, data
        return json.loads(data)

    def edit(self, name: str, **spec: Any) -> None:
        self.call("PATCH", f"{THINGS}/{name}", {"spec": spec}, "application/merge-patch+json")


class Watch(threading.Thread):
    """When the child of the small one got each value."""

    def __init__(self, url: Any) -> None:
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection(url.netloc)
        self.connection.request("GET", f"{url.path}{MAPS}?watch=true&fieldSelector=metadata.name%3Dsmall-0")
        self.found: dict[str, float] = {}

    def run(self) -> None:
        for line in self.connection.getresponse():
            self.found.setdefault(json.loads(line)["object"].get("data", {}).get("v", ""), time.monotonic())


def latency(client: Client, watch: Watch, value: str) -> float:
    start = time.monotonic()
    client.edit("small", v=value)
    eventually("the child of the small one", lambda: value in watch.found, PATIENCE)
    return 1000 * (watch.found[value] - start)


def settled(client: Client, value: str) -> bool:
    """All large ones have seen their last edit."""
    things = client.call("GET", THINGS)["items"]
    return all(
        each.get("status", {}).get("observedGeneration") == each["metadata"]["generation"]
        and any(c["type"] == "Ready" and c["status"] == "True" for c in each["status"].get("conditions", ()))
        for each in things
        if each["spec"]["v"] == value
    )


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show(what: str, found: list[float]) -> None:
    high = sorted(found)[int(len(found) * 0.99)]
    times = f"{statistics.median(found):>8.0f} ms{high:>8.0f} (p99){max(found):>8.0f} (max)"
    print(f"{what:<28}{len(found):>7} edits{times}")


def measure(folder: Path, version: Path) -> None:
    write_files(
        folder, {"watches.yaml": RULES, "templates/config.yaml.j2": TEMPLATE, "crds/things.yaml": definition("Thing")}
    )
    kubeconfig, python = folder / "kubeconfig", [sys.executable, "-m", "ruleop"]
    environment = {**os.environ, "PYTHONPATH": str(version)}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([*python, "cluster", "--kubeconfig", str(kubeconfig)], stdout=log, stderr=log)
        eventually("the server", kubeconfig.exists)
        client = Client(kubeconfig)
        client.call("POST", CRDS, yaml.safe_load(definition("Thing")))
        command = [
            *python,
            "run",
            "-C",
            str(folder),
            "--kubeconfig",
            str(kubeconfig),
            "--operator-namespace",
            "default",
        ]
        operator = subprocess.Popen(
            [*command, "--no-reload", "--metrics-bind-address", "0", "--health-probe-bind-address", "0"],
            stdout=log,
            stderr=log,
            env=environment,
            cwd=version,
        )
        try:
            for number in range(LARGE + 1):
                name, count = (f"large-{number}", CHILDREN) if number < LARGE else ("small", 1)
                client.call(
                    "POST",
                    THINGS,
                    {
                        "apiVersion": "example.com/v1",
                        "kind": "Thing",
                        "metadata": {"name": name},
                        "spec": {"n": count, "v": "1"},
                    },
                )
            begun = time.monotonic()
            eventually("all to be created", lambda: settled(client, "1"), PATIENCE)
            print(f"created in {time.monotonic() - begun:.0f} s; CPU of the operator {cpu(operator.pid):.1f} s")
            (watch := Watch(client.url)).start()
            show("alone", [latency(client, watch, f"a{each}") for each in range(40)])
            before = cpu(operator.pid)
            for number in range(LARGE):
                client.edit(f"large-{number}", v="2")
            found, others = [], Client(kubeconfig)
            begun = time.monotonic()
            while not settled(others, "2"):
                found += [latency(client, watch, f"b{len(found) + each}") for each in range(20)]
            show("beside sixteen edits", found)
            used = cpu(operator.pid) - before
            print(f"sixteen edits in {time.monotonic() - begun:.0f} s; CPU of the operator {used:.1f} s")
        finally:
            operator.terminate()
            server.terminate()
            operator.wait()
            server.wait()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)


if __name__ == "__main__":
    main()
