package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
)

// database looks at the database, and at what is known only through it.
func database(ctx context.Context, at Installation) []Finding {
	const subject = "database"
	if err := errors.Join(at.Database.Required(), at.Database.Validate()); err != nil {
		return []Finding{{subject, Failed, "there is no valid DATABASE_URL, and no varve up runs on " + at.Data,
			"name the database that the processes use"}}
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := pgx.Connect(within, at.Database.In(at.Database.URL))
	if err != nil {
		return []Finding{failed(subject, err, "look whether the server runs, whether this machine reaches it, and "+
			"whether the login and its password are right")}
	}
	defer conn.Close(context.WithoutCancel(ctx))
	found := []Finding{server(within, conn), encryption(conn), clock(within, conn), schema(within, conn)}
	if Failures(found) > 0 {
		return append(found, Finding{"login", Skipped, "what failed above comes first", ""})
	}
	return append(found, logins(ctx, conn, at)...)
}

// server looks at the server and what its database must be like.
func server(ctx context.Context, conn *pgx.Conn) Finding {
	state, err := postgres.ServerOf(ctx, conn)
	if err == nil {
		err = postgres.CheckConnection(ctx, conn)
	}
	if err != nil {
		return failed("database", err, "")
	}
	text := fmt.Sprintf("PostgreSQL %s, %s, %d of %d connections", state.Version, humanize.IBytes(state.Bytes),
		state.Connections, state.MaxConnections)
	switch {
	case state.Major < postgres.OldestServer || state.Major > postgres.NewestServer:
		return Finding{"database", Warning, text, fmt.Sprintf("Varve is tested with PostgreSQL %d to %d",
			postgres.OldestServer, postgres.NewestServer)}
	case state.Connections*10 > state.MaxConnections*9:
		return Finding{"database", Warning, text, "raise max_connections, or lower VARVE_DATABASE_CONNECTIONS"}
	}
	return Finding{"database", OK, text, ""}
}

// soon is how long before its end a certificate is worth a warning.
const soon = 14 * 24 * time.Hour

// encryption looks at how the connection is protected.
func encryption(conn *pgx.Conn) Finding {
	const subject = "encryption"
	link := conn.PgConn().Conn()
	if secure, ok := link.(*tls.Conn); ok {
		return certificate(secure.ConnectionState(), time.Now())
	}
	switch to := link.RemoteAddr().(type) {
	case *net.UnixAddr:
		return Finding{subject, OK, "the database is reached through a socket of this machine", ""}
	case *net.TCPAddr:
		if to.IP.IsLoopback() {
			return Finding{subject, OK, "the database is on this machine", ""}
		}
	}
	return Finding{subject, Warning, "the connection to the database is not encrypted",
		"add sslmode=verify-full to DATABASE_URL"}
}

func certificate(of tls.ConnectionState, now time.Time) Finding {
	const subject = "encryption"
	if len(of.PeerCertificates) == 0 {
		return Finding{subject, OK, "the connection to the database is encrypted", ""}
	}
	end := of.PeerCertificates[0].NotAfter
	text := "the certificate of the database is valid until " + end.Format(time.DateOnly)
	if end.Sub(now) < soon {
		return Finding{subject, Warning, text, "renew it"}
	}
	return Finding{subject, OK, text, ""}
}

// What a difference between the clocks may be. Above the second, signatures of requests to an S3 store are refused.
const (
	clocksDiffer = time.Second
	clocksWrong  = 5 * time.Minute
)

// clock compares this machine's clock with the database's.
func clock(ctx context.Context, conn *pgx.Conn) Finding {
	began := time.Now()
	var theirs time.Time
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
		return failed("clock", err, "")
	}
	return clockFinding(theirs.Sub(began.Add(time.Since(began) / 2)))
}

func clockFinding(ahead time.Duration) Finding {
	text := fmt.Sprintf("the database's is %s ahead of this machine's", ahead.Round(time.Millisecond))
	switch {
	case ahead.Abs() > clocksWrong:
		return Finding{"clock", Failed, text, "let NTP set both"}
	case ahead.Abs() > clocksDiffer:
		return Finding{"clock", Warning, text, "let NTP set both"}
	}
	return Finding{"clock", OK, text, ""}
}

// schema looks at whether this program may serve the schema.
func schema(ctx context.Context, conn *pgx.Conn) Finding {
	version, err := postgres.SchemaOf(ctx, conn)
	if err != nil {
		return failed("schema", err, "")
	}
	return Finding{"schema", OK, fmt.Sprintf("version %d", version), ""}
}

// services says what each role's login is for.
var services = map[string]string{
	postgres.AppRole:    "serves as an API",
	postgres.WorkerRole: "serves as a worker",
	postgres.AdminRole:  "may use the operator's commands",
	postgres.BackupRole: "may write backups, and must not serve",
}

// logins looks at the login, at that of the operators' routes, and at what it may see.
func logins(ctx context.Context, conn *pgx.Conn, at Installation) []Finding {
	role, err := postgres.RoleOf(ctx, conn)
	login := conn.Config().User
	switch {
	case err != nil:
		return []Finding{failed("login", err, "")}
	case role == "":
		return []Finding{{"login", Failed, login + " has no role of Varve's",
			fmt.Sprintf("run varve migrate --grant-to %s:api, or %[1]s:worker", login)}}
	case role == postgres.BackupRole:
		return []Finding{{"login", OK, login + " " + services[role], ""}}
	}
	found := []Finding{{"login", OK, login + " " + services[role], ""}}
	store, err := process.OpenAs(ctx, at.Database, role)
	if err != nil {
		return []Finding{failed("login", err, "")}
	}
	defer store.Close()
	if at.AdminURL != "" {
		found = append(found, operators(ctx, at.Database, at.AdminURL))
	}
	if role == postgres.AppRole && at.Unsealed && !at.Private {
		found = append(found, Finding{"console", Warning, "its sign-ins end with the process, and hold in no other one",
			"set VARVE_CONSOLE_SECRET for all API processes, or VARVE_CONSOLE=off"})
	}
	found = append(found, writes(ctx, store), results(ctx, store))
	return append(found, queues(ctx, store, role)...)
}

// operators looks at the login of the operators' routes.
func operators(ctx context.Context, db config.Database, url string) Finding {
	db.URL = url
	store, err := process.OpenAs(ctx, db, postgres.AdminRole)
	if err != nil {
		return failed("operators", err, "")
	}
	defer store.Close()
	return Finding{"operators", OK, store.Pool().Config().ConnConfig.User + " " + services[postgres.AdminRole], ""}
}

func writes(ctx context.Context, store *postgres.Store) Finding {
	err := store.CheckWrites(ctx)
	switch {
	case errors.Is(err, postgres.ErrReadOnly):
		return Finding{"writes", Warning, err.Error(), "an API reads from it; workers need the primary"}
	case err != nil:
		return failed("writes", err, "")
	}
	return Finding{"writes", OK, "the database takes them", ""}
}
