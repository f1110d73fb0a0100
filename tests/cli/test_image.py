"""The Dockerfile, followed as far as possible without Docker: the copied files are enough, and the installed package
runs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import venv
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions():
    lines = [line for line in DOCKERFILE.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def last(word):
    return [rest for each, rest in instructions() if each == word][-1]


def allowed(path):
    """Whether .dockerignore lets it through: the last line that matches counts."""
    found = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        if fnmatch(path, pattern) or path.startswith(pattern + "/"):
            found = line.startswith("!")
    return found


def test_the_base_image_is_pinned_by_its_digest():
    (base,) = re.findall(r"^ARG PYTHON=(.*)$", DOCKERFILE, re.MULTILINE)
    assert re.fullmatch(r"python:3\.13-slim-bookworm@sha256:[0-9a-f]{64}", base)
    assert {rest.split()[0] for word, rest in instructions() if word == "FROM"} == {"${PYTHON}"}


@pytest.mark.parametrize(
    "path", [*(f".github/workflows/{name}.yaml" for name in ("explore", "release", "site", "test")), "action.yml"]
)
def test_a_workflow_names_each_action_by_its_commit(path):
    """Who can move a tag of one would publish as ruleop."""
    text = (ROOT / path).read_text(encoding="utf-8")
    used = re.findall(r"uses: (?!\./)(.*)", text)
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """What the build gets to see: copied as the Dockerfile says."""
    folder = tmp_path_factory.mktemp("src")
    for word, rest in instructions():
        *sources, target = shlex.split(rest)
        if word != "COPY" or sources[0].startswith("--"):
            continue
        for source in sources:
            assert allowed(source), f".dockerignore keeps {source} away"
            into = folder / target if target != "./" else folder / source
            into.parent.mkdir(exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, into)
    return folder


@pytest.fixture(scope="module")
def installed(context, tmp_path_factory):
    """An environment with the wheel that is built of it, and this one's dependencies."""
    wheels = tmp_path_factory.mktemp("wheels")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "-q",
        "-w",
        str(wheels),
        ".",
    ]
    subprocess.run(command, cwd=context, check=True, timeout=PATIENCE)
    home = tmp_path_factory.mktemp("opt") / "ruleop"
    venv.create(home, with_pip=False)
    (packages,) = (home / "lib").glob("python*/site-packages")
    (wheel,) = wheels.iterdir()
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(home / "bin" / "python"),
        "install",
        "--no-index",
        "--no-deps",
        "-q",
        str(wheel),
    ]
    subprocess.run(install, check=True, timeout=PATIENCE)
    ours = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    (packages / "dependencies.pth").write_text(f"{ours}\n")
    return home


def ruleop(installed, folder, *arguments):
    """The entry point, in a folder, with nothing in the environment but what the image sets."""
    environment = {"PATH": f"{installed}/bin", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(installed / "bin" / json.loads(last("ENTRYPOINT"))[0]), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.slow
def test_the_wheel_is_complete(installed):
    found = ruleop(installed, ROOT, "check")
    assert (found.returncode, found.stderr) == (0, "")
    assert ruleop(installed, ROOT, "check", "--explain", "RO101").stdout.startswith("RO101 unreadable\n")
    origin = subprocess.run(
        [str(installed / "bin" / "python"), "-c", "import ruleop; print(ruleop.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert str(installed) in origin.stdout


@pytest.mark.slow
def test_the_default_command_of_the_image_is_the_operator(installed, tmp_path):
    """Here it finds no rules, and reports that."""
    found = ruleop(installed, tmp_path, *json.loads(last("CMD")))
    assert found.returncode == 2
    assert "not a ruleop project: no watches.yaml in this folder" in found.stderr


def test_the_entrypoint_of_the_image_passes_signals_to_the_operator():
    """A shell in between, as the other form has one, would keep them."""
    for word in ("ENTRYPOINT", "CMD"):
        assert isinstance(json.loads(last(word)), list)


def test_the_image_runs_as_a_numeric_user_that_is_not_root():
    user, _, group = last("USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0


def test_every_requirement_has_its_hash():
    assert [line for line in requirements("image") if "--hash=sha256:" not in line] == []
    assert "--require-hashes" in DOCKERFILE


def requirements(name):
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def test_the_image_has_what_a_laptop_has_without_pytest():
    """Neither pytest nor what only it needs: `ruleop test` runs before there is an image."""
    left_out = {line.split("==")[0] for line in {*requirements("run")} - {*requirements("image")}}
    assert left_out == {"colorama", "iniconfig", "packaging", "pluggy", "pygments", "pytest"}
    assert {*requirements("image")} < {*requirements("run")}
    assert "requirements/image.txt" in DOCKERFILE
    assert "requirements/run.txt" not in DOCKERFILE


@pytest.mark.slow
def test_the_compiled_bytecode_is_used_unchecked(installed, tmp_path):
    """Not even compared with its source, whose time a layer of an image may not keep."""
    flags = re.search(r"python -m compileall (\S.*) /opt/ruleop/lib", DOCKERFILE)
    assert flags
    shutil.copytree(
        ROOT / "ruleop" / "kubernetes" / "merge", tmp_path / "merge", ignore=shutil.ignore_patterns("__pycache__")
    )
    subprocess.run([sys.executable, "-m", "compileall", *flags[1].split(), str(tmp_path)], check=True, timeout=PATIENCE)
    compiled = list(tmp_path.rglob("*.pyc"))
    assert len(compiled) == len(list(tmp_path.rglob("*.py")))
    for each in compiled:
        assert int.from_bytes(each.read_bytes()[4:8], "little") == 0b01, "by hash, and unchecked"


@pytest.mark.slow
def test_a_kubeconfig_is_read_with_the_parts_of_kubernetes_in_the_image(tmp_path):
    """Its folder after the Dockerfile's `find`."""
    (command,) = re.findall(r"find \. .*? -delete", DOCKERFILE)
    whole = Path(metadata.distribution("kubernetes").locate_file("kubernetes"))
    copy = shutil.copytree(whole, tmp_path / "kubernetes", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(shlex.split(command), cwd=copy, check=True, timeout=PATIENCE)
    assert not list(copy.rglob("v1_pod.py"))
    (tmp_path / "config").write_text(
        "{current-context: one, contexts: [{name: one, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'http://a'}}]}"
    )
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(tmp_path)!r})
from ruleop.operator.wire.auth.credentials import find_credentials
asyncio.run(find_credentials({str(tmp_path / "config")!r}).load())
import kubernetes
assert kubernetes.__file__.startswith({str(copy)!r}), kubernetes
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=PATIENCE)
