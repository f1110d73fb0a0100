"""Files change on disk in every way that editors and Kubernetes know; the project follows, once for each change."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import shutil
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import ruleop.engine.manager.reload as module
from ruleop.engine.manager.reload import Reloader
from ruleop.rules import Project, load_project

CRD = Path(__file__).parents[2] / "crds/apps.myapp.k8s.io.yaml"
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
    """What a reloader told, as a queue to wait on."""

    def __init__(self, root, **options):
        self.root = root
        self.told: asyncio.Queue = asyncio.Queue()
        self.reloader = Reloader(
            root,
            {},
            current=load_project(root, environ={}).digest,
            changed=self.told.put_nowait,
            refused=lambda errors: self.told.put_nowait(str(errors)),
            **options,
        )
        self.looked = asyncio.Event()
        self._look, self.reloader.look = self.reloader.look, self.look

    async def look(self):
        await self._look()
        self.looked.set()

    async def next(self):
        return await asyncio.wait_for(self.told.get(), 15)

    async def until(self, digest):
        """Intermediate states may be told; the last one is."""
        while True:
            told = await self.next()
            if not isinstance(told, str) and told.digest == digest:
                return told

    async def until_refused(self):
        while not isinstance(told := await self.next(), str):
            pass
        return told

    async def watched(self):
        """When it watches: from then on no change is found by the look at its start."""
        await asyncio.wait_for(self.looked.wait(), 15)

    async def rest(self):
        """When all that happened up to here has been looked at."""
        await self.reloader.look()
        assert self.told.empty()


@contextlib.asynccontextmanager
async def following(root, **options):
    follower = Follower(root, **options)
    follower.reloader.start()
    try:
        yield follower
    finally:
        await follower.reloader.stop()


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(module, "STILL", 0.02)
    monkeypatch.setattr(module, "LOOK_AT_FOLDERS", 0.05)


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
    """As a checkout of another branch does it."""
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
def test_each_way_to_change_a_file_is_followed(run, root, change):
    (root / "templates/unused.txt").write_text("not used")
    (root / "rules").mkdir()
    (root / "rules/more.yaml").write_text(WATCHES.replace("App", "Other"))
    (root / "watches.yaml").write_text("include: [rules/*.yaml]\nwatches:" + WATCHES)

    async def story():
        async with following(root) as follower:
            await follower.watched()
            change(root)
            assert (await follower.until(digest(root))).digest != ""
            await follower.rest()

    run(story())


def test_files_written_one_after_the_other_end_in_what_they_are_together(run, root):
    async def story():
        async with following(root) as follower:
            for number in range(10):
                (root / f"templates/file{number}.txt").write_text("x")
                await asyncio.sleep(0)
            in_place(root)
            await follower.until(digest(root))
            await follower.rest()

    run(story())


def test_a_configmap_is_swapped_as_kubelet_does_it(run, tmp_path):
    """Files are links into `..data`, itself a link to a folder with a date for a name; a new one is made, and the link is turned by a rename."""
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

    async def story():
        async with following(root) as follower:
            for number in range(3):
                publish(f"..2026_01_0{number + 2}", f"number{number}")
                shutil.rmtree(root / f"..2026_01_0{number + 1}")
                await follower.until(digest(root))
            await follower.rest()

    run(story())


def test_templates_and_definitions_in_mounts_of_their_own_are_swapped(run, tmp_path):
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

    async def story():
        async with following(root) as follower:
            await follower.watched()
            for date in ("..2", "..3"):
                publish(root / "templates", date, {"config.yaml.j2": TEMPLATE % f"at{date.strip('.')}"})
                await follower.until(digest(root))
                publish(root / "crds", date, {"apps.yaml": CRD.read_text() + f"# {date}\n"})
                await follower.until(digest(root))
                publish(root, date, {"watches.yaml": WATCHES + f"# {date}\n"})
                await follower.until(digest(root))

    run(story())


def test_a_release_behind_a_link_is_turned(run, tmp_path):
    """The project's folder is a link itself, as deployments of files do it."""
    write(tmp_path / "releases/1", "first")
    (tmp_path / "current").symlink_to("releases/1")

    async def story():
        async with following(tmp_path / "current") as follower:
            await follower.watched()
            for number in (2, 3):
                write(tmp_path / f"releases/{number}", f"release{number}")
                (tmp_path / "next").symlink_to(f"releases/{number}")
                (tmp_path / "next").rename(tmp_path / "current")
                await follower.until(digest(tmp_path / "current"))
            in_place(tmp_path / "releases/3")
            await follower.until(digest(tmp_path / "current"))

    run(story())


