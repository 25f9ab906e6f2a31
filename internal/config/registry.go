package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Registry says where the operator's own models are.
type Registry struct {
	ModelsFile string `name:"models" env:"VARVE_MODELS" help:"JSON file or directory of models, before those built in."`
}

// Load returns the registry of models: those that are built in, and over them those of the file, or of the files of the
// directory in the order of their names.
func (r Registry) Load() (*models.Registry, error) {
	registry := models.Embedded()
	files, err := r.files()
	if err != nil {
		return nil, fmt.Errorf("--models (VARVE_MODELS): %w", err)
	}
	for _, name := range files {
		document, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("--models (VARVE_MODELS): %w", err)
		}
		if registry, err = registry.Extend(document); err != nil {
			return nil, fmt.Errorf("--models (VARVE_MODELS) names %s, in which\n%w", name, err)
		}
	}
	return registry, checkDialects(registry)
}

func checkDialects(registry *models.Registry) error {
	known := provider.Dialects()
	for _, m := range registry.Models() {
		if m.Dialect != "" && !slices.Contains(known, provider.Dialect(m.Dialect)) {
			return fmt.Errorf("--models (VARVE_MODELS): the dialect of %s must be one of %s, not %q", m.ID,
				provider.Join(known), m.Dialect)
		}
	}
	return nil
}

// files returns the files to read; none without the setting.
func (r Registry) files() ([]string, error) {
	if r.ModelsFile == "" {
		return nil, nil
	}
	info, err := os.Stat(r.ModelsFile)
	if err != nil || !info.IsDir() {
		return []string{r.ModelsFile}, err
	}
	return filepath.Glob(filepath.Join(r.ModelsFile, "*.json"))
}

// State tells changes of the files apart without reading them: by their names, sizes and times.
func (r Registry) State() string {
	files, err := r.files()
	if err != nil {
		return err.Error()
	}
	var state strings.Builder
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			fmt.Fprintln(&state, name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return state.String()
}
