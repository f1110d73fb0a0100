"""The workflow that checks the rules of a project at each change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

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
