"""The image that holds the rules."""

from __future__ import annotations

from ruleop.authoring.generate.manifests import image_files
from ruleop.language.rules.operator_choices import About, Choices

PATHS = ["watches.yaml", "templates/a.yaml", "templates/b/c.yaml", "crds/a.yaml", "rules/more rules.yaml"]


def test_the_dockerfile_copies_the_project_and_nothing_else() -> None:
    files = image_files(PATHS, Choices(name="shop", version="1.2.0"), "ruleop:0.1.0")
    lines = files["Dockerfile"].splitlines()
    assert [line for line in lines if line.startswith("COPY")] == [
        "COPY crds/ /rules/crds/",
        "COPY rules/ /rules/rules/",
        "COPY templates/ /rules/templates/",
        "COPY watches.yaml /rules/watches.yaml",
    ]
    assert lines[2:4] == ["ARG BASE=ruleop:0.1.0", "FROM ${BASE}"]
    assert lines[-1] == 'CMD ["run", "--no-reload"]'
    assert files[".dockerignore"].splitlines()[1:] == ["*", "!crds", "!rules", "!templates", "!watches.yaml"]


def test_an_image_of_the_rules_alone_has_the_project_at_its_root_and_nothing_else() -> None:
    files = image_files(PATHS, Choices(name="shop", version="1.2.0"), None)
    lines = [line for line in files["Dockerfile"].splitlines() if not line.startswith("#")]
    assert lines[:2] == ["FROM scratch", "ARG REVISION="]
    assert lines[-4:] == [
        "COPY crds/ /crds/",
        "COPY rules/ /rules/",
        "COPY templates/ /templates/",
        "COPY watches.yaml /watches.yaml",
    ]
    assert 'org.opencontainers.image.revision="${REVISION}"' in files["Dockerfile"]
    assert "BASE" not in files["Dockerfile"]
    assert files[".dockerignore"] == image_files(PATHS, Choices(), "ruleop")[".dockerignore"]


def test_the_image_has_labels_of_where_it_comes_from() -> None:
    text = image_files(PATHS, Choices(name="shop", version="1.2.0"), "ruleop")["Dockerfile"]
    for label in ('title="shop"', 'version="1.2.0"', 'revision="${REVISION}"', 'base.name="${BASE}"'):
        assert f"org.opencontainers.image.{label}" in text


def test_labels_have_the_texts_for_a_catalogue() -> None:
    about = About(title="Shops", summary='One "$BASE" \\', homepage="https://example.com", provider="Example")
    text = image_files(PATHS, Choices(about=about), "ruleop")["Dockerfile"]
    for label in (
        'title="Shops"',
        'description="One \\"\\$BASE\\" \\\\"',
        'url="https://example.com"',
        'vendor="Example"',
    ):
        assert f"org.opencontainers.image.{label}" in text


def test_a_path_with_a_blank_stays_one_path() -> None:
    text = image_files(["more rules.yaml"], Choices(), "ruleop")["Dockerfile"]
    assert 'COPY ["more rules.yaml", "/rules/more rules.yaml"]' in text
