"""Builds the programs of the control plane from their Go modules into the user's cache.

Tests of an operator against an imitation of the API server prove little, and prebuilt binaries are not available for
all platforms. So the programs are built once from the module versions that go.mod and go.sum pin. A folder in the cache
is complete or does not exist, and its name is a digest of the sources.

Only the standard library is used, and starting needs no Go: whatever is read from a module at run time is copied beside
the binaries here.
"""

# ruff: noqa: T201 - it takes ten minutes, and prints its progress

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
OLDEST_GO = (1, 26)

# In the order in which a broken set-up is found soonest: the small program first, then the API server.
PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
# The programs of Kubernetes itself: those of another version, with the other programs of go.mod.
KUBERNETES = tuple(name for name, package in PROGRAMS.items() if package.startswith("k8s.io/kubernetes/"))
KWOK_MODULE = "sigs.k8s.io/kwok"
# kwok does nothing at all without stages. These make nodes and pods ready at once, complete the pods of Jobs, and
# provision volumes.
KWOK_STAGES = (
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "kustomize/stage/pod/fast/pod-ready.yaml",
    "kustomize/stage/pod/fast/pod-complete.yaml",
    "kustomize/stage/pod/fast/pod-delete.yaml",
    "kustomize/stage/volume/fast/pv-bind.yaml",
    "kustomize/stage/volume/fast/pv-delete.yaml",
    "kustomize/stage/volume/fast/pvc-provision.yaml",
    "kustomize/stage/volume/fast/pvc-delete.yaml",
)
# When these releases of Kubernetes were made; fixed, so that the same sources give the same binaries.
KUBERNETES_BUILD_DATES = {"v1.36.3": "2026-07-22T18:07:38Z", "v1.33.13": "2026-06-11T16:59:07Z"}
GO_FILES = ("go.mod", "go.sum")


class BuildError(Exception):
    """The programs cannot be built; the message is one sentence for the user."""


def cache_root() -> Path:
    """The folder of ruleop's files that can be created again."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    # The XDG specification says that a relative path is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "ruleop"


def module() -> Path:
    """The folder whose go.mod pins Kubernetes: this one, or that of the version in RULEOP_KUBERNETES, such as 1.33."""
    chosen = os.environ.get("RULEOP_KUBERNETES")
    if not chosen:
        return HERE
    folder = HERE / "kubernetes" / chosen
    if not (folder / "go.mod").is_file():
        known = ", ".join(sorted(each.parent.name for each in HERE.glob("kubernetes/*/go.mod")))
        raise BuildError(f"RULEOP_KUBERNETES is {chosen}, and tests/controlplane/kubernetes has only {known}.")
    return folder


def kubernetes_version() -> str:
    """The version of Kubernetes that go.mod pins, such as v1.36.3."""
    text = (module() / "go.mod").read_text(encoding="utf-8")
    found = re.search(r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", text, re.MULTILINE)
    if found is None:
        raise BuildError(f"{module()}/go.mod does not say which version of k8s.io/kubernetes to build.")
    return found.group(1)


def ldflags() -> str:
    """The linker's flags: no symbols, and the version that a release build would carry.

    Without these the API server calls itself v0.0.0-master, and clients that look at the version misbehave. client-go
    has its own copy of the version, which ends up in the User-Agent.
    """
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    # The commit is not recorded in the published module: it stays empty.
    values = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": KUBERNETES_BUILD_DATES[version],
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(
        ["-s -w", *(f"-X {package}.{name}={value}" for package in packages for name, value in values.items())]
    )


def build_key() -> str:
    """Names a build by everything that goes into it, so that a changed pin is a new folder and never a stale binary."""
    digest = hashlib.sha256()
    for part in (
        *(folder.joinpath(name).read_bytes() for folder in dict.fromkeys((HERE, module())) for name in GO_FILES),
        ldflags().encode(),
        repr((PROGRAMS, KWOK_STAGES, platform.system(), platform.machine())).encode(),
    ):
        digest.update(len(part).to_bytes(8, "big") + part)
    return f"{kubernetes_version()}-{digest.hexdigest()[:16]}"


def build_dir() -> Path:
    """The folder with the programs and kwok's stages; it exists only when it is complete."""
    return cache_root() / "controlplane" / build_key()


