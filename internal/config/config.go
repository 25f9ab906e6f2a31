// Package config declares the settings of all commands: one struct for each thing that can be set up, with its flags,
// its environment variables and their defaults. docs/configuration.md explains them, and a test compares it with the
// structs.
//
// Flags take precedence over the environment, the environment over defaults. A setting that nobody needs to change is a
// constant where it is used. Start at Main, the main function of a process with such settings.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/session"
)

// Database is the PostgreSQL that holds the data, and the result stores beside it.
type Database struct {
	URL string `name:"database-url" env:"DATABASE_URL" help:"PostgreSQL 15 or newer, as a URL or key=value list."`

	Schema string `env:"VARVE_SCHEMA" default:"public" help:"The database's schema that Varve has for itself."`

	Connections int `name:"database-connections" env:"VARVE_DATABASE_CONNECTIONS" default:"16" help:"At most."`

	Results `embed:""` // in stores besides
}

// Required returns an error if there is no database URL.
func (d Database) Required() error {
	if d.URL == "" {
		return errors.New("DATABASE_URL is not set: it must name the PostgreSQL to use, " +
			"e.g. postgres://varve@db.example:5432/varve (varve up runs a private one)")
	}
	return nil
}

// schemaName is a name that is the same in a URL, in SQL and in a search_path.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// In returns the URL of a login at this database, which leads to the schema.
func (d Database) In(url string) string {
	if url == "" || d.Schema == "" || d.Schema == "public" {
		return url
	}
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return url + " search_path=" + d.Schema
	}
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + "search_path=" + d.Schema
}

// Validate checks the URL's form, the schema's name and the range.
func (d Database) Validate() error {
	return errors.Join(checkURL("--database-url (DATABASE_URL)", d.URL), d.Results.Validate(),
		check(d.Schema == "" || schemaName.MatchString(d.Schema) && !strings.HasPrefix(d.Schema, "pg_"),
			"--schema (VARVE_SCHEMA)", d.Schema, "letters a to z, digits and _, not beginning with a digit or pg_"),
		check(d.Connections >= 2 && d.Connections <= 1000,
			"--database-connections (VARVE_DATABASE_CONNECTIONS)", d.Connections, "2 to 1000"))
}

// Owner is the login that makes the schema. The processes that serve never have it.
type Owner struct {
	OwnerURL string `name:"owner-url" env:"VARVE_OWNER_URL" help:"URL of the login that migrates, if another."`
}

// Validate checks the URL's form.
func (o Owner) Validate() error {
	return checkURL("--owner-url (VARVE_OWNER_URL)", o.OwnerURL)
}

// check returns an error unless a setting is valid: its name, its value, and what it must be.
func check(valid bool, name string, value any, want string) error {
	if valid {
		return nil
	}
	if text, ok := value.(string); ok {
		value = strconv.Quote(text)
	}
	return fmt.Errorf("%s is %v: it must be %s", name, value, want)
}

// wrongInURL is what the parser of database URLs says of what is wrong in one, without repeating it.
var wrongInURL = []string{
	"sslmode is invalid", "invalid port", `both "sslcert" and "sslkey" are required`, "failed to decode sslkey",
	"unable to add CA to cert pool",
}

// checkURL returns an error that repeats nothing of the URL of a database: in one that does not parse, anything may be
// the password.
func checkURL(name, url string) error {
	if url == "" {
		return nil
	}
	if strings.TrimSpace(url) != url {
		return errors.New(name + " has a space or a line feed at its beginning or end")
	}
	to, err := pgxpool.ParseConfig(url)
	if err == nil {
		hosts := []string{to.ConnConfig.Host}
		for _, f := range to.ConnConfig.Fallbacks {
			hosts = append(hosts, f.Host)
		}
		if !slices.ContainsFunc(hosts, func(host string) bool { return strings.Contains(host, "@") }) {
			return nil
		}
		err = errors.New("an @ in it is not escaped") // it would show the end of a password as a host
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		return fmt.Errorf("%s names a file that cannot be read: %w", name, file)
	}
	for _, wrong := range wrongInURL {
		if strings.Contains(err.Error(), wrong) {
			return fmt.Errorf("%s cannot be used: %s", name, wrong)
		}
	}
	return errors.New(name + " is neither a PostgreSQL URL nor a key=value list; " +
		"it is not shown here, because it may contain a password")
}

// Client is what the clients of the HTTP API need, and the commands that work on a data directory.
type Client struct {
	URL  string `name:"url" env:"VARVE_URL" help:"Address of the API (DATA/url)."`
	Key  string `name:"key" env:"VARVE_KEY" hidden:"" help:"API key. Without one, the command line reads DATA/key."`
	Data string `name:"data" env:"VARVE_DATA_DIR" default:".varve" help:"Data directory of varve up."`
	JSON bool   `name:"json" help:"Print JSON on standard output."`
}

