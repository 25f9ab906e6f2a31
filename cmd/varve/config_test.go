package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/doctor"
)

// shownConfig returns what varve config prints with these arguments.
func shownConfig(t *testing.T, args ...string) string {
	t.Helper()
	var cli commands
	parsed, err := parser(&cli).Parse(append([]string{"config"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := cli.Config.Run(parsed, &cli.Client, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestConfigSaysWhereEachSettingComesFrom(t *testing.T) {
	t.Setenv("VARVE_COMPACTIONS", "7")
	t.Setenv("OPENAI_API_KEY", "sk-hush")
	t.Setenv("VARVE_SUMMARY_MODEL", "mini=gpt-5-mini")
	var got configJSON
	if err := json.Unmarshal([]byte(shownConfig(t, "--json", "--addr=127.0.0.1:9")), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]settingJSON{
		"VARVE_COMPACTIONS":    {"VARVE_COMPACTIONS", "--compactions", []string{"worker", "varve up"}, "7", "environment"},
		"VARVE_ADDR":           {"VARVE_ADDR", "--addr", []string{"api", "varve up"}, "127.0.0.1:9", "flag"},
		"VARVE_STOP_TIMEOUT":   {"VARVE_STOP_TIMEOUT", "--stop-timeout", []string{"worker", "varve up"}, "20s", "default"},
		"OPENAI_API_KEY":       {"OPENAI_API_KEY", "--openai-key", []string{"api", "worker", "varve up"}, "set", "environment"},
		"VARVE_S3_ACCESS_KEY":  {"VARVE_S3_ACCESS_KEY", "--s3-access-key", []string{"api", "worker", "varve up"}, "not set", "default"},
		"VARVE_OWNER_URL":      {"VARVE_OWNER_URL", "--owner-url", []string{"varve up"}, "", "default"},
		"OPENAI_API_KEY_FILE":  {"OPENAI_API_KEY_FILE", "--openai-key-file", []string{"api", "worker", "varve up"}, "", "default"},
		"VARVE_LLM_BUDGETS":    {"VARVE_LLM_BUDGETS", "--llm-budgets", []string{"api", "worker", "varve up"}, "", "default"},
		"VARVE_SUMMARY_WINDOW": {"VARVE_SUMMARY_WINDOW", "--summary-window", []string{"api", "worker", "varve up"}, "0", "default"},
	}
	for _, s := range got.Settings {
		w, ok := want[s.Name]
		if ok && (s.Flag != w.Flag || s.Value != w.Value || s.Source != w.Source || !slices.Equal(s.Processes, w.Processes)) {
			t.Errorf("got %+v, want %+v", s, w)
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		t.Errorf("not shown: %v", want)
	}
	if len(got.Models) != 1 || got.Models[0].Name != "mini" || got.Models[0].Window != 272_000 || got.Models[0].Source != "environment" || got.Models[0].Price.Output != 2 {
		t.Errorf("models: %+v", got.Models)
	}
	if got.Budgets["day"].Tokens != 20_000_000 || len(got.Providers) != 1 || !got.Providers[0].Key.Set() {
		t.Errorf("budgets %+v, providers %+v", got.Budgets, got.Providers)
	}
}

// TestDoctorReportsMistakesInSettings, misspelt names among them, and looks at the rest.
func TestDoctorReportsMistakesInSettings(t *testing.T) {
	t.Parallel()
	cmd := program(t.Context(), "doctor", "--json", "--data", t.TempDir(), "--addr", "foo", "--compactions", "0")
	cmd.Env = append(cmd.Env, "VARVE_DB_CONNECTIONS=9", "VARVE_JOB_TIMEOUT=1m", "VARVE_URL=http://127.0.0.1:1")
	out, err := cmd.Output()
	var found []doctor.Finding
	if err == nil || json.Unmarshal(out, &found) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []doctor.Finding{
		{Subject: "settings", Level: doctor.Failed, Text: `--addr (VARVE_ADDR) is "foo"`},
		{Subject: "settings", Level: doctor.Failed, Text: "VARVE_COMPACTIONS) is 0"},
		{Subject: "settings", Level: doctor.Warning, Text: "VARVE_DB_CONNECTIONS is set, but"},
		{Subject: "database", Level: doctor.Failed, Text: "no valid DATABASE_URL"},
		{Subject: "api", Level: doctor.Failed, Text: "connection refused"},
	} {
		if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
			return f.Subject == want.Subject && f.Level == want.Level && strings.Contains(f.Text, want.Text)
		}) {
			t.Errorf("no %+v in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "VARVE_JOB_TIMEOUT") {
		t.Errorf("a setting that there is:\n%s", out)
	}
}

// TestConfigShowsNoKey gives every setting that may hold a key one, in each of its spellings.
func TestConfigShowsNoKey(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hush-of-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	models := filepath.Join(t.TempDir(), "models.json")
	document := `{"providers":{"a":{"kind":"anthropic","key":"hush-a","headers":{"X-Api-Key":"hush-header"}},"b":{"kind":"openai","key_file":"` + secret + `"}},
		"models":{"m":{"provider":"a","model":"x","window":9000}}}`
	if err := os.WriteFile(models, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "hush-openai", "ANTHROPIC_API_KEY_FILE": secret, "VARVE_S3_ACCESS_KEY": "hush-access", "VARVE_S3_SECRET_KEY_FILE": secret,
		"VARVE_KEY": "hush-client", "DATABASE_URL": "postgres://u:hush-url@h:5/d?sslpassword=hush-query", "VARVE_OWNER_URL": "user=o password=hush-owner host=h dbname=d",
		"VARVE_LLM": models,
	} {
		t.Setenv(name, value)
	}
	for _, args := range [][]string{{"--json"}, {}} {
		shown := shownConfig(t, args...)
		if strings.Contains(shown, "hush") {
			t.Errorf("%v:\n%s", args, shown)
		}
		for _, want := range []string{"host=h port=5 dbname=d user=u", "user=o", "X-Api-Key", models} {
			if !strings.Contains(shown, want) {
				t.Errorf("%v: without %q\n%s", args, want, shown)
			}
		}
	}
}
