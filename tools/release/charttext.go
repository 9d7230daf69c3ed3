package main

const chartYAML = `apiVersion: v2
name: leeway
description: Peer-assisted video delivery that gives way
type: application
version: %[1]s
appVersion: %[1]s
kubeVersion: ">=1.30.0-0"
home: https://github.com/leeway-video/leeway
sources: [https://github.com/leeway-video/leeway]
annotations: {artifacthub.io/license: Apache-2.0}
`

// helpers name the ConfigMaps as kustomize does, by a digest of what they hold: a change of the values restarts the pods that read them.
// The name in the digest is empty, as kustomize looks for it where it is not.
const helpers = `{{- define "leeway.digested" -}}
{{- $sum := dict "kind" "ConfigMap" "name" "" "data" .data | toJson | sha256sum | trunc 10 -}}
{{- .name }}-{{ $sum | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" | replace "e" "t" -}}
{{- end -}}
{{- define "leeway.settings" -}}
{{- include "leeway.digested" (dict "name" "leeway-settings" "data" .Values.settings) -}}
{{- end -}}
{{- define "leeway.config" -}}
{{- include "leeway.digested" (dict "name" "leeway-config" "data" (dict "leeway.yaml" .Values.config)) -}}
{{- end -}}
`

const notes = `Leeway {{ .Chart.AppVersion }} is in the namespace {{ .Release.Namespace }}.

The page of your site takes the script from the tracker:

  <script async crossorigin src="https://{{ .Values.settings.PUBLIC_HOST }}/leeway.js" data-tracker="wss://{{ .Values.settings.PUBLIC_HOST }}"></script>

  kubectl -n {{ .Release.Namespace }} get pods     # all are ready within a minute or two
  leeway doctor --tracker wss://{{ .Values.settings.PUBLIC_HOST }} URL-OF-A-MANIFEST
`

const chartReadme = `# Leeway for Kubernetes, as a Helm chart

The chart is made from the production overlay of kustomize, and renders what that builds, document by document. ` + "`values.yaml`" + ` says what has to be
filled in. Secrets are not in the values, for Helm keeps those in clear:

1. ` + "`kubectl apply -f namespace.yaml`" + `, and the Secret ` + "`leeway-tls`" + ` with the certificate of your tracker's name.
2. ` + "`mkdir cluster && sh secrets cluster`" + ` writes the secrets of each service to ` + "`cluster/private`" + `. Keep that folder where you keep secrets.
3. For each service: ` + "`kubectl -n leeway create secret generic leeway-tracker --from-env-file=cluster/private/tracker.env`" + `; likewise seed, turn, nats
   and grafana.
4. ` + "`kubectl -n leeway create secret generic leeway-bus-tls --type=kubernetes.io/tls --from-file=tls.crt=cluster/private/bus.crt --from-file=tls.key=cluster/private/bus.key --from-file=ca.crt=cluster/private/bus-ca.crt`" + `
5. ` + "`kubectl label node NODE leeway/seed=yes`" + ` and ` + "`leeway/turn=yes`" + `, as docs/operations/kubernetes.md says.
6. ` + "`helm install leeway leeway-chart-VERSION.tgz --namespace leeway --values FILE`" + `

A Secret that changes restarts no pod, since its name stays: ` + "`kubectl -n leeway rollout restart deployment,statefulset`" + `. A cluster has one release.
`
