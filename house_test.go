// Package varve holds no code: this test keeps the house of docs/design.md in order.
package varve

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const module = "github.com/varve-dev/varve/"

// mayImport says which of our packages a package may import, tests aside. Packages that are not here may import all.
var mayImport = map[string][]string{
	"internal/session":          {"internal/rawjson"},
	"internal/audit":            {},
	"internal/rawjson":          {},
	"internal/view":             {"internal/units", "internal/session", "internal/rawjson", "internal/zframe", "internal/wire", "internal/wire/provider", "internal/compact", "internal/compact/pin", "internal/compact/text", "internal/postgres", "internal/protocol", "internal/readback", "internal/tokens"},
	"internal/zframe":           {},
	"internal/backup":           {"internal/postgres"},
	"internal/spelling":         {},
	"internal/units":            {},
	"internal/tier/pack":        {"internal/rawjson"},
	"migrations":                {},
	"internal/tokens":           {"internal/rawjson"},
	"internal/wire":             {"internal/units", "internal/spelling", "internal/session", "internal/rawjson", "internal/tokens", "internal/wire/provider"},
	"internal/wire/provider":    {"internal/models", "internal/session"},
	"internal/policy":           {"internal/session", "internal/spelling", "internal/rawjson", "internal/compact/text", "internal/due"},
	"internal/policy/foreign":   {"internal/policy", "internal/session", "internal/spelling"},
	"internal/compact":          {"internal/compact/manifest", "internal/units", "internal/policy", "internal/session", "internal/wire", "internal/rawjson", "internal/tokens", "internal/compact/text", "internal/compact/rule", "internal/compact/resource", "internal/compact/summary", "internal/compact/failure", "internal/compact/names", "internal/compact/memory", "internal/compact/pin", "internal/wire/provider"},
	"internal/compact/pin":      {"internal/rawjson", "internal/session", "internal/wire"},
	"internal/compact/text":     {},
	"internal/compact/names":    {},
	"internal/compact/memory":   {"internal/compact/names", "internal/compact/text", "internal/tokens"},
	"internal/compact/failure":  {},
	"internal/compact/rule":     {},
	"internal/compact/resource": {"internal/rawjson"},
	"internal/compact/summary":  {"internal/compact/failure", "internal/compact/names", "internal/compact/resource", "internal/compact/text", "internal/rawjson", "internal/tokens"},
	"internal/llm":              {"internal/trace", "internal/admit", "internal/compact/summary", "internal/egress", "internal/rawjson", "internal/tokens"},
	"internal/egress":           {},
	"internal/llm/fake":         {},
	"internal/modelcall":        {"internal/compact/summary", "internal/llm", "internal/postgres", "internal/session"},
	"internal/llm/llmtest":      {"internal/compact/summary"},
	"internal/importer":         {"internal/units", "internal/session", "internal/wire", "internal/rawjson"},
	"internal/tier/frozen":      {"internal/tier/pack", "internal/zframe"},
	"internal/archive":          {"internal/session", "internal/rawjson"},
	"internal/packed":           {},
	"internal/embedded":         {"internal/config"},
	"internal/admit":            {"internal/session"},
	"internal/postgres":         {"internal/trace", "internal/tier/frozen", "internal/audit", "internal/policy", "internal/session", "internal/admit", "internal/zframe", "internal/units", "internal/wire/provider", "migrations", "internal/queue", "internal/due", "internal/tier/pack", "internal/persist", "internal/persist/object", "internal/compact/manifest"},
	"internal/due":              {},
	"docs":                      {},
	"internal/docsite":          {"internal/api/openapi"},
	"internal/trace":            {},
	"internal/queue":            {"internal/trace"},
	"internal/persist":          {"internal/session", "internal/persist/object"},
	"internal/persist/object":   {"internal/session"},
	"internal/config":           {"migrations", "internal/llm", "internal/models", "internal/rawjson", "internal/session", "internal/spelling", "internal/wire/provider"},
	"client":                    {"internal/audit", "internal/egress", "internal/protocol", "internal/session", "internal/archive", "internal/packed"},
	"internal/terminal":         {"internal/protocol", "internal/session", "internal/transcript", "internal/wire"},
	"internal/transcript":       {"internal/session", "internal/wire", "internal/rawjson"},
	"internal/usage":            {"internal/postgres", "internal/session"},
	"internal/tools":            {"internal/admit", "internal/persist", "internal/postgres", "internal/protocol", "internal/rawjson", "internal/readback", "internal/session", "internal/spelling", "internal/transcript", "internal/view", "internal/wire"},
	"internal/readback":         {"internal/persist", "internal/postgres", "internal/protocol", "internal/rawjson", "internal/session", "internal/spelling", "internal/transcript", "internal/wire"},
	"internal/demo": {
		"client", "internal/importer", "internal/protocol", "internal/session", "internal/terminal", "internal/wire", "samples",
	},
	"internal/protocol": {"internal/session", "internal/compact", "internal/compact/manifest"},
	"internal/console": { // no store: it asks the API (ADR 104)
		"client", "internal/audit", "internal/compact", "internal/compact/manifest", "internal/feature", "internal/importer", "internal/policy", "internal/protocol", "internal/rawjson", "internal/session", "internal/terminal", "internal/wire", "internal/wire/provider",
	},
	"internal/compactor": {
		"internal/modelcall", "internal/admit", "internal/view", "internal/due", "internal/wire/provider",
		"internal/protocol", "internal/readback",
		"internal/units", "internal/session", "internal/policy", "internal/wire", "internal/rawjson", "internal/zframe", "internal/compact", "internal/persist", "internal/postgres",
		"internal/compact/pin", "internal/compact/resource", "internal/compact/rule", "internal/compact/summary", "internal/llm",
	},
	"internal/erasure":          {"internal/audit", "internal/persist", "internal/persist/object", "internal/postgres", "internal/queue", "internal/session"},
	"internal/tier":             {"internal/admit", "internal/audit", "internal/persist", "internal/postgres", "internal/queue", "internal/session", "internal/tier/frozen", "internal/tier/pack"},
	"internal/verify":           {"internal/audit", "internal/compact", "internal/compactor", "internal/policy", "internal/persist", "internal/postgres", "internal/rawjson", "internal/session", "internal/tier", "internal/view", "internal/wire", "internal/zframe"},
	"internal/jobs":             {"internal/trace", "internal/tier", "internal/erasure", "internal/modelcall", "internal/admit", "internal/compact/summary", "internal/session", "internal/verify", "internal/compactor", "internal/llm", "internal/persist", "internal/persist/object", "internal/policy", "internal/postgres", "internal/queue", "internal/feature"},
	"internal/command":          {"client", "internal/session", "internal/terminal"},
	"internal/feature":          {"internal/admit", "internal/api/request", "internal/compactor", "internal/modelcall", "internal/policy", "internal/postgres", "internal/queue", "internal/session"},
	"internal/compact/manifest": {},
	"internal/replay": {
		"internal/admit", "internal/compact", "internal/compact/failure", "internal/compact/names", "internal/compact/summary", "internal/compactor", "internal/policy", "internal/rawjson", "internal/session", "internal/tokens",
		"internal/due", "internal/wire",
	},
	"internal/replay/folder":  {"internal/importer", "internal/replay", "internal/wire"},
	"internal/replay/planted": {"internal/compact", "internal/compact/summary", "internal/compactor", "internal/due", "internal/policy", "internal/rawjson", "internal/replay", "internal/replay/folder", "internal/session", "internal/tokens", "internal/wire"},
	"internal/models":         {"internal/spelling"},
	"internal/api": {
		"docs", "internal/docsite", "internal/trace", "internal/feature",
		"internal/tier", "internal/erasure", "internal/modelcall", "internal/audit", "internal/admit", "internal/wire/provider", "internal/view", "internal/protocol", "internal/readback", "internal/usage",
		"internal/units", "internal/session", "internal/policy", "internal/wire", "internal/rawjson", "internal/zframe", "internal/compact", "internal/persist", "internal/postgres", "internal/compactor",
		"internal/compact/pin", "internal/compact/summary", "internal/compact/manifest", "internal/models", "internal/tokens", "internal/spelling", "internal/archive", "internal/ingest",
		"internal/api/openai", "internal/api/openapi", "internal/api/request", "internal/api/stateless", "internal/tools", "internal/config",
	},
	"internal/api/openapi": {"internal/rawjson"},
	"internal/api/request": {"internal/audit", "internal/packed", "internal/admit", "internal/protocol", "internal/session", "internal/rawjson", "internal/spelling", "internal/postgres"},
	"internal/api/stateless": {
		"internal/admit", "internal/api/request", "internal/compact", "internal/modelcall", "internal/compactor", "internal/ingest", "internal/models", "internal/policy", "internal/postgres",
		"internal/protocol", "internal/rawjson", "internal/session", "internal/view", "internal/wire", "internal/wire/provider",
	},
	"internal/api/openai": {
		"internal/admit", "internal/api/request", "internal/api/stateless", "internal/ingest", "internal/models", "internal/policy",
		"internal/postgres", "internal/protocol", "internal/rawjson", "internal/readback", "internal/session", "internal/spelling", "internal/tokens", "internal/view", "internal/wire",
	},
	"internal/ingest": {
		"internal/admit", "internal/compact", "internal/compact/pin",
		"internal/api/request", "internal/importer", "internal/models", "internal/policy", "internal/postgres", "internal/rawjson",
		"internal/session", "internal/spelling", "internal/tokens", "internal/wire",
	},
}

