"""`ruleop init`: what it writes, prints and refuses, and that other commands take what it made."""

from __future__ import annotations

import pytest

SAMPLE = """\
apiVersion: cms.example.com/v1
kind: Blog
metadata: {name: news}
spec: {image: "wordpress:6.8", replicas: 2, port: 80}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_project_passes_check_and_can_be_planned(here, ruleop):
    ran = ruleop("init", "app")
    assert (ran.status, ran.err) == (0, "")
    assert "By default, because not named: --group, --version, --kind." in ran.out
    assert ruleop("check", "-C", "app").out == "No errors in 1 rule, 2 children, 2 templates, 1 CRD.\n"
    assert ruleop("plan", "-C", "app", "-f", "app/examples/app-sample.yaml").out.endswith("\n2 to create.\n")


def test_the_kind_is_named_by_flags(here, ruleop):
    ran = ruleop("init", "x", "--group", "cms.example.com", "--version", "v2", "--kind", "Blog")
    assert ran.out.startswith("Blog in cms.example.com/v2\n")
    assert "By default" not in ran.out
    assert (here / "x/crds/blogs.cms.example.com.yaml").exists()


def test_the_kind_and_its_schema_come_from_a_sample(here, ruleop):
    (here / "blog.yaml").write_text(SAMPLE)
    ran = ruleop("init", ".", "--from-sample", "blog.yaml")
    assert (ran.status, ran.err) == (0, "")
    assert ruleop("check").out == "No errors in 1 rule, 2 children, 2 templates, 1 CRD.\n"
    edited = (here / "examples/news.yaml").read_text().replace("port: 80", "prot: 80")
    assert "is not in Blog's schema" in ruleop("plan", "-f", "-", stdin=edited).err


def test_an_existing_file_is_a_refusal_with_its_name_and_nothing_is_written(here, ruleop):
    (here / "app/crds").mkdir(parents=True)
    (here / "app/crds/apps.example.com.yaml").write_text("mine")
    ran = ruleop("init", "app")
    assert ran.status == 2
    assert ran.err == (
        "ruleop: app/crds/apps.example.com.yaml exists: nothing was written; move it away, or name another folder\n"
    )
    assert [path.name for path in (here / "app").rglob("*") if path.is_file()] == ["apps.example.com.yaml"]
    assert (here / "app/crds/apps.example.com.yaml").read_text() == "mine"


def test_a_second_init_names_one_of_the_files(here, ruleop):
    ruleop("init", "app")
    assert "app/watches.yaml exists and 8 more: nothing was written" in ruleop("init", "app").err


def test_other_files_of_the_folder_stay(here, ruleop):
    (here / "notes.txt").write_text("mine")
    assert ruleop("init", ".").status == 0
    assert (here / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("init",), "DIR is missing"),
        (("init", "file"), "file is a file: name a folder"),
        (("init", "x", "--kind", "blog"), '"blog" is not a kind: use letters and digits, the first in upper case'),
        (("init", "x", "--group", "blog"), '"blog" is not a group of custom resources: use a domain name'),
        (("init", "x", "--version", "1"), '"1" is not a version'),
        (("init", "x", "--from-sample", "none.yaml"), "none.yaml: no such file"),
        (("init", "x", "--from-sample", "blog.yaml", "--kind", "Y"), "are those of the samples: leave them out"),
    ],
)
def test_wrong_usage_is_named(here, ruleop, arguments, message):
    (here / "file").write_text("")
    (here / "blog.yaml").write_text(SAMPLE)
    ran = ruleop(*arguments)
    assert ran.status == 2
    assert message in ran.err
    assert not (here / "x").exists()


def test_what_it_writes_is_the_same_each_time(here, ruleop):
    for folder in ("a", "b"):
        ruleop("init", folder)
    files = [path.relative_to(here / "a") for path in (here / "a").rglob("*") if path.is_file()]
    assert len(files) == 9
    assert all((here / "a" / path).read_bytes() == (here / "b" / path).read_bytes() for path in files)


@pytest.mark.slow
def test_a_new_project_becomes_ready_under_dev(here, process, ruleop):
    ruleop("init", "app")
    dev = process("dev", "-C", "app", "--apply", "app/examples/", "--once")
    out, err = dev.communicate(timeout=60)
    assert dev.returncode == 0, err
    assert "App default/app-sample    ready" in out
