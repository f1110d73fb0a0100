"""Builds Helm, a client that the API server in memory is tested with, from the version that helm/go.mod pins.

It has a module of its own, since it needs other versions of the Kubernetes libraries than the control plane.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from .build import BuildError, cache_root, check_go

MODULE = Path(__file__).resolve().parent / "helm"
PACKAGE = "helm.sh/helm/v4/cmd/helm"


def helm_dir() -> Path:
    """The folder with the program; it exists only when it is complete."""
    digest = hashlib.sha256((MODULE / "go.mod").read_bytes() + (MODULE / "go.sum").read_bytes())
    digest.update(f"{platform.system()} {platform.machine()}".encode())
    return cache_root() / "helm" / digest.hexdigest()[:16]


def build_helm() -> Path:
    """Returns the folder with the program, building it first where it is missing, which takes two minutes."""
    target = helm_dir()
    if target.is_dir():
        return target
    check_go()
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    kept = {name: value for name, value in os.environ.items() if name not in ("GOOS", "GOARCH", "GOFLAGS")}
    environment = {**kept, "CGO_ENABLED": "0", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    command = [
        "go",
        "build",
        "-mod=readonly",
        "-buildvcs=false",
        "-trimpath",
        "-ldflags=-s -w",
        "-o",
        str(scratch / "helm"),
    ]
    try:
        subprocess.run([*command, PACKAGE], cwd=MODULE, env=environment, check=True)
        scratch.chmod(0o755)
        scratch.rename(target)
    except subprocess.CalledProcessError as error:
        raise BuildError(f"'go build {PACKAGE}' failed with exit status {error.returncode}.") from error
    except OSError:
        if not target.is_dir():  # else another build was faster
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target
