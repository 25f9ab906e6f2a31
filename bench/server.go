package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// server is one of Varve's processes while it runs.
type server struct {
	name   string
	addr   string // the API's
	cmd    *exec.Cmd
	log    *os.File
	exited chan struct{}
}

// build compiles the processes with the Go command that is at hand.
func (b *bench) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.dir+string(filepath.Separator), "./cmd/api", "./cmd/worker")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

const startTimeout = 20 * time.Second

// start runs a process and waits until it says that it is ready. Its log goes to a file, as in production.
func (b *bench) start(ctx context.Context, name string, args ...string) (*server, error) {
	log, err := os.CreateTemp(b.dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	s := &server{name: name, log: log, exited: make(chan struct{})}
	s.cmd = exec.Command(filepath.Join(b.dir, name), args...)
	s.cmd.Env = append(os.Environ(), "DATABASE_URL="+b.dsn)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

var readyLine = regexp.MustCompile(`msg=ready(?: addr=(\S+))?`)

func (s *server) awaitReady(ctx context.Context) error {
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if found, err := s.findReady(); err != nil || found {
			return err
		}
		select {
		case <-tick.C:
		case <-s.exited:
			return fmt.Errorf("%s ended at once: %s", s.name, s.words())
		case <-ctx.Done():
			return fmt.Errorf("%s did not get ready: %w: %s", s.name, ctx.Err(), s.words())
		}
	}
}

func (s *server) findReady() (bool, error) {
	file, err := os.Open(s.log.Name())
	if err != nil {
		return false, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if match := readyLine.FindSubmatch(lines.Bytes()); match != nil {
			s.addr = string(match[1])
			return true, nil
		}
	}
	return false, nil
}

// words are what the process logged, as far as an error message can hold them.
func (s *server) words() []byte {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-2000):]
}

// complaints are the last errors that the process logged. One that never started has none.
func (s *server) complaints() string {
	if s == nil {
		return ""
	}
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "level=ERROR") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-5):], "")
}

const stopTimeout = 10 * time.Second

// stop ends the process gracefully, or by force if it takes too long. A process that never started is stopped.
func (s *server) stop() error {
	if s == nil {
		return nil
	}
	defer s.log.Close()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		return nil
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
		<-s.exited
		return fmt.Errorf("%s did not stop within %s", s.name, stopTimeout)
	}
}
