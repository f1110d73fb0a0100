"""The README of a new project: from a check to an operator in a cluster, and to its next version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.core.schema.crd.definition import plural

if TYPE_CHECKING:
    from ruleop.core.kinds import Kind


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
