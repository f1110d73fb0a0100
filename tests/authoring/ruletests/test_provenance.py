"""A differing field names the line of the template that it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.authoring.ruletests.running import expected


@pytest.mark.parametrize(
    ("children", "line"),
    [
        ("web: {spec: {replicas: 7}}", "+   replicas: 1                               # templates/web.yaml.j2:6"),
        ("web: {metadata: {name: x}}", "# templates/web.yaml.j2:4"),
        ("web: {spec: {selector: {matchLabels: {app: x}}}}", "# templates/web.yaml.j2:7"),
        (
            "web: {spec: {template: {spec: {containers: [{name: web, image: x}]}}}}",
            "# templates/web.yaml.j2:13",
        ),
        (
            "web: {spec: {template: {spec: {containers: [{name: proxy, image: x}]}}}}",
            "# templates/web.yaml.j2:18",
        ),
        (
            "web: {spec: {template: {spec: {containers: [{name: web, ports: [{containerPort: 80, hostPort: 1}]}]}}}}",
            "# templates/web.yaml.j2:15",
        ),
        ("web: {spec: {paused: true}}", "# templates/web.yaml.j2:5"),
        ("config: {data: {page: x}}", "# watches.yaml:15:11"),
        ("Job/blog-b: {spec: {template: {spec: {restartPolicy: Always}}}}", "# templates/job.yaml.j2:8"),
    ],
)
def test_a_differing_field_of_a_child_names_the_line_of_its_template(tmp_path: Path, children: str, line: str) -> None:
    failed = expected(tmp_path, f"{{children: {{{children}}}}}", "set: {spec: {public: true, jobs: [a, b]}}, ")
    assert line in failed


def test_a_differing_field_of_the_status_names_its_line(tmp_path: Path) -> None:
    assert "# watches.yaml:37:5" in expected(tmp_path, "{status: {replicas: 5}}")


@pytest.mark.slow
def test_a_field_rendered_by_a_macro_or_mapping_names_the_line_of_its_use(tmp_path: Path) -> None:
    expected(tmp_path, "{status: {replicas: 0}}")
    template = tmp_path / "templates/web.yaml.j2"
    (tmp_path / "templates/labels.j2").write_text("{% macro labels() %}\napp: web\ntier: front\n{% endmacro %}\n")
    text = template.read_text().replace(
        "  name: {{ metadata.name }}\n",
        "  name: {{ metadata.name }}\n  labels:\n    {{ labels() }}\n  annotations: {{ {'a': spec.page} }}\n",
    )
    template.write_text("{% from 'labels.j2' import labels %}\n" + text)
    assert "# templates/labels.j2:3" in expected(tmp_path, "{children: {web: {metadata: {labels: {tier: x}}}}}")
    assert "# templates/web.yaml.j2:8" in expected(tmp_path, "{children: {web: {metadata: {annotations: {a: x}}}}}")


@pytest.mark.slow
def test_a_field_that_a_loop_made_names_its_line_in_watches_yaml(tmp_path: Path) -> None:
    expected(tmp_path, "{status: {replicas: 0}}")
    watches = tmp_path / "watches.yaml"
    text = watches.read_text().replace(
        '      page: "{{ spec.page }}"\n',
        '      page: "{{ spec.page }}"\n'
        '          "{% for each in [1, 2] %}":\n'
        '            "n{{ each }}": "{{ each | string }}"\n',
    )
    text += '    list:\n      - first\n      - "{% for each in [1, 2] %}":\n          num: "{{ each }}"\n'
    watches.write_text(text)
    assert "# watches.yaml:17:13" in expected(tmp_path, "{children: {config: {data: {n2: x}}}}")
    assert "# watches.yaml:43:11" in expected(tmp_path, "{status: {list: [first, {num: 1}, {num: 7}]}}")


def test_a_field_written_by_others_names_no_line(tmp_path: Path) -> None:
    failed = expected(tmp_path, "{children: {web: {metadata: {uid: x}}}}")
    assert "+   uid: " in failed
    assert "uid: x  " not in failed
