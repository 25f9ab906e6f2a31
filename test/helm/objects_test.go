package helm

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chartutil"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func meta(t *testing.T, object runtime.Object) metav1.Object {
	t.Helper()
	named, ok := object.(metav1.Object)
	if !ok || named.GetName() == "" {
		t.Fatalf("%T has no name", object)
	}
	return named
}

// is reports whether an optional field is set, to this value.
func is[T comparable](field *T, value T) bool { return field != nil && *field == value }

// pods returns the pods that the objects make, by the name of their program's command.
func pods(t *testing.T, all map[string]runtime.Object) map[string]core.PodTemplateSpec {
	t.Helper()
	found := map[string]core.PodTemplateSpec{}
	for _, object := range all {
		var pod core.PodTemplateSpec
		switch o := object.(type) {
		case *apps.Deployment:
			pod = o.Spec.Template
		case *batch.Job:
			pod = o.Spec.Template
		default:
			continue
		}
		if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) != 0 {
			t.Fatalf("%s has containers that the tests do not look at", meta(t, object).GetName())
		}
		found[pod.Spec.Containers[0].Args[0]] = pod
	}
	if len(found) != 3 {
		t.Fatalf("pods: %v", slices.Collect(maps.Keys(found)))
	}
	return found
}

func TestTheChartHasTheseObjects(t *testing.T) {
	always := []string{
		"Deployment prod-varve-api", "Deployment prod-varve-worker", "Job prod-varve-migrate",
		"PodDisruptionBudget prod-varve-api", "PodDisruptionBudget prod-varve-worker", "Service prod-varve",
		"ServiceAccount prod-varve",
	}
	switched := []string{
		"HorizontalPodAutoscaler prod-varve-api", "Ingress prod-varve", "NetworkPolicy prod-varve-api",
		"NetworkPolicy prod-varve-worker", "PodMonitor prod-varve", "PrometheusRule prod-varve",
	}
	installations(t, func(t *testing.T, values chartutil.Values) {
		want := append(slices.Clone(always), "Secret prod-varve-console")
		if len(values) > 0 { // with a Secret of its own
			want = append(slices.Clone(always), switched...)
		}
		slices.Sort(want)
		if found := slices.Sorted(maps.Keys(objects(t, values))); !slices.Equal(found, want) {
			t.Errorf("%q\nwant %q", found, want)
		}
	})
}

func TestEveryPodIsConfined(t *testing.T) {
	user := regexp.MustCompile(`(?m)^USER (\d+):`).FindStringSubmatch(read(t, "../../Dockerfile"))
	installations(t, func(t *testing.T, values chartutil.Values) {
		for name, pod := range pods(t, objects(t, values)) {
			spec, all, own := pod.Spec, pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext
			if all == nil || all.SeccompProfile == nil || own == nil || own.Capabilities == nil {
				t.Errorf("%s: %+v, %+v", name, all, own)
				continue
			}
			for what, holds := range map[string]bool{
				"has no token":                 is(spec.AutomountServiceAccountToken, false),
				"gets no VARVE_… of a Service": is(spec.EnableServiceLinks, false),
				"shares nothing of its node":   !spec.HostNetwork && !spec.HostPID && !spec.HostIPC,
				"is not root":                  is(all.RunAsNonRoot, true),
				"is the image's user":          all.RunAsUser != nil && strconv.FormatInt(*all.RunAsUser, 10) == user[1],
				"filters system calls":         all.SeccompProfile.Type == core.SeccompProfileTypeRuntimeDefault,
				"writes no root":               is(own.ReadOnlyRootFilesystem, true),
				"gets no rights":               is(own.AllowPrivilegeEscalation, false),
				"drops all capabilities":       slices.Equal(own.Capabilities.Drop, []core.Capability{"ALL"}),
				"adds no capability":           len(own.Capabilities.Add) == 0,
				"has a limit of memory":        !spec.Containers[0].Resources.Limits.Memory().IsZero(),
			} {
				if !holds {
					t.Errorf("%s: not so: %s", name, what)
				}
			}
		}
	})
}

func TestWhatServesIsProbedAndMayEnd(t *testing.T) {
	installations(t, func(t *testing.T, values chartutil.Values) {
		for name, pod := range pods(t, objects(t, values)) {
			if name == "migrate" {
				continue
			}
			c := pod.Spec.Containers[0]
			for path, probe := range map[string]*core.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
				if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.TimeoutSeconds < 2 ||
					!listens(c, probe.HTTPGet.Port.String()) {
					t.Errorf("%s, %s: %+v", name, path, probe)
				}
			}
			needs := 25 * time.Second // 20 for requests and jobs
			if name == "api" {
				delay, err := time.ParseDuration(env(c)["VARVE_DRAIN_DELAY"].Value)
				if err != nil || delay < time.Second {
					t.Errorf("VARVE_DRAIN_DELAY: %v %v", delay, err)
				}
				needs += delay
			}
			grace := pod.Spec.TerminationGracePeriodSeconds
			if grace == nil || time.Duration(*grace)*time.Second < needs {
				t.Errorf("%s needs %v to end", name, needs)
			}
			if len(pod.Spec.TopologySpreadConstraints) == 0 {
				t.Errorf("%s may be on one node", name)
			}
		}
	})
}