// PostgresBin returns the directory of the PostgreSQL programs that varve up runs, "" to look for them.
func PostgresBin() string { return os.Getenv("VARVE_PG_BIN") }

// API is the REST process.
type API struct {
	Addr       string        `env:"VARVE_ADDR" default:"127.0.0.1:8080" help:"Address to listen on."`
	DrainDelay time.Duration `env:"VARVE_DRAIN_DELAY" default:"1s" help:"How long /readyz says 503 before the end."`
	Quotas     Quotas        `env:"VARVE_QUOTAS" help:"JSON of the quotas of tenants that have none of their own."`
	AdminAddr  string        `env:"VARVE_ADMIN_ADDR" help:"Address for the operators' routes; --addr if empty."`
	AdminURL   string        `name:"admin-database-url" env:"VARVE_ADMIN_DATABASE_URL" help:"Login for these routes."`
	Origins    []string      `name:"mcp-origins" env:"VARVE_MCP_ORIGINS" help:"Origins of web pages that may use MCP."`
	Console    string        `env:"VARVE_CONSOLE" default:"on" help:"on or off: the pages at /console."`
	Secret     string        `name:"console-secret" env:"VARVE_CONSOLE_SECRET" hidden:""`

	// SignIn is the token of a link that signs its first visitor in to the console, with the key in SignInKey.
	SignIn, SignInKey string `kong:"-"`
}

// Validate checks the address's form and the range.
func (a API) Validate() error {
	return errors.Join(
		check(isAddress(a.Addr), "--addr (VARVE_ADDR)", a.Addr, "a host and a port, e.g. 127.0.0.1:8080"),
		check(a.AdminAddr == "" || isAddress(a.AdminAddr),
			"--admin-addr (VARVE_ADMIN_ADDR)", a.AdminAddr, "a host and a port, e.g. 127.0.0.1:8081"),
		checkURL("--admin-database-url (VARVE_ADMIN_DATABASE_URL)", a.AdminURL),
		check(a.DrainDelay >= 0, "--drain-delay (VARVE_DRAIN_DELAY)", a.DrainDelay, "0s or more"),
		a.checkOrigins(),
		check(slices.Contains([]string{"", "on", "off"}, a.Console),
			"--console (VARVE_CONSOLE)", a.Console, "on or off"),
		a.checkSecret(),
		check(a.Quotas.ModelBudget() == session.ModelBudget{}, "--quotas (VARVE_QUOTAS)", "a budget of models, too",
			"without one: VARVE_LLM_BUDGETS has it, for workers, too"),
	)
}

// minSecret is the length from which a secret cannot be guessed.
const minSecret = 32

// checkSecret returns an error that repeats nothing of the secret.
func (a API) checkSecret() error {
	if n := len(a.Secret); n > 0 && n < minSecret {
		return fmt.Errorf("--console-secret (VARVE_CONSOLE_SECRET) has %d characters: it must have at least %d", n,
			minSecret)
	}
	return nil
}

func (a API) checkOrigins() error {
	for _, origin := range a.Origins {
		if http.NewCrossOriginProtection().AddTrustedOrigin(origin) != nil {
			return check(false, "--mcp-origins (VARVE_MCP_ORIGINS)", origin, "origins such as https://chat.example")
		}
	}
	return nil
}

// isAddress reports whether addr is a host, which may be empty, and a port.
func isAddress(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	return err == nil
}

const day = 24 * time.Hour

// Worker is the job process.
type Worker struct {
	Compactions   int           `env:"VARVE_COMPACTIONS" default:"4" help:"Compactions that one process runs at once."`
	Summaries     int           `env:"VARVE_SUMMARIES" default:"8" help:"Summaries that models are asked for at once."`
	JobTimeout    time.Duration `env:"VARVE_JOB_TIMEOUT" default:"2m" help:"How long one attempt may take."`
	SweepInterval time.Duration `env:"VARVE_SWEEP_INTERVAL" default:"30s" help:"How often to look for lost jobs."`
	BackupsKept   time.Duration `env:"VARVE_BACKUPS_KEPT" help:"How long backups are kept, for receipts of erasures."`
	VerifyRound   time.Duration `env:"VARVE_VERIFY_ROUND" default:"96h" help:"Time to verify all sessions; 0: never."`
	ColdAfter     time.Duration `env:"VARVE_COLD_AFTER" help:"How long a session sleeps until it is frozen; 0: never."`
	KeepRuns      time.Duration `env:"VARVE_KEEP_RUNS" default:"2160h" help:"How long to keep runs; 0: for ever."`
	KeepAudit     time.Duration `env:"VARVE_KEEP_AUDIT" help:"How long to keep the audit trail; 0: for ever."`
	KeepWhole     bool          `env:"VARVE_KEEP_WHOLE" help:"Pack no more old messages."`
	Networks      []string      `name:"webhook-networks" env:"VARVE_WEBHOOK_NETWORKS" help:"Private ones of webhooks."`
	StopTimeout   time.Duration `env:"VARVE_STOP_TIMEOUT" default:"20s" help:"How long jobs and requests may go on."`
	MetricsAddr   string        `env:"VARVE_METRICS_ADDR" help:"Address of metrics and probes; none if empty."`
}

