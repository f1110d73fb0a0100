"""`ruleop generate helm --out`: which files it writes, and which it leaves alone."""

from __future__ import annotations

import pytest

from ruleop.language.rules.operator_choices import GENERIC_IMAGE
from tests.cli.generated_project import CHOICES, WATCHES, project

__all__ = ["project"]


@pytest.fixture
def chart(tmp_path):
    return tmp_path / "chart"


@pytest.fixture
def generate(project, chart, ruleop):
    def run(*arguments: str):
        return ruleop("generate", "helm", "-C", str(project), "--out", str(chart), *arguments)

    return run


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_second_run_writes_nothing_and_check_agrees(generate, chart):
    assert generate().status == 0
    before = files(chart)
    ran = generate()
    assert (ran.status, "written" in ran.out) == (0, False)
    assert generate("--check").status == 0
    assert files(chart) == before


def test_without_out_each_file_follows_its_path(project, ruleop, chart, generate):
    printed = ruleop("generate", "helm", "-C", str(project)).out
    generate()
    assert printed.startswith("# path: Chart.yaml\n")
    assert printed.count("\n# path: ") == len(files(chart)) - 1


@pytest.mark.slow
def test_a_file_of_rules_that_are_gone_is_removed(generate, project, chart):
    (project / "templates" / "macros.yaml").write_text("{# nothing #}\n")
    generate()
    (project / "templates" / "macros.yaml").unlink()
    gone = chart / "files" / "rules" / "templates" / "macros.yaml"
    ran = generate("--check")
    assert (ran.status, f"{gone}: not current\n" in ran.out, gone.exists()) == (1, True, True)
    assert f"{gone}: removed\n" in generate().out
    assert not gone.exists()


@pytest.mark.slow
def test_templates_of_the_user_stay(generate, chart):
    generate()
    (chart / "templates" / "extra.yaml").write_text("# mine\n")
    generate("--version", "0.2.0")
    assert (chart / "templates" / "extra.yaml").read_text() == "# mine\n"
    assert generate("--version", "0.2.0", "--check").status == 0


def test_a_chart_that_it_did_not_make_is_left_alone(generate, chart):
    (chart / "files").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("# mine\n")
    (chart / "files" / "mine").write_text("mine\n")
    before = files(chart)
    ran = generate()
    assert (ran.status, files(chart)) == (2, before)
    assert f"{chart}/Chart.yaml was not made by `ruleop generate`: nothing was written; --force" in ran.err


@pytest.mark.parametrize("name", ["files/mine", "values.yaml"])
def test_without_its_chart_yaml_nothing_there_is_its_own(generate, chart, name):
    (chart / "files").mkdir(parents=True)
    (chart / name).write_text("mine\n")
    ran = generate()
    assert (ran.status, files(chart)) == (2, {name: b"mine\n"})
    assert f"{chart}/{name} was not made by `ruleop generate`" in ran.err


@pytest.mark.parametrize("link", ["files", "files/rules", "files/mine"])
def test_a_link_leads_to_no_file_outside(generate, chart, tmp_path, link):
    generate()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine\n")
    (chart / link).parent.mkdir(exist_ok=True)
    if (chart / link).exists():
        (chart / link).rename(tmp_path / "moved")
    (chart / link).symlink_to(outside)
    ran = generate()
    assert (ran.status, files(outside)) == (2, {"mine": b"mine\n"})
    assert f"{chart / link} is a link: nothing was written" in ran.err


def test_nothing_is_written_for_a_project_with_a_mistake(generate, project, chart):
    (project / "ruleop.yaml").write_text("nam: a\n")
    ran = generate()
    assert (ran.status, chart.exists()) == (1, False)
    assert 'ruleop.yaml:1:1: error[RO201]: unknown key "nam" in ruleop.yaml (did you mean "name"?)' in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("what", ["helm", "manifests"])
def test_a_breaking_change_of_a_crd_needs_force(ruleop, project, tmp_path, what):
    folder = tmp_path / what

    def generate(*arguments: str):
        return ruleop("generate", what, "-C", str(project), "--out", str(folder), *arguments)

    assert generate().status == 0
    (project / "watches.yaml").write_text(WATCHES.replace("maximum=5", "maximum=9"))
    assert generate().status == 0, "more is allowed than before"
    before = files(folder)
    (project / "watches.yaml").write_text(WATCHES.replace("maximum=5", "maximum=3"))
    ran = generate()
    assert (ran.status, ran.out, files(folder)) == (1, "", before)
    assert ran.err == (
        "sites.example.com: 1 breaking change\n  v1 spec.size: maximum lowered from 9 to 3\n"
        "nothing was written: clients and custom resources may depend on it; --force writes it\n"
    )
    assert generate("--check").status == 1
    assert generate("--force").status == 0
    assert files(folder) != before


