package process_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

// hosts returns the URL of a database on whichever cluster takes writes.
func hosts(clusters ...*embedded.Server) string {
	var sockets, ports []string
	for _, c := range clusters {
		sockets, ports = append(sockets, c.SocketDir), append(ports, embedded.Port)
	}
	return fmt.Sprintf("postgres:///%s?host=%s&port=%s&user=%s&target_session_attrs=read-write", embedded.Database,
		url.QueryEscape(strings.Join(sockets, ",")), url.QueryEscape(strings.Join(ports, ",")), embedded.User)
}

// TestEveryAcknowledgedAppendOutlivesThePrimary has a primary that acknowledges what its standby has on disk. It crashes
// under load, the standby is promoted, and the processes, whose URL names both, go on without a restart.
func TestEveryAcknowledgedAppendOutlivesThePrimary(t *testing.T) {
	t.Parallel()
	primary := pgtest.NewDurable(t)
	standby := pgtest.NewStandby(t, primary)
	pgtest.Exec(t, primary, `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
	db := config.Database{URL: hosts(primary, standby), Connections: 8}
	s := startOn(t, db, newTenant)
	const writers, after = 4, 20
	var load sync.WaitGroup
	var enough atomic.Bool
	var acknowledged [writers][]string
	for i := range writers {
		path := fmt.Sprintf("/v1/sessions/s%d", i)
		s.eventually(201, "PUT", path, `{"window_tokens":1000000}`)
		load.Go(func() {
			for n := 0; !enough.Load(); n++ {
				text := fmt.Sprintf("message %d of %d", n, i)
				body := fmt.Sprintf(`{"format":"openai-chat","messages":[{"role":"user","content":%q}]}`, text)
				if status, _ := s.call("POST", path+"/messages", body); status == 201 {
					acknowledged[i] = append(acknowledged[i], text)
				}
			}
		})
	}
	const probe = "/v1/sessions/probe"
	s.eventually(201, "PUT", probe, `{"window_tokens":1000000}`)
	const message = `{"format":"openai-chat","messages":[{"role":"user","content":"hi"}]}`
	for range after {
		s.eventually(201, "POST", probe+"/messages", message)
	}
	if err := primary.Crash(); err != nil {
		t.Error(err)
	}
	s.eventually(503, "POST", probe+"/messages", message)
	pgtest.Exec(t, standby, `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_promote()`, `SELECT pg_reload_conf()`)
	promoted := time.Now()
	s.eventually(201, "POST", probe+"/messages", message)
	t.Logf("the first append is acknowledged %s after the promotion", time.Since(promoted).Round(time.Millisecond))
	for range after {
		s.eventually(201, "POST", probe+"/messages", message)
		if status, answer := s.call("GET", probe+"/context", ""); status != 200 {
			t.Errorf("a read after the promotion: %d %s", status, answer)
		}
	}
	enough.Store(true)
	load.Wait()
	for i := range writers {
		has, all := map[string]bool{}, len(acknowledged[i])
		for _, text := range s.log(fmt.Sprintf("/v1/sessions/s%d", i)) {
			has[text] = true
		}
		for _, text := range acknowledged[i] {
			if !has[text] {
				t.Errorf("%s was acknowledged and is gone", text)
			}
		}
		if all < 2 {
			t.Errorf("writer %d had %d appends acknowledged", i, all)
		}
	}
	s.eventually(200, "GET", "/readyz", "")
	s.stop()
}

// log returns the texts of a session's messages, whose seqs must be dense.
func (s *service) log(path string) (texts []string) {
	s.Helper()
	for next := new(int64(1)); next != nil; {
		var page struct {
			Data []struct {
				Seq     int64
				Message struct{ Content string }
			}
			Next *int64 `json:"next_seq"`
		}
		answer := s.eventually(200, "GET", fmt.Sprintf("%s/messages?limit=1000&from_seq=%d", path, *next), "")
		if err := json.Unmarshal([]byte(answer), &page); err != nil {
			s.Fatal(err)
		}
		for _, m := range page.Data {
			if texts = append(texts, m.Message.Content); m.Seq != int64(len(texts)) {
				s.Errorf("%s: seq %d is in place %d", path, m.Seq, len(texts))
			}
		}
		next = page.Next
	}
	return texts
}

// TestAPasswordThatWasRotatedIsReadAgain changes the password of the logins, and the file with it, under both processes.
func TestAPasswordThatWasRotatedIsReadAgain(t *testing.T) {
	t.Parallel()
	cluster, file := pgtest.NewDurable(t), filepath.Join(t.TempDir(), "passwords")
	access := filepath.Join(cluster.Dir, "pgdata", "pg_hba.conf")
	rules, err := os.ReadFile(access)
	if err != nil {
		t.Fatal(err)
	}
	rotate := func(password string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("*:*:*:*:"+password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		pgtest.Exec(t, cluster, `ALTER ROLE varve_test_api PASSWORD '`+password+`'`, `ALTER ROLE varve_test_worker PASSWORD '`+password+`'`,
			`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('varve_test_api', 'varve_test_worker')`)
	}
	asked := append([]byte("local all varve_test_api,varve_test_worker scram-sha-256\n"), rules...)
	if err := os.WriteFile(access, asked, 0o600); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, cluster, `SELECT pg_reload_conf()`)
	rotate("first")
	s := startOn(t, config.Database{URL: hosts(cluster) + "&passfile=" + url.QueryEscape(file), Connections: 8}, newTenant)
	message := fmt.Sprintf(`{"format":"openai-chat","messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", 2000))
	for _, password := range []string{"second", "third"} {
		rotate(password)
		path := "/v1/sessions/" + password
		s.eventually(201, "PUT", path, `{"window_tokens":1000}`)
		s.eventually(201, "POST", path+"/messages", message)
		s.eventually(200, "GET", path+"/checkpoints/1", "") // of the worker
		s.eventually(200, "GET", "/readyz", "")
	}
	s.stop()
}
