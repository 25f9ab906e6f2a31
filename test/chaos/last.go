package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
)

// The logins of commands.
const (
	adminLogin  = "chaos_admin"
	backupLogin = "chaos_backup"
)

// verifyAll has varve verify look at everything, as the owner and as an operator, and at a backup that is restored into
// a cluster of its own, whose PostgreSQL is that of restoreOn.
func (r *rig) verifyAll(ctx context.Context) error {
	if err := r.verify(ctx, "the database", r.database.server); err != nil {
		return err
	}
	file := filepath.Join(r.options.dir, "backup.zip")
	if err := r.varve(ctx, "backup", r.database.server.DSNOf(backupLogin), "backup", file); err != nil {
		return err
	}
	if r.options.restoreOn != "" {
		if err := os.Setenv("VARVE_PG_BIN", r.options.restoreOn); err != nil {
			return err
		}
	}
	restored, err := embedded.Start(ctx, embedded.Config{Dir: filepath.Join(r.options.dir, "restored")})
	if err != nil {
		return err
	}
	defer func() { _ = restored.Crash() }() // nothing of it is needed
	if err := r.varve(ctx, "restore", restored.DSNOf(embedded.Owner), "restore", file); err != nil {
		return err
	}
	return r.verify(ctx, "the restored backup", restored)
}

// verify grants the logins of commands, and verifies a database with two of them.
func (r *rig) verify(ctx context.Context, what string, s *embedded.Server) error {
	err := postgres.GrantTo(ctx, s.DSN(embedded.Database),
		postgres.Grant{Login: adminLogin, Role: postgres.AdminRole, Make: true},
		postgres.Grant{Login: backupLogin, Role: postgres.BackupRole, Make: true})
	if err != nil {
		return err
	}
	for _, login := range []string{embedded.Owner, adminLogin} {
		if err := r.varve(ctx, what+" as "+login, s.DSNOf(login), "verify"); err != nil {
			return err
		}
	}
	return nil
}

// varve runs a command. One that fails is a finding.
func (r *rig) varve(ctx context.Context, what, dsn string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(r.options.dir, "varve"), args...)
	cmd.Env = append(os.Environ(), r.everything.environment(r.options.dir)...)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+dsn, "VARVE_OWNER_URL="+dsn)
	out, err := cmd.CombinedOutput()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		r.found.add("command", "%s: varve %s: %v\n%.3000s", what, args[0], err, out)
		return nil
	}
	fmt.Fprintf(r.options.out, "varve %s, %s: %s", args[0], what, out)
	return err
}
