package samples_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// shown is the directory that recorded paths begin with, in place of the copy's own.
const shown = "/repo"

// largest is the size of the largest file that is copied: what is larger is no source.
const largest = 1 << 20

// workspace is a copy of the repository that tools may change.
type workspace struct {
	dir  string
	hide *strings.Replacer // directories of this machine to neutral ones
}

// newWorkspace copies the repository to dir, in place of what was there.
func newWorkspace(ctx context.Context, repository, dir string) (*workspace, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := copySources(repository, dir); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOROOT", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	at := strings.Split(strings.TrimSpace(string(out)), "\n")
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	return &workspace{dir: dir, hide: strings.NewReplacer(
		dir,
		shown,
		filepath.Dir(dir),
		"/tmp",
		at[1],
		"/usr/local/go",
		at[0],
		"/go/pkg/mod",
		at[2],
		"/go/cache",
		home+"/",
		"~/",
	)}, nil
}

// copySources copies all but what is built or downloaded.
func copySources(from, to string) error {
	skip := []string{".git", ".varve", "bin", "node_modules"}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(skip, entry.Name()) || strings.HasSuffix(name, ".tmp") {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() > largest {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Dir(name) == "samples" && filepath.Ext(name) == ".json" {
			data = []byte("[]\n") // package samples embeds it; what was recorded before is no source
		}
		return os.WriteFile(filepath.Join(to, name), data, info.Mode().Perm()|0o600)
	})
}

// path returns where a path that a tool was given really is; tools stay inside the copy.
func (w *workspace) path(name string) (string, error) {
	local := strings.TrimPrefix(strings.TrimPrefix(name, shown), "/")
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("%s is not in %s", name, shown)
	}
	return filepath.Join(w.dir, local), nil
}

// files returns the text files below a directory by their name in the repository, sorted. The recorder's own source is
// left out: no conversation quotes its own script.
func (w *workspace) files(under string, extensions ...string) (names []string, err error) {
	root, err := w.path(under)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(w.dir, path)
		if err == nil && slices.Contains(extensions, filepath.Ext(name)) && !strings.HasPrefix(name, "samples/") {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// write makes or replaces a file.
func (w *workspace) write(name, text string) error {
	path, err := w.path(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func (w *workspace) text(name string) (string, error) {
	path, err := w.path(name)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(path)
	return string(data), err
}
