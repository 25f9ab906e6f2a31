package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Pooler is a transaction pooler like PgBouncer: a client keeps a connection of the server for one transaction only,
// and gets another for the next. It knows nothing of prepared statements, and refuses startup parameters.
type Pooler struct {
	// Last lets a client have the connection that was used last, as PgBouncer does, so that one alone keeps its own. It
	// must be set before the first client comes.
	Last bool

	test     testing.TB
	listener net.Listener
	mu       sync.Mutex
	idle     map[string][]*pgconn.HijackedConn // by URL
	opened   map[string]int
}

// enough is how many connections of the server a login has before one is used again, so that each transaction of a
// client gets another.
const enough = 3

// NewPooler starts a pooler, which ends with the test.
func NewPooler(t testing.TB) *Pooler {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Pooler{test: t, listener: listener, idle: map[string][]*pgconn.HijackedConn{}, opened: map[string]int{}}
	t.Cleanup(p.close)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

// Through returns the URL of a database that leads through the pooler. settings are further ones of the URL, in pairs.
func (p *Pooler) Through(dsn string, settings ...string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		p.test.Fatal(err)
	}
	query := url.Values{"sslmode": {"disable"}, "user": {query(u, "user")}, "password": {query(u, "password")}}
	query.Set("application_name", dsn) // which is how the pooler knows the server
	for i := 0; i < len(settings); i += 2 {
		query.Set(settings[i], settings[i+1])
	}
	through := url.URL{Scheme: "postgres", Host: p.listener.Addr().String(), Path: u.Path, RawQuery: query.Encode()}
	return through.String()
}

// query returns a setting of a URL, which may have the login before the host.
func query(u *url.URL, name string) string {
	if word, has := u.User.Password(); name == "password" && has {
		return word
	}
	if name == "user" && u.User.Username() != "" {
		return u.User.Username()
	}
	return u.Query().Get(name)
}

// Opened returns how many connections of the server a login has, by the URL that Through was given.
func (p *Pooler) Opened(dsn string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened[dsn]
}

func (p *Pooler) close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conns := range p.idle {
		for _, c := range conns {
			c.Conn.Close()
		}
	}
	p.idle = nil
}

// take returns a connection that is idle, the one that has waited longest unless Last is set, or a new one.
func (p *Pooler) take(dsn string) (*pgconn.HijackedConn, error) {
	if c := p.waiting(dsn); c != nil {
		return c, nil
	}
	conn, err := pgconn.Connect(context.Background(), dsn)
	if err != nil {
		return nil, err
	}
	return conn.Hijack()
}

// waiting returns nil if there is to be a new connection.
func (p *Pooler) waiting(dsn string) (c *pgconn.HijackedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle[dsn]
	end := len(idle) - 1
	switch {
	case end < 0, !p.Last && p.opened[dsn] < enough:
		p.opened[dsn]++
	case p.Last:
		c, p.idle[dsn] = idle[end], idle[:end]
	default:
		c, p.idle[dsn] = idle[0], idle[1:]
	}
	return c
}

func (p *Pooler) give(dsn string, c *pgconn.HijackedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle == nil {
		c.Conn.Close()
		return
	}
	p.idle[dsn] = append(p.idle[dsn], c)
}

// allowed are the startup parameters that PgBouncer takes.
var allowed = map[string]bool{"user": true, "database": true, "application_name": true, "client_encoding": true}

func (p *Pooler) serve(conn net.Conn) {
	defer conn.Close()
	client := pgproto3.NewBackend(conn, conn)
	first, err := client.ReceiveStartupMessage()
	startup, ok := first.(*pgproto3.StartupMessage)
	if err != nil || !ok { // it asks for TLS, which no URL of Through does, or cancels a statement
		return
	}
	for name := range startup.Parameters {
		if !allowed[name] {
			refusal := "unsupported startup parameter: " + name
			client.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: refusal})
			_ = client.Flush() // the client may be gone
			return
		}
	}
	var key [8]byte
	_, _ = rand.Read(key[:]) // it never fails
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	client.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 1<<30 | binary.BigEndian.Uint32(key[:])>>2, SecretKey: key[4:]})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if client.Flush() != nil {
		return
	}
	c := pooled{pooler: p, dsn: startup.Parameters["application_name"], client: client}
	c.relay()
}

// pooled is a client of a pooler.
type pooled struct {
	pooler *Pooler
	dsn    string
	client *pgproto3.Backend

	mu     sync.Mutex
	server *pgconn.HijackedConn // nil between transactions
	open   int                  // answers that are still to come
	begun  bool                 // messages were sent whose end was not
}

// relay passes on what the client sends until it leaves.
func (c *pooled) relay() {
	for {
		message, err := c.client.Receive()
		if _, ends := message.(*pgproto3.Terminate); err != nil || ends {
			break
		}
		if c.pass(message) != nil {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil { // it leaves within a transaction
		c.server.Conn.Close()
	}
}

func (c *pooled) pass(message pgproto3.FrontendMessage) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		if c.server, err = c.pooler.take(c.dsn); err != nil {
			c.client.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08006", Message: err.Error()})
			return c.client.Flush()
		}
		go c.answer(c.server)
	}
	switch message.(type) {
	case *pgproto3.Query, *pgproto3.Sync:
		c.open, c.begun = c.open+1, false
	default:
		c.begun = true
	}
	c.server.Frontend.Send(message)
	return c.server.Frontend.Flush()
}

// answer passes on what the server sends until the transaction is over.
func (c *pooled) answer(server *pgconn.HijackedConn) {
	for {
		message, err := server.Frontend.Receive()
		if err != nil || c.back(server, message) {
			return
		}
	}
}

// back passes a message on and reports whether the transaction is over.
func (c *pooled) back(server *pgconn.HijackedConn, message pgproto3.BackendMessage) (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ready, ok := message.(*pgproto3.ReadyForQuery); ok {
		c.open--
		over = c.open == 0 && !c.begun && ready.TxStatus == 'I'
	}
	c.client.Send(message)
	err := c.client.Flush()
	if over { // after message, which belongs to the connection
		c.server = nil
		c.pooler.give(c.dsn, server)
	}
	return err != nil || over
}