// env returns the variables of a container by their names.
func env(c core.Container) map[string]core.EnvVar {
	found := map[string]core.EnvVar{}
	for _, v := range c.Env {
		found[v.Name] = v
	}
	return found
}

// listens reports whether the program listens at the port with this name, at every address.
func listens(c core.Container, port string) bool {
	variables := env(c)
	for _, p := range c.Ports {
		for _, setting := range []string{"VARVE_ADDR", "VARVE_METRICS_ADDR"} {
			number, all := strings.CutPrefix(variables[setting].Value, "0.0.0.0:")
			if p.Name == port && all && number == strconv.Itoa(int(p.ContainerPort)) {
				return true
			}
		}
	}
	return false
}

// TestTheChartSetsSettingsThatExist: every variable, and every key of a Secret, is a setting of docs/configuration.md,
// and no program has the login of another.
func TestTheChartSetsSettingsThatExist(t *testing.T) {
	known := documented(t)
	owns := map[string]string{"migrate": "o", "api": "a", "worker": "w"}
	for name, pod := range pods(t, objects(t, parsed(t, read(t, "testdata/everything.yaml")))) {
		c := pod.Spec.Containers[0]
		if len(env(c)) != len(c.Env) {
			t.Errorf("%s has a variable twice", name)
		}
		for _, v := range c.Env {
			if !known[v.Name] {
				t.Errorf("%s: %s is no setting", name, v.Name)
			}
			if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef.Key != v.Name {
				t.Errorf("%s: %s is of the key %s", name, v.Name, v.ValueFrom.SecretKeyRef.Key)
			}
		}
		if from := env(c)["DATABASE_URL"].ValueFrom; from == nil || from.SecretKeyRef.Name != owns[name] {
			t.Errorf("%s: DATABASE_URL of %+v", name, from)
		}
		hasFiles(t, name, pod.Spec, known)
	}
}

// hasFiles requires that each mount has its volume, and each key in a file its setting.
func hasFiles(t *testing.T, name string, pod core.PodSpec, known map[string]bool) {
	t.Helper()
	var volumes, mounts, files, settings []string
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if item := source.Secret.Items[0]; known[item.Key] {
				files = append(files, item.Key+"_FILE=/run/secrets/varve/"+item.Path)
			}
		}
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	for _, v := range pod.Containers[0].Env {
		if strings.HasSuffix(v.Name, "_FILE") {
			settings = append(settings, v.Name+"="+v.Value)
		}
	}
	if !slices.Equal(volumes, mounts) || !slices.Equal(files, settings) || name != "migrate" && len(files) != 4 {
		t.Errorf("%s: %v has %v; %v has %v", name, mounts, volumes, settings, files)
	}
}

// TestTheMigrationRunsFirst: before anything else, with what the logins serve as.
func TestTheMigrationRunsFirst(t *testing.T) {
	job := objects(t, parsed(t, ""))["Job prod-varve-migrate"].(*batch.Job)
	c := job.Spec.Template.Spec.Containers[0]
	want := []string{"migrate", "--grant-to=varve_api:api", "--grant-to=varve_jobs:worker"}
	if job.Annotations["helm.sh/hook"] != "pre-install,pre-upgrade" || !slices.Equal(c.Args, want) {
		t.Errorf("%v %v", job.Annotations, c.Args)
	}
	if account := job.Spec.Template.Spec.ServiceAccountName; account != "" {
		t.Errorf("it waits for the account %s, which is made later", account)
	}
}

// TestAllPodsOfTheAPISealSignInsAlike: with the Secret that is named, or one that the chart makes.
func TestAllPodsOfTheAPISealSignInsAlike(t *testing.T) {
	for text, want := range map[string]string{
		"": "prod-varve-console", "secrets: {console: mine}": "mine", `config: {VARVE_CONSOLE: "off"}`: "",
	} {
		all := objects(t, parsed(t, text))
		named := ""
		if from := env(pods(t, all)["api"].Spec.Containers[0])["VARVE_CONSOLE_SECRET"].ValueFrom; from != nil {
			named = from.SecretKeyRef.Name
		}
		made, _ := all["Secret prod-varve-console"].(*core.Secret)
		if named != want || (made != nil) != (named == "prod-varve-console") || made != nil && len(made.Data["VARVE_CONSOLE_SECRET"]) < 32 {
			t.Errorf("%s: %q, %+v", text, named, made)
		}
	}
}

