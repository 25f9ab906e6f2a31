package harness

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAMutantIsFoundByItsName(t *testing.T) {
	t.Parallel()
	mutants := []Mutant{{Name: "a"}, {Name: "b"}}
	if m, err := Named(mutants, "b"); err != nil || m.Name != "b" {
		t.Errorf("%v, %v", m, err)
	}
	if m, err := Named(mutants, ""); err != nil || m != nil {
		t.Errorf("without a name: %v, %v", m, err)
	}
	if _, err := Named(mutants, "none"); err == nil {
		t.Error("a mutant that does not exist was found")
	}
}

func TestAMutantFitsATextThatStandsOnce(t *testing.T) {
	t.Parallel()
	for text, fits := range map[string]bool{"module github.com/varve-dev/varve\n": true, "github.com/": false, "none of it": false} {
		mutant := Mutant{Name: "m", Edits: []Edit{Replace("go.mod", text, "x")}}
		if err := Fit(t.Context(), []Mutant{mutant}); (err == nil) != fits {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAnOverlayHasTheDefectAndTheSourcesDoNot(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("one two"), 0o600); err != nil {
		t.Fatal(err)
	}
	mutant := Mutant{Name: "m", Edits: []Edit{Replace("a.go", "one", "three"), Replace("a.go", "two", "four")}}
	if _, err := mutant.overlay(root, dir); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(root, "a.go"): "one two", filepath.Join(dir, "a.go.txt"): "three four"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

func TestATemporaryDirectoryIsRemovedAndAnotherStays(t *testing.T) {
	t.Parallel()
	own := filepath.Join(t.TempDir(), "own")
	for _, path := range []string{"", own} {
		dir, remove, err := MakeDir(path, "test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "logs")); err != nil {
			t.Error(err)
		}
		remove()
		if _, err := os.Stat(dir); os.IsNotExist(err) != (path == "") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestAProcessIsStartedAgainUntilItIsStopped(t *testing.T) {
	t.Parallel()
	dir, remove, err := MakeDir(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	path := filepath.Join(dir, "program")
	script := "#!/bin/sh\necho addr=127.0.0.1:80\nexec sleep 600\n"
	if err := WriteProgram(path, script); err != nil {
		t.Fatal(err)
	}
	started := make(chan string, 100)
	p, err := StartProcess(dir, "program", path, nil, func(addr string) { started <- addr })
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if addr := <-started; addr != "127.0.0.1:80" {
			t.Errorf("it listens on %s", addr)
		}
		if !p.Signal(syscall.SIGKILL) {
			t.Error("it did not run")
		}
	}
	p.Stop()
	if p.Signal(syscall.SIGKILL) {
		t.Error("it runs after Stop")
	}
}
