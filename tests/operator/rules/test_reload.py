"""The project is loaded again however its files are changed, once for each change."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import shutil
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from watchdog.events import FileOpenedEvent
from watchdog.observers.api import BaseObserver

import ruleop.operator.rules.reload as module
from ruleop.errors import Site
from ruleop.language.rules import Project, ProjectErrors, RuleFiles
from ruleop.language.rules.checking import load_project
from ruleop.language.rules.loading import build_unchecked
from ruleop.operator.rules.reload import Reloader
from tests.waiting import PATIENCE, a_moment

CRD = Path(__file__).parents[3] / "crds/apps.myapp.k8s.io.yaml"
WATCHES = """
- group: example.com
  version: v1
  kind: App
  children:
    config: {template: config.yaml.j2}
"""
TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: %s}
"""


def write(root, name="first"):
    (root / "templates").mkdir(parents=True, exist_ok=True)
    (root / "templates/config.yaml.j2").write_text(TEMPLATE % name)
    (root / "watches.yaml").write_text(WATCHES)


class Follower:
    """The projects and errors that a reloader reports, as a queue."""

    def __init__(self, root, **options):
        self.root = root
        self.reports: asyncio.Queue = asyncio.Queue()
        self.reloader = Reloader(
            root,
            current=load_project(root, environ={}),
            read=self.read,
            changed=self.reports.put_nowait,
            rejected=lambda errors: self.reports.put_nowait(str(errors)),
            **options,
        )
        self.build = build_unchecked
        self.unsound = ""  # a text that the checks of the rules refuse
        self.checked = asyncio.Event()
        self._check, self.reloader.check = self.reloader.check, self.check

    async def check(self):
        await self._check()
        self.checked.set()

    async def read(self, files):
        if self.unsound and any(self.unsound in text for text in files.texts.values()):
            raise ProjectErrors.of("unknown-field", "spec.imge is not in the schema", Site("templates/config.yaml.j2"))
        return await asyncio.to_thread(self.build, files, environ={})

    async def next(self):
        return await asyncio.wait_for(self.reports.get(), PATIENCE)

    async def until(self, digest):
        """Intermediate states may be reported; the last one is."""
        while True:
            report = await self.next()
            if not isinstance(report, str) and report.digest == digest:
                return report

    async def until_rejected(self):
        while not isinstance(report := await self.next(), str):
            pass
        return report

    async def until_watching(self):
        """From then on no change is found by the check at the start."""
        await asyncio.wait_for(self.checked.wait(), PATIENCE)

    async def assert_nothing_new(self):
        await self.reloader.check()
        assert self.reports.empty()


@contextlib.asynccontextmanager
async def following(root, **options):
    follower = Follower(root, **options)
    follower.reloader.start()
    try:
        yield follower
    finally:
        await follower.reloader.stop()


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch):
    monkeypatch.setattr(module, "QUIET_PERIOD", 0.02)
    monkeypatch.setattr(module, "FOLDER_INTERVAL", 0.05)


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    write(folder)
    return folder


def digest(root):
    return load_project(root, environ={}).digest


def in_place(root):
    (root / "templates/config.yaml.j2").write_text(TEMPLATE % "second")


def atomic_rename(root):
    new = root / "templates/.config.yaml.j2.tmp"
    new.write_text(TEMPLATE % "second")
    new.rename(root / "templates/config.yaml.j2")


def a_folder_replaced(root):
    new = root.parent / "templates.new"
    new.mkdir()
    (new / "config.yaml.j2").write_text(TEMPLATE % "second")
    (root / "templates").rename(root.parent / "templates.old")
    new.rename(root / "templates")


def a_new_file(root):
    (root / "templates/other.yaml.j2").write_text(TEMPLATE % "other")
    (root / "watches.yaml").write_text(WATCHES + "    other: {template: other.yaml.j2}\n")


def a_file_in_a_new_folder(root):
    (root / "templates/deep/deeper").mkdir(parents=True)
    (root / "templates/deep/deeper/more.txt").write_text("more")


def a_file_removed(root):
    (root / "templates/unused.txt").unlink()


def deleted_and_written(root):
    (root / "templates/config.yaml.j2").unlink()
    (root / "templates/config.yaml.j2").write_text(TEMPLATE % "second")


def backup_and_rename(root):
    file = root / "templates/config.yaml.j2"
    file.rename(file.with_name("config.yaml.j2~"))
    file.write_text(TEMPLATE % "second")


