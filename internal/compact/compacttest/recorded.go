package compacttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// Conversation is a real conversation of an agent.
type Conversation struct {
	Set      string // the first folder of its file's name, or that
	ID       string
	Format   session.Format
	Messages [][]byte
	Tokens   []int // by message
}

// Total returns how many tokens it has.
func (c *Conversation) Total() (tokens int) {
	for _, n := range c.Tokens {
		tokens += n
	}
	return tokens
}

// Recorded reads all conversations below a folder that the importer can read, in the order of their files, and lists
// the other files. A folder that does not exist has none; one that VARVE_DATA names must have some.
func Recorded(dir string) (read []Conversation, unread []string, err error) {
	wanted := dir == os.Getenv("VARVE_DATA")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !wanted {
		return nil, nil, nil
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, nil, err
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		if err != nil || entry.IsDir() || ext != ".json" && ext != ".jsonl" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		found, err := readFile(path, filepath.ToSlash(name))
		if unsupported := new(importer.UnsupportedError); errors.As(err, &unsupported) {
			unread = append(unread, name)
			return nil
		}
		read = append(read, found...)
		return err
	})
	if err == nil && wanted && len(read) == 0 {
		err = fmt.Errorf("there are no recorded conversations in %s, which VARVE_DATA names", dir)
	}
	return read, unread, err
}

// readFile reads the conversations of one file, whose data set is the first folder of its name.
func readFile(path, name string) (read []Conversation, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := importer.Read(context.Background(), importer.SessionID(name), data, importer.Auto)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	set, _, _ := strings.Cut(name, "/")
	for i := range file.Conversations {
		if len(file.Conversations[i].Messages) == 0 {
			continue // none of them can be stored
		}
		c, err := conversation(set, &file.Conversations[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		read = append(read, c)
	}
	return read, nil
}

func conversation(set string, from *importer.Conversation) (Conversation, error) {
	c := Conversation{Set: set, ID: from.ID, Format: from.Format}
	for i := range from.Messages {
		body := from.Messages[i].Body
		found, err := wire.Inspect(c.Format, body)
		if err != nil {
			return c, err
		}
		c.Messages, c.Tokens = append(c.Messages, body), append(c.Tokens, found.Tokens)
	}
	return c, nil
}
