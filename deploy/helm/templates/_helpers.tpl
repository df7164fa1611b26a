{{- /* Names, labels, lifecycle.yaml and the pod, which the CronJob and the Deployment share. */ -}}

{{- define "lifecycle.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "lifecycle.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "lifecycle.labels" -}}
{{ include "lifecycle.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "lifecycle.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "lifecycle.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "lifecycle.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* What no schema can say: what has to be given, and what does not go together. */ -}}
{{- define "lifecycle.check" -}}
{{- if not .Values.stores -}}{{- fail "stores: give at least one, such as stores.hot.claim=scratch" -}}{{- end -}}
{{- if not .Values.policies -}}{{- fail "policies: give at least one: --set-file 'policies.pretrain\\.yaml=FILE'" -}}{{- end -}}
{{- if and .Values.database.sqlite .Values.database.postgres -}}{{- fail "database: sqlite or postgres, not both" -}}{{- end -}}
{{- if not (or .Values.database.sqlite .Values.database.postgres) -}}
{{- fail "database: give postgres.url, or sqlite.size for a small volume of its own" -}}
{{- end -}}
{{- if and .Values.cronJob.enabled .Values.serve.enabled .Values.database.sqlite -}}
{{- fail "cronJob and serve together need database.postgres: one SQLite volume serves one pod" -}}
{{- end -}}
{{- if and .Values.serve.http.enabled (not .Values.serve.enabled) -}}
{{- fail "serve.http needs serve.enabled: a CronJob is not there to be asked" -}}
{{- end -}}
{{- if and .Values.serve.http.enabled (not .Values.serve.http.token) -}}
{{- fail "serve.http.token: say which Secret holds it: whoever reaches the pod would read all" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.serve.http.enabled) -}}
{{- fail "serviceMonitor needs serve.http.enabled; a CronJob tells by settings.monitoring instead" -}}
{{- end -}}
{{- range $name, $store := .Values.stores -}}
{{- $given := 0 -}}
{{- range $way := list "claim" "create" "nfs" "url" -}}{{- if hasKey $store $way -}}{{- $given = add1 $given -}}{{- end -}}{{- end -}}
{{- if ne (int $given) 1 -}}{{- fail (printf "stores.%s: give one of claim, create, nfs and url" $name) -}}{{- end -}}
{{- if and $store.url (or $store.mountPath $store.path $store.subPath) -}}
{{- fail (printf "stores.%s: mountPath, path and subPath belong to a directory, not to a url" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := .Values.secretEnv -}}
{{- if hasKey $.Values.env $name -}}{{- fail (printf "env and secretEnv both give %s" $name) -}}{{- end -}}
{{- end -}}
{{- $unit := get (dict "s" 1 "m" 60 "h" 3600 "d" 86400) (regexFind "[smhd]$" .Values.tick.stop_after) -}}
{{- $stop := mul $unit (regexFind "^[0-9]+" .Values.tick.stop_after | int64) -}}
{{- if and .Values.cronJob.enabled (ge $stop (int64 .Values.cronJob.activeDeadlineSeconds)) -}}
{{- fail "tick.stop_after has to be shorter than cronJob.activeDeadlineSeconds: it would be killed before it stops" -}}
{{- end -}}
{{- end -}}

{{- define "lifecycle.mountPath" -}}
{{- default (printf "/mnt/%s" .name) .store.mountPath -}}
{{- end -}}

{{- /* lifecycle.yaml: stores lie where the pod mounts them, so that the two cannot differ. */ -}}
{{- define "lifecycle.config" -}}
{{- $stores := dict -}}
{{- range $name, $store := .Values.stores -}}
{{- $url := $store.url -}}
{{- if not $url -}}
{{- $url = printf "file://%s" (include "lifecycle.mountPath" (dict "name" $name "store" $store)) -}}
{{- with $store.path -}}{{- $url = printf "%s/%s" $url . -}}{{- end -}}
{{- end -}}
{{- $_ := set $stores $name (merge (dict "url" $url) (default dict $store.settings)) -}}
{{- end -}}
{{- $tick := merge (dict) .Values.tick -}}
{{- if .Values.serve.enabled -}}
{{- $_ := set $tick "schedule" (dict "cron" .Values.schedule.cron "timezone" .Values.schedule.timeZone) -}}
{{- end -}}
{{- $database := "sqlite:////state/index.db" -}}
{{- with .Values.database.postgres -}}{{- $database = .url -}}{{- end -}}
{{- $own := dict "stores" $stores "database" $database "policies" "policies" "tick" $tick -}}
{{- with .Values.serve.http -}}
{{- if .enabled -}}
{{- $http := dict "listen" (printf "0.0.0.0:%d" (int .port)) "token" "env:LIFECYCLE_HTTP_TOKEN" "hosts" .hosts "metrics_open" .metricsOpen -}}
{{- $_ := set $own "http" $http -}}
{{- end -}}
{{- end -}}
{{- range $key, $_ := .Values.settings -}}
{{- if hasKey $own $key -}}{{- fail (printf "settings.%s: the chart writes %s itself, from values of its own" $key $key) -}}{{- end -}}
{{- end -}}
{{- toYaml (merge $own .Values.settings) -}}
{{- end -}}

{{- /* All of the container but its args; `http` says whether it answers over HTTP. */ -}}
{{- define "lifecycle.container" -}}
name: lifecycle
image: {{ include "lifecycle.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [lifecycle]
{{- $env := .Values.env }}
{{- $secrets := .Values.secretEnv }}
{{- $password := (default dict .Values.database.postgres).password }}
{{- if or $env $secrets $password .http }}
env:
  {{- range $name, $value := $env }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- range $name, $from := $secrets }}
  - name: {{ $name }}
    valueFrom:
      secretKeyRef: {name: {{ $from.secret }}, key: {{ $from.key }}}
  {{- end }}
  {{- with $password }}
  - name: PGPASSWORD
    valueFrom:
      secretKeyRef: {name: {{ .secret }}, key: {{ .key }}}
  {{- end }}
  {{- if .http }}
  - name: LIFECYCLE_HTTP_TOKEN
    valueFrom:
      secretKeyRef: {name: {{ .Values.serve.http.token.secret }}, key: {{ .Values.serve.http.token.key }}}
  {{- end }}
{{- end }}
{{- if .http }}
ports:
  - {name: http, containerPort: {{ int .Values.serve.http.port }}, protocol: TCP}
# A restart may cut a copy short: only what has not answered for ten minutes is begun anew.
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 60
  timeoutSeconds: 10
  failureThreshold: 10
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 30
  timeoutSeconds: 5
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: config, mountPath: /config, readOnly: true}
  - {name: state, mountPath: /state}
  - {name: tmp, mountPath: /tmp}
  {{- range $name, $store := .Values.stores }}
  {{- if not $store.url }}
  - name: store-{{ $name }}
    mountPath: {{ include "lifecycle.mountPath" (dict "name" $name "store" $store) }}
    {{- with $store.subPath }}
    subPath: {{ . }}
    {{- end }}
  {{- end }}
  {{- end }}
  {{- range $name, $_ := .Values.secretFiles }}
  - {name: secret-{{ $name }}, mountPath: /secrets/{{ $name }}, readOnly: true}
  {{- end }}
{{- end -}}

{{- /* All of the pod but its containers and restartPolicy. */ -}}
{{- define "lifecycle.pod" -}}
serviceAccountName: {{ include "lifecycle.serviceAccount" . }}
automountServiceAccountToken: false   # it never speaks to the cluster; roles of clouds bring a token of their own
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ int64 .Values.user.uid }}
  runAsGroup: {{ int64 .Values.user.gid }}
  {{- with .Values.user.supplementalGroups }}
  supplementalGroups: {{ toJson . }}
  {{- end }}
  {{- if not (kindIs "invalid" .Values.user.fsGroup) }}
  fsGroup: {{ int64 .Values.user.fsGroup }}
  fsGroupChangePolicy: OnRootMismatch
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toJson . }}
{{- end }}
volumes:
  - name: config
    configMap:
      name: {{ include "lifecycle.fullname" . }}
      items:
        - {key: lifecycle.yaml, path: lifecycle.yaml}
        {{- range $file, $_ := .Values.policies }}
        - {key: {{ $file }}, path: policies/{{ $file }}}
        {{- end }}
  - name: state
    {{- if .Values.database.sqlite }}
    persistentVolumeClaim:
      claimName: {{ default (printf "%s-state" (include "lifecycle.fullname" .)) .Values.database.sqlite.claim }}
    {{- else if (default dict .Values.database.postgres).claim }}
    persistentVolumeClaim: {claimName: {{ .Values.database.postgres.claim }}}
    {{- else }}
    emptyDir: {sizeLimit: 1Gi}
    {{- end }}
  - name: tmp
    emptyDir: {sizeLimit: {{ .Values.temporary }}}
  {{- range $name, $store := .Values.stores }}
  {{- if $store.claim }}
  - name: store-{{ $name }}
    persistentVolumeClaim: {claimName: {{ $store.claim }}}
  {{- else if $store.create }}
  - name: store-{{ $name }}
    persistentVolumeClaim: {claimName: {{ include "lifecycle.fullname" $ }}-{{ $name }}}
  {{- else if $store.nfs }}
  - name: store-{{ $name }}
    nfs: {{ toJson $store.nfs }}
  {{- end }}
  {{- end }}
  {{- range $name, $from := .Values.secretFiles }}
  - name: secret-{{ $name }}
    secret: {secretName: {{ $from.secret }}, defaultMode: 0440}
  {{- end }}
{{- end -}}
