package s3test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// gateway is the program, and gatewayVersion its version. It is no module of ours: nothing of it is linked. It is built
// from the Go module proxy at the first use, and kept in the user's cache directory.
const (
	gateway        = "github.com/versity/versitygw/cmd/versitygw"
	gatewayVersion = "v1.8.0"
)

func (s *Server) startGateway(ctx context.Context) error {
	s.cmd = exec.Command(s.program, "--access", AccessKey, "--secret", secretKey, "--port", s.Endpoint, "--quiet",
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
