//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// patience is how long the processes of a killed program may take to shut down.
const patience = 20 * time.Second

// stopLeftovers ends the processes of a cluster whose program was killed, and removes its socket directory. The caller
// holds the lock, so the cluster is not in use.
func (l *dirLock) stopLeftovers(ctx context.Context, cfg Config) error {
	name := filepath.Base(l.socket)
	if l.socket == "" || !strings.HasPrefix(name, socketPrefix) {
		return nil
	}
	if err := endProcesses(ctx, cfg, name); err != nil {
		return err
	}
	if err := dropStalePID(filepath.Join(cfg.Dir, "pgdata", "postmaster.pid"), l.socket); err != nil {
		return err
	}
	return os.RemoveAll(l.socket)
}

// endProcesses asks the postmaster for a fast shutdown. Without a postmaster, it asks the children: idle ones end by
// themselves, busy ones do not. After patience it kills them.
func endProcesses(ctx context.Context, cfg Config, cluster string) error {
	deadline := time.Now().Add(patience)
	asked := map[process]bool{}
	return poll(ctx, func() (done bool, err error) {
		left, err := clusterProcesses(cluster)
		if err != nil || len(left) == 0 {
			return true, err
		}
		for _, p := range left {
			if time.Now().After(deadline) {
				_ = syscall.Kill(p.pid, syscall.SIGQUIT)
			} else if !asked[p] {
				if cfg.Log != nil {
					cfg.Log.WarnContext(ctx, "stopping the PostgreSQL of a killed process", "pid", p.pid)
				}
				_ = syscall.Kill(p.pid, p.stop)
				asked[p] = true
			}
		}
		return false, fmt.Errorf("process %d of the last run has not ended", left[0].pid)
	})
}

// process is a process of a cluster, with the signal that asks it to end.
type process struct {
	pid  int
	stop syscall.Signal
}

// clusterProcesses returns only the postmaster if it lives, since it ends its children itself. Only a postmaster has
// its arguments as title.
func clusterProcesses(cluster string) ([]process, error) {
	lines, err := commandLines()
	if err != nil {
		return nil, err
	}
	var children []process
	for pid, line := range lines {
		program, _, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "postgres: "+cluster+":"):
			children = append(children, process{pid, syscall.SIGTERM})
		case filepath.Base(program) == "postgres" && strings.Contains(line+" ", " cluster_name="+cluster+" "):
			return []process{{pid, syscall.SIGINT}}, nil
		}
	}
	return children, nil
}

// dropStalePID removes postmaster.pid if the run that used socket wrote it. All processes of that run have ended: the
// process id may belong to another program by now, and PostgreSQL would refuse to start.
func dropStalePID(path, socket string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	const socketLine = 4
	if len(lines) <= socketLine || lines[socketLine] != socket {
		return nil
	}
	return os.Remove(path)
}
