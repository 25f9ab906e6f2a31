// Package s3test gives a test an S3 server of its own: Versity's gateway over a directory, built from the Go module
// proxy at the first use and kept in the user's cache directory.
//
// Start at New. Where the proxy cannot be reached tests fail, unless VARVE_TEST_S3=off says that they shall be skipped.
package s3test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/persist/object"
)

// gateway is the program, and gatewayVersion its version. It is no module of ours: nothing of it is linked.
const (
	gateway        = "github.com/versity/versitygw/cmd/versitygw"
	gatewayVersion = "v1.8.0"
)

// Server is a server that runs.
type Server struct {
	object.BucketConfig // of the bucket that it has

	dir     string
	program string
	cmd     *exec.Cmd
}

// startTimeout bounds how long a server may need until it answers.
const startTimeout = 30 * time.Second

// New starts a server with an empty bucket. It stops when the test ends.
func New(t testing.TB) *Server {
	t.Helper()
	if os.Getenv("VARVE_TEST_S3") == "off" {
		t.Skip("VARVE_TEST_S3=off: no S3 server")
	}
	program, err := installed()
	if err != nil {
		t.Fatalf("the S3 server for tests: %v\n(VARVE_TEST_S3=off skips the tests that need it)", err)
	}
	s := &Server{program: program, dir: t.TempDir(), BucketConfig: object.BucketConfig{
		Bucket: "varve", Insecure: true, Region: "us-east-1", PathStyle: true,
		AccessKey: "test", SecretKey: "test-secret",
	}}
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
	s.cmd = exec.Command(s.program, "--access", s.AccessKey, "--secret", s.SecretKey, "--port", s.Endpoint, "--quiet",
		"posix", "--nometa", s.dir)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Endpoint)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop kills the server.
func (s *Server) Stop() error {
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	return err
}

// installed returns the path of the program.
var installed = sync.OnceValues(install)

func install() (program string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "varve-test")
	program = filepath.Join(dir, filepath.Base(gateway)+"-"+gatewayVersion)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	built, err := os.MkdirTemp(dir, "build-*") // several packages may do so at once
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(built)
	cmd := exec.Command("go", "install", gateway+"@"+gatewayVersion)
	cmd.Dir = built // outside of our module
	cmd.Env = append(os.Environ(), "GOBIN="+built, "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s@%s: %w\n%s", gateway, gatewayVersion, err, out)
	}
	return program, os.Rename(filepath.Join(built, filepath.Base(gateway)), program)
}
