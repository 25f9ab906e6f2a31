package process

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// limitedListener accepts a bounded number of connections: beyond the limit of open files nothing is accepted at all,
// and the process cannot open what it needs itself. At the bound the connection that has been idle for longest is
// closed; if none is idle, callers wait until one is.
type limitedListener struct {
	net.Listener
	limit int

	mu     sync.Mutex
	room   *sync.Cond
	open   int
	idle   *list.List // of net.Conn, the one that has been idle for longest first
	idleAt map[net.Conn]*list.Element
	closed bool
}

// ownFiles is how many files the process keeps for itself, beside its database connections.
const ownFiles = 64

// maxConnections bounds the connections where the limit of open files does not.
const maxConnections = 20_000

// connectionLimit returns how many connections may be open beside those of the database.
func connectionLimit(database int) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return maxConnections
	}
	return max(16, min(maxConnections, int(min(files.Cur, maxConnections*2))-database-ownFiles))
}

func limitConnections(listener net.Listener, limit int) *limitedListener {
	l := &limitedListener{Listener: listener, limit: limit, idle: list.New(), idleAt: map[net.Conn]*list.Element{}}
	l.room = sync.NewCond(&l.mu)
	return l
}

var closedIdle = promauto.NewCounter(prometheus.CounterOpts{
	Name: "varve_idle_connections_closed_total",
	Help: "Idle connections of clients that were closed to make room for new ones.",
})

// Accept waits until there is room, and then for a connection.
func (l *limitedListener) Accept() (net.Conn, error) {
	if !l.makeRoom() {
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	return &countedConn{Conn: conn, of: l}, nil
}

// makeRoom reports whether the listener is still open.
func (l *limitedListener) makeRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.open >= l.limit && !l.closed {
		oldest := l.idle.Front()
		if oldest == nil {
			l.room.Wait()
			continue
		}
		conn := oldest.Value.(net.Conn)
		l.forget(conn)
		closedIdle.Inc()
		l.mu.Unlock()
		_ = conn.Close() // the client may be gone
		l.mu.Lock()
	}
	return !l.closed
}

// Close stops accepting.
func (l *limitedListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// state notes which connections are idle, as the server's ConnState.
func (l *limitedListener) state(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(conn)
	if state == http.StateIdle {
		l.idleAt[conn] = l.idle.PushBack(conn)
		l.room.Signal()
	}
}

func (l *limitedListener) forget(conn net.Conn) {
	if at := l.idleAt[conn]; at != nil {
		l.idle.Remove(at)
		delete(l.idleAt, conn)
	}
}

// countedConn gives its place back when it is closed.
type countedConn struct {
	net.Conn
	of   *limitedListener
	once sync.Once
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.of.open--
		c.of.room.Signal()
	})
	return c.Conn.Close()
}
