//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// socketPrefix begins the name of every socket directory; stopLeftovers looks for nothing else.
const socketPrefix = "varve-"

// socketLimit is the longest path of a Unix socket, less the name that PostgreSQL adds.
const socketLimit = 107 - len("/.s.PGSQL.5432.lock")

// account is the system user that PostgreSQL runs as. other is true if it is not the user of this process.
type account struct {
	name     string
	uid, gid uint32
	other    bool
}

// accountFor returns the user of this process, or for root the owner of pgdata, "postgres" or "nobody".
func accountFor(pgdata string) (account, error) {
	me := account{uid: uint32(os.Getuid()), gid: uint32(os.Getgid())}
	info, err := os.Stat(pgdata)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return account{}, err
	}
	if err == nil {
		owner := info.Sys().(*syscall.Stat_t)
		switch {
		case me.uid != 0 && owner.Uid != me.uid:
			return account{}, fmt.Errorf("pgdata belongs to user %d: run as that user or as root", owner.Uid)
		case me.uid == 0 && owner.Uid != 0:
			return account{name: fmt.Sprint("user ", owner.Uid), uid: owner.Uid, gid: owner.Gid, other: true}, nil
		}
	}
	if me.uid != 0 {
		return me, nil
	}
	return unprivileged()
}

// unprivileged returns a user that has an entry in the user database: initdb refuses a bare number.
func unprivileged() (account, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		a := account{name: name, other: true}
		if _, err := fmt.Sscan(u.Uid+" "+u.Gid, &a.uid, &a.gid); err == nil {
			return a, nil
		}
	}
	return account{}, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody " +
		"to run it as: add one, or run as another user")
}

// credential returns what makes a child process run as the account; nil if this process does already.
func (a account) credential() *syscall.Credential {
	if !a.other {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

func (a account) own(path string) error {
	if !a.other {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// barrier returns the first of path and its parents that the account may not pass, "" if none.
func (a account) barrier(path string) string {
	if !a.other {
		return ""
	}
	for _, dir := range parents(path) {
		info, err := os.Stat(dir)
		if err != nil {
			return dir
		}
		owner := info.Sys().(*syscall.Stat_t)
		pass := fs.FileMode(0o001)
		switch {
		case owner.Uid == a.uid:
			pass = 0o100
		case owner.Gid == a.gid:
			pass = 0o010
		}
		if info.Mode()&pass == 0 {
			return dir
		}
	}
	return ""
}

// parents returns the parents of an absolute path from the root down, and then the path.
func parents(path string) []string {
	if path == "/" {
		return []string{path}
	}
	return append(parents(filepath.Dir(path)), path)
}

func (a account) mustReach(bin string) error {
	if resolved, err := filepath.EvalSymlinks(bin); err == nil {
		bin = resolved
	}
	if dir := a.barrier(bin); dir != "" {
		return fmt.Errorf("PostgreSQL runs as %s, which cannot reach its binaries in %s: "+
			"chmod o+x %s, or install them elsewhere", a.name, bin, dir)
	}
	return nil
}

// socketDir makes a private directory with a path short enough for a socket.
func (a account) socketDir() (string, error) {
	parent := os.TempDir()
	tooLong := len(parent)+len("/"+socketPrefix+"4294967295") > socketLimit
	if tooLong || !strings.HasPrefix(parent, "/") || a.barrier(parent) != "" {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, socketPrefix)
	if err != nil {
		return "", err
	}
	if err := a.own(dir); err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return dir, nil
}

// place returns the path by which a child process reaches a directory: its own, or if the account cannot pass a parent,
// that of an open file which the child inherits as number 3.
func (a account) place(dir string) (path string, inherit []*os.File, err error) {
	barrier := a.barrier(filepath.Dir(dir))
	if barrier == "" {
		return dir, nil, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf("PostgreSQL runs as %s, which cannot pass %s: "+
			"chmod o+x it, or use another data directory", a.name, barrier)
	}
	file, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/fd/3", []*os.File{file}, nil
}
