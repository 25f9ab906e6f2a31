package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/client"
)

// bookmark names the import of a file that has not ended, so that the same command continues it. Its file is beside
// those of what could not be imported.
type bookmark struct {
	URL      string    `json:"url"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	From     string    `json:"from"`
	Session  string    `json:"session"`
	Key      string    `json:"key"` // Idempotency-Key of the import

	path string
}

// openBookmark returns the bookmark at path if it is of the same file and server, else a new one.
func openBookmark(path, url string, info os.FileInfo, of client.NewImport) bookmark {
	now := bookmark{URL: url, Size: info.Size(), Modified: info.ModTime(), From: of.From, Session: of.Session}
	var last bookmark
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &last) == nil && info.Mode().IsRegular() {
		now.Key = last.Key
	}
	same := last.Modified.Equal(now.Modified)
	last.Modified = now.Modified
	if !same || last != now || now.Key == "" {
		now.Key = uuid.NewString()
	}
	now.path = path
	return now
}

func (b *bookmark) save() error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(b.path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(b.path, text, 0o600)
}

func (b *bookmark) remove() error { return os.Remove(b.path) }
