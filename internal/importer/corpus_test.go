package importer

import (
	"path/filepath"
	"os"
	"testing"
)

func TestTryAll(t *testing.T) {
	files, _ := filepath.Glob("/work/shared/data/*/*.json*")
	for _, f := range files {
		data, _ := os.ReadFile(f)
		got, err := Read(f, data, Auto)
		if err != nil {
			t.Logf("%-60s %v", filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f), err.Error()[:min(len(err.Error()),110)])
			continue
		}
		t.Logf("%-60s %s %d convs %d msgs lines %d imp %d skip %v rej %d notes %v", filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f), got.Source, len(got.Conversations), len(got.Conversations[0].Messages), got.Report.Lines, got.Report.Imported, got.Report.Skipped, len(got.Report.Rejected), got.Report.Notes)
	}
}
