package process

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
)

// The oldest idle connection makes room for a new one; one with a request under way does not.
func TestIdleConnectionsMakeRoomForNewOnes(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := limitConnections(inner, 3)
	held, hold := make(chan struct{}), make(chan struct{})
	idle := make(chan struct{}, 100)
	noted := func(conn net.Conn, state http.ConnState) {
		listener.state(conn, state)
		if state == http.StateIdle {
			idle <- struct{}{}
		}
	}
	server := &http.Server{ConnState: noted, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			close(held)
			<-hold
		}
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	ask := func(conn net.Conn, path string) error {
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err
		}
		_, err := http.ReadResponse(bufio.NewReader(conn), nil)
		return err
	}
	conns, answered := make([]net.Conn, 5), make(chan error, 1)
	for i := range conns {
		if conns[i], err = net.Dial("tcp", inner.Addr().String()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conns[i].Close() })
		if i == 0 {
			go func() { answered <- ask(conns[0], "/held") }()
			<-held
			continue
		}
		if err := ask(conns[i], "/"); err != nil { // hangs without room
			t.Fatalf("connection %d: %v", i, err)
		}
		<-idle // which comes after the answer
	}
	if err := ask(conns[1], "/"); err == nil {
		t.Error("the connection that was idle for longest is still open")
	}
	if err := ask(conns[4], "/"); err != nil {
		t.Errorf("the newest connection was closed: %v", err)
	}
	close(hold)
	if err := <-answered; err != nil {
		t.Errorf("the request under way got %v", err)
	}
}
