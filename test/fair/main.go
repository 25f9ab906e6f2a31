// Command fair measures what one tenant's work does to another's: the time that the appends of a tenant take while
// nobody else works, and then under each attack by another tenant, or by somebody without a key.
//
// It runs the program that FAIR_VARVE names as varve up on a directory of its own, and prints a table. Start at main;
// attacks.go lists the attacks. scripts/soak.sh runs it.
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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How long each attack lasts, how long the idle measurement before it, and how long is waited between two.
const (
	attackFor = 8 * time.Second
	idleFor   = 5 * time.Second
	pause     = 3 * time.Second
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "fair-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := start(dir)
	if err != nil {
		return err
	}
	defer s.stop()
	fmt.Printf("%-36s %9s %9s %9s %9s %7s  %s\n", "attack", "idle p50", "p99 (ms)", "under p50", "p99", "ratio",
		"the attacker's answers")
	for _, a := range attacks {
		if err := s.measure(a); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

// server is a varve up with two tenants.
type server struct {
	cmd              *exec.Cmd
	dir, url         string
	victim, attacker string // keys
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
	s := &server{dir: filepath.Join(dir, "data"), url: "http://" + addr}
	s.cmd = exec.Command(os.Getenv("FAIR_VARVE"), "up", "--addr", addr, "--data", s.dir, "--log-level=error")
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if status, _ := s.ask(context.Background(), "", "GET", "/readyz", nil); status == http.StatusOK {
			break
		}
		if time.Since(began) > time.Minute {
			s.stop()
			return nil, fmt.Errorf("varve up is not ready after a minute")
		}
	}
	if s.victim, err = s.tenant("victim"); err == nil {
		s.attacker, err = s.tenant("attacker")
	}
	if err == nil {
		err = s.must(s.victim, "PUT", "/v1/sessions/steady", `{"format":"openai-chat"}`)
	}
	return s, err
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
		for _, word := range strings.Fields(string(out)) {
			if strings.HasPrefix(word, "vk_") {
				key = word
			}
		}
	}
	return key, nil
}

var client = http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}

// ask sends a request and reads its answer; status 0 is none.
func (s *server) ask(ctx context.Context, key, method, path string, body []byte) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (s *server) must(key, method, path, body string) error {
	status, err := s.ask(context.Background(), key, method, path, []byte(body))
	if err == nil && status >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d", method, path, status)
	}
	return err
}

// measure prints a row of the table.
func (s *server) measure(a attack) error {
	release, err := a.prepare(s)
	if err != nil {
		return err
	}
	defer release()
	time.Sleep(pause)
	idle, _ := s.appends(idleFor)
	ctx, cancel := context.WithCancel(context.Background())
	var attackers sync.WaitGroup
	var answers [6]atomic.Int64 // by the first digit of the status
	for range a.clients {
		attackers.Go(func() {
			for ctx.Err() == nil {
				status, _ := a.send(ctx, s)
				if ctx.Err() == nil {
					answers[status/100].Add(1)
				}
			}
		})
	}
	time.Sleep(time.Second)
	under, failed := s.appends(attackFor)
	cancel()
	attackers.Wait()
	ratio := float64(at(under, 99)) / float64(at(idle, 99))
	fmt.Printf("%-36s %9.1f %9.1f %9.1f %9.1f %7.1f  2xx %d 4xx %d 5xx %d none %d; of %d appends %d failed\n",
		a.name, ms(at(idle, 50)), ms(at(idle, 99)), ms(at(under, 50)), ms(at(under, 99)), ratio,
		answers[2].Load(), answers[4].Load(), answers[5].Load(), answers[0].Load(), len(under), failed)
	return nil
}

// appends measures one append of the victim after the other, 50 a second at most.
func (s *server) appends(long time.Duration) (took []time.Duration, failed int) {
	body, _ := json.Marshal(map[string]any{ // plain values
		"messages": []map[string]string{{"role": "user", "content": strings.Repeat("steady ", 100)}},
	})
	for began := time.Now(); time.Since(began) < long; {
		next := time.Now().Add(20 * time.Millisecond)
		sent := time.Now()
		status, err := s.ask(context.Background(), s.victim, "POST", "/v1/sessions/steady/messages", body)
		if err != nil || status >= http.StatusBadRequest {
			failed++
		}
		took = append(took, time.Since(sent))
		time.Sleep(time.Until(next))
	}
	slices.Sort(took)
	return took, failed
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
