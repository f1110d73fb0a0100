"""The manifests that `kubectl apply` installs: one stream of objects, or a folder for kustomize."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.generate.installation.monitoring import monitoring_objects
from ruleop.authoring.generate.installation.operator_objects import namespace, operator, service_monitor
from ruleop.authoring.generate.installation.operator_roles import operator_roles, role_objects, service_account
from ruleop.authoring.generate.installation.rule_files import rules_mount
from ruleop.authoring.generate.policy.policies import policies, policy_objects
from ruleop.authoring.scaffold import rules_text
from ruleop.errors import Site
from ruleop.language.rules import Findings, ProjectErrors
from ruleop.language.rules.operator_choices import FILE, settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.rules.operator_choices import Choices

_HEADER = f"{MARK} manifests` from the rules and ruleop.yaml: change them there.\n"


@dataclass(frozen=True, slots=True)
class Installation:
    """The objects of an operator by their concerns, in the order in which they are applied."""

    namespace: tuple[Object, ...]
    crds: tuple[Object, ...]
    rbac: tuple[Object, ...]
    rules: tuple[Object, ...]
    operator: tuple[Object, ...]
    components: Mapping[str, tuple[Object, ...]]  # what a user chooses beside them

    @property
    def concerns(self) -> dict[str, tuple[Object, ...]]:
        found = {
            "namespace": self.namespace,
            "crds": self.crds,
            "rbac": self.rbac,
            "rules": self.rules,
            "operator": self.operator,
        }
        return {name: objects for name, objects in found.items() if objects}


def installation(loaded: Loaded, choices: Choices, crds: Sequence[Object]) -> Installation:
    """Raises ProjectErrors."""
    mounted = rules_mount(loaded, choices)
    volume = mounted.volume if mounted is not None else None
    found, _ = policies(loaded)
    return Installation(
        namespace=tuple(namespace(choices)),
        crds=tuple(crds),
        rbac=(service_account(choices), *role_objects(operator_roles(loaded, choices), choices)),
        rules=mounted.config_maps if mounted is not None else (),
        operator=tuple(operator(choices, volume, set_variables(loaded, choices))),
        components={
            "service-monitor": (service_monitor(choices),),
            **({"policy": tuple(policy_objects(found, choices))} if found else {}),
            **{name: (each,) for name, each in monitoring_objects(choices).items()},
        },
    )


def set_variables(loaded: Loaded, choices: Choices) -> dict[str, str]:
    findings, found = Findings({}), dict[str, str]()
    for name, value in settings(loaded, choices).items():
        if value is None:
            message = f"the rules read the variable {name}, which has no default: give it a value in `env`"
            findings.mistake("environment", message, Site(FILE))
        else:
            found[name] = value
    if findings.failed:
        raise ProjectErrors(findings.sorted())
    return found


def install_yaml(found: Installation) -> str:
    """All objects, for `kubectl apply -f`."""
    return _HEADER + _stream(each for objects in found.concerns.values() for each in objects)


def kustomize_base(found: Installation) -> dict[str, str]:
    """A folder for `kubectl apply -k`: a file for each concern, and components to choose from."""
    files: dict[str, str] = {}
    for name, objects in found.concerns.items():
        files[f"{name}.yaml"] = _HEADER + _stream(objects)
    files["kustomization.yaml"] = _kustomization("v1beta1", "Kustomization", files)
    for name, objects in found.components.items():
        files[f"components/{name}/kustomization.yaml"] = _kustomization("v1alpha1", "Component", [f"{name}.yaml"])
        files[f"components/{name}/{name}.yaml"] = _HEADER + _stream(objects)
    return files


def _kustomization(version: str, kind: str, resources: Iterable[str]) -> str:
    document = {"apiVersion": f"kustomize.config.k8s.io/{version}", "kind": kind}
    return _HEADER + rules_text({**document, "resources": list(resources)})


def _stream(objects: Iterable[Object]) -> str:
    return "---\n".join(map(rules_text, objects))
