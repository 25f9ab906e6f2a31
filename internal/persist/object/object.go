// Package object keeps the bodies of results outside the database, as objects that are written once: in a directory
// (dir.go) or in a bucket of an S3-compatible store (bucket.go).
//
// Start at Store. An object's name is lower-case words with a slash between them. What is stored under it is never
// changed, so a second Put of a name has the same bytes.
package object

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// Store keeps objects.
//
// Errors of all methods but those named there: session.ErrResultStore if the store does not answer or refuses, and the
// context's.
type Store interface {
	// Put stores an object, which is durable once Put returns. It is there whole or not at all.
	Put(ctx context.Context, name string, body []byte) error

	// Get returns size bytes of an object from offset at on, fewer if it ends before; ErrMissing.
	Get(ctx context.Context, name string, at int64, size int) ([]byte, error)

	// Delete deletes an object. One that is not there is no error.
	Delete(ctx context.Context, name string) error

	// List returns the objects below a prefix, "" for all, in any order, what a Put that was killed left behind
	// included. The prefix is the name of an object without its last words.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// String names the store for people, without secrets.
	String() string
}

// Info is what a list says of an object.
type Info struct {
	Name     string
	Size     int64
	Modified time.Time
}

// ErrMissing reports that there is no object of this name.
var ErrMissing = errors.New("there is no such object")

var namePattern = regexp.MustCompile(`^[0-9a-z][0-9a-z.-]*(/[0-9a-z][0-9a-z.-]*)*$`)

// check returns an error for a name that no object can have: no name leads out of the store.
func check(name string) error {
	if len(name) > 512 || !namePattern.MatchString(name) {
		return fmt.Errorf("%.100q is not the name of an object", name)
	}
	return nil
}

// down returns the error of a store that does not answer. The cause is text only: what is wrong with a disk or a
// network must not be taken for the database's.
func down(ctx context.Context, s Store, cause error) error {
	if cause == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w: %v", s, session.ErrResultStore, cause)
}
