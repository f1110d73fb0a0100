{{- /* The operator's name: of its objects, Lease, inventory and finalizer. Not the release's: the commands of ruleop know
the operator by the name in ruleop.yaml, which is that of the chart. */ -}}
{{- define "name" -}}
{{- .Values.fullnameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* Of what belongs to no namespace, so that two releases do not have the same. */ -}}
{{- define "clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "name" .) -}}
{{- end -}}

{{- /* As `ruleop run` names it. */ -}}
{{- define "lease" -}}
{{- with .Values.selector -}}
{{- $words := regexReplaceAll "[^a-z0-9]+" (lower .) "-" | trunc 15 | trimAll "-" -}}
{{- list $words (sha256sum . | trunc 6) | compact | join "-" | printf "%s.%s" (include "name" $) -}}
{{- else -}}
{{- include "name" . -}}
{{- end -}}
{{- end -}}

{{- /* The number of shards that `kubectl scale` has set, until the value changes. Without a cluster, the value. */ -}}
{{- define "shards" -}}
{{- $value := toString (int .Values.shards) -}}
{{- $live := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "name" .) -}}
{{- if eq $value (dig "metadata" "annotations" "ruleop.dev/shards" "" ($live | default dict)) -}}
{{- int $live.spec.replicas -}}
{{- else -}}
{{- $value -}}
{{- end -}}
{{- end -}}

{{- define "account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "selector" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{- /* A file of the rules as a key of a ConfigMap, which is flat. */ -}}
{{- define "key" -}}
{{- . | trimPrefix "files/rules/" | replace "/" "__" -}}
{{- end -}}

{{- define "image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ with .tag }}:{{ . }}{{ end }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}