// ofFeatures are the packages of ours that a feature may import beside those that import none: the core's kit.
var ofFeatures = []string{
	"internal/admit", "internal/api/request", "internal/archive", "internal/audit", "client", "internal/command", "internal/compact",
	"internal/compact/manifest", "internal/compactor", "internal/egress", "internal/feature", "internal/importer", "internal/ingest", "internal/persist", "internal/policy", "internal/postgres",
	"internal/protocol", "internal/queue", "internal/rawjson", "internal/readback", "internal/replay",
	"internal/replay/folder", "internal/session", "internal/spelling", "internal/terminal", "internal/tokens", "internal/wire", "internal/wire/provider",
}

// TestAFeatureImportsTheCoreOnly holds the folders that package features lists to what they may import: no other
// feature. Only package features imports a feature, tests aside.
func TestAFeatureImportsTheCoreOnly(t *testing.T) {
	t.Parallel()
	all := packages(t)
	var features []string
	for _, path := range all["internal/features"].Imports {
		if ours, ok := strings.CutPrefix(path, module); ok && ours != "internal/feature" {
			features = append(features, ours)
		}
	}
	for name, p := range all {
		for _, path := range p.Imports {
			ours, _ := strings.CutPrefix(path, module)
			if slices.Contains(features, ours) && name != "internal/features" {
				t.Errorf("%s imports the feature %s", name, ours)
			}
			if slices.Contains(features, name) && ours != path && !slices.Contains(ofFeatures, ours) {
				t.Errorf("the feature %s imports %s; it may import %v", name, ours, ofFeatures)
			}
		}
	}
}

