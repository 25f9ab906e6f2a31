// Package folder reads the sessions to replay from a folder of conversations.
//
// Start at Read.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/wire"
)

// Questions is the file of a folder with the questions that its sessions are asked, as replay.ReadQuestions reads them.
const Questions = "questions.json"

// Read reads all conversations in and below a folder that the importer can read, in the order of their files, with the
// questions that the folder has, and lists the other JSON files. The folder may be a symbolic link; links below it are
// not followed.
func Read(ctx context.Context, dir string) (read []*replay.Session, unread []string, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, nil, err
	}
	err = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		ext := filepath.Ext(file)
		if err != nil || entry.IsDir() || ext != ".json" && ext != ".jsonl" || file == filepath.Join(dir, Questions) {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		found, err := readFile(ctx, file, filepath.ToSlash(name))
		if unsupported := new(importer.UnsupportedError); errors.As(err, &unsupported) {
			unread = append(unread, name)
			return nil
		}
		read = append(read, found...)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if err = Ask(filepath.Join(dir, Questions), read); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return read, unread, err
}

// Ask gives sessions the questions in a file.
//
// Errors: a question about another session; those of replay.ReadQuestions and os.ReadFile.
func Ask(file string, sessions []*replay.Session) error {
	document, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	questions, err := replay.ReadQuestions(document)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if others := replay.Ask(sessions, questions); others != nil {
		return fmt.Errorf("%s: there is no session %q", file, others[0].Session)
	}
	return nil
}

// readFile reads the conversations of one file. They are named after its place in the folder.
func readFile(ctx context.Context, file, name string) (read []*replay.Session, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	content, err := importer.Read(ctx, importer.SessionID(name), data, importer.Auto)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range content.Conversations {
		c := &content.Conversations[i]
		s, err := sessionOf(path.Join(path.Dir(name), c.ID), c)
		if err != nil {
			return nil, err
		}
		read = append(read, s)
	}
	return read, nil
}

func sessionOf(name string, c *importer.Conversation) (*replay.Session, error) {
	s := &replay.Session{Name: name, Format: c.Format, Messages: make([]replay.Message, len(c.Messages))}
	for i := range c.Messages {
		m := &c.Messages[i]
		found, err := wire.Inspect(c.Format, m.Body)
		if err != nil {
			return nil, fmt.Errorf("%s: message %d: %w", name, i+1, err)
		}
		s.Messages[i] = replay.Message{Seq: int64(i + 1), Body: m.Body, Tokens: found.Tokens, At: m.At}
	}
	return s, nil
}