def many_at_once(root):
    """Like the checkout of another branch."""
    for number in range(200):
        file = root / f"templates/many/{number % 7}/{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    a_new_file(root)


def an_included_file(root):
    (root / "rules/more.yaml").write_text(WATCHES.replace("App", "More"))


def a_new_included_file(root):
    (root / "rules/new.yaml").write_text(WATCHES.replace("App", "New"))


def a_definition(root):
    (root / "crds").mkdir()
    shutil.copy(CRD, root / "crds")


def a_link_turned(root):
    write(root / "v2", "second")
    (root / "watches.yaml").unlink()
    (root / "templates").rename(root / "v1")
    (root / "templates").symlink_to("v2/templates")
    (root / "watches.yaml").symlink_to("v2/watches.yaml")


def the_project_replaced(root):
    write(root.parent / "new", "second")
    root.rename(root.parent / "old")
    (root.parent / "new").rename(root)


@pytest.mark.parametrize(
    "change",
    [
        in_place,
        atomic_rename,
        deleted_and_written,
        backup_and_rename,
        a_folder_replaced,
        a_new_file,
        a_file_in_a_new_folder,
        a_file_removed,
        many_at_once,
        an_included_file,
        a_new_included_file,
        a_definition,
        a_link_turned,
        the_project_replaced,
    ],
)
async def test_each_way_to_change_a_file_is_noticed(root, change):
    (root / "templates/unused.txt").write_text("not used")
    (root / "rules").mkdir()
    (root / "rules/more.yaml").write_text(WATCHES.replace("App", "Other"))
    (root / "watches.yaml").write_text("include: [rules/*.yaml]\nwatches:" + WATCHES)
    async with following(root) as follower:
        await follower.until_watching()
        change(root)
        assert (await follower.until(digest(root))).digest != ""
        await follower.assert_nothing_new()


async def test_after_several_writes_the_last_state_is_loaded(root):
    async with following(root) as follower:
        for number in range(10):
            (root / f"templates/file{number}.txt").write_text("x")
            await asyncio.sleep(0)
        in_place(root)
        await follower.until(digest(root))
        await follower.assert_nothing_new()


async def test_an_update_of_a_configmap_mount_is_noticed(tmp_path):
    """Files are links into `..data`, itself a link to a folder with a date for a name; a new one is made, and the link
    is turned by a rename."""
    root = tmp_path / "mounted"
    root.mkdir()

    def publish(date, name):
        write(root / date, name)
        fresh = root / "..data_tmp"
        fresh.symlink_to(date)
        fresh.rename(root / "..data")

    publish("..2026_01_01", "first")
    (root / "watches.yaml").symlink_to("..data/watches.yaml")
    (root / "templates").symlink_to("..data/templates")
    async with following(root) as follower:
        for number in range(3):
            publish(f"..2026_01_0{number + 2}", f"number{number}")
            shutil.rmtree(root / f"..2026_01_0{number + 1}")
            await follower.until(digest(root))
        await follower.assert_nothing_new()


async def test_updates_of_several_mounts_are_noticed(tmp_path):
    """Three ConfigMaps: one for the project's folder, one for templates/, one for crds/."""
    root = tmp_path / "mounted"

    def publish(folder, date, files):
        (folder / date).mkdir(parents=True)
        for name, text in files.items():
            (folder / date / name).write_text(text)
        old = (folder / "..data").readlink() if (folder / "..data").is_symlink() else None
        (folder / "..data_tmp").symlink_to(date)
        (folder / "..data_tmp").rename(folder / "..data")
        for name in files:
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(f"..data/{name}")
        if old is not None:
            shutil.rmtree(folder / old)

    publish(root, "..1", {"watches.yaml": WATCHES})
    publish(root / "templates", "..1", {"config.yaml.j2": TEMPLATE % "first"})
    publish(root / "crds", "..1", {"apps.yaml": CRD.read_text()})
    async with following(root) as follower:
        await follower.until_watching()
        for date in ("..2", "..3"):
            publish(root / "templates", date, {"config.yaml.j2": TEMPLATE % f"at{date.strip('.')}"})
            await follower.until(digest(root))
            publish(root / "crds", date, {"apps.yaml": CRD.read_text() + f"# {date}\n"})
            await follower.until(digest(root))
            publish(root, date, {"watches.yaml": WATCHES + f"# {date}\n"})
            await follower.until(digest(root))


