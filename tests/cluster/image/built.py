"""Builds the image with image/build.sh, in a store of its own, and finds a base image to build on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.build import cache_root

from tests.cluster.example_projects import ROOT

IMAGE = "localhost/ruleop-test"
STAND_IN = "localhost/ruleop-test-base"
# The release whose Python is that of the image (3.13).
DEBIAN = "trixie"
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
# So that the build reaches the package index as this machine does.
OF_THIS_MACHINE = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")


@dataclass(frozen=True, slots=True)
class Store:
    """The images of these tests, apart from the user's. It is kept: the base is made once."""

    folder: Path
    driver: str

    def environment(self) -> dict[str, str]:
        """Options of buildah. With chroot, it needs no feature of the kernel that a container may lack."""
        configuration = self.folder / f"{self.driver}.conf"
        places = f'graphroot = "{self.folder}/{self.driver}"\nrunroot = "{self.folder}/{self.driver}-run"\n'
        configuration.write_text(f'[storage]\ndriver = "{self.driver}"\n{places}', encoding="utf-8")
        return {**os.environ, "CONTAINERS_STORAGE_CONF": str(configuration), "BUILDAH_ISOLATION": "chroot"}

    def buildah(self, *arguments: str) -> str:
        """Returns what it prints; raises with its error."""
        run = subprocess.run(
            ["buildah", *arguments], env=self.environment(), capture_output=True, text=True, timeout=600, check=False
        )
        if run.returncode != 0:
            raise RuntimeError(f"buildah {' '.join(arguments)}: {run.stderr.strip()}")
        return run.stdout.strip()

    def has(self, image: str) -> bool:
        return bool(self.buildah("images", "--quiet", "--filter", f"reference={image}"))


def store() -> Store:
    folder = cache_root() / "image"
    folder.mkdir(parents=True, exist_ok=True)
    overlay = Store(folder, "overlay")
    try:
        overlay.buildah("info")
    except RuntimeError:  # as on top of another overlay
        return Store(folder, "vfs")
    return overlay


def base(store: Store) -> str:
    """$BASE, else the base of the Dockerfile where it can be pulled, else a Debian that is installed here in its
    place."""
    if os.environ.get("BASE"):
        return os.environ["BASE"]
    (official,) = re.findall(r"^ARG PYTHON=(\S+)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    try:
        store.buildah("pull", "--quiet", "--policy", "missing", official)
    except RuntimeError:
        if not store.has(STAND_IN):
            _install_debian(store)
        return STAND_IN
    return str(official)


def _install_debian(store: Store) -> None:
    with tempfile.TemporaryDirectory(dir=store.folder) as folder:
        root = Path(folder) / "root"
        log = store.folder / "debootstrap.log"
        with log.open("wb") as output:
            command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", DEBIAN, str(root)]
            if subprocess.run(command, stdout=output, stderr=output, check=False).returncode != 0:
                raise RuntimeError(f"debootstrap failed; see {log}")
        for what in ("var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(root / what)
        (root / "usr/bin/python").symlink_to("python3")
        for file in map(Path, OF_THIS_MACHINE):
            if file.exists():
                shutil.copy(file, root / file.relative_to("/"))
        container = store.buildah("from", "scratch")
        store.buildah("copy", "--quiet", container, str(root), "/")
        store.buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container)
        store.buildah("commit", "--quiet", container, STAND_IN)
        store.buildah("rm", container)


def build(store: Store, on: str) -> None:
    """Builds the image as `make image` does."""
    command = [str(ROOT / "image" / "build.sh"), "--network", "host"]
    environment = {**store.environment(), "BUILDER": "buildah", "IMAGE": IMAGE, "BASE": on}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"the image was not built:\n{run.stdout[-4000:]}{run.stderr[-4000:]}")
    store.buildah("rmi", "--prune")  # the image that had this name before


def configuration(store: Store, image: str = IMAGE) -> dict[str, Any]:
    """The configuration of an image: its command, environment, folder and user."""
    found: dict[str, Any] = json.loads(store.buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
    return found


def size(store: Store, image: str) -> str:
    return store.buildah("images", "--format", "{{.Size}}", "--filter", f"reference={image}")