// PrivateNetworks returns the private networks in which URLs of tenants may be.
func (w Worker) PrivateNetworks() (list []netip.Prefix, err error) {
	for _, text := range w.Networks {
		network, err := netip.ParsePrefix(text)
		if err != nil || network != network.Masked() || !network.Addr().IsPrivate() && !network.Addr().IsLoopback() {
			return nil, check(false, "--webhook-networks (VARVE_WEBHOOK_NETWORKS)", text,
				"networks of private addresses such as 10.1.0.0/16")
		}
		list = append(list, network)
	}
	return list, nil
}

// Validate checks the ranges.
func (w Worker) Validate() error {
	_, networksErr := w.PrivateNetworks()
	inRange := w.Compactions >= 1 && w.Compactions <= 1000
	validMetrics := w.MetricsAddr == "" || isAddress(w.MetricsAddr)
	return errors.Join(
		check(inRange, "--compactions (VARVE_COMPACTIONS)", w.Compactions, "1 to 1000"),
		check(w.Summaries >= 1 && w.Summaries <= 1000, "--summaries (VARVE_SUMMARIES)", w.Summaries, "1 to 1000"),
		check(w.JobTimeout >= time.Second, "--job-timeout (VARVE_JOB_TIMEOUT)", w.JobTimeout, "at least 1s"),
		check(w.KeepRuns == 0 || w.KeepRuns >= day, "--keep-runs (VARVE_KEEP_RUNS)", w.KeepRuns, "0 or at least 24h"),
		check(w.KeepAudit == 0 || w.KeepAudit >= 30*day,
			"--keep-audit (VARVE_KEEP_AUDIT)", w.KeepAudit, "0 or at least 720h"),
		check(w.BackupsKept >= 0, "--backups-kept (VARVE_BACKUPS_KEPT)", w.BackupsKept, "0 for not known, or more"),
		check(w.VerifyRound == 0 || w.VerifyRound >= time.Hour,
			"--verify-round (VARVE_VERIFY_ROUND)", w.VerifyRound, "0 or at least 1h"),
		check(w.ColdAfter == 0 || w.ColdAfter >= time.Hour,
			"--cold-after (VARVE_COLD_AFTER)", w.ColdAfter, "0 or at least 1h"),
		check(w.SweepInterval >= time.Second,
			"--sweep-interval (VARVE_SWEEP_INTERVAL)", w.SweepInterval, "at least 1s"),
		check(w.StopTimeout >= 0, "--stop-timeout (VARVE_STOP_TIMEOUT)", w.StopTimeout, "0s or more"),
		networksErr,
		check(validMetrics,
			"--metrics-addr (VARVE_METRICS_ADDR)", w.MetricsAddr, "a host and a port, e.g. 127.0.0.1:9090"),
	)
}

// Memory is how much memory a process takes.
type Memory struct {
	MemoryLimit Bytes `name:"memory" env:"VARVE_MEMORY" help:"Memory to keep within, e.g. 2GiB; empty: what there is."`
}

// minMemory is the least memory that a process starts with.
const minMemory = 64 << 20

// Validate checks the range.
func (m Memory) Validate() error {
	return check(m.MemoryLimit == 0 || m.MemoryLimit >= minMemory,
		"--memory (VARVE_MEMORY)", int64(m.MemoryLimit), "at least 64MiB")
}

// Bytes is a number of bytes, written with or without a unit: 1073741824, 1GiB or 1.5GB.
type Bytes int64

// UnmarshalText reads a number of bytes.
func (b *Bytes) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*b = 0
		return nil
	}
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("%q is no number of bytes: write it like 512MiB or 2GiB", text)
	}
	*b = Bytes(n)
	return nil
}

// Log is the log, on standard error.
type Log struct {
	Level  string `name:"log-level" env:"VARVE_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	Format string `name:"log-format" env:"VARVE_LOG_FORMAT" default:"text" help:"text or json."`
}

// Validate checks the two names.
func (l Log) Validate() error {
	validLevel := new(slog.Level).UnmarshalText([]byte(l.Level)) == nil
	validFormat := l.Format == "text" || l.Format == "json"
	return errors.Join(
		check(validLevel, "--log-level (VARVE_LOG_LEVEL)", l.Level, "debug, info, warn or error"),
		check(validFormat, "--log-format (VARVE_LOG_FORMAT)", l.Format, "text or json"),
	)
}

// Logger returns the logger that valid settings describe.
func (l Log) Logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // Validate has parsed it
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
