package importer

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestSamples reads whole files as they come from the programs, and compares messages and report with golden files.
func TestSamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.json*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if filepath.Ext(name) == ".golden" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Read(context.Background(), SessionID(name), data, Auto)
			if err != nil {
				t.Fatal(err)
			}
			report, err := json.MarshalIndent(f.Report, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%s\n%s\n%s\n", f.Source, strings.Join(show(f), "\n"), report)
			golden := file + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got; -update accepts):\n%s", diff)
			}
		})
	}
}

// TestEverySourceHasASample keeps the table of sources and the golden files together.
func TestEverySourceHasASample(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.golden"))
	if err != nil {
		t.Fatal(err)
	}
	sampled := map[Source]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(string(data), "\n")
		sampled[Source(name)] = true
	}
	for _, name := range Sources() {
		if !sampled[name] {
			t.Errorf("no sample is read as %s", name)
		}
	}
}