// pure packages decide and render; they must not be able to ask the world anything. A context only stops them.
var pure = []string{"internal/audit", "internal/tier/frozen", "internal/packed", "internal/due", "internal/units", "internal/policy", "internal/rawjson", "internal/spelling", "internal/zframe", "internal/tokens", "internal/wire", "internal/wire/provider", "internal/compact", "internal/compact/text", "internal/compact/rule", "internal/compact/resource", "internal/compact/failure", "internal/compact/names", "internal/compact/memory", "internal/compact/manifest", "internal/compact/pin", "internal/compact/summary", "internal/models", "internal/tier/pack", "internal/session", "internal/importer", "internal/api/openapi", "internal/protocol"}

var impure = regexp.MustCompile(`^(os|os/.*|net|net/.*|log|log/slog|database/.*|github\.com/jackc/.*|github\.com/riverqueue/.*)$`)

type listed struct {
	ImportPath string
	Dir        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) map[string]listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			found[strings.TrimPrefix(p.ImportPath, module)] = p
		}
	}
}

func TestPackagesImportOnlyWhatTheDesignAllows(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for name, allowed := range mayImport {
		if _, ok := all[name]; !ok && name != "internal/console" { // a feature, which may be taken out
			t.Errorf("mayImport names %s, which is not there", name)
		}
		for _, path := range all[name].Imports {
			if ours, ok := strings.CutPrefix(path, module); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s; it may import %v", name, ours, allowed)
			}
		}
	}
	for _, name := range pure {
		for _, path := range all[name].Imports {
			timed := name == "internal/audit" || name == "internal/session" || name == "internal/importer" || name == "internal/protocol" || name == "internal/policy"
			if impure.MatchString(path) || (path == "time" && !timed) {
				t.Errorf("%s imports %s, but it is pure", name, path)
			}
		}
	}
}

