package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// diskSize is the size of the small disk: what PostgreSQL takes, and what is written in some minutes.
const diskSize = "800m"

// smallDisk makes a small disk at a directory, in memory, and returns what takes it away.
func smallDisk(ctx context.Context, dir string) (unmount func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	mount := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", "mode=755,size="+diskSize, "tmpfs", dir)
	if out, err := mount.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return func() {
		_ = exec.Command("umount", dir).Run() // the directory says so if it stays
	}, nil
}

// ofDisks returns the faults of a small disk. The second lets PostgreSQL run out of it in the middle of what it does;
// where that is its write-ahead log, PostgreSQL ends, and a supervisor starts it again.
func ofDisks() []fault {
	full := func(name string, lasts time.Duration, left int64) fault {
		return fault{name: name, lasts: lasts,
			begin: func(_ context.Context, r *rig, _ *rand.Rand) (end, error) {
				path := filepath.Join(r.database.dir, "ballast")
				return func(ctx context.Context) error {
					return errors.Join(os.Remove(path), r.database.revive(ctx))
				}, ballast(path, left)
			}}
	}
	return []fault{
		full("disk full", 5*time.Second, 0),
		full("disk almost full", 10*time.Second, 4<<20),
		full("disk full for 20 s", 20*time.Second, 0),
	}
}

// ballast fills the disk with a file, but for what is left.
func ballast(path string, left int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(path, &disk); err != nil {
		return err
	}
	piece := make([]byte, 1<<20)
	for rest := int64(disk.Bavail)*int64(disk.Bsize) - left; rest > 0; rest -= int64(len(piece)) {
		_, err := file.Write(piece[:min(rest, int64(len(piece)))])
		if errors.Is(err, syscall.ENOSPC) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
