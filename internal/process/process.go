// Package process starts and stops what the commands run: the REST process, the job process, and both on a private
// database. It wires the other packages together and owns nothing else.
//
// Start at API and Worker; each runs until its context ends, then stops gracefully.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/features"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
)

// stopRequests is how long running requests may continue when the process stops.
const stopRequests = 20 * time.Second

// OpenStore connects to a database whose schema fits this program, for the operator's commands, and to the result
// stores beside it, which may not answer. The caller closes the store's pool.
func OpenStore(ctx context.Context, db config.Database) (*postgres.Store, error) {
	return openDatabase(ctx, db, postgres.OpenAdmin, postgres.AdminRole)
}

// OpenAs connects as the processes of a role do, without claiming result stores.
func OpenAs(ctx context.Context, db config.Database, role string) (*postgres.Store, error) {
	if role == postgres.AdminRole {
		return OpenStore(ctx, db)
	}
	return openDatabase(ctx, db, postgres.Open, role)
}

type openPool func(ctx context.Context, dsn string, connections int) (*pgxpool.Pool, error)

func openDatabase(ctx context.Context, db config.Database, open openPool, role string) (*postgres.Store, error) {
	stores, err := resultStores(db.Results)
	if err != nil {
		return nil, err
	}
	pool, err := open(ctx, db.In(db.URL), db.Connections)
	if err != nil {
		return nil, err
	}
	inserts, err := queue.New(pool)
	store := postgres.New(pool, inserts, compactor.CapAtIngest)
	if err == nil {
		err = store.CheckSchema(ctx)
	}
	if err == nil {
		err = store.CheckRights(ctx, role)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	store.UseResultStores(stores)
	return store, nil
}

// openServing connects like OpenStore, but with a login that serves, and checks that the result stores can be written
// to.
func openServing(ctx context.Context, db config.Database, role string) (*postgres.Store, error) {
	store, err := openDatabase(ctx, db, postgres.Open, role)
	if err != nil {
		return nil, err
	}
	if err := store.CheckResultStores(ctx); err != nil {
		store.Pool().Close()
		return nil, err
	}
	return store, nil
}

// openWorking connects like openServing, with a login that runs a worker, to a database that takes writes.
func openWorking(ctx context.Context, db config.Database) (*postgres.Store, error) {
	store, err := openServing(ctx, db, postgres.WorkerRole)
	if err != nil {
		return nil, err
	}
	if err = postgres.RequireWorker(ctx, store.Pool()); err == nil {
		err = store.CheckWrites(ctx)
	}
	if err != nil {
		store.Pool().Close()
		return nil, err
	}
	return store, nil
}

// refusalPause is how long a request waits for its answer that is refused because there are too many.
const refusalPause = time.Second

// gcPercent trades memory, of which a serving process uses little, for less garbage collection: up to an eighth of its
// CPU time. GOGC overrides it. Near the memory's limit, see LimitMemory, garbage is collected earlier.
const gcPercent = 300

func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// API serves the HTTP API until ctx ends. It listens at once, and calls started with the address once its database is
// there.
func API(
	ctx context.Context, settings config.API, language config.LLM, db config.Database, log *slog.Logger,
	started func(addr net.Addr),
) error {
	collectLess()
	asks, err := newAsker(language, log)
	if err = errors.Join(useModels(ctx, language.Registry, log), err); err != nil {
		return err
	}
	listener, err := Listen(ctx, settings.Addr, "--addr or VARVE_ADDR")
	if err != nil {
		return err
	}
	front := &entrance{}
	server, failed := serveLimited(listener, front, connectionLimit(db.Connections))
	defer server.Close() // which does nothing after a shutdown
	tenants, operators, err := openStores(ctx, settings, db, log)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer closeStores(tenants, operators)
	defer pools.watch("api", tenants.Pool())()
	if operators != nil {
		defer pools.watch("operators", operators.Pool())()
	}
	asks.Store = tenants
	shares := shared()
	handler := api.New(api.Config{Store: tenants, Caller: asks, Log: log, Origins: settings.Origins,
		Quotas: settings.Quotas.With(asks.Budgets.Day), Pause: refusalPause, Memory: shares.memory, CPU: shares.cpu,
		Features: features.All(), Sites: sites(ctx, settings, operators, log), Operators: operators,
		OwnOperatorAddr: settings.AdminAddr != ""})
	defer handler.Close(context.WithoutCancel(ctx))
	const adminSetting = "--admin-addr or VARVE_ADMIN_ADDR"
	stopAdmin, err := serveBeside(ctx, settings.AdminAddr, adminSetting, handler.OperatorsHandler())
	if err != nil {
		return err
	}
	defer stopAdmin()
	front.open(handler)
	started(listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	handler.Drain()
	time.Sleep(settings.DrainDelay)
	return shutdown(ctx, server)
}

// sites returns what the sites of features need, nil if they are switched off.
func sites(ctx context.Context, settings config.API, operators *postgres.Store, log *slog.Logger) *feature.SiteConfig {
	if settings.Console != "on" {
		return nil
	}
	config := &feature.SiteConfig{
		Secret: settings.Secret, SignIn: feature.SignIn{Token: settings.SignIn, Key: settings.SignInKey},
	}
	if operators != nil {
		config.Jobs = JobPages(ctx, operators, log)
	}
	return config
}

// JobPages returns what opens River UI with the connections of operators, until ctx ends.
func JobPages(ctx context.Context, operators *postgres.Store, log *slog.Logger) feature.JobPages {
	return func(prefix string) (http.Handler, error) {
		jobs, err := queue.New(operators.Pool())
		if err != nil {
			return nil, err
		}
		return jobs.Pages(ctx, prefix, log)
	}
}

// serveLimited serves on a listener with a bounded number of connections. failed gets the error that ends it.
func serveLimited(listener net.Listener, h http.Handler, limit int) (server *http.Server, failed chan error) {
	server = api.NewServer(h)
	limited := limitConnections(listener, limit)
	server.ConnState = limited.state
	failed = make(chan error, 1)
	go func() { failed <- server.Serve(limited) }()
	return server, failed
}

// Listen listens on an address. If another process does, the error says by which setting to choose another address.
func Listen(ctx context.Context, addr, setting string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w (another process listens there, perhaps another varve up: "+
			"choose another address with %s)", err, setting)
	}
	return listener, err
}

func shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopRequests)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(errors.New("requests were still under way when the time to stop was up"), server.Close())
	}
	return err
}

