// Package s3test gives a test an S3 server of its own over a directory, in the test's process. VARVE_TEST_S3=gateway
// starts Versity's gateway instead, as make soak does.
//
// Start at New.
package s3test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/persist/object"
)

// Server is a server that runs.
type Server struct {
	object.BucketConfig // of the bucket that it has

	dir     string
	program string       // of the gateway, "" for the server of this package
	cmd     *exec.Cmd    // of the gateway
	server  *http.Server // of this package
}

// The keys of the server.
const (
	AccessKey = "test"
	secretKey = "test-secret"
)

// Keys returns the keys of every server.
func Keys() (access, secret string, err error) { return AccessKey, secretKey, nil }

// startTimeout bounds how long a server may need until it answers.
const startTimeout = 30 * time.Second

// New starts a server with an empty bucket. It stops when the test ends.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{dir: t.TempDir(), BucketConfig: object.BucketConfig{
		Bucket: "varve", Insecure: true, Region: "us-east-1", PathStyle: true,
		Keys: Keys,
	}}
	if os.Getenv("VARVE_TEST_S3") == "gateway" {
		var err error
		if s.program, err = installed(); err != nil {
			t.Fatalf("the S3 gateway for tests: %v", err)
		}
	}
	if err := errors.Join(s.chooseAddress(), os.Mkdir(s.Dir(), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() }) // a test may have stopped it
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Dir returns the directory with the files of the bucket.
func (s *Server) Dir() string { return filepath.Join(s.dir, s.Bucket) }

func (s *Server) chooseAddress() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Endpoint = listener.Addr().String()
	return listener.Close()
}

// Start starts the server, at the address that it had, and waits until it answers.
func (s *Server) Start(ctx context.Context) error {
	if s.program != "" {
		return s.startGateway(ctx)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Endpoint)
	if err != nil {
		return err
	}
	s.server = &http.Server{Handler: bucket{s.dir, AccessKey}}
	go func() { _ = s.server.Serve(listener) }() // it ends with Stop
	return nil
}

// Stop ends the server at once.
func (s *Server) Stop() error {
	if s.program == "" {
		return s.server.Close()
	}
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	return err
}
