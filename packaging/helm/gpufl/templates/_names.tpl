{{- define "gpufl.labels" -}}
app.kubernetes.io/name: gpufl
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "gpufl.selector" -}}
app.kubernetes.io/name: gpufl
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gpufl.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "gpufl.secret" -}}
{{ .Values.secret.name | default .Release.Name }}
{{- end }}

{{- define "gpufl.serverUrl" -}}
{{- if .Values.agent.server -}}
{{ .Values.agent.server }}
{{- else if .Values.server.enabled -}}
http://{{ .Release.Name }}-server:8080
{{- else -}}
{{ required "agent.server: the address of a server, as server.enabled is false" .Values.agent.server }}
{{- end -}}
{{- end }}

{{- define "gpufl.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "gpufl.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
