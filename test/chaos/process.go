package main

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
const restartAfter = 300 * time.Millisecond

// process is a program that is started again whenever it ends.
type process struct {
	name  string
	path  string
	env   []string
	log   *os.File
	ready func(addr string) // called with the address that the process listens on

	mu      sync.Mutex
	running *exec.Cmd
	stopped bool
	ended   chan struct{} // closed when the supervisor has stopped
	deaths  int
}

func startProcess(dir, name, path string, env []string, ready func(addr string)) (*process, error) {
	log, err := os.Create(filepath.Join(dir, "logs", name+".log"))
	if err != nil {
		return nil, err
	}
	p := &process{name: name, path: path, env: env, log: log, ready: ready, ended: make(chan struct{})}
	go p.supervise()
	return p, nil
}

func (p *process) supervise() {
	defer close(p.ended)
	defer p.log.Close()
	for {
		cmd := p.start()
		if cmd == nil {
			return
		}
		_ = cmd.Wait() // why it ended is in its log
		p.mu.Lock()
		p.deaths++
		p.running = nil
		p.mu.Unlock()
		time.Sleep(restartAfter)
	}
}

// start returns a running process, or nil once the supervisor is told to stop.
func (p *process) start() *exec.Cmd {
	for {
		p.mu.Lock()
		if p.stopped {
			p.mu.Unlock()
			return nil
		}
		cmd, err := p.launch()
		p.mu.Unlock()
		if err == nil {
			return cmd
		}
		fmt.Fprintln(p.log, "chaos: cannot start:", err)
		time.Sleep(restartAfter)
	}
}

func (p *process) launch() (*exec.Cmd, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close() // the process has its own
	cmd := exec.CommandContext(context.Background(), p.path)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		read.Close()
		return nil, err
	}
	p.running = cmd
	go p.copyLog(read)
	return cmd, nil
}

var listening = regexp.MustCompile(`\baddr="?(127\.0\.0\.1:[0-9]+)`)

// copyLog writes the lines of a process to its log, and tells the address that it listens on.
func (p *process) copyLog(lines io.ReadCloser) {
	defer lines.Close()
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 4<<20)
	for scanner.Scan() {
		fmt.Fprintln(p.log, scanner.Text())
		if found := listening.FindStringSubmatch(scanner.Text()); found != nil && p.ready != nil {
			p.ready(found[1])
		}
	}
}

// signal sends a signal to the process if it runs.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		_ = p.running.Process.Signal(s) // it may have ended just now
	}
}

// stop ends the process and its supervisor.
func (p *process) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGKILL)
	<-p.ended
}
