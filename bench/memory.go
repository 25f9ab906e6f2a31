package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	memoryRow      = "memory of cmd/api, idle after some work"
	memorySessions = 8
	memoryRequests = 100 // to each session: an append and a read
	memoryIdle     = 5 * time.Second
)

// measureMemory measures what the API process occupies once it has served and rests. It is the first group with a lab:
// the process has done nothing else.
func measureMemory(ctx context.Context, b *bench) error {
	if !b.match.MatchString(memoryRow) {
		return nil
	}
	b.progress(memoryRow)
	message := newCorpus(1).message(messageBytes)
	for i := range memorySessions {
		c, id := b.here.newClient(), fmt.Sprintf("memory-%d", i)
		if err := c.createSession(id); err != nil {
			return err
		}
		for range memoryRequests {
			if err := c.appendAll(id, [][]byte{message}); err != nil {
				return err
			}
			if err := c.send("GET", sessionPath(id)+"/context", nil, http.StatusOK); err != nil {
				return err
			}
		}
	}
	select {
	case <-time.After(memoryIdle):
	case <-ctx.Done():
		return ctx.Err()
	}
	resident, err := b.here.newClient().metric("process_resident_memory_bytes")
	if resident == 0 {
		b.note("%s: not measured, because the API does not publish it on this machine", memoryRow)
		return err
	}
	b.add(row{Name: memoryRow, Value: resident / 1e6, Unit: "MB", Goal: "<= 80"})
	return nil
}