// TestPodsHaveTheirAnnotations: those of the values, in the pods of that process.
func TestPodsHaveTheirAnnotations(t *testing.T) {
	all := pods(t, objects(t, parsed(t, read(t, "testdata/everything.yaml"))))
	if len(all["worker"].Annotations) > 0 || all["api"].Annotations["prometheus.io/port"] != "8080" {
		t.Errorf("%v, %v", all["api"].Annotations, all["worker"].Annotations)
	}
}

// TestSelectorsSelectOurPods: each selector selects the pods of its process, and those of no other.
func TestSelectorsSelectOurPods(t *testing.T) {
	all := objects(t, parsed(t, read(t, "testdata/everything.yaml")))
	processes := pods(t, all)
	selects := map[string]metav1.LabelSelector{}
	for name, object := range all {
		switch o := object.(type) {
		case *apps.Deployment:
			selects[name] = *o.Spec.Selector
		case *policy.PodDisruptionBudget:
			selects[name] = *o.Spec.Selector
		case *networking.NetworkPolicy:
			selects[name] = o.Spec.PodSelector
		case *core.Service:
			selects[name+"-api"] = metav1.LabelSelector{MatchLabels: o.Spec.Selector}
		}
	}
	if len(selects) != 7 {
		t.Errorf("selectors: %v", slices.Collect(maps.Keys(selects)))
	}
	for name, labelled := range selects {
		selector, err := metav1.LabelSelectorAsSelector(&labelled)
		if err != nil {
			t.Fatal(err)
		}
		for process, pod := range processes {
			if selector.Matches(labels.Set(pod.Labels)) != strings.HasSuffix(name, "-"+process) {
				t.Errorf("%s and the pods of %s: %s", name, process, selector)
			}
		}
	}
}

// TestWhatIsReachedIsThere follows references by name, and looks at what the Ingress shows to the world.
func TestWhatIsReachedIsThere(t *testing.T) {
	all := objects(t, parsed(t, read(t, "testdata/everything.yaml")))
	scaled := all["HorizontalPodAutoscaler prod-varve-api"].(*autoscaling.HorizontalPodAutoscaler).Spec.ScaleTargetRef
	api, _ := all[scaled.Kind+" "+scaled.Name].(*apps.Deployment)
	if api == nil || api.Spec.Replicas != nil {
		t.Errorf("%+v scales %+v", scaled, api)
	}
	service := all["Service prod-varve"].(*core.Service).Spec.Ports[0]
	for _, path := range all["Ingress prod-varve"].(*networking.Ingress).Spec.Rules[0].HTTP.Paths {
		if path.Backend.Service.Name != "prod-varve" || path.Backend.Service.Port.Name != service.Name {
			t.Errorf("%+v leads nowhere", path)
		}
		for _, hidden := range []string{"/metrics", "/livez", "/readyz"} {
			if strings.HasPrefix(hidden, path.Path) {
				t.Errorf("%s shows %s", path.Path, hidden)
			}
		}
	}
	for process, port := range map[string]string{"api": service.TargetPort.String(), "worker": "metrics"} {
		if !listens(pods(t, all)[process].Spec.Containers[0], port) {
			t.Errorf("%s does not listen at %s", process, port)
		}
		rules := all["NetworkPolicy prod-varve-"+process].(*networking.NetworkPolicy).Spec
		if len(rules.PolicyTypes) != 2 || rules.Ingress[0].Ports[0].Port.String() != port {
			t.Errorf("%s: %+v", process, rules)
		}
	}
	var scraped []string
	for _, endpoint := range all["PodMonitor prod-varve"].(*monitoring.PodMonitor).Spec.PodMetricsEndpoints {
		scraped = append(scraped, *endpoint.Port)
	}
	if !slices.Equal(scraped, []string{"http", "metrics"}) {
		t.Errorf("scraped: %v", scraped)
	}
}

// TestTheRulesAreThoseOfMonitoring: the chart's file of rules is a link to the one of Prometheus.
func TestTheRulesAreThoseOfMonitoring(t *testing.T) {
	var want monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict([]byte(read(t, "../../monitoring/alerts.yml")), &want); err != nil {
		t.Fatal(err)
	}
	all := objects(t, parsed(t, "monitoring: {enabled: true}"))
	got := all["PrometheusRule prod-varve"].(*monitoring.PrometheusRule).Spec
	if len(got.Groups) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
