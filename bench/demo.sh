#!/bin/sh
# What `make demo` shows: the App example of this folder, checked, rendered and planned, without a cluster.
# Usage: bench/demo.sh [RULEOP], where RULEOP is the program, of a virtual environment that has a python beside it.
set -eu

ruleop=$(command -v "${1:-ruleop}") || { echo "demo.sh: no program ${1:-ruleop}; run: make demo" >&2; exit 2; }
case $ruleop in /*) ;; *) ruleop=$PWD/$ruleop ;; esac
python=$(dirname "$ruleop")/python

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
cd "$(dirname "$0")/.."
cp -R watches.yaml templates crds examples "$work"
cd "$work"

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$(printf '\033[1m') faint=$(printf '\033[2m') plain=$(printf '\033[0m'); else bold='' faint='' plain=''; fi
say() { echo; for line in "$@"; do printf '%s# %s%s\n' "$bold" "$line" "$plain"; done; }
show() { printf '%s$ %s%s\n' "$faint" "$*" "$plain"; "$@"; }
run() { printf '%s$ ruleop %s%s\n' "$faint" "$*" "$plain"; "$ruleop" "$@"; }

say "An App is a custom resource: two names, an image, a number of replicas."
show cat examples/app.yaml

say "Two templates describe its children. One of them:"
show cat templates/app/service.yaml.j2

say "Check the project for mistakes:"
run check

say "Render the children of that App, in apply order:"
run render -f examples/app.yaml

say "Plan: what the operator would do for this App in a cluster:"
run plan -f examples/app.yaml

# The objects that the plan creates, as they would be in a cluster a minute later, after a manual edit, and the App with its status.
"$ruleop" plan -f examples/app.yaml -o json >plan.json
"$python" - >cluster.yaml <<'PYTHON'
import json

with open("plan.json", encoding="utf-8") as file:
    plan = json.load(file)["plans"][0]
objects = [action["object"] for action in plan["actions"]]
for obj in objects:
    if obj["kind"] == "Deployment":
        obj["spec"]["replicas"] = 5
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:latest"
        obj["status"] = {"replicas": 5, "updatedReplicas": 5, "availableReplicas": 5}
resource = plan["resource"]
ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
objects.append(
    {
        "apiVersion": f"{resource['group']}/v1",
        "kind": resource["kind"],
        "metadata": {name: resource[name] for name in ("namespace", "name", "uid")},
        "status": {"availableReplicas": 2, "conditions": [ready]},
    }
)
print(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2))
PYTHON

say "Later, somebody scales the Deployment by hand and changes its image. cluster.yaml is the output of \`kubectl get -o yaml\`." \
  "The operator would revert just these two fields:"
run plan -f examples/app.yaml --with cluster.yaml

say "A typo in a template is found without a cluster:"
sed 's/metadata.name/metadta.name/' templates/app/service.yaml.j2 >slip && mv slip templates/app/service.yaml.j2
run check || :
