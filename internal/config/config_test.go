package config_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/session"
)

func TestSettingsOutOfTheirRangeAreNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		settings interface{ Validate() error }
		want     []string
	}{
		{"a database with defaults", config.Database{Connections: 16}, nil},
		{"a database by URL", config.Database{URL: "postgres://u:p@h:5432/d?sslmode=disable", Connections: 2}, nil},
		{"a database by keys", config.Database{URL: "host=/run dbname=d", Connections: 1000}, nil},
		{"a bad URL and too many connections", config.Database{URL: "postgres://h:port/d", Connections: 1001}, []string{"DATABASE_URL", "is 1001"}},
		{"a URL with the end of a line", config.Database{URL: "postgres://h/d\n", Connections: 2}, []string{"DATABASE_URL", "line feed"}},
		{"another sslmode", config.Database{URL: "postgres://u:hush@h/d?sslmode=yes", Connections: 2}, []string{"DATABASE_URL", "sslmode is invalid"}},
		{"a certificate without a key", config.Owner{OwnerURL: "host=h sslmode=require sslcert=/etc/hostname"}, []string{"VARVE_OWNER_URL", "sslkey"}},
		{"a certificate that is not there", config.Database{URL: "postgres://h/d?sslrootcert=/nowhere&sslmode=verify-full", Connections: 2}, []string{"open /nowhere"}},
		{"results in a bucket and in a directory", config.Database{Connections: 2, Results: config.Results{URL: "s3://bucket/a/b", Also: []string{"file:///srv/results"}, Grace: time.Hour}}, nil},
		{"results that are nowhere", config.Database{Connections: 2, Results: config.Results{URL: "file://relative", Also: []string{"ftp://h"}, Grace: time.Minute}},
			[]string{"VARVE_RESULTS)", "VARVE_RESULTS_ALSO", "VARVE_RESULTS_GRACE"}},
		{"two directories", config.Results{URL: "file:///a", Also: []string{"postgres", "file:///b"}}, []string{"one directory"}},
		{"objects in another directory than results", config.Results{URL: "file:///a", Objects: "file:///b"}, []string{"one directory", "VARVE_OBJECTS"}},
		{"objects that are nowhere", config.Results{Objects: "s3://"}, []string{"VARVE_OBJECTS", `"s3://"`}},
		{"an S3 store without a URL", config.Results{S3: config.S3{Endpoint: "localhost:9000", AccessKey: "a"}}, []string{"VARVE_S3_ENDPOINT", "VARVE_S3_SECRET_KEY"}},
		{"a key given twice and a file that is not there", config.Results{S3: config.S3{AccessKey: "a", AccessKeyFile: "b", SecretKeyFile: "/nowhere"}},
			[]string{"VARVE_S3_ACCESS_KEY_FILE", "/nowhere"}},
		{"an address of all interfaces", config.API{Addr: ":8080"}, nil},
		{"an address by names", config.API{Addr: "localhost:http"}, nil},
		{"an address without a port", config.API{Addr: "localhost", DrainDelay: -1}, []string{`"localhost"`, "VARVE_DRAIN_DELAY"}},
		{"a port that cannot be", config.API{Addr: "localhost:65536"}, []string{`"localhost:65536"`}},
		{"a budget of models among the quotas", config.API{Addr: ":8080", Quotas: config.Quotas{Quotas: session.Quotas{ModelTokens: 5}}}, []string{"VARVE_QUOTAS", "VARVE_LLM_BUDGETS"}},
		{"a file of models that is not there", config.LLM{Registry: config.Registry{ModelsFile: "/nowhere.json"}}, []string{"VARVE_MODELS", "/nowhere.json"}},
		{"a file of models with two mistakes", config.LLM{Registry: config.Registry{ModelsFile: "testdata/models.json"}}, []string{"VARVE_MODELS", "/models/0/contxt", "/models/1/context_tokens"}},
		{"a worker at its bounds", config.Worker{Compactions: 1, Summaries: 1, JobTimeout: time.Second, SweepInterval: time.Second}, nil},
		{"a worker below its bounds", config.Worker{StopTimeout: -1}, []string{"VARVE_COMPACTIONS", "VARVE_SUMMARIES", "VARVE_JOB_TIMEOUT", "VARVE_SWEEP_INTERVAL", "VARVE_STOP_TIMEOUT"}},
		{"a log", config.Log{Level: "warn", Format: "json"}, nil},
		{"no log", config.Log{Level: "loud", Format: "xml"}, []string{`"loud"`, `"xml"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.settings.Validate()
			if (err != nil) != (tt.want != nil) {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %q", err, want)
				}
			}
		})
	}
}

func TestArchivesGoWhereResultsDoUnlessTheyHaveAStore(t *testing.T) {
	t.Parallel()
	dir, bucket := config.ResultStore{Dir: "/srv"}, config.ResultStore{Bucket: "b", Prefix: "p"}
	for _, tt := range []struct {
		settings config.Results
		want     config.StoreChoice
	}{
		{config.Results{}, config.StoreChoice{}},
		{config.Results{URL: "file:///srv"}, config.StoreChoice{New: &dir, Archives: &dir, Outside: []*config.ResultStore{&dir}}},
		{config.Results{Objects: "s3://b/p"}, config.StoreChoice{Archives: &bucket, Outside: []*config.ResultStore{&bucket}}},
		{config.Results{URL: "s3://b/p", Objects: "postgres"}, config.StoreChoice{New: &bucket, Outside: []*config.ResultStore{&bucket}}},
		{config.Results{Objects: "s3://b/p/", Also: []string{"s3://b/p", "file:///srv"}}, config.StoreChoice{Archives: &bucket, Outside: []*config.ResultStore{&bucket, &dir}}},
	} {
		found, err := tt.settings.Stores()
		if diff := cmp.Diff(tt.want, found); err != nil || diff != "" {
			t.Errorf("%+v (-want +found): %v\n%s", tt.settings, err, diff)
		}
	}
}

func TestAURLThatDoesNotParseIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://u:hush/hush@h/d", "postgres://u:%hush@h/d", "password=hush dbname", "hush", "host=h port=hush", "postgres://h/d?sslmode=hush", "postgres://u:a@hush@h/d"} {
		if err := (config.Database{URL: url, Connections: 2}).Validate(); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// process is a process that waits for the end of its context.
type process struct {
	config.Log `embed:""`
	ran        func(context.Context) error
}

func (p *process) Run(ctx context.Context) error { return p.ran(ctx) }

func TestMainRunsWithValidSettingsOnly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		args  []string
		err   error
		calls int
		exit  int
	}{
		{"a run that ends well", []string{"--log-level=debug"}, nil, 1, 0},
		{"a run that fails", nil, context.DeadlineExceeded, 1, 1},
		{"settings out of their range", []string{"--log-level=loud"}, nil, 0, 2},
		{"flags that are none", []string{"--loud"}, nil, 0, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			exit := config.Main("test", "", tt.args, &process{ran: func(context.Context) error { calls++; return tt.err }})
			if exit != tt.exit || calls != tt.calls {
				t.Errorf("exit code %d after %d runs, want %d after %d", exit, calls, tt.exit, tt.calls)
			}
		})
	}
}

func TestAProgramHasAVersion(t *testing.T) {
	t.Parallel()
	if got := config.Version(); got == "" {
		t.Error("the version is empty")
	}
}

func TestTheURLOfADatabaseLeadsToTheSchema(t *testing.T) {
	t.Parallel()
	in := config.Database{Schema: "own"}
	for url, want := range map[string]string{
		"":                        "",
		"postgres://h/d":          "postgres://h/d?search_path=own",
		"postgresql://h/d?user=u": "postgresql://h/d?user=u&search_path=own",
		"host=h password=a://b":   "host=h password=a://b search_path=own",
	} {
		if got := in.In(url); got != want {
			t.Errorf("%q: got %q, want %q", url, got, want)
		}
		if got := (config.Database{Schema: "public"}).In(url); got != url {
			t.Errorf("%q in public: got %q", url, got)
		}
	}
}
