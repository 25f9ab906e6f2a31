package pgtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/varve-dev/varve/internal/embedded"
)

// Making a cluster with the schema costs every test process some seconds. The first one keeps a stopped one with its
// template in the user's cache directory, under the digest of all that makes it; the others begin with a copy. Each has
// a server of its own: PostgreSQL ends with the program that started it.

// keptFor is how long a kept cluster is left that nobody uses.
const keptFor = time.Hour

// madeBy are the files of the module that decide what a new cluster has.
var madeBy = []string{
	"migrations/*.sql", "internal/postgres/*.go", "internal/postgres/sql/*.sql", "internal/postgres/pgtest/*.go",
	"internal/embedded/*.go",
}

// copyKept makes the directory of a cluster a copy of the kept one, which it makes first if there is none. It reports
// whether it did: a program that runs outside the module does without.
func copyKept(ctx context.Context, dir string) (copied bool, err error) {
	digest, err := digestOfSources()
	cache, cacheErr := os.UserCacheDir()
	if err != nil || cacheErr != nil {
		return false, nil
	}
	all := filepath.Join(cache, "varve-pgtest")
	if err := os.MkdirAll(all, 0o711); err != nil {
		return false, err
	}
	kept := filepath.Join(all, digest)
	lock, err := os.OpenFile(kept+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return false, err
	}
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		removeOld(all)
		if err := keep(ctx, kept); err != nil {
			return false, err
		}
	}
	now := time.Now()
	if err := os.Chtimes(lock.Name(), now, now); err != nil {
		return false, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH); err != nil {
		return false, err
	}
	return true, copyTree(ctx, kept, filepath.Join(dir, "pgdata"))
}

// keep makes a cluster with the template and leaves it stopped.
func keep(ctx context.Context, kept string) (err error) {
	dir, err := os.MkdirTemp(clusterDir(), dirPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := embedded.Start(ctx, embedded.Config{Dir: dir, Ephemeral: true})
	if err != nil {
		return err
	}
	c := &cluster{server: server, prefix: keptPrefix}
	err = c.connect(ctx, server.DSN("postgres"))
	if err == nil {
		err = c.makeTemplate(ctx)
	}
	if err != nil {
		return errors.Join(err, server.Crash())
	}
	c.admin.Close()
	if err := server.Stop(ctx); err != nil {
		return err
	}
	unfinished := kept + ".tmp"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := copyTree(ctx, filepath.Join(dir, "pgdata"), unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, kept)
}

// copyTree copies a directory with the owners and modes of its files.
func copyTree(ctx context.Context, from, to string) error {
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp -a %s %s: %w\n%s", from, to, err, out)
	}
	return nil
}

// removeOld removes the kept clusters that nobody has used for some time, and that nobody copies now.
func removeOld(all string) {
	locks, _ := filepath.Glob(filepath.Join(all, "*.lock")) // the pattern is well formed
	for _, name := range locks {
		info, err := os.Stat(name)
		if err != nil || time.Since(info.ModTime()) < keptFor {
			continue
		}
		lock, err := os.Open(name)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(name[:len(name)-len(".lock")]) // what stays is removed next time
		}
		_ = lock.Close()
	}
}

// digestOfSources returns the digest of all that makes a cluster: the files, and what finds PostgreSQL's programs.
func digestOfSources() (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return "", fs.ErrNotExist
		}
		root = filepath.Dir(root)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q\n", os.Getenv("VARVE_PG_BIN"), os.Getenv("PATH"))
	for _, pattern := range madeBy {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			return "", errors.Join(err, fs.ErrNotExist)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(name), len(text), text)
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:12]), nil
}
