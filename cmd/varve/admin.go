package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
)

type migrateCommand struct {
	config.Database `embed:""`
	config.Owner    `embed:""`
	GrantTo         []grant `placeholder:"LOGIN[:ROLE]" help:"Logins to let serve as an api, worker, admin or backup."`
}

// Validate reports everything that is wrong at once.
func (m *migrateCommand) Validate() error {
	return errors.Join(m.Database.Validate(), m.Owner.Validate())
}

// Run migrates the database. Several migrations at once do not harm each other.
func (m *migrateCommand) Run(ctx context.Context) error {
	url := cmp.Or(m.OwnerURL, m.URL)
	if err := (config.Database{URL: url}).Required(); err != nil {
		return err
	}
	url = m.In(url)
	if err := postgres.Migrate(ctx, url); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "the schema is up to date")
	for _, g := range m.GrantTo {
		if err := postgres.GrantTo(ctx, url, postgres.Grant(g)); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "login %s has the rights of role %s\n", g.Login, g.Role)
	}
	return nil
}

// grant is a login with what it may serve as on the command line: LOGIN or LOGIN:ROLE.
type grant postgres.Grant

// UnmarshalText reads a login and its role, which is the API's if it is left out.
func (g *grant) UnmarshalText(text []byte) error {
	login, role, named := strings.Cut(string(text), ":")
	roles := map[string]string{
		"api": postgres.AppRole, "worker": postgres.WorkerRole, "admin": postgres.AdminRole,
		"backup": postgres.BackupRole,
	}
	if !named {
		role = "api"
	}
	if login == "" || roles[role] == "" {
		return fmt.Errorf("%.80q must be a login, or a login with what it serves as: "+
			"LOGIN:api, LOGIN:worker, LOGIN:admin or LOGIN:backup", text)
	}
	*g = grant{Login: login, Role: roles[role]}
	return nil
}

// withStore calls do with the database that a command works on: the one that DATABASE_URL names, or the private one of
// a varve up that runs on the data directory.
func withStore(ctx context.Context, settings *config.Client, db config.Database, do func(*postgres.Store) error) error {
	url, err := urlFor(settings, db, adminLogin)
	if err != nil {
		return err
	}
	db.URL = url
	store, err := process.OpenStore(ctx, db)
	if err != nil {
		return err
	}
	defer store.Pool().Close()
	return do(store)
}

// urlFor returns the URL of the database that a command works on: its own setting, or that of a login of the private
// cluster of a varve up that runs.
func urlFor(settings *config.Client, db config.Database, login string) (string, error) {
	if db.URL != "" {
		return db.URL, nil
	}
	url, err := embedded.Running(settings.Data, login)
	if err != nil {
		none := fmt.Errorf("and no varve up runs on %s: %w", filepath.Clean(settings.Data), err)
		return "", errors.Join(db.Required(), none)
	}
	return url, nil
}

// tenantName is the name of a tenant on the command line.
type tenantName string

// Validate returns an error for a name that the database does not take or a table cannot show.
func (n tenantName) Validate() error { return session.CheckTenantName(string(n)) }
