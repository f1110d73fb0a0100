"""Builds the programs that tests run beside the control plane, from the versions that programs/NAME/go.mod pins.

Each has a module of its own, since it needs other versions of the Kubernetes libraries than the control plane. To add
one: a line in PROGRAMS, and its go.mod and go.sum, made with `go get -tool PACKAGE@VERSION`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from functools import partial
from pathlib import Path

from .build import BuildError, built, cache_root, check_go

PROGRAMS = {
    "actionlint": "github.com/rhysd/actionlint/cmd/actionlint",
    "glua": "github.com/yuin/gopher-lua/cmd/glua",
    "helm": "helm.sh/helm/v4/cmd/helm",
    "kstatus": ".",  # a library: its program is in the folder
    "olm": "github.com/operator-framework/operator-lifecycle-manager/cmd/olm",
    "operator-verify": "github.com/operator-framework/api/cmd/operator-verify",
    "promtool": "github.com/prometheus/prometheus/cmd/promtool",
}
_TAGS = {"promtool": "remove_all_sd"}  # without the clients of clouds, in which it could look for what to scrape
_MODULES = Path(__file__).resolve().parent / "programs"


def _folder(name: str) -> Path:
    module = _MODULES / name
    digest = hashlib.sha256((module / "go.mod").read_bytes() + (module / "go.sum").read_bytes())
    for source in sorted(module.glob("*.go")):
        digest.update(source.read_bytes())
    digest.update(f"{platform.system()} {platform.machine()}".encode())
    return cache_root() / name / digest.hexdigest()[:16]


def program(name: str) -> Path:
    """The program, built first where it is missing, which takes up to two minutes."""
    return built(_folder(name), partial(_build_into, name=name)) / name


def sources(name: str, module: str) -> Path:
    """The folder of a module that a program is built from."""
    check_go()
    command = ["go", "mod", "download", "-json", module]
    ran = subprocess.run(command, cwd=_MODULES / name, capture_output=True, text=True, check=True)
    return Path(json.loads(ran.stdout)["Dir"])


def _build_into(folder: Path, name: str) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in ("GOOS", "GOARCH", "GOFLAGS")}
    environment = {**kept, "CGO_ENABLED": "0", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    command = [
        "go",
        "build",
        "-mod=readonly",
        "-buildvcs=false",
        "-trimpath",
        "-ldflags=-s -w",
        f"-tags={_TAGS.get(name, '')}",
        "-o",
        str(folder / name),
    ]
    try:
        subprocess.run([*command, PROGRAMS[name]], cwd=_MODULES / name, env=environment, check=True)
    except subprocess.CalledProcessError as error:
        raise BuildError(f"'go build {PROGRAMS[name]}' failed with exit status {error.returncode}.") from error
