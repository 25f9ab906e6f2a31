package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server is a varve up with two tenants.
type server struct {
	client
	cmd              *exec.Cmd
	dir              string
	victim, attacker string          // keys
	idle             []time.Duration // of the victim's appends while nobody else worked
}

func start(dir string) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	s := &server{dir: filepath.Join(dir, "data"), client: client{url: "http://" + addr}}
	s.cmd = exec.Command(os.Getenv("FAIR_VARVE"), "up", "--addr", addr, "--data", s.dir, "--log-level=error")
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = ownSession()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// ownSession starts a process in a session of its own: Linux shares processors by session, so that each process gets
// its part as it would as a service, or on a machine of its own.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func (s *server) prepare() (err error) {
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if status, _ := s.ask(context.Background(), "", "GET", "/readyz", nil); status == http.StatusOK {
			break
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("varve up is not ready after a minute")
		}
	}
	if s.victim, err = s.tenant("victim"); err == nil {
		s.attacker, err = s.tenant("attacker")
	}
	for n := 0; err == nil && n < writers; n++ {
		err = s.must(s.victim, "PUT", steady(n), `{"format":"openai-chat"}`)
	}
	return err
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(os.Interrupt) // it may have ended
	_ = s.cmd.Wait()
}

// tenant makes a tenant and returns a key of it.
func (s *server) tenant(name string) (key string, err error) {
	for _, args := range [][]string{{"tenants", "create", name}, {"keys", "create", "--tenant", name}} {
		out, err := exec.Command(os.Getenv("FAIR_VARVE"), append(args, "--data", s.dir)...).Output()
		if err != nil {
			return "", fmt.Errorf("%v: %w", args, err)
		}
		for word := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(word, "vk_") {
				key = word
			}
		}
	}
	return key, nil
}

// client asks a server.
type client struct{ url string }

var connections = http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}

// ask sends a request and reads its answer; status 0 is none.
func (c client) ask(ctx context.Context, key, method, path string, body []byte) (status int, err error) {
	return c.packed(ctx, key, method, path, body, "")
}

// unread asks for an answer on a connection of its own, and reads none of it for 10 seconds; status 0 is none.
func (c client) unread(ctx context.Context, key, path string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: varve\r\nAuthorization: Bearer %s\r\n\r\n", path, key)
	if err != nil {
		return 0, err
	}
	<-ctx.Done()
	var first [12]byte // HTTP/1.1 200
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return 0, err
	}
	return strconv.Atoi(string(first[9:]))
}

// packed sends a request whose body has a coding.
func (c client) packed(
	ctx context.Context, key, method, path string, body []byte, coding string,
) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if coding != "" {
		request.Header.Set("Content-Encoding", coding)
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := connections.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// get returns what a path that is open to everybody answers.
func (c client) get(path string) ([]byte, error) {
	response, err := connections.Get(c.url + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func (c client) must(key, method, path, body string) error {
	status, err := c.ask(context.Background(), key, method, path, []byte(body))
	if err == nil && status >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d", method, path, status)
	}
	return err
}

// The victim has some writers, each of which appends to its own session this often at most.
const (
	writers  = 4
	interval = 20 * time.Millisecond
)

func steady(writer int) string { return fmt.Sprintf("/v1/sessions/steady-%d", writer) }

// appends measures the appends of the victim's writers.
func (s *server) appends(long time.Duration) (took []time.Duration, failed int) {
	body := message(strings.Repeat("steady ", 100))
	var mu sync.Mutex
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			for began := time.Now(); time.Since(began) < long; {
				sent := time.Now()
				status, err := s.ask(context.Background(), s.victim, "POST", steady(n)+"/messages", body)
				elapsed := time.Since(sent)
				mu.Lock()
				took = append(took, elapsed)
				if err != nil || status >= http.StatusBadRequest {
					failed++
				}
				mu.Unlock()
				time.Sleep(interval - elapsed)
			}
		})
	}
	group.Wait()
	return took, failed
}

func message(text string) []byte {
	body, _ := json.Marshal(map[string]any{ // plain values
		"messages": []map[string]string{{"role": "user", "content": text}},
	})
	return body
}
