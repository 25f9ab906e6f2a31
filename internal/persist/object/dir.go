package object

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
)

// Dir is a directory with a file for each object. What is below it cannot lead out of it, symbolic links included.
type Dir struct {
	root *os.Root
	path string
}

// OpenDir returns the store in a directory. If it is not there, it is made; the directory that it is in must be there.
func OpenDir(dir string) (*Dir, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	return &Dir{root: root, path: dir}, err
}

// String returns the URL of the directory.
func (d *Dir) String() string { return "file://" + d.path }

// partSuffix ends the names of files that are being written.
const partSuffix = ".part"

// Put writes a file beside the object, makes it durable, and gives it the object's name.
func (d *Dir) Put(ctx context.Context, name string, body []byte) error {
	if err := errors.Join(check(name), ctx.Err()); err != nil {
		return err
	}
	var err error
	for range 3 { // a Delete may remove the directory that is empty yet
		if err = d.put(name, body); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return down(ctx, d, err)
}

func (d *Dir) put(name string, body []byte) error {
	if err := d.makeDir(path.Dir(name)); err != nil {
		return err
	}
	part := name + "." + strings.ToLower(rand.Text()) + partSuffix
	if err := d.write(part, body); err != nil {
		return errors.Join(err, d.remove(part))
	}
	if err := d.root.Rename(part, name); err != nil {
		return errors.Join(err, d.remove(part))
	}
	return d.sync(path.Dir(name))
}

// makeDir makes a directory and its parents, each durable.
func (d *Dir) makeDir(name string) error {
	if name == "." {
		return nil
	}
	if _, err := d.root.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.makeDir(path.Dir(name)); err != nil {
		return err
	}
	if err := d.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.sync(path.Dir(name))
}

func (d *Dir) write(name string, body []byte) error {
	file, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// sync makes what a directory lists durable.
func (d *Dir) sync(name string) error {
	dir, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Get reads a part of a file.
func (d *Dir) Get(ctx context.Context, name string, at int64, size int) ([]byte, error) {
	if err := errors.Join(check(name), ctx.Err()); err != nil {
		return nil, err
	}
	file, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.there(); err == nil {
			return nil, fmt.Errorf("%s: %w", name, ErrMissing)
		}
	}
	if err != nil {
		return nil, down(ctx, d, err)
	}
	defer file.Close()
	body, err := io.ReadAll(io.NewSectionReader(file, at, int64(size)))
	return body, down(ctx, d, err)
}

// Delete deletes a file, and the directories that are empty then.
func (d *Dir) Delete(ctx context.Context, name string) error {
	if err := errors.Join(check(name), ctx.Err()); err != nil {
		return err
	}
	if err := d.remove(name); err != nil {
		return down(ctx, d, err)
	}
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if d.root.Remove(parent) != nil { // it has other files, or is gone
			return nil
		}
	}
	return nil
}

func (d *Dir) remove(name string) error {
	err := d.root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// there returns an error if the directory is not at its path any more: what is not in it then may be elsewhere.
func (d *Dir) there() error {
	opened, err := d.root.Stat(".")
	if err != nil {
		return err
	}
	named, err := os.Stat(d.path)
	if err == nil && !os.SameFile(opened, named) {
		err = errors.New("another directory was put in its place")
	}
	return err
}

// List walks the directory.
func (d *Dir) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		start := "."
		if prefix != "" {
			if err := check(prefix); err != nil {
				yield(Info{}, err)
				return
			}
			start = prefix
		}
		if err := d.there(); err != nil {
			yield(Info{}, down(ctx, d, err))
			return
		}
		err := fs.WalkDir(d.root.FS(), start, func(name string, entry fs.DirEntry, err error) error {
			info, err := found(ctx, entry, err)
			if errors.Is(err, fs.ErrNotExist) { // it was deleted meanwhile
				return nil
			}
			if err != nil || info == nil {
				return err
			}
			if !yield(Info{Name: name, Size: info.Size(), Modified: info.ModTime()}, nil) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Info{}, down(ctx, d, err))
		}
	}
}

// found returns what an entry of a walk is, nil for a directory.
func found(ctx context.Context, entry fs.DirEntry, err error) (fs.FileInfo, error) {
	if err = errors.Join(err, ctx.Err()); err != nil || entry.IsDir() {
		return nil, err
	}
	return entry.Info()
}
