"""The pictures of the documentation: what commands show, as SVG. `make pictures` writes them.

The same project and versions give the same bytes, so that a test can compare. The cluster of `dev` and `explain` is in
memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final
from unittest.mock import patch

import click
import yaml
from click.testing import CliRunner
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from bench import loading_walk
from ruleop.authoring.dev.dev_session import DevSession, DevSettings, DevView
from ruleop.cli.inputs.loading import load_with_sources
from ruleop.cli.inputs.project import Folder
from ruleop.cli.program import program
from ruleop.operator.manager.parts import Options
from ruleop.operator.telemetry import logging as logs
from ruleop.planning.model.conditions import find_condition

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "docs" / "pictures"
WORDPRESS: Final = ROOT / "examples" / "wordpress"
WAITING: Final = ROOT / "examples" / "cookbook" / "wait-for-secret"
_FONTS: Final = re.compile(r"\s*@font-face \{\{.*?\n    \}\}", re.DOTALL)
_FORMAT: Final = _FONTS.sub("", CONSOLE_SVG_FORMAT)  # a picture loads nothing
_PATIENCE: Final = 60.0


def graph() -> str:
    return _run("generate", "graph", "-C", str(WORDPRESS), "-o", "svg")


def check() -> str:
    """The project of this repository, with a mistake."""
    with tempfile.TemporaryDirectory() as name:
        for folder in ("templates", "crds"):
            shutil.copytree(ROOT / folder, Path(name, folder))
        shutil.copy(ROOT / "watches.yaml", name)
        template = Path(name, "templates/app/service.yaml.j2")
        template.write_text(template.read_text().replace("spec.service.name", "spec.serivce.name"))
        with contextlib.chdir(name):
            return _terminal("check", _run("check", status=1))


def dev() -> str:
    """The last tree, when the custom resource is ready."""
    shown = _run("dev", "-C", str(WORDPRESS), "--apply", str(WORDPRESS / "examples/blog.yaml"), "--once")
    tree = shown[shown.index(click.style("WordPress default/blog", bold=True)) :]  # after the events
    return _terminal("dev --apply examples/blog.yaml --once", tree)


def explain() -> str:
    """A custom resource that waits: the tree and the reasons. What follows has times."""
    return asyncio.run(_explain())


class _Changes(DevView):
    def __init__(self) -> None:
        self.waits = asyncio.Event()

    def changed(self, session: DevSession) -> None:
        for each in session.resources():
            if find_condition(each, "Ready").get("reason") == "Waiting":
                self.waits.set()


async def _explain() -> str:
    logs.set_up("error", None)
    settings = DevSettings(samples=_documents(WAITING / "examples"), definitions=partial(_documents, WAITING / "crds"))
    options = Options(metrics_address="0", health_address="0", operator_namespace="default", reload=False)
    view = _Changes()
    session = DevSession(load_with_sources(Folder(str(WAITING)), ()).project, WAITING, options, settings, view)
    running = asyncio.create_task(session.run())
    try:
        await asyncio.wait_for(view.waits.wait(), _PATIENCE)
        arguments = ("explain", "-C", str(WAITING), "--kubeconfig", str(session.kubeconfig), "Client/reports")
        shown = await asyncio.to_thread(_run, *arguments)
    finally:
        session.stopping.set()
        await running
    return _terminal("explain Client/reports", shown.partition("\n\n" + click.style("Conditions", bold=True))[0])


def _documents(folder: Path) -> tuple[dict[str, object], ...]:
    texts = [file.read_text() for file in sorted(folder.glob("*.yaml"))]
    return tuple(each for text in texts for each in yaml.safe_load_all(text) if each)


def _run(*arguments: str, status: int = 0) -> str:
    with patch("ruleop.cli.outputs.terminal.has_colour", return_value=True):
        ran = CliRunner().invoke(program, arguments, color=True, catch_exceptions=False)
    assert ran.exit_code == status, ran.output
    return ran.output


def _terminal(command: str, shown: str) -> str:
    shown = shown.replace(f"{ROOT}/", "").rstrip("\n") + "\n"
    width = max(len(Text.from_ansi(line).plain) for line in shown.splitlines())
    console = Console(record=True, width=max(width, len(command) + 9), file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown), soft_wrap=True, highlight=False)
    name, _, _ = command.partition(" ")
    return console.export_svg(title=f"ruleop {command}", unique_id=name, code_format=_FORMAT)


PICTURES: Final = {
    "graph.svg": graph,
    "check.svg": check,
    "loading.svg": loading_walk.picture,
    "dev.svg": dev,
    "explain.svg": explain,
}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, picture in PICTURES.items():
        (FOLDER / file).write_text(picture())
        sys.stdout.write(f"docs/pictures/{file}\n")
