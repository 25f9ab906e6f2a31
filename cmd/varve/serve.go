package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/trace"
)

// urlFile is where varve up writes its address in the data directory, for the commands that are given that directory.
const urlFile = "url"

// defaultTenant is the tenant that the first start creates.
const defaultTenant = "default"

// consoleLink says where the console is.
const consoleLink = "console: http://%s/console/once/%s (signs in once)\n"

// readyWithoutKey says how to make a key where there are tenants, and the data directory has no key of one.
const readyWithoutKey = `varve is ready on http://%s
the database has tenants, and %[2]s/key no key of one; this makes a key:
  varve keys create --tenant NAME --data %[2]s    (varve tenants list --data %[2]s has the names)
`

type upCommand struct {
	everything    `embed:""`
	config.Memory `embed:""`
	config.Log    `embed:""`
}

// Validate reports everything that is wrong at once: kong does not ask embedded structs whose names are not exported.
func (u *upCommand) Validate() error {
	return errors.Join(u.everything.Validate(), u.Memory.Validate(), u.Log.Validate())
}

// Run serves until the process is told to stop.
func (u *upCommand) Run(ctx context.Context, settings *config.Client) error {
	if err := os.MkdirAll(settings.Data, 0o755); err != nil {
		return err
	}
	log, finish, err := trace.Open(ctx, config.Version(), u.Logger())
	if err != nil {
		return err
	}
	defer finish(ctx)
	process.LimitMemory(u.Memory, u.Database.URL == "")
	u.SignIn = rand.Text()
	return u.serve(ctx, settings.Data, log, func(_ context.Context, addr net.Addr, keyFile string) error {
		said := []byte("http://" + addr.String() + "\n")
		if err := os.WriteFile(filepath.Join(settings.Data, urlFile), said, 0o600); err != nil {
			return err
		}
		if keyFile == "" {
			fmt.Fprintf(os.Stderr, readyWithoutKey, addr, settings.Data)
			return nil
		}
		fmt.Fprintf(os.Stderr, `varve is ready on http://%s
try: curl -H "Authorization: Bearer $(cat %s)" http://%s/v1/sessions
`, addr, keyFile, addr)
		if u.Console == "on" {
			fmt.Fprintf(os.Stderr, consoleLink, cmp.Or(u.AdminAddr, addr.String()), u.SignIn)
		}
		return nil
	})
}

// everything is all of Varve in one process: API, worker and, unless a database is named, a private PostgreSQL in the
// data directory.
type everything struct {
	config.Database `embed:""`
	config.Owner    `embed:""`
	config.API      `embed:""`
	config.Worker   `embed:""`
	config.LLM      `embed:""`
}

// Validate reports everything that is wrong at once.
func (e everything) Validate() error {
	return errors.Join(e.Database.Validate(), e.Owner.Validate(), e.API.Validate(), e.Worker.Validate(),
		e.LLM.Validate())
}

// serve runs until ctx ends or a part of it fails. The API starts once the worker has. Then serve calls started with
// the address of the API and the file that holds the first tenant's key, "" for none; an error of started ends all.
// PostgreSQL is stopped last.
func (e everything) serve(ctx context.Context, data string, log *slog.Logger, started startedFunc) (err error) {
	if err := checkAddrFree(ctx, e.Addr); err != nil {
		return err
	}
	group, running := errgroup.WithContext(ctx)
	databases := logins{owner: e.OwnerURL, admin: e.Database, api: e.Database, worker: e.Database}
	private := e.Database.URL == ""
	if private {
		var cluster *embedded.Server // with := the deferred function would set another err
		if cluster, err = embedded.Start(ctx, embedded.Config{Dir: data, Log: log}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cluster.Stop(context.WithoutCancel(ctx))) }()
		group.Go(func() error { return untilEnd(running, cluster) })
		databases.of(cluster)
		e.AdminURL = databases.admin.URL
	}
	keyFile, err := process.WhenThere(ctx, log, func() (string, error) {
		return databases.prepare(ctx, data, private, e.AdminURL)
	})
	if err != nil {
		return err
	}
	if keyFile == "" {
		e.SignIn = ""
	} else if e.SignInKey, err = readKey(keyFile); err != nil {
		return err
	}
	ready := func(addr net.Addr) { group.Go(func() error { return started(running, addr, keyFile) }) }
	serve := func() {
		group.Go(func() error { return process.API(running, e.API, e.LLM, databases.api, log, ready) })
	}
	group.Go(func() error { return process.Worker(running, e.Worker, e.LLM, databases.worker, log, serve) })
	return group.Wait()
}

// logins are one database as its owner, the operator's commands, the API and the worker log in to it.
type logins struct {
	superuser          string // of the private cluster
	owner              string // "" if the schema is made elsewhere
	admin, api, worker config.Database
}

// The logins of the private cluster.
const (
	adminLogin  = "varve_up_admin"
	apiLogin    = "varve_up_api"
	workerLogin = "varve_up_worker"
	backupLogin = "varve_up_backup"
)

// of sets the logins of a private cluster.
func (l *logins) of(cluster *embedded.Server) {
	l.superuser = cluster.DSN(embedded.Database)
	l.owner = cluster.DSNOf(embedded.Owner)
	l.admin.URL = cluster.DSNOf(adminLogin)
	l.api.URL = cluster.DSNOf(apiLogin)
	l.worker.URL = cluster.DSNOf(workerLogin)
}

