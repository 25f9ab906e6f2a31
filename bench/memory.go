package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"
)

const (
	memoryRow      = "memory of cmd/api, idle after some work"
	memoryCallers  = 8
	memoryRequests = 100 // of each caller: an append and a read
	memoryIdle     = 5 * time.Second
)

// measureMemory reads what another API process occupies once it has served and rests.
func measureMemory(ctx context.Context, b *bench) (err error) {
	if !b.wants(memoryRow) {
		return nil
	}
	b.progress(memoryRow)
	api, err := b.here.start(ctx, "api", "--addr", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.stop()) }()
	for i := range memoryCallers {
		c := b.here.newClient()
		c.addr = api.addr
		if err := useMemory(ctx, c, fmt.Sprintf("memory-%d", i)); err != nil {
			return err
		}
	}
	select {
	case <-time.After(memoryIdle):
	case <-ctx.Done():
		return ctx.Err()
	}
	resident, err := residentMB(api.cmd.Process.Pid)
	if errors.Is(err, fs.ErrNotExist) {
		b.note("%s: not measured, because there is no /proc on this machine", memoryRow)
		return nil
	}
	if err != nil {
		return err
	}
	b.add(row{Name: memoryRow, Value: resident, Unit: "MB", Goal: atMost(80)})
	return nil
}

func useMemory(ctx context.Context, c *client, id string) error {
	if err := c.createSession(id); err != nil {
		return err
	}
	message := newCorpus(1).message(messageBytes)
	for range memoryRequests {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.appendAll(id, [][]byte{message}); err != nil {
			return err
		}
		if err := c.send("GET", sessionPath(id)+"/context", nil, http.StatusOK); err != nil {
			return err
		}
	}
	return nil
}

var residentLine = regexp.MustCompile(`(?m)^VmRSS:\s+([0-9]+) kB$`)

func residentMB(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	match := residentLine.FindSubmatch(status)
	if match == nil {
		return 0, errors.New("/proc has no VmRSS of the process")
	}
	kib, err := strconv.ParseFloat(string(match[1]), 64)
	return kib * 1024 / 1e6, err
}
