package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// Reading back: lines of a large result beside those of a small one, and a grep beside tools that read the same bytes.

const (
	readbackSession = "readback"
	smallResult     = 100 << 10
	largeResult     = 10 << 20
	greppedResult   = 64 << 20
)

// readbackRefs are the refs of the results by their sizes.
var readbackRefs = map[int]string{}

// readbackLoads returns reads and greps over HTTP.
func readbackLoads(b *bench) []loadCase {
	return []loadCase{
		{
			name: "200 lines in the middle of 10 MiB, beside 100 KiB", unit: "reads/s", goal: ">= 0.67",
			prepare: b.createResults,
			round:   func(s *site) (sample, error) { return middleLines(s, largeResult) },
			floor:   func() (sample, error) { return middleLines(b.here, smallResult) },
		},
		{
			name: "literal grep in 64 MiB, beside " + grepFloorName() + ", at most 600", unit: "MB/s", goal: ">= 0.5",
			prepare: b.createResults,
			round:   grepAll,
			floor:   func() (sample, error) { return enough(b.grepFloor()) },
		},
	}
}

// createResults persists results as a compaction does.
func (b *bench) createResults(ctx context.Context, s *site) error {
	if s.made[readbackSession] {
		return nil
	}
	s.made[readbackSession] = true
	if err := s.newClient().createSession(readbackSession); err != nil {
		return err
	}
	found, err := b.store.Session(ctx, session.Address{Tenant: s.tenant, ID: readbackSession})
	if err != nil {
		return err
	}
	var results []persist.NewResult
	for part, size := range []int{smallResult, largeResult, greppedResult} {
		body := logLines(size)
		sum := sha256.Sum256(body)
		readbackRefs[size] = session.NewResultRef(1, part, sum).String()
		results = append(results, persist.NewResult{Body: body, Result: persist.Result{
			Ref: readbackRefs[size], Seq: 1, Part: part, Tool: "Bash", Category: "unknown",
			MediaType: "text/plain; charset=utf-8",
			Bytes:     int64(size), Lines: int64(bytes.Count(body, []byte{'\n'})), SHA256: sum[:],
		}})
	}
	_, err = b.store.PutResults(ctx, session.Key{Tenant: s.tenant, Key: found.Key}, results)
	return err
}

// logLines returns the lines of a build's log, about as compressible as such logs are.
func logLines(size int) []byte {
	words := strings.Fields(string(newCorpus(64).turn(4 << 10)[0]))
	var text bytes.Buffer
	for n := 0; text.Len() < size; n++ {
		fmt.Fprintf(&text, "2026-01-31T12:%02d:%02d.%03d [worker-%d] %s %s took %d ms\n",
			n/60_000%60, n/1000%60, n%1000, n%7, words[n*31%len(words)], words[n*17%len(words)], n*7919%1009)
	}
	return text.Bytes()[:size]
}

// middleLines returns a round of reads of 200 lines in the middle of a result.
func middleLines(s *site, size int) (sample, error) {
	path := sessionPath(readbackSession) + "/results/" + readbackRefs[size]
	c := s.newClient()
	var page protocol.ResultPage
	if err := c.get(path+"?limit=1", &page); err != nil {
		return nil, err
	}
	request := c.request("GET", fmt.Sprintf("%s?offset=%d&limit=200", path, page.TotalLines/2), nil)
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return load(ctx, d, 1, func(int) func() error { return func() error { return c.call(request, 200) } })
	}, nil
}

// absent is a text that no line has.
const absent = "no line has this"

// grepAll returns a round of greps to the end of a result. One caller asks: it is the rate of one core.
func grepAll(s *site) (sample, error) {
	path := sessionPath(readbackSession) + "/results/" + readbackRefs[greppedResult] + "/grep?pattern=" +
		strings.ReplaceAll(absent, " ", "+")
	c := s.newClient()
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return megabytes(ctx, d, func() (int64, error) {
			scanned := int64(0)
			for cursor := ""; ; {
				var found protocol.Matches
				if err := c.get(path+cursor, &found); err != nil {
					return 0, err
				}
				scanned += found.ScannedBytes
				if found.NextCursor == nil {
					return scanned, nil
				}
				cursor = "&cursor=" + *found.NextCursor
			}
		})
	}, nil
}

// megabytes returns how many MB a second some work reads.
func megabytes(ctx context.Context, d time.Duration, do func() (int64, error)) (float64, error) {
	start := time.Now()
	total := int64(0)
	for ctx.Err() == nil && (total == 0 || time.Since(start) < d) {
		n, err := do()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return float64(total) / 1e6 / time.Since(start).Seconds(), ctx.Err()
}

const grepCommand = `zstd -dc "$1" | grep -cF "$2"`

// grepFloorName names what a grep is measured beside.
func grepFloorName() string {
	if _, err := exec.LookPath("zstd"); err != nil {
		return "Go's zstd and bytes.Index"
	}
	return "zstd -dc | grep -F"
}

// grepFloor returns a round of decompressing and searching the same bytes.
func (b *bench) grepFloor() (sample, error) {
	body := logLines(greppedResult)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		return nil, err
	}
	packed := encoder.EncodeAll(body, nil)
	b.note("grep: 64 MiB are %.1f MB compressed", float64(len(packed))/1e6)
	if _, err := exec.LookPath("zstd"); err != nil {
		return decodeFloor(packed, len(body))
	}
	file := filepath.Join(b.dir, "grepped.zst")
	if err := os.WriteFile(file, packed, 0o600); err != nil {
		return nil, err
	}
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return megabytes(ctx, d, func() (int64, error) {
			out, _ := exec.CommandContext(ctx, "sh", "-c", grepCommand, "sh", file, absent).Output()
			if strings.TrimSpace(string(out)) != "0" { // and status 1
				return 0, fmt.Errorf("%s: %q", grepCommand, out)
			}
			return int64(len(body)), nil
		})
	}, nil
}

// grepEnough bounds the floor of a grep: half of it is 300 MB/s, which is enough of one core.
const grepEnough = 600

// enough returns a sample that is no higher than that.
func enough(s sample, err error) (sample, error) {
	return func(ctx context.Context, d time.Duration) (float64, error) {
		rate, err := s(ctx, d)
		return min(rate, grepEnough), err
	}, err
}

// decodeFloor returns a round of what a grep costs where there is no zstd command.
func decodeFloor(packed []byte, size int) (sample, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, size)
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return megabytes(ctx, d, func() (int64, error) {
			text, err := decoder.DecodeAll(packed, text[:0])
			if err == nil && bytes.Contains(text, []byte(absent)) {
				err = fmt.Errorf("%q is there", absent)
			}
			return int64(len(text)), err
		})
	}, nil
}
