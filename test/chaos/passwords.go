package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// passwords are those of the processes' logins, in a file that PGPASSFILE names.
type passwords struct{ file string }

// require has PostgreSQL ask the processes' logins for their passwords.
func (p passwords) require(ctx context.Context, d *database) error {
	hba := filepath.Join(d.dir, "pgdata", "pg_hba.conf")
	rules, err := os.ReadFile(hba)
	if err != nil {
		return err
	}
	rule := fmt.Sprintf("local all %s,%s scram-sha-256\n", apiLogin, workerLogin)
	if err := os.WriteFile(hba, append([]byte(rule), rules...), 0o600); err != nil {
		return err
	}
	if err := p.rotate(ctx, d, "first"); err != nil {
		return err
	}
	return d.execute(ctx, `SELECT pg_reload_conf()`)
}

// rotate gives the logins other passwords. Their connections end, as a careful administrator has them end.
func (p passwords) rotate(ctx context.Context, d *database, password string) error {
	var lines strings.Builder
	var statements []string
	for _, login := range []string{apiLogin, workerLogin} {
		fmt.Fprintf(&lines, "*:*:*:%s:%s-%s\n", login, login, password)
		statements = append(statements, fmt.Sprintf(`ALTER ROLE %s PASSWORD '%s-%s'`, login, login, password))
	}
	if err := os.WriteFile(p.file+".new", []byte(lines.String()), 0o600); err != nil {
		return err
	}
	if err := d.execute(ctx, append(statements, `SELECT pg_terminate_backend(pid)`+others)...); err != nil {
		return err
	}
	return os.Rename(p.file+".new", p.file)
}

// rotatePasswords rotates them under load.
func rotatePasswords(ctx context.Context, r *rig, random *rand.Rand) (end, error) {
	return nil, r.everything.passwords.rotate(ctx, r.database, fmt.Sprint(random.Uint64()))
}
