"""Unknown keys with the keys that do the same: those of former versions, and those of other operators' files. People
paste them: the file of Operator SDK has the same name, and a child has much in common with a task of Ansible or a
resource of kro.
"""

from __future__ import annotations

from typing import Final

_NO_PLAYBOOKS: Final = "ruleop runs no playbooks and roles: write the objects as templates under `children`"
_NO_CHARTS: Final = "ruleop runs no charts: `ruleop init --from-manifests` makes templates of what a chart renders"
_ALWAYS: Final = "ruleop always does: remove the key"
_FOR_EACH: Final = "write `forEach`, with an expression"
_WAIT: Final = "write `waitFor` in the child that waits, or `readyWhen`"
_LOOKUP: Final = "name the object under `observe` in the watch"
_READ: Final = "other children read this child by its id"
_NO_STEPS: Final = "write each object under `children`: ruleop finds the order"

OF_A_WATCH: Final = {
    # Operator SDK: Ansible and Helm
    "playbook": _NO_PLAYBOOKS,
    "role": _NO_PLAYBOOKS,
    "chart": _NO_CHARTS,
    "overrideValues": "write `vars`, or defaults in the templates",
    "watchDependentResources": _ALWAYS,
    "watchClusterScopedResources": "write `reach: cluster`",
    "watchAnnotationsChanges": _ALWAYS,
    "maxRunnerArtifacts": "ruleop starts no runner: remove the key",
    "snakeCaseParameters": "names of fields stay as they are in the CR: remove the key",
    "markUnsafe": "values of a CR are never templates: remove the key",
    "blacklist": "write `apply.ignore` in the child, or leave the kind out",
    "dryRunOption": "use `ruleop run --dry-run`",
    "finalizer": "write `finalize`; ruleop sets its finalizer itself",
    # kro
    "resources": "write `children`, a mapping of ids",
    "apiVersion": "write `group` and `version`",
    # Crossplane
    "compositeTypeRef": "write `group`, `version` and `kind`",
    "pipeline": _NO_STEPS,
    # Metacontroller
    "parentResource": "write `group`, `version` and `kind`",
    "childResources": "write `children`: ruleop finds their kinds",
    "hooks": "ruleop calls no hooks: write `children`, `status` and `finalize`",
    "resyncPeriodSeconds": "write `reconcilePeriod: 10m`",
}
OF_A_CHILD: Final = {
    # Ansible
    **dict.fromkeys(("loop", "with_items", "with_dict", "with_list", "with_subelements", "with_sequence"), _FOR_EACH),
    "loop_control": "write `as` for the name of an item",
    "register": _READ,
    "until": _WAIT,
    "wait": _WAIT,
    "wait_condition": _WAIT,
    "retries": "ruleop retries until it succeeds: remove the key",
    "delay": "ruleop waits for events: remove the key",
    "state": "`when` decides whether the object exists",
    "definition": "write `object`",
    "resource_definition": "write `object`",
    "src": "write `template`",
    "k8s": "write `object`, with what is under `definition`",
    "kubernetes.core.k8s": "write `object`, with what is under `definition`",
    "k8s_info": _LOOKUP,
    "set_fact": "write `let` in the watch",
    "vars": "write `vars` or `let` in the watch",
    "assert": "write `validate` in the watch",
    "fail": "write `validate` in the watch",
    "notify": "mention a value of the other child: then it follows each change",
    "failed_when": "write `validate` or a condition",
    "changed_when": "ruleop compares the objects: remove the key",
    "become": "ruleop runs no commands: remove the key",
    # kro
    "includeWhen": "write `when`, without ${}",
    "externalRef": _LOOKUP,
    "id": "the key of the child is its id",
    # Crossplane
    "base": "write `object`, with templates in it",
    "patches": "write the values as templates in `object`; `patch` is for objects of others",
    "readinessChecks": "write `readyWhen`",
    "connectionDetails": "write a Secret as a child",
    # Helm and Argo CD
    "hook": "write `once` for a Job that runs once for each version, `finalize` for work at the end",
    "weight": "write `dependsOn`",
    "syncWave": "write `dependsOn`",
    # former versions
    "propagation": "ruleop deletes in the background; `deleteAfter` holds a deletion until other children are gone",
    # Kustomize, and Kubernetes' own words
    "apiVersion": "write the object under `object`",
    "kind": "write the object under `object`",
    "metadata": "write the object under `object`",
    "spec": "write the object under `object`",
    "updateStrategy": "write `apply.strategy`, or `apply.onImmutable: recreate`",
}
OF_AN_OBSERVE: Final = {
    "names": 'write `forEach` with the list of names, and `name: "{{ item }}"`',
}
OF_A_SCHEMA: Final = {
    "categories": "write the CRD as a file in crds/ (`ruleop generate crd` prints it), with `spec.names.categories`",
}
