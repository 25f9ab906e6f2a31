package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// proxy forwards TCP connections to a target and does to them what a network can do.
type proxy struct {
	listener net.Listener

	mu      sync.Mutex
	changed *sync.Cond
	network string // of the target
	address string
	refuse  bool          // new connections
	hole    bool          // nothing goes through, and no connection ends
	latency time.Duration // of each piece
	lose    bool          // what the target answers, and then the connection
	open    map[*link]struct{}
}

// link is one connection through a proxy.
type link struct{ client, server net.Conn }

func (l *link) close() {
	_ = l.client.Close() // the other end may be gone
	_ = l.server.Close()
}

func newProxy(ctx context.Context) (*proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, open: map[*link]struct{}{}}
	p.changed = sync.NewCond(&p.mu)
	go p.accept()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// aim sets where connections go from now on.
func (p *proxy) aim(network, address string) {
	p.set(func() { p.network, p.address = network, address })
}

// set changes what the proxy does.
func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// heal makes the proxy forward again.
func (p *proxy) heal() {
	p.set(func() {
		p.refuse = false
		p.hole = false
		p.lose = false
		p.latency = 0
	})
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	links := make([]*link, 0, len(p.open))
	for l := range p.open {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		l.close()
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.heal()
	p.cut()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.forward(client)
	}
}

func (p *proxy) forward(client net.Conn) {
	p.mu.Lock()
	network, address := p.network, p.address
	refuse := p.refuse
	p.mu.Unlock()
	if refuse || address == "" {
		_ = client.Close()
		return
	}
	server, err := net.DialTimeout(network, address, 5*time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client, server}
	p.mu.Lock()
	p.open[l] = struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, client, server, false) })
	both.Go(func() { p.pump(l, server, client, true) })
	both.Wait()
	p.mu.Lock()
	delete(p.open, l)
	p.mu.Unlock()
}

// pump copies one direction until it ends; then the connection ends.
func (p *proxy) pump(l *link, from io.Reader, to io.Writer, answers bool) {
	defer l.close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 && !p.pass(answers) {
			return
		}
		if n > 0 {
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.pass(answers) // a hole hides the end of a connection, too
			}
			return
		}
	}
}

// pass waits until a piece may go on, and reports whether it does.
func (p *proxy) pass(answer bool) bool {
	p.mu.Lock()
	for p.hole {
		p.changed.Wait()
	}
	wait, lost := p.latency, answer && p.lose
	p.mu.Unlock()
	time.Sleep(wait)
	return !lost
}