def test_what_does_not_belong_to_the_project_wakes_nobody(run, root):
    (root / "build").mkdir()

    async def story():
        follower = Follower(root)
        stirred = queue.SimpleQueue()
        follower.reloader._stir = lambda: stirred.put(1)
        follower.reloader.start()
        try:
            await follower.watched()
            for name in ("notes.txt", "build/output", ".git", "templates/.config.yaml.j2.swp", "templates/config.yaml.j2~"):
                (root / name).write_text("x")
            (root / "watches.yaml").read_text()
            (root / "templates/last.txt").write_text("x")
            await asyncio.to_thread(stirred.get, True, 15)
            await asyncio.sleep(0.1)
            assert stirred.qsize() < 4, "what happened to the last file: made, written, closed"
        finally:
            await follower.reloader.stop()

    run(story())


def test_a_file_that_cannot_be_read_is_refused_until_it_can(run, root):
    async def story():
        async with following(root) as follower:
            await follower.watched()
            before = follower.reloader.digest
            file = root / "templates/config.yaml.j2"
            file.unlink()
            file.symlink_to("nowhere")
            assert "this link is broken" in await follower.until_refused()
            file.unlink()
            file.write_bytes(b"\xff")
            assert "is not valid UTF-8" in await follower.until_refused()
            file.write_text(TEMPLATE % "first")
            await follower.until(before)

    run(story())


def test_writes_without_end_are_followed(run, root):
    async def story():
        async with following(root) as follower:
            await follower.watched()
            ended = threading.Event()

            def write_on():
                number = 0
                while not ended.is_set():
                    (root / "templates/noise.txt").write_text(str(number := number + 1))

            writing = asyncio.create_task(asyncio.to_thread(write_on))
            try:
                in_place(root)
                wanted = (TEMPLATE % "second").strip()
                while not isinstance(told := await follower.next(), Project) or wanted not in told.templates["config.yaml.j2"]:
                    pass
            finally:
                ended.set()
                await writing

    run(story())


def test_what_is_broken_is_refused_once_and_what_is_repaired_is_taken(run, root):
    async def story():
        async with following(root) as follower:
            before = follower.reloader.digest
            (root / "watches.yaml").write_text("- kind: [")
            assert "watches.yaml" in await follower.until_refused()
            for _ in range(3):
                await follower.rest()
            (root / "watches.yaml").write_text(WATCHES)
            assert (await follower.until(before)).digest == before, "it is told that the same rules are good again"
            await follower.rest()

    run(story())


def test_another_mistake_is_told_again(run, root):
    async def story():
        async with following(root) as follower:
            (root / "watches.yaml").write_text("- kind: [")
            first = await follower.until_refused()
            (root / "watches.yaml").write_text("- {kynd: App}")
            assert await follower.until_refused() != first

    run(story())


def test_a_folder_that_is_deleted_and_made_again_is_followed_on(run, root):
    async def story():
        async with following(root) as follower:
            shutil.rmtree(root)
            while "no such folder" not in await follower.until_refused():
                pass
            write(root, "again")
            await follower.until(digest(root))
            in_place(root)
            await follower.until(digest(root))

    with capture_logs() as logs:
        run(story())
    assert [log["event"] for log in logs].count("the folder of the rules cannot be watched; it is looked at now and then") == 1


def test_a_folder_that_is_replaced_by_another_is_followed_on(run, root, tmp_path):
    async def story():
        async with following(root, look_anyway=0.05) as follower:
            write(tmp_path / "new", "replaced")
            root.rename(tmp_path / "old")
            (tmp_path / "new").rename(root)
            await follower.until(digest(root))
            follower.reloader.look_anyway = 60.0
            await follower.reloader.look()
            in_place(root)
            await follower.until(digest(root))

    run(story())


