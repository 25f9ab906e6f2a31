{{- define "varve.name" -}}
{{- ternary .Release.Name (printf "%s-varve" .Release.Name) (contains "varve" .Release.Name) | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "varve.selector" -}}
app.kubernetes.io/name: varve
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "varve.labels" -}}
{{ include "varve.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* What all pods have: the user of the image, no token, and no more rights than a program without any needs. */ -}}
{{- define "varve.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.scheduling }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "varve.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* secretEnv is one variable from a Secret: (list VARIABLE SECRET). */ -}}
{{- define "varve.secretEnv" -}}
- name: {{ index . 0 }}
  valueFrom: {secretKeyRef: {name: {{ index . 1 }}, key: {{ index . 0 }}}}
{{- end }}

{{- /* consoleSecret is the name of the Secret that seals sign-ins, the same for all pods; "" without the console. */ -}}
{{- define "varve.consoleSecret" -}}
{{- if ne (index .Values.config "VARVE_CONSOLE" | default "on") "off" -}}
{{- .Values.secrets.console | default (printf "%s-console" (include "varve.name" .)) -}}
{{- end -}}
{{- end }}

{{- /* keyFiles maps each setting that a process reads from a file to its Secret. */ -}}
{{- define "varve.keyFiles" -}}
{{- with .Values.secrets }}
{{- with .s3 }}
VARVE_S3_ACCESS_KEY: {{ . }}
VARVE_S3_SECRET_KEY: {{ . }}
{{- end }}
{{- with .openai }}
OPENAI_API_KEY: {{ . }}
{{- end }}
{{- with .anthropic }}
ANTHROPIC_API_KEY: {{ . }}
{{- end }}
{{- end }}
{{- end }}