func TestOnlyTheAPIImportsEcho(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		for _, path := range p.Imports {
			if strings.HasPrefix(path, "github.com/labstack/echo") && !strings.HasPrefix(name+"/", "internal/api/") {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

// A value in a context decides something where nobody who reads the call sees it. Who acts, for the audit trail, is the
// only one.
func TestContextsCarryTheActorOnly(t *testing.T) {
	t.Parallel()
	values := regexp.MustCompile(`context\.WithValue\(|\b(ctx|Ctx|Context\(\)|context)\.Value\(`)
	found := 0
	for name, p := range packages(t) {
		if !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "cmd/") {
			continue
		}
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range values.FindAllString(string(text), -1) {
				found++
				if name != "internal/audit" || file != "actor.go" {
					t.Errorf("%s/%s has %s: pass the value as an argument", name, file, use)
				}
			}
		}
	}
	if found < 2 {
		t.Error("the pattern does not find where the actor is put into a context and read from it")
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		documented := false
		for _, file := range p.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			documented = documented || parsed.Doc != nil
		}
		if !documented {
			t.Errorf("%s has no package comment", name)
		}
	}
}

// configSource returns the files that declare settings.
func configSource(t *testing.T) (source []byte) {
	t.Helper()
	for _, file := range []string{"internal/config/config.go", "internal/config/results.go", "internal/config/llm.go", "internal/config/registry.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	return source
}

func TestTheDocumentationListsEverySetting(t *testing.T) {
	t.Parallel()
	source := configSource(t)
	documentation, err := os.ReadFile("docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	inCode := names(source, regexp.MustCompile(`(?:env:|Getenv\()"([A-Z0-9_]+)"`))
	inDocs := names(documentation, regexp.MustCompile("(?m)^\\| `([A-Z0-9_]+)` \\|"))
	if !slices.Equal(inCode, inDocs) {
		t.Errorf("settings in the code: %v\nin docs/configuration.md: %v", inCode, inDocs)
	}
}

func TestTheComposeFileSetsOnlySettingsThatExist(t *testing.T) {
	t.Parallel()
	source := configSource(t)
	compose, err := os.ReadFile("docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	known := names(source, regexp.MustCompile(`env:"([A-Z0-9_]+)"`))
	set := names(compose, regexp.MustCompile(`(?m)^\s+((?:VARVE|DATABASE)_[A-Z0-9_]+):`))
	for _, name := range set {
		if !slices.Contains(known, name) {
			t.Errorf("docker-compose.yml sets %s, which no command knows", name)
		}
	}
	if len(set) < 4 {
		t.Errorf("docker-compose.yml sets %v only", set)
	}
}

// byDigest matches an image that is the same at each build: a tag for the reader, a digest for the engine.
var byDigest = regexp.MustCompile(`^[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}$`)

// TestEveryServiceOfComposeIsHardened: what serves comes back, and nothing has more than it needs.
func TestEveryServiceOfComposeIsHardened(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Restart  string   `yaml:"restart"`
			ReadOnly bool     `yaml:"read_only"`
			Dropped  []string `yaml:"cap_drop"`
			Security []string `yaml:"security_opt"`
			Memory   string   `yaml:"mem_limit"`
			Image    string   `yaml:"image"`
			Health   struct {
				Test []string `yaml:"test"`
			} `yaml:"healthcheck"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	for name, s := range compose.Services {
		once := name == "passwords" || name == "migrate"
		if !s.ReadOnly || !slices.Equal(s.Dropped, []string{"ALL"}) || !slices.Contains(s.Security, "no-new-privileges:true") ||
			s.Memory == "" || s.Image == "" || once != (s.Restart == "") || once != (len(s.Health.Test) == 0) {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Image != "varve:local" && !byDigest.MatchString(s.Image) {
			t.Errorf("%s: the image %s has no tag and digest", name, s.Image)
		}
	}
	if len(compose.Services) < 5 {
		t.Errorf("%d services", len(compose.Services))
	}
	image, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, needs := range []string{`(?m)^USER \d+:\d+$`, `/etc/ssl/certs/ca-certificates\.crt`} { // runAsNonRoot; TLS to others
		if !regexp.MustCompile(needs).Match(image) {
			t.Errorf("the Dockerfile has no %s", needs)
		}
	}
	bases := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllSubmatch(image, -1)
	for _, base := range bases {
		if name := string(base[1]); name != "scratch" && !byDigest.MatchString(name) {
			t.Errorf("the Dockerfile's base %s has no tag and digest", name)
		}
	}
	if len(bases) != 2 {
		t.Errorf("the Dockerfile has %d bases", len(bases))
	}
}

// TestTheChartIsOfThisRelease compares what helm/varve installs with the changelog; test/helm, which make soak runs, tests
// the rest of it.
func TestTheChartIsOfThisRelease(t *testing.T) {
	t.Parallel()
	var versions []string
	for file, pattern := range map[string]string{
		"CHANGELOG.md": `(?m)^(?:This will be|##) (\d+\.\d+\.\d+)`, "helm/varve/Chart.yaml": `(?m)^appVersion: "(.+)"$`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(pattern).FindSubmatch(text); m != nil {
			versions = append(versions, string(m[1]))
		}
	}
	if len(versions) != 2 || versions[0] != versions[1] {
		t.Errorf("versions of CHANGELOG.md and helm/varve/Chart.yaml: %v", versions)
	}
}

// TestSystemdUnitsAreConfined asks systemd, where it is, whether the units are right and how much they leave open.
func TestSystemdUnitsAreConfined(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd is not there")
	}
	for _, process := range []string{"api", "worker"} {
		text, err := os.ReadFile("systemd/varve-" + process + ".service")
		if err != nil {
			t.Fatal(err)
		}
		unit := filepath.Join(t.TempDir(), "varve-"+process+".service")
		text = bytes.Replace(text, []byte("/usr/local/bin/varve "+process), []byte("/bin/true"), 1) // which must be there
		if err := os.WriteFile(unit, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 || !bytes.Contains(text, []byte("=/bin/true\n")) {
			t.Errorf("%s: %v\n%s", process, err, out)
		}
		if out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=15", unit).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", process, err, out)
		}
	}
}

// TestPostgreSQLFromNpmIsLocked: what scripts/postgres.sh installs is what it was.
func TestPostgreSQLFromNpmIsLocked(t *testing.T) {
	t.Parallel()
	locks, _ := filepath.Glob("scripts/postgres/*/package-lock.json")
	for _, file := range locks {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var lock struct {
			Packages map[string]struct{ Version, Integrity string }
		}
		if err := json.Unmarshal(text, &lock); err != nil {
			t.Fatal(err)
		}
		major := filepath.Base(filepath.Dir(file))
		delete(lock.Packages, "")
		for name, p := range lock.Packages {
			if !strings.HasPrefix(p.Version, major+".") || !strings.HasPrefix(p.Integrity, "sha512-") {
				t.Errorf("%s: %s is %+v", file, name, p)
			}
		}
		if len(lock.Packages) != 4 {
			t.Errorf("%s has %d packages", file, len(lock.Packages))
		}
	}
	if len(locks) != 4 {
		t.Errorf("locks: %v", locks)
	}
}

func names(text []byte, pattern *regexp.Regexp) (found []string) {
	for _, m := range pattern.FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	slices.Sort(found)
	return slices.Compact(found)
}
