// Package helm renders our Helm chart with Helm's own engine, and decodes the result into the types of Kubernetes. It
// is a module of its own, so that Varve does not depend on Helm; make soak runs it.
package helm

import (
	"os"
	"regexp"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

const chartDir = "../../helm/varve"

// release is what the chart is installed as: its objects are named prod-varve.
var release = chartutil.ReleaseOptions{Name: "prod", Namespace: "agents", IsInstall: true}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parsed returns the values of a text.
func parsed(t *testing.T, text string) chartutil.Values {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// render returns the rendered templates by their names.
func render(t *testing.T, values chartutil.Values) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// objects returns the objects of an installation by kind and name. A field that its type does not have is an error.
func objects(t *testing.T, values chartutil.Values) map[string]runtime.Object {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoring.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	files, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]runtime.Object{}
	for path, file := range files {
		if strings.HasSuffix(path, ".tpl") || strings.HasSuffix(path, "NOTES.txt") {
			continue
		}
		for _, text := range releaseutil.SplitManifests(file) {
			object, kind, err := decoder.Decode([]byte(text), nil, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", path, err, text)
			}
			found[kind.Kind+" "+meta(t, object).GetName()] = object
		}
	}
	return found
}

// installations checks the values of the chart, and all that can be switched on.
func installations(t *testing.T, check func(t *testing.T, values chartutil.Values)) {
	t.Helper()
	for name, text := range map[string]string{"defaults": "", "everything": read(t, "testdata/everything.yaml")} {
		t.Run(name, func(t *testing.T) { check(t, parsed(t, text)) })
	}
}

func TestHelmFindsNothingInTheChart(t *testing.T) {
	installations(t, func(t *testing.T, values chartutil.Values) {
		version, err := chartutil.ParseKubeVersion("v1.34.0") // what this Kubernetes deprecates is a warning
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.AllWithKubeVersion(chartDir, values, release.Namespace, version).Messages {
			if m.Severity > support.InfoSev {
				t.Error(m)
			}
		}
	})
}

func TestTheSchemaRefusesWrongValues(t *testing.T) {
	for text, reason := range map[string]string{
		"replicas: 2":                           "additional properties 'replicas' not allowed",
		"api: {replicas: 0}":                    "/api/replicas",
		"api: {replicas: two}":                  "/api/replicas",
		"api: {drainDelaySeconds: 5s}":          "/api/drainDelaySeconds",
		"api: {autoscaling: {cpu: 70}}":         "/api/autoscaling",
		"secrets: {api: ''}":                    "/secrets/api",
		"secrets: {s3: {accessKey: AKIA}}":      "/secrets/s3",
		"schema: pg-varve":                      "/schema",
		"migrate: {grantTo: [varve_api]}":       "/migrate/grantTo/0",
		"config: {VARVE_COMPACTIONS: 8}":        "/config/VARVE_COMPACTIONS",
		"config: {varve_log_level: debug}":      "varve_log_level",
		"config: {DATABASE_URL: postgres://}":   "DATABASE_URL",
		"config: {VARVE_DRAIN_DELAY: 60s}":      "VARVE_DRAIN_DELAY",
		"config: {OPENAI_API_KEY: sk-1}":        "OPENAI_API_KEY",
		"config: {VARVE_CONSOLE_SECRET: weak}":  "VARVE_CONSOLE_SECRET",
		"image: {pullPolicy: Sometimes}":        "/image/pullPolicy",
		"scheduling: {hostNetwork: true}":       "/scheduling",
		"serviceAccount: {token: true}":         "/serviceAccount",
		"monitoring: {enabled: 'true'}":         "/monitoring/enabled",
		"networkPolicy: {clients: [10.0.0.1]}":  "/networkPolicy/clients/0",
		"ingress: {host: 'https://varve.host'}": "/ingress/host",
	} {
		if _, err := render(t, parsed(t, text)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// documented returns the names of all settings of docs/configuration.md.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| `([A-Z0-9_]+)` \\|")
	for _, m := range row.FindAllStringSubmatch(read(t, "../../docs/configuration.md"), -1) {
		names[m[1]] = true
	}
	if len(names) < 50 {
		t.Fatalf("%d settings were found", len(names))
	}
	return names
}
