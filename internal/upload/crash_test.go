package upload_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/upload"
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
	rng, size := rand.New(rand.NewPCG(seed, 1)), *uploadBytes
	w := uploadWorld(t)
	at := w.MustAnswer(http.StatusAccepted, "POST", uploads+"?tool=Bash&more=true", "").Header().Get("Location")
	stored := func() int64 { return apitest.Decoded[upload.Answer](w, w.Must(http.StatusOK, "GET", at, "")).Offset }
	u := w.serve()
	offset := int64(0)
	for range 3 {
		body := &generated{at: offset, end: size, until: offset + 1 + rng.Int64N(size/8), then: u.kill}
		if status, answer, err := u.feed(at, offset, body); err == nil {
			t.Fatalf("a server that was killed answers %d %s", status, answer)
		}
		u = w.serve()
		now := stored()
		if now < offset || now > body.at {
			t.Fatalf("%d bytes are stored; %d were acknowledged, %d sent", now, offset, body.at)
		}
		offset = now
		status, answer, err := u.feed(at+"?more=true", offset, &generated{at: offset, end: offset + rng.Int64N(1<<20)})
		if err != nil || status != 202 {
			t.Fatalf("%d %s %v", status, answer, err)
		}
		offset = stored()
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
	part := w.MustAnswer(http.StatusPartialContent, "GET", uploads+"/"+result.Ref+"?raw=true", "", "Range", fmt.Sprintf("bytes=%d-%d", from, from+int64(len(want))-1))
	if got := part.Body.Bytes(); !bytes.Equal(got, want) {
		t.Errorf("%d other bytes come back from the middle", len(got))
	}
}

// serving is an API in a process of its own.
type serving struct {
	*world
	cmd *exec.Cmd
	url string
}

const serverDSN = "VARVE_TEST_SERVER_DSN"

// TestMain makes the test binary the API itself when a test starts it as such.
func TestMain(m *testing.M) {
	if dsn := os.Getenv(serverDSN); dsn != "" {
		panic(serveDSN(dsn))
	}
	os.Exit(pgtest.Main(m))
}

// serveDSN serves an API until it is killed, and says where.
func serveDSN(dsn string) error {
	pool, err := postgres.Open(context.Background(), pgtest.API(dsn), 12)
	if err != nil {
		return err
	}
	inserts, err := queue.New(pool)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	return http.Serve(listener, api.New(api.Config{
		Store: postgres.New(pool, inserts, nil), Features: []feature.Feature{upload.Feature()}, Log: slog.New(slog.DiscardHandler),
	}))
}

// serve starts an API, which is killed at the end of the test at the latest.
func (w *world) serve() *serving {
	w.Helper()
	u := &serving{world: w, cmd: exec.CommandContext(w.Context(), os.Args[0])}
	u.cmd.Env = append(os.Environ(), serverDSN+"="+w.DSN)
	out, err := u.cmd.StdoutPipe()
	if err == nil {
		err = u.cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(u.kill)
	said, _ := bufio.NewReader(out).ReadString('\n')
	u.url = strings.TrimSpace(said)
	return u
}

// kill ends the process at once, as a crash would.
func (u *serving) kill() {
	_ = u.cmd.Process.Kill() // it may have ended
	_ = u.cmd.Wait()
}

// feed sends a body to an upload.
func (u *serving) feed(path string, offset int64, body io.Reader) (status int, answer []byte, err error) {
	query := "?"
	if bytes.ContainsRune([]byte(path), '?') {
		query = "&"
	}
	req, err := http.NewRequest("POST", u.url+path+query+"offset="+strconv.FormatInt(offset, 10), body)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+u.Key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// memory returns a figure of the process in bytes: VmRSS is what it has, VmHWM the most that it ever had.
func (u *serving) memory(name string) int64 {
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