async def test_a_project_folder_that_is_a_replaced_link_is_noticed(tmp_path):
    """The project's folder is a link that a deployment replaces."""
    write(tmp_path / "releases/1", "first")
    (tmp_path / "current").symlink_to("releases/1")
    async with following(tmp_path / "current") as follower:
        await follower.until_watching()
        for number in (2, 3):
            write(tmp_path / f"releases/{number}", f"release{number}")
            (tmp_path / "next").symlink_to(f"releases/{number}")
            (tmp_path / "next").rename(tmp_path / "current")
            await follower.until(digest(tmp_path / "current"))
        in_place(tmp_path / "releases/3")
        await follower.until(digest(tmp_path / "current"))


async def test_other_files_and_reads_do_not_cause_a_check(root, monkeypatch):
    (root / "build").mkdir()
    checks, read = queue.SimpleQueue(), RuleFiles.read

    def count(root):
        checks.put(1)
        return read(root)

    async with following(root) as follower:
        await follower.until_watching()
        monkeypatch.setattr(module.RuleFiles, "read", count)
        for name in (
            "notes.txt",
            "build/output",
            ".git",
            "templates/.config.yaml.j2.swp",
            "templates/config.yaml.j2~",
        ):
            (root / name).write_text("x")
            (root / "watches.yaml").read_text()
        await a_moment(0.2)
        before = checks.qsize()
        in_place(root)
        await follower.until(digest(root))
        assert before == 0


async def test_a_project_with_an_unreadable_file_is_rejected_until_it_can_be_read(root):
    async with following(root) as follower:
        await follower.until_watching()
        before = follower.reloader.project.revision
        file = root / "templates/config.yaml.j2"
        file.unlink()
        file.symlink_to("nowhere")
        assert "this link is broken" in await follower.until_rejected()
        file.unlink()
        file.write_bytes(b"\xff")
        assert "is not valid UTF-8" in await follower.until_rejected()
        file.write_text(TEMPLATE % "first")
        await follower.until(before)


@pytest.mark.slow
async def test_files_that_are_written_all_the_time_are_loaded(root):
    async with following(root) as follower:
        await follower.until_watching()
        ended = threading.Event()

        def write_on():
            number = 0
            while not ended.is_set():
                (root / "templates/noise.txt").write_text(str(number := number + 1))

        writing = asyncio.create_task(asyncio.to_thread(write_on))
        try:
            in_place(root)
            expected = (TEMPLATE % "second").strip()
            while (
                not isinstance(report := await follower.next(), Project)
                or expected not in report.templates["config.yaml.j2"]
            ):
                pass
        finally:
            ended.set()
            await writing


async def test_an_invalid_project_is_rejected_once_and_loaded_when_it_is_valid(root):
    async with following(root) as follower:
        before = follower.reloader.project.revision
        (root / "watches.yaml").write_text("- kind: [")
        assert "watches.yaml" in await follower.until_rejected()
        for _ in range(3):
            await follower.assert_nothing_new()
        (root / "watches.yaml").write_text(WATCHES)
        assert (await follower.until(before)).digest == before, "it is reported that the same rules are valid again"
        await follower.assert_nothing_new()


async def test_rules_that_fail_their_checks_are_rejected_and_the_earlier_ones_stay(root):
    async with following(root) as follower:
        before, follower.unsound = follower.reloader.project.revision, "imge"
        (root / "templates/config.yaml.j2").write_text(TEMPLATE % "{{ spec.imge }}")
        assert "spec.imge is not in the schema" in await follower.until_rejected()
        assert follower.reloader.project.revision == before
        await follower.assert_nothing_new()
        (root / "templates/config.yaml.j2").write_text(TEMPLATE % "{{ spec.image }}")
        await follower.until(digest(root))


async def test_rules_in_force_are_not_checked_again_when_an_edit_is_taken_back(root):
    """They may have been in force before there was such a check."""
    async with following(root) as follower:
        before = follower.reloader.project.revision
        (root / "watches.yaml").write_text("- kind: [")
        await follower.until_rejected()
        follower.unsound = "first"
        (root / "watches.yaml").write_text(WATCHES)
        await follower.until(before)


async def test_another_error_is_reported_again(root):
    async with following(root) as follower:
        (root / "watches.yaml").write_text("- kind: [")
        first = await follower.until_rejected()
        (root / "watches.yaml").write_text("- {kynd: App}")
        assert await follower.until_rejected() != first


