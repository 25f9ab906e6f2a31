package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
)

var uploadBytes = flag.Int64("upload-bytes", 256<<20, "how much TestAnUploadSurvivesCrashesInLittleMemory uploads; make soak uploads 1 GiB")

// TestAnUploadSurvivesCrashesInLittleMemory uploads a large output to a server that is killed at random points: what was
// acknowledged is kept, nothing is counted twice, and the server never holds more than a few pieces of it.
func TestAnUploadSurvivesCrashesInLittleMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts servers")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng, size, data := rand.New(rand.NewPCG(seed, 1)), *uploadBytes, t.TempDir()
	u := startUp(t, data)
	u.want(201, "PUT", "/v1/sessions/s", `{}`)
	begun := u.want(202, "POST", "/v1/sessions/s/results?tool=Bash&more=true", "")
	at := "/v1/sessions/s/results/uploads/" + begun["id"].(string)
	offset := int64(0)
	for range 3 {
		body := &generated{at: offset, end: size, until: offset + 1 + rng.Int64N(size/8), then: u.kill}
		if status, answer, err := u.feed(at, offset, body); err == nil {
			t.Fatalf("a server that was killed answers %d %s", status, answer)
		}
		u = startUp(t, data)
		now := int64(u.want(200, "GET", at, "")["offset"].(float64))
		if now < offset || now > body.at {
			t.Fatalf("%d bytes are stored; %d were acknowledged, %d sent", now, offset, body.at)
		}
		offset = now
		status, answer, err := u.feed(at+"?more=true", offset, &generated{at: offset, end: offset + rng.Int64N(1<<20)})
		if err != nil || status != 202 {
			t.Fatalf("%d %s %v", status, answer, err)
		}
		offset = int64(u.want(200, "GET", at, "")["offset"].(float64))
	}
	before := u.memory("VmRSS")
	status, answer, err := u.feed(at, offset, &generated{at: offset, end: size})
	if err != nil || status != 201 {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	grown := u.memory("VmHWM") - before
	t.Logf("%d bytes took %d of memory", size-offset, grown)
	if grown > 96<<20 {
		t.Errorf("to receive %d bytes took %d of memory", size-offset, grown)
	}
	var result struct {
		Ref, SHA256 string
		Bytes       int64
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, &generated{end: size}); err != nil {
		t.Fatal(err)
	}
	if result.Bytes != size || result.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
		t.Errorf("%+v, want %d bytes and the SHA-256 %x", result, size, sum.Sum(nil))
	}
	from := size / 2
	want := make([]byte, 100_000)
	if _, err := io.ReadFull(&generated{at: from, end: size}, want); err != nil {
		t.Fatal(err)
	}
	if got := u.rangeOf("/v1/sessions/s/results/"+result.Ref+"?raw=true", from, int64(len(want))); !bytes.Equal(got, want) {
		t.Errorf("%d other bytes come back from the middle", len(got))
	}
	u.stop()
}

// feed sends a body to an upload.
func (u *up) feed(path string, offset int64, body io.Reader) (status int, answer []byte, err error) {
	query := "?"
	if bytes.ContainsRune([]byte(path), '?') {
		query = "&"
	}
	req, err := http.NewRequest("POST", u.url+path+query+"offset="+strconv.FormatInt(offset, 10), body)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+u.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// rangeOf reads some bytes of an answer.
func (u *up) rangeOf(path string, from, n int64) []byte {
	u.Helper()
	req, err := http.NewRequest("GET", u.url+path, nil)
	if err != nil {
		u.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+u.key)
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, from+n-1))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		u.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusPartialContent {
		u.Fatalf("%d %v", res.StatusCode, err)
	}
	return got
}

// memory returns a figure of the process in bytes: VmRSS is what it has, VmHWM the most that it ever had.
func (u *up) memory(name string) int64 {
	u.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", u.cmd.Process.Pid))
	if err != nil {
		u.Skip("the memory of a process is read from /proc")
	}
	m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
	kilobytes, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		u.Fatal(err)
	}
	return kilobytes << 10
}

// generated is an output of a tool that is made as it is read, always the same bytes. Before it has sent those up to
// until, it calls then.
type generated struct {
	at, end int64
	until   int64
	then    func()
}

// lineBytes is how long its lines are.
const lineBytes = 64

func (g *generated) Read(p []byte) (n int, err error) {
	for n < len(p) && g.at < g.end {
		line := fmt.Appendf(nil, "%020d %042d\n", g.at/lineBytes, g.at/lineBytes*2654435761%1e15)
		took := copy(p[n:], line[g.at%lineBytes:min(lineBytes, g.at%lineBytes+g.end-g.at)])
		n += took
		g.at += int64(took)
	}
	if g.then != nil && g.at >= g.until {
		g.then()
		return 0, io.ErrUnexpectedEOF
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