def test_a_project_behind_a_link_is_followed(run, root, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(root)

    async def story():
        async with following(link) as follower:
            in_place(root)
            await follower.until(digest(root))

    run(story())


def test_without_any_event_the_files_are_looked_at_anyway(run, root, monkeypatch):
    async def story():
        follower = Follower(root, look_anyway=0.01)
        monkeypatch.setattr(follower.reloader, "_stir", lambda: None)
        follower.reloader.start()
        try:
            await follower.rest()
            in_place(root)
            await follower.until(digest(root))
        finally:
            await follower.reloader.stop()

    run(story())


def test_a_machine_without_watches_left_is_told_once_and_looks_anyway(run, root, monkeypatch):
    def none_left(*_args, **_options):
        raise OSError(28, "inotify watch limit reached")

    async def story():
        follower = Follower(root, look_anyway=0.01)
        monkeypatch.setattr(follower.reloader._observer, "schedule", none_left)
        follower.reloader.start()
        try:
            for _ in range(2):
                write(root, f"another{_}")
                await follower.until(digest(root))
        finally:
            await follower.reloader.stop()

    with capture_logs() as logs:
        run(story())
    assert [log["error"] for log in logs] == ["inotify watch limit reached"]


def test_what_changed_before_the_start_is_found(run, root):
    async def story():
        follower = Follower(root)
        in_place(root)
        follower.reloader.start()
        try:
            await follower.until(digest(root))
        finally:
            await follower.reloader.stop()

    run(story())


def test_an_event_while_the_files_are_read_makes_them_be_read_again(run, root, monkeypatch):
    reading, changed = threading.Event(), threading.Event()

    def slow(root, *, environ):
        project = load_project(root, environ=environ)
        if not changed.is_set():
            reading.set()
            changed.wait(15)
        return project

    async def story():
        async with following(root) as follower:
            monkeypatch.setattr(module, "load_project", slow)
            (root / "templates/first.txt").write_text("x")
            await asyncio.to_thread(reading.wait, 15)
            in_place(root)
            await asyncio.sleep(0.05)
            changed.set()
            await follower.until(digest(root))

    run(story())


def test_a_folder_that_is_never_still_is_read_all_the_same(run, root, monkeypatch):
    monkeypatch.setattr(module, "STILL_AT_MOST", 0.1)

    async def story():
        async with following(root) as follower:
            in_place(root)

            async def stir():
                while True:
                    follower.reloader._stir()
                    await asyncio.sleep(0.005)

            stirring = asyncio.create_task(stir())
            await follower.until(digest(root))
            stirring.cancel()

    run(story())


def test_a_fault_in_reading_ends_nothing(run, root, monkeypatch):
    failing = asyncio.Event()

    def broken(root, *, environ):
        raise PermissionError(13, "Permission denied")

    async def story():
        async with following(root) as follower:
            monkeypatch.setattr(module, "load_project", broken)
            monkeypatch.setattr(follower.reloader.log, "exception", lambda *_: failing.set(), raising=False)
            in_place(root)
            await asyncio.wait_for(failing.wait(), 15)
            assert await follower.until_refused() == f"{root}: cannot be read: PermissionError(13, 'Permission denied')"
            monkeypatch.setattr(module, "load_project", load_project)
            a_new_file(root)
            await follower.until(digest(root))

    run(story())


def test_after_a_fault_the_same_files_are_read_again(run, root, monkeypatch):
    """Nothing has to change on disk for it to be told that the rules are in order again."""
    watching = module.places

    def broken(root):
        raise PermissionError(13, "Permission denied")

    async def story():
        async with following(root, look_anyway=0.05) as follower:
            await follower.watched()
            monkeypatch.setattr(module, "places", broken)
            monkeypatch.setattr(follower.reloader.log, "exception", lambda *_: None, raising=False)
            await follower.until_refused()
            monkeypatch.setattr(module, "places", watching)
            await follower.until(digest(root))

    run(story())


def test_a_link_in_a_circle_is_refused_and_its_end_is_followed(run, root):
    async def story():
        async with following(root) as follower:
            link = root / "templates/x"
            link.symlink_to("x")
            assert await follower.until_refused() == "templates/x: this link is broken"
            link.unlink()
            in_place(root)
            await follower.until(digest(root))

    run(story())


def test_reading_is_no_change(run, root):
    async def story():
        async with following(root) as follower:
            looks = 0
            look = follower.reloader.look
            looked = asyncio.Event()

            async def count():
                nonlocal looks
                looks += 1
                await look()
                looked.set()

            follower.reloader.look = count
            in_place(root)
            await follower.until(digest(root))
            await asyncio.wait_for(looked.wait(), 15)
            before = looks
            for _ in range(5):
                (root / "watches.yaml").read_text()
                await asyncio.sleep(0.02)
            assert looks - before <= 1, "at most the one that was under way"

    run(story())


def test_it_stops_before_it_began_and_twice(run, root):
    async def story():
        follower = Follower(root)
        await follower.reloader.stop()
        follower.reloader.start()
        await follower.reloader.stop()
        await follower.reloader.stop()
        return follower

    follower = run(story())
    follower.reloader._stir()  # an event that comes late
