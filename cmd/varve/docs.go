package main

import (
	"os"
	"path/filepath"

	"github.com/varve-dev/varve/docs"
	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/docsite"
	"github.com/varve-dev/varve/internal/features"
)

type docsCommand struct {
	Folder string `arg:"" help:"Where the pages go; index.html is the first."`
}

// Run writes what the API serves at /docs.
func (c *docsCommand) Run() error {
	description, err := api.Describe(features.All())
	if err != nil {
		return err
	}
	site, err := docsite.Make(docs.Files, description)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Folder, 0o755); err != nil {
		return err
	}
	for name, text := range site.Files {
		if err := os.WriteFile(filepath.Join(c.Folder, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
