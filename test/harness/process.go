package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// restartAfter is how long a supervisor waits before it starts a process that ended.
const restartAfter = 200 * time.Millisecond

// Process is a program that is started again whenever it ends.
type Process struct {
	path  string
	env   []string
	log   *os.File
	ready func(addr string) // called with the address that the process listens on; nil for nothing

	mu      sync.Mutex
	running *exec.Cmd
	stopped bool
	ended   chan struct{} // closed when the supervisor has stopped
}

// StartProcess starts a program, with a log of that name in the directory that MakeDir made.
func StartProcess(dir, name, path string, env []string, ready func(addr string)) (*Process, error) {
	log, err := os.Create(filepath.Join(dir, "logs", name+".log"))
	if err != nil {
		return nil, err
	}
	p := &Process{path: path, env: env, log: log, ready: ready, ended: make(chan struct{})}
	go p.supervise()
	return p, nil
}

func (p *Process) supervise() {
	defer close(p.ended)
	defer p.log.Close()
	for {
		cmd, lines := p.start()
		if cmd == nil {
			return
		}
		p.copyLog(lines)
		_ = cmd.Wait() // why it ended is in its log
		p.mu.Lock()
		p.running = nil
		p.mu.Unlock()
		time.Sleep(restartAfter)
	}
}

// start returns a running process and what it writes, or nil once the supervisor is told to stop.
func (p *Process) start() (*exec.Cmd, io.Reader) {
	for {
		p.mu.Lock()
		if p.stopped {
			p.mu.Unlock()
			return nil, nil
		}
		cmd, lines, err := p.launch()
		p.mu.Unlock()
		if err == nil {
			return cmd, lines
		}
		fmt.Fprintln(p.log, "harness: cannot start:", err)
		time.Sleep(restartAfter)
	}
}

func (p *Process) launch() (*exec.Cmd, io.Reader, error) {
	cmd := exec.CommandContext(context.Background(), p.path)
	cmd.Env = append(os.Environ(), p.env...)
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	p.running = cmd
	return cmd, lines, nil
}

var listening = regexp.MustCompile(`\baddr="?(127\.0\.0\.1:[0-9]+)`)

// copyLog writes the lines of a process to its log until it ends, and tells the address that it listens on.
func (p *Process) copyLog(lines io.Reader) {
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 4<<20)
	for scanner.Scan() {
		fmt.Fprintln(p.log, scanner.Text())
		if found := listening.FindStringSubmatch(scanner.Text()); found != nil && p.ready != nil {
			p.ready(found[1])
		}
	}
}

// Signal sends a signal to the process, and reports whether there was one.
func (p *Process) Signal(s syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running != nil && p.running.Process.Signal(s) == nil
}

// Stop ends the process and its supervisor.
func (p *Process) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.Signal(syscall.SIGCONT)
	p.Signal(syscall.SIGKILL)
	<-p.ended
}