type startedFunc func(ctx context.Context, addr net.Addr, keyFile string) error

// untilEnd returns the error of a cluster that ended by itself, nil if ctx ends first.
func untilEnd(ctx context.Context, cluster *embedded.Server) error {
	select {
	case <-cluster.Done():
		return cluster.Err()
	case <-ctx.Done():
		return nil
	}
}

// prepare migrates the database, if its owner's login is known, and returns the file that holds the first tenant's key,
// "" for none. Where operators have routes, the first of them has a key, too.
func (l *logins) prepare(ctx context.Context, data string, private bool, operators string) (keyFile string, err error) {
	if l.owner != "" {
		if err := postgres.Migrate(ctx, l.admin.In(l.owner)); err != nil {
			return "", err
		}
	}
	if private {
		if err := l.takeOver(ctx); err != nil {
			return "", err
		}
	} else if l.owner != "" {
		l.admin.URL = l.owner
	}
	if keyFile, err = firstKey(ctx, l.admin, data); err != nil || operators == "" {
		return keyFile, err
	}
	l.admin.URL = operators
	return keyFile, firstOperatorKey(ctx, l.admin, data)
}

// takeOver makes the private cluster's logins, which one of an earlier release lacks, and lets the worker begin with
// the jobs of the process before: that one is dead, since a cluster serves one process at a time.
func (l *logins) takeOver(ctx context.Context) error {
	err := postgres.GrantTo(ctx, l.admin.In(l.superuser),
		postgres.Grant{Login: adminLogin, Role: postgres.AdminRole, Make: true},
		postgres.Grant{Login: apiLogin, Role: postgres.AppRole, Make: true},
		postgres.Grant{Login: workerLogin, Role: postgres.WorkerRole, Make: true},
		postgres.Grant{Login: backupLogin, Role: postgres.BackupRole, Make: true})
	if err != nil {
		return err
	}
	return process.TakeOver(ctx, l.admin)
}

// checkAddrFree returns an error if the API cannot listen on addr, before PostgreSQL starts in vain.
func checkAddrFree(ctx context.Context, addr string) error {
	listener, err := process.Listen(ctx, addr, "--addr or VARVE_ADDR")
	if err != nil {
		return err
	}
	return listener.Close()
}

// firstKey creates a key of the tenant "default" in DATA/key, unless that file holds one. It makes that tenant only if
// there is no other: among those of a restored backup it would show nothing of what they have. It returns "" then.
func firstKey(ctx context.Context, db config.Database, data string) (file string, err error) {
	file = filepath.Join(data, "key")
	err = keepKey(ctx, db, file, wellFormed, func(store *postgres.Store) (string, error) {
		tenant, err := store.TenantNamed(ctx, defaultTenant)
		if errors.Is(err, session.ErrNotFound) {
			tenant, err = firstTenant(ctx, store)
		}
		if err != nil {
			return "", err
		}
		made, err := newKey(ctx, store, tenant, keyOptions{Name: "first start"})
		return made.Text, err
	})
	if errors.Is(err, errOtherTenants) {
		return "", nil
	}
	return file, err
}

// errOtherTenants is returned if there are tenants, so that there is no first one to be made.
var errOtherTenants = errors.New("there are tenants")

func firstTenant(ctx context.Context, store *postgres.Store) (session.Tenant, error) {
	others, err := store.Tenants(ctx)
	if err == nil && len(others) > 0 {
		err = errOtherTenants
	}
	if err != nil {
		return session.Tenant{}, err
	}
	return store.CreateTenant(ctx, defaultTenant, policy.StoredDefault())
}

// firstOperatorKey makes an operator's key in DATA/operator-key, unless that file holds one.
func firstOperatorKey(ctx context.Context, db config.Database, data string) error {
	file := filepath.Join(data, operatorKeyFile)
	return keepKey(ctx, db, file, wellFormedOperator, func(store *postgres.Store) (string, error) {
		text := session.NewOperatorKey()
		_, err := store.CreateOperatorKey(ctx, "first start", text, nil)
		return text, err
	})
}

// operatorKeyFile is the file of the data directory that holds an operator's key.
const operatorKeyFile = "operator-key"

// keepKey makes a key and puts it into a file, unless that holds one that is well formed.
func keepKey(
	ctx context.Context, db config.Database, file string, wellFormed func(string) bool,
	create func(*postgres.Store) (string, error),
) error {
	held, err := readKey(file)
	switch {
	case err == nil && wellFormed(held):
		return nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	store, err := process.OpenStore(ctx, db)
	if err != nil {
		return err
	}
	defer store.Pool().Close()
	text, err := create(store)
	if err != nil {
		return err
	}
	// The whole key or nothing: the database stores its digest only, and cannot give it a second time.
	return replaceFile(file, func(out io.Writer) error {
		_, err := fmt.Fprintln(out, text)
		return err
	})
}

func wellFormedOperator(key string) bool {
	_, err := session.ParseOperatorKey(key)
	return err == nil
}

// wellFormed reports whether a key has the form of one.
func wellFormed(key string) bool {
	_, _, err := session.ParseKey(key)
	return err == nil
}

// replaceFile makes a file that only its owner can read. The file appears once write has written all of it.
func replaceFile(file string, write func(io.Writer) error) error {
	part, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // does nothing once it is renamed
	err = write(part)
	if err = errors.Join(err, part.Sync(), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), file)
}