def test_an_option_overrides_the_file(generate, chart):
    generate("--name", "other", "--namespaces", "shop, blog", "--version", "2.0.0")
    assert "name: other\n" in (chart / "Chart.yaml").read_text()
    assert "watchNamespaces: [shop, blog]\n" in (chart / "values.yaml").read_text()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--name", "Shop"), '--name must be up to 40 lowercase letters, digits and "-", not "Shop"'),
        (("--namespaces", "shop,a b"), '--namespaces must be up to 63 lowercase letters, digits and "-", not "a b"'),
        (("--version", "1"), '--version must be a version such as "1.2.0", not "1"'),
    ],
)
def test_an_invalid_option_is_wrong_usage(generate, chart, option, message):
    ran = generate(*option)
    assert (ran.status, ran.err, chart.exists()) == (2, f"ruleop: {message}\n", False)


RULES = f"registry.example.com/rules:1.2.0@sha256:{'0' * 64}"


def test_an_image_of_the_rules_takes_the_place_of_the_files(generate, chart):
    ran = generate("--rules-image", RULES)
    assert ran.status == 0
    assert not (chart / "files" / "rules").exists()
    assert f'  image: "{RULES}"\n' in (chart / "values.yaml").read_text()
    assert "kubeVersion: '>=1.33.0-0'\n" in (chart / "Chart.yaml").read_text()


def test_an_option_for_the_rules_overrides_the_file(generate, project, chart):
    (project / "ruleop.yaml").write_text(f"{CHOICES}rulesImage: {RULES}\n")
    generate("--rules", "configmap")
    assert (chart / "files" / "rules" / "watches.yaml").exists()
    (project / "ruleop.yaml").write_text(f"{CHOICES}rules: image\n")
    generate("--rules-image", RULES)
    assert f'  image: "{RULES}"\n' in (chart / "values.yaml").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rules-image", "registry.example.com/rules:1"), "--rules-image must be an image with its digest, such as"),
        (("--rules-image", RULES, "--rules", "image"), "--rules-image mounts an image of rules, and --rules chooses"),
    ],
)
def test_an_image_of_the_rules_that_cannot_be_used_is_wrong_usage(generate, chart, options, message):
    ran = generate(*options)
    assert (ran.status, chart.exists()) == (2, False)
    assert ran.err.startswith(f"ruleop: {message}")


@pytest.mark.parametrize("what", ["bundle", "helm", "manifests"])
def test_a_note_reports_that_no_registry_has_the_default_image(ruleop, project, what):
    ran = ruleop("generate", what, "-C", str(project))
    assert ran.status == 0
    assert ran.err == (
        f"note: no registry has the image {GENERIC_IMAGE}: build it (in a checkout of ruleop, "
        f"`make image IMAGE=REGISTRY/{GENERIC_IMAGE}`), push it, and name it with --image, or `image` in ruleop.yaml\n"
    )
    assert ruleop("generate", what, "-C", str(project), "--image", "registry.example.com/ruleop:1").err == ""


def test_a_note_reports_how_the_default_image_gets_the_rules(ruleop, project):
    ran = ruleop("generate", "helm", "-C", str(project), "--rules", "image")
    built = f"(`ruleop generate image --out .` and `docker build -t REGISTRY/{GENERIC_IMAGE} .`)"
    assert built in ran.err


def test_a_note_reports_that_no_registry_has_the_default_base(ruleop, project):
    ran = ruleop("generate", "image", "-C", str(project))
    assert ran.status == 0
    assert ran.err == (
        f"note: no registry has the image {GENERIC_IMAGE}: build it (in a checkout of ruleop, "
        f"`make image IMAGE=REGISTRY/{GENERIC_IMAGE}`), push it, and name it with --base\n"
    )
    assert ruleop("generate", "image", "-C", str(project), "--base", "registry.example.com/ruleop:1").err == ""


def test_an_image_of_the_rules_alone_has_no_base(ruleop, project):
    ran = ruleop("generate", "image", "-C", str(project), "--rules-only")
    assert (ran.status, ran.err) == (0, "")
    assert "FROM scratch\n" in ran.out
    assert "COPY watches.yaml /watches.yaml\n" in ran.out
    ran = ruleop("generate", "image", "-C", str(project), "--rules-only", "--base", "ruleop:1")
    assert (ran.status, ran.err) == (2, "ruleop: --rules-only starts from no image: use it without --base\n")
