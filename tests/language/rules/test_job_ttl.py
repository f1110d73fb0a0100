"""Jobs that would run for ever."""

from __future__ import annotations

from tests.language.rules.projects import Row, said, table, watch

JOB = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {ttlSecondsAfterFinished: 60}}"
SAID = "warning: with `ttlSecondsAfterFinished` the finished Job is deleted, and then ruleop creates and runs it again: remove the field"
SPEC = """\
metadata: {name: a}
spec:
  # ttlSecondsAfterFinished: 30
  ttlSecondsAfterFinished: 60
"""

ROWS = (
    Row(
        "a Job that is deleted when it is done",
        watch(f"""
children:
  a:
    object: {JOB}
  b: {{template: b.yaml, apply: {{strategy: merge}}}}
  c: {{template: c.yaml}}
"""),
        [f"templates/b.yaml:6:3: {SAID}", f"templates/c.yaml:4:8: {SAID}", f"watches.yaml:6:77: {SAID}"],
        files={
            "templates/b.yaml": "apiVersion: batch/v1\nkind: Job\n" + SPEC,
            "templates/c.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: c}\nspec: {ttlSecondsAfterFinished: 60, suspend: true}\n",
        },
    ),
    Row(
        "one that may be, and what is no Job",
        watch(f"""
children:
  wanted: {{when: spec.x, object: {JOB}}}
  plain: {{object: {{apiVersion: batch/v1, kind: Job, metadata: {{name: b}}, spec: {{suspend: true}}}}}}
  bare: {{object: {{apiVersion: batch/v1, kind: Job, metadata: {{name: c}}}}}}
  often: {{template: often.yaml}}
finalize:
  last: {{object: {JOB}}}
"""),
        [],
        files={"templates/often.yaml": "apiVersion: batch/v1\nkind: CronJob\n" + SPEC},
    ),
)


@table(*ROWS)
def test_jobs_without_ttl_are_warned_of_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files) == row.said
