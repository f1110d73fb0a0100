"""A small project, and commands run in it: in this process with `ruleop`, as a process of their own with `process`, or
in a new interpreter with `new_process`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ruleop.cli.program import program
from tests.definitions import definition
from tests.folders import Folder, write_files
from tests.processes.fork_server import ForkServer

Start = Callable[..., subprocess.Popen[str]]

WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  children:
    config: {template: config.yaml.j2}
    web: {template: web.yaml.j2}
  status:
    replicas: "{{ web.status.replicas }}"
"""

CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}-config"}
data: {page: "{{ spec.page }}"}
"""

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ metadata.name }}
spec:
  replicas: {{ spec.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: nginx
"""

SPEC = "{type: object, required: [page], properties: {page: {type: string}, replicas: {type: integer, default: 1}}}"

SITE = """\
apiVersion: example.com/v1
kind: Site
metadata:
  name: blog
spec:
  page: hello
"""

FILES = {
    "watches.yaml": WATCHES,
    "templates/config.yaml.j2": CONFIG,
    "templates/web.yaml.j2": WEB,
    "crds/sites.yaml": definition("Site", spec=SPEC, requires_spec=True),
    "site.yaml": SITE,
}


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str


class Project(Folder):
    """A folder that commands run in."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        write_files(root, FILES)


@pytest.fixture(autouse=True)
def no_log(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """What `run` would set the log up with. A command in this process must not: it would stay set up for all tests that
    follow."""
    found: list[tuple[str, str | None]] = []
    monkeypatch.setattr("ruleop.operator.telemetry.logging.set_up", lambda level, form: found.append((level, form)))
    return found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    found = Project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return found


@pytest.fixture
def ruleop() -> Callable[..., Ran]:
    def run(*arguments: str, stdin: str | None = None) -> Ran:
        result = CliRunner().invoke(program, arguments, input=stdin, prog_name="ruleop")
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def process(fork_server: ForkServer) -> Start:
    """The program as a shell would start it, but quickly."""
    return lambda *arguments, **options: _started(fork_server.command(*arguments), options)


@pytest.fixture
def new_process() -> Start:
    """The program in a new interpreter, for tests of how it starts."""
    # In a suite that was started in the background interrupts are ignored, and every process inherits that.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from ruleop.cli import main; main()"
    )
    return lambda *arguments, **options: _started([sys.executable, "-c", program, *arguments], options)


def _started(command: list[str], options: dict[str, Any]) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, text=True, env=environ, **pipes)