def stage_files(built: Path) -> list[Path]:
    """kwok's stages in a finished build, in a fixed order."""
    return [built / "stages" / Path(name).name for name in KWOK_STAGES]


def build() -> Path:
    """Returns the folder with the programs, building them first where they are missing."""
    return built(build_dir(), _build_into)


def built(target: Path, build_into: Callable[[Path], None]) -> Path:
    """Returns the folder, building it first where it is missing. It exists only when it is complete."""
    if target.is_dir():
        return target
    check_go()
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent / f".{target.name}.lock"):
        if target.is_dir():  # another build finished while this one waited
            return target
        for stale in target.parent.glob(f".{target.name}.*/"):  # left by a build that was killed: this one has the lock
            shutil.rmtree(stale, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            build_into(scratch)
            scratch.chmod(0o755)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


def check_go() -> None:
    """Raises BuildError at the beginning, with one sentence, if the build would fail later."""
    wanted = ".".join(map(str, OLDEST_GO))
    advice = f"Building the control plane for the tests needs Go {wanted} or later"
    try:
        said = subprocess.run(
            ["go", "version"], capture_output=True, text=True, check=True, env=_go_environment()
        ).stdout
    except FileNotFoundError:
        raise BuildError(f"{advice}, and there is no go on the PATH.") from None
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"{advice}, and 'go version' fails: {error}.") from error
    found = re.search(r"\bgo(\d+)\.(\d+)", said)
    if found is None or (int(found.group(1)), int(found.group(2))) < OLDEST_GO:
        raise BuildError(f"{advice}, and the go on the PATH is {found.group(0) if found else said.strip()}.")


def _go_environment() -> dict[str, str]:
    """The user's Go settings (module proxy, caches), less whatever would change what is built."""
    kept = {name: value for name, value in os.environ.items() if name not in ("GOOS", "GOARCH", "GOFLAGS")}
    # GOTOOLCHAIN=local: never fetch another Go in silence. CGO off: the same binaries with and without a C compiler.
    return {**kept, "CGO_ENABLED": "0", "GOWORK": "off", "GOTOOLCHAIN": "local"}


def _go(*arguments: str, folder: Path = HERE) -> str:
    try:
        # Go's own messages (downloads, compiler errors) are printed directly.
        run = subprocess.run(
            ["go", *arguments], cwd=folder, env=_go_environment(), stdout=subprocess.PIPE, text=True, check=True
        )
    except subprocess.CalledProcessError as error:
        raise BuildError(
            f"'go {arguments[0]} {arguments[-1]}' failed with exit status {error.returncode}; its messages are above."
        ) from error
    return run.stdout


def _build_into(folder: Path) -> None:
    started = time.monotonic()
    print(
        f"Building Kubernetes {kubernetes_version()} for the tests; the first time takes five to ten minutes on two cores.",
        flush=True,
    )
    flags = ldflags()
    for name, package in PROGRAMS.items():
        begun = time.monotonic()
        # A line of its own, because Go prints its downloads below it.
        print(f"  {name} ...", flush=True)
        _go(
            "build",
            "-mod=readonly",
            "-buildvcs=false",
            "-trimpath",
            "-ldflags",
            flags,
            "-o",
            str(folder / name),
            package,
            folder=module() if name in KUBERNETES else HERE,
        )
        size = (folder / name).stat().st_size
        print(f"  {name:<24} {time.monotonic() - begun:6.1f} s {size / 2**20:7.1f} MiB", flush=True)
    kwok = Path(_go("list", "-mod=readonly", "-m", "-f", "{{.Dir}}", KWOK_MODULE).strip())
    (folder / "stages").mkdir()
    for name in KWOK_STAGES:
        # copyfile, not copy: the module cache is read-only, and so would be its copies.
        shutil.copyfile(kwok / name, folder / "stages" / Path(name).name)
    print(f"Built in {time.monotonic() - started:.0f} s.", flush=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock that the kernel drops with the process, so that a killed build blocks nobody."""
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another build of the same is running; waiting for it.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