// Worker works jobs until ctx ends. It calls started once it does.
func Worker(
	ctx context.Context, settings config.Worker, language config.LLM, db config.Database, log *slog.Logger,
	started func(),
) error {
	asks, err := newAsker(language, log)
	networks, networksErr := settings.PrivateNetworks()
	if err = errors.Join(err, networksErr, useModels(ctx, language.Registry, log)); err != nil {
		return err
	}
	asked := &probes{}
	stop, err := serveBeside(ctx, settings.MetricsAddr, "--metrics-addr or VARVE_METRICS_ADDR", asked.handler())
	if err != nil {
		return err
	}
	defer stop()
	defer asked.ready.Close(context.WithoutCancel(ctx))
	store, err := WhenThere(ctx, log, func() (*postgres.Store, error) { return openWorking(ctx, db) })
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer store.Pool().Close()
	defer pools.watch("worker", store.Pool())()
	asks.Store = store
	store.KeepFor(postgres.Retention{Runs: settings.KeepRuns, Audit: settings.KeepAudit})
	shares := shared()
	client, err := jobs.NewClient(store.Pool(), jobs.Config{
		Store: store, Caller: asks, Summaries: settings.Summaries, Log: log, Memory: shares.memory, CPU: shares.cpu,
		Compactions: settings.Compactions, JobTimeout: settings.JobTimeout, SweepEvery: settings.SweepInterval,
		SoftStop: settings.StopTimeout, VerifyRound: cmp.Or(settings.VerifyRound, -1), ColdAfter: settings.ColdAfter,
		Grace: db.Grace, KeepWhole: settings.KeepWhole, BackupsKept: settings.BackupsKept, Networks: networks,
		Features: features.All(),
	})
	if err == nil {
		err = client.Start(ctx) // River stops softly when ctx ends: running jobs may finish until StopTimeout.
	}
	if err != nil {
		return err
	}
	asked.use(store)
	started()
	<-client.Stopped()
	if ctx.Err() == nil {
		return errors.New("the job client stopped by itself; its log says why")
	}
	return nil
}

// TakeOver lets a worker begin at once with the jobs of processes that died. No other process may work on the
// database.
func TakeOver(ctx context.Context, db config.Database) error {
	store, err := OpenStore(ctx, db)
	if err != nil {
		return err
	}
	defer store.Pool().Close()
	return store.TakeOver(ctx)
}

// serveBeside serves on another address than the API's until stop is called, which lets running requests end. It serves
// nothing without an address.
func serveBeside(ctx context.Context, addr, setting string, handler http.Handler) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	listener, err := Listen(ctx, addr, setting)
	if err != nil {
		return nil, err
	}
	server := api.NewServer(handler)
	go func() { _ = server.Serve(listener) }() // it returns when the server is closed
	return func() { _ = shutdown(ctx, server) }, nil
}
