package main

import (
	"context"
	"fmt"
	"os"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
)

type migrateCommand struct {
	config.Database `embed:""`
}

// Run migrates; several at once do not harm each other.
func (m *migrateCommand) Run(ctx context.Context) error {
	if err := m.Required(); err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, m.URL); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "the schema is up to date")
	return nil
}
