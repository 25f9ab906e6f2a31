//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrRunning is returned where another process runs the cluster of a directory.
var ErrRunning = errors.New("already running")

// ErrNotRunning is returned where no process runs the cluster of a directory.
var ErrNotRunning = errors.New("not running")

// dirLock is the lock of a data directory. Its file holds the process id and the socket directory on two lines, also
// after the process has ended, so that the next process can find its leftovers.
type dirLock struct {
	file   *os.File
	socket string // of the process before this one; "" if none was recorded
}

func acquire(ctx context.Context, dir string) (*dirLock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	lockErr := lockSoon(ctx, file)
	pid, socket, err := readLock(file)
	lock := &dirLock{file: file, socket: socket}
	switch {
	case errors.Is(lockErr, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%w: process %d uses this directory", ErrRunning, pid)
	case lockErr != nil:
		err = lockErr
	case err == nil:
		err = lock.record(socket)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return lock, nil
}

func readLock(file *os.File) (pid int, socket string, err error) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<12))
	if err != nil {
		return 0, "", err
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	pid, _ = strconv.Atoi(first) // 0 for a partial line: nothing was started yet
	socket, _, whole := strings.Cut(rest, "\n")
	if !whole {
		return pid, "", nil
	}
	return pid, socket, nil
}

// lockSoon takes the lock, trying again for a moment. A process that is being forked holds copies of all open files,
// and with them the lock of a file that was closed, until it executes its program. Running holds it for a moment, too.
func lockSoon(ctx context.Context, file *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	return poll(ctx, func() (done bool, err error) {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		return !errors.Is(err, syscall.EWOULDBLOCK), err
	})
}

// record writes this process id and a socket directory: that of the run before, until PostgreSQL is about to start.
func (l *dirLock) record(socket string) error {
	text := fmt.Sprintf("%d\n%s\n", os.Getpid(), socket)
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(text), 0)
	return err
}

func (l *dirLock) release() error { return l.file.Close() }

// Running returns the URL, for a login, of the database of the cluster that another process runs in dir. It returns
// ErrNotRunning if there is none.
func Running(dir, login string) (string, error) {
	last, err := readHolder(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", ErrNotRunning
	case err != nil:
		return "", err
	case !last.alive:
		return "", ErrNotRunning
	case last.socket == "":
		return "", fmt.Errorf("%w yet: it is starting", ErrNotRunning)
	}
	return dsn(last.socket, Database, login), nil
}

// holder is the process that holds or last held the lock of a directory.
type holder struct {
	pid    int    // 0 for none
	socket string // "" until PostgreSQL is about to start
	alive  bool
}

func readHolder(dir string) (last holder, err error) {
	file, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return last, err
	}
	defer file.Close()
	last.alive = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
	last.pid, last.socket, err = readLock(file)
	return last, err
}
