"""The README of a new project, from a check to an operator in a cluster and to its next version; the workflow that
checks its rules at each change; and AGENTS.md."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, Final

from ruleop import __version__
from ruleop.language.rules.keys import watches_yaml as language
from ruleop.language.rules.keys.definitions import plural
from ruleop.language.rules.keys.schema_keys import SchemaTable
from ruleop.language.rules.keys.tables import keys
from ruleop.language.rules.keys.value_types import WordChoice
from ruleop.language.templates import FILTER_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules.keys.tables import Key, Table


def readme(kind: Kind, operator: str, sample: str, *, has_existing: bool) -> str:
    """`operator`: its name in a cluster. `sample`: the name of the first example. `has_existing`: whether users make
    objects that the children need."""
    existing = ["existing/"] if has_existing else []
    applied = " ".join(f"--apply {folder}" for folder in (*existing, "examples/"))
    created = " ".join(f"-f {folder}" for folder in (*existing, "examples/"))
    return f"""\
# {kind.kind}

An operator for {kind.kind} ({kind.group}/{kind.version}), made with ruleop. `watches.yaml` maps each {kind.kind} to its
children, `templates/` has the children, `tests/` their tests.

```console
$ ruleop check                      # find mistakes without a cluster
$ ruleop render -f examples/{sample}.yaml
$ ruleop test                       # the cases of tests/
$ ruleop dev {applied}
```

## In a cluster

`ruleop.yaml` has the name of the operator, its namespace and its `image`: ruleop's, on which the rules are mounted from
ConfigMaps. Set it to one that your cluster can pull. Then install a Helm chart:

```console
$ ruleop generate helm --out chart
$ helm install {operator} ./chart --namespace {operator}-system --create-namespace
```

or plain objects:

```console
$ ruleop generate manifests | kubectl apply -f -
```

Both have the CRD, the roles that the rules need, and a Deployment. Try it:

```console
$ kubectl apply {created}
$ kubectl get {plural(kind.kind)}.{kind.group}
```

To put the rules into an image of their own, set `rules: image` and `image` to its name:

```console
$ ruleop generate image --out .
$ docker build -t registry.example.com/{operator}:0.1.0 .
```

## The next version

Look before you upgrade, raise `version` in `ruleop.yaml`, and install again:

```console
$ ruleop generate crd --live        # what breaks existing custom resources
$ ruleop plan --live --all          # what changes in the cluster
$ ruleop generate helm --out chart
$ helm upgrade {operator} ./chart --namespace {operator}-system
```
"""


_GITHUB: Final = """\
# Checks the rules at each change.
name: rules
on:
  push: {branches: [main]}
  pull_request:

permissions:
  contents: read

jobs:
  check:
    runs-on: ubuntu-24.04
    timeout-minutes: 10
    steps:
      - uses: actions/checkout@v5
        with: {persist-credentials: false}
      - uses: actions/setup-python@v6
        with: {python-version: "3.13"}
      - run: pip install ruleop==VERSION
      - run: ruleop check -o github
      - run: ruleop test
      - name: generated files are current
        run: if [ -d chart ]; then ruleop generate helm --out chart --check; fi

  # What a change would do in a cluster, before it is merged. It needs the variable PLAN_LIVE, true, and the secret
  # KUBECONFIG, of an account that may only read.
  plan:
    needs: check
    if: github.event_name == 'pull_request' && vars.PLAN_LIVE == 'true'
    runs-on: ubuntu-24.04
    timeout-minutes: 10
    steps:
      - uses: actions/checkout@v5
        with: {persist-credentials: false}
      - uses: actions/setup-python@v6
        with: {python-version: "3.13"}
      - run: pip install ruleop==VERSION
      - name: plan
        env:
          ACCESS: ${{ secrets.KUBECONFIG }}
        run: |
          umask 077
          export KUBECONFIG="$RUNNER_TEMP/kubeconfig"
          printf '%s' "$ACCESS" > "$KUBECONFIG"
          ruleop generate crd --live
          ruleop plan --live --all
"""

_GITLAB: Final = """\
# Checks the rules at each change.
default:
  image: python:3.13-slim
  before_script:
    - pip install ruleop==VERSION

check:
  stage: test
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
  script:
    - ruleop check
    - ruleop test
    # Generated files are current.
    - if [ -d chart ]; then ruleop generate helm --out chart --check; fi

# What a change would do in a cluster, before it is merged. It needs the variable KUBECONFIG, of type file, of an
# account that may only read.
plan:
  stage: test
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event" && $KUBECONFIG
  script:
    - ruleop generate crd --live
    - ruleop plan --live --all
"""

CI: Final[Mapping[str, tuple[str, str]]] = {
    "github": (".github/workflows/rules.yaml", _GITHUB.replace("VERSION", __version__)),
    "gitlab": (".gitlab-ci.yml", _GITLAB.replace("VERSION", __version__)),
}
"""The file for each service, and its text."""


# -- AGENTS.md ---------------------------------------------------------------------------------------------------------
# AGENTS.md of a new project: the rules language on one page, for coding assistants.
#
# Its text and its idioms are in agents.md. The tables of keys and the names of filters come from the code.

_TABLES: Final[dict[str, type[Table]]] = {
    "A watch": language.WatchTable,
    "A child, in `children` and `finalize`": language.ChildTable,
    "`apply` of a child": language.ApplyTable,
    "`patch` of a child, in place of template or object": language.PatchTable,
    "An entry of `observe`": language.ObserveTable,
    "An entry of `conditions`": language.ConditionTable,
    "An entry of `validate`": language.ValidateTable,
    "`schema` of a watch": SchemaTable,
}


def agents_page() -> str:
    text = importlib.resources.files(__package__).joinpath("agents.md").read_text(encoding="utf-8")
    filters = ", ".join(f"`{name}`" for name in sorted(FILTER_NAMES))
    return text.replace("<!-- filters -->", filters).replace("<!-- keys -->\n", "\n".join(_key_tables()))


def _key_tables() -> Iterator[str]:
    for title, table in _TABLES.items():
        rows = "".join(f"| `{key.name}` | {_meaning(key)} |\n" for _, key in keys(table))
        yield f"| {title} | |\n|---|---|\n{rows}"


def _meaning(key: Key) -> str:
    options = key.type.options if isinstance(key.type, WordChoice) else ()
    notes = [key.doc, *(["Required."] if key.required else [])]
    if options:
        notes.append(f"One of {', '.join(f'`{each}`' for each in options)}.")
    return " ".join(notes).replace("|", "\\|")