def test_a_folder_that_is_deleted_and_created_again_is_watched(run, root):
    async def scenario():
        async with following(root) as follower:
            shutil.rmtree(root)
            while "no such folder" not in await follower.until_rejected():
                pass
            write(root, "again")
            await follower.until(digest(root))
            in_place(root)
            await follower.until(digest(root))

    with capture_logs() as logs:
        run(scenario())
    assert [log["event"] for log in logs].count("cannot watch the folder of the rules; checking it periodically") == 1


async def test_a_folder_that_replaces_another_is_watched(root, tmp_path):
    async with following(root, check_interval=0.05) as follower:
        write(tmp_path / "new", "replaced")
        root.rename(tmp_path / "old")
        (tmp_path / "new").rename(root)
        await follower.until(digest(root))
        follower.reloader.check_interval = 60.0
        await follower.reloader.check()
        in_place(root)
        await follower.until(digest(root))


async def test_a_project_behind_a_link_is_watched(root, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(root)
    async with following(link) as follower:
        in_place(root)
        await follower.until(digest(root))


async def test_without_events_the_files_are_checked_periodically(root, monkeypatch):
    monkeypatch.setattr(module, "CHANGES", [FileOpenedEvent])
    async with following(root, check_interval=0.01) as follower:
        await follower.assert_nothing_new()
        in_place(root)
        await follower.until(digest(root))


def test_the_reloader_checks_periodically_when_inotify_watches_are_exhausted(run, root, monkeypatch):
    def none_left(*_args, **_options):
        raise OSError(28, "inotify watch limit reached")

    async def scenario():
        monkeypatch.setattr(BaseObserver, "schedule", none_left)
        async with following(root, check_interval=0.01) as follower:
            for number in range(2):
                write(root, f"another{number}")
                await follower.until(digest(root))

    with capture_logs() as logs:
        run(scenario())
    assert [log["error"] for log in logs] == ["inotify watch limit reached"]


async def test_a_change_before_the_start_is_noticed(root):
    follower = Follower(root)
    in_place(root)
    follower.reloader.start()
    try:
        await follower.until(digest(root))
    finally:
        await follower.reloader.stop()


async def test_a_change_while_the_files_are_read_is_noticed(root, monkeypatch):
    reading, changed = threading.Event(), threading.Event()

    def slow(files, *, environ):
        project = build_unchecked(files, environ=environ)
        if not changed.is_set():
            reading.set()
            changed.wait(PATIENCE)
        return project

    async with following(root) as follower:
        monkeypatch.setattr(follower, "build", slow)
        (root / "templates/first.txt").write_text("x")
        await asyncio.to_thread(reading.wait, PATIENCE)
        in_place(root)
        await a_moment()
        changed.set()
        await follower.until(digest(root))


async def test_an_internal_error_does_not_stop_the_reloader(root, monkeypatch):
    failing = asyncio.Event()

    def broken(files, *, environ):
        raise PermissionError(13, "Permission denied")

    async with following(root) as follower:
        monkeypatch.setattr(follower, "build", broken)
        monkeypatch.setattr(follower.reloader.log, "exception", lambda *_: failing.set(), raising=False)
        in_place(root)
        await asyncio.wait_for(failing.wait(), PATIENCE)
        assert await follower.until_rejected() == f"{root}: cannot be read: PermissionError(13, 'Permission denied')"
        monkeypatch.setattr(follower, "build", build_unchecked)
        a_new_file(root)
        await follower.until(digest(root))


async def test_after_an_internal_error_unchanged_files_are_loaded_again(root, monkeypatch):
    """No file has to change for the project to be reported as valid again."""
    watching = module.places

    def broken(root):
        raise PermissionError(13, "Permission denied")

    async with following(root, check_interval=0.05) as follower:
        await follower.until_watching()
        monkeypatch.setattr(module, "places", broken)
        monkeypatch.setattr(follower.reloader.log, "exception", lambda *_: None, raising=False)
        await follower.until_rejected()
        monkeypatch.setattr(module, "places", watching)
        await follower.until(digest(root))


async def test_a_project_with_a_circular_link_is_rejected_until_it_is_gone(root):
    async with following(root) as follower:
        link = root / "templates/x"
        link.symlink_to("x")
        assert await follower.until_rejected() == "templates/x: this link is broken"
        link.unlink()
        in_place(root)
        await follower.until(digest(root))


async def test_stop_works_before_start_and_twice(root):
    follower = Follower(root)
    await follower.reloader.stop()
    follower.reloader.start()
    await follower.reloader.stop()
    await follower.reloader.stop()
