package object_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/persist/object/s3test"
	"github.com/varve-dev/varve/internal/session"
)

// opened is a store of a test and what the test can do to it behind its back.
type opened struct {
	object.Store
	files string // the directory with the objects
	stop  func(t *testing.T)
}

// stores opens an empty store of each kind.
var stores = map[string]func(t *testing.T) opened{
	"file": func(t *testing.T) opened {
		dir := t.TempDir()
		store, err := object.OpenDir(filepath.Join(dir, "a"))
		if err != nil {
			t.Fatal(err)
		}
		files := filepath.Join(dir, "a")
		return opened{store, files, func(t *testing.T) {
			if err := errors.Join(os.RemoveAll(files), os.WriteFile(files, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}}
	},
	"s3":            func(t *testing.T) opened { return openBucket(t, "") },
	"s3 and prefix": func(t *testing.T) opened { return openBucket(t, "some/prefix") },
}

func openBucket(t *testing.T, prefix string) opened {
	t.Helper()
	server := s3test.New(t)
	config := server.BucketConfig
	config.Prefix = prefix
	store, err := object.OpenBucket(config)
	if err != nil {
		t.Fatal(err)
	}
	return opened{store, filepath.Join(server.Dir(), prefix), func(t *testing.T) {
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
	}}
}

// forEach runs a test on each kind of store.
func forEach(t *testing.T, test func(t *testing.T, store opened)) {
	t.Helper()
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func list(t *testing.T, store object.Store, prefix string) (names []string) {
	t.Helper()
	for info, err := range store.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	slices.Sort(names)
	return names
}

func TestWhatWasPutIsReadInPartsAndWhole(t *testing.T) {
	forEach(t, func(t *testing.T, store opened) {
		body := []byte("0123456789")
		for range 2 { // a second time is harmless
			if err := store.Put(t.Context(), "t/s/o", body); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			at   int64
			size int
			want string
		}{{0, 10, "0123456789"}, {0, 11, "0123456789"}, {3, 4, "3456"}, {9, 5, "9"}, {10, 1, ""}, {99, 1, ""}, {4, 0, ""}} {
			if got, err := store.Get(t.Context(), "t/s/o", c.at, c.size); err != nil || string(got) != c.want {
				t.Errorf("%d bytes from %d are %q, %v, want %q", c.size, c.at, got, err, c.want)
			}
		}
		if err := store.Put(t.Context(), "t/s/empty", nil); err != nil {
			t.Error(err)
		}
		if got, err := store.Get(t.Context(), "t/s/empty", 0, 1); err != nil || len(got) != 0 {
			t.Errorf("an empty object is %q, %v", got, err)
		}
	})
}

func TestWhatIsNotThereIsMissing(t *testing.T) {
	forEach(t, func(t *testing.T, store opened) {
		for _, name := range []string{"t/s/o", "x"} {
			if got, err := store.Get(t.Context(), name, 0, 5); !errors.Is(err, object.ErrMissing) || errors.Is(err, session.ErrResultStore) {
				t.Errorf("%q, %v", got, err)
			}
			if err := store.Delete(t.Context(), name); err != nil {
				t.Errorf("to delete it again: %v", err)
			}
		}
		if names := list(t, store, "t/s"); len(names) != 0 {
			t.Errorf("the empty store has %q", names)
		}
	})
}

func TestAListHasWhatIsBelowAPrefixWithItsAge(t *testing.T) {
	forEach(t, func(t *testing.T, store opened) {
		all := []string{"m", "t/s/a", "t/s/b", "t/s2/c", "t2/s/d"}
		for _, name := range all {
			if err := store.Put(t.Context(), name, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		for prefix, want := range map[string][]string{"": all, "t": all[1:4], "t/s": all[1:3], "none": nil} {
			if got := list(t, store, prefix); !slices.Equal(got, want) {
				t.Errorf("below %q are %q, want %q", prefix, got, want)
			}
		}
		for info, err := range store.List(t.Context(), "t/s2") {
			if age := time.Since(info.Modified); err != nil || info.Size != 6 || age < -time.Minute || age > time.Minute {
				t.Errorf("%+v, %v", info, err)
			}
		}
		if err := errors.Join(store.Delete(t.Context(), "t/s/a"), store.Delete(t.Context(), "t/s/b")); err != nil {
			t.Fatal(err)
		}
		if got := list(t, store, ""); !slices.Equal(got, []string{"m", "t/s2/c", "t2/s/d"}) {
			t.Errorf("left are %q", got)
		}
	})
}

func TestAListOfMoreThanOnePage(t *testing.T) {
	forEach(t, func(t *testing.T, store opened) {
		const objects = 1100
		for n := range objects {
			name := filepath.Join(store.files, "t", "s", fmt.Sprintf("o%d", n))
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if got := list(t, store, "t/s"); len(got) != objects {
			t.Errorf("%d objects, want %d", len(got), objects)
		}
	})
}

func TestNamesThatLeadOutOfAStoreAreRefused(t *testing.T) {
	forEach(t, func(t *testing.T, store opened) {
		for _, name := range []string{"", "/", "..", "../x", "a/../b", "/etc/passwd", "a//b", "a/", ".hidden", "a/.part", "A", "a\x00b", "a b", "ä", strings.Repeat("a", 600)} {
			_, getErr := store.Get(t.Context(), name, 0, 1)
			if err := store.Put(t.Context(), name, nil); err == nil || getErr == nil || store.Delete(t.Context(), name) == nil {
				t.Errorf("%q is taken for the name of an object", name)
			}
		}
	})
}

func TestManyPutAndReadAtOnce(t *testing.T) {
	forEach(t, func(t *testing.T, store opened) {
		body := bytes.Repeat([]byte("0123456789"), 5000)
		var group sync.WaitGroup
		for n := range 8 {
			group.Go(func() {
				for m := range 5 {
					name := fmt.Sprintf("t/s%d/o", m) // the same object by all
					err := store.Put(t.Context(), name, body)
					got, getErr := store.Get(t.Context(), name, int64(n), len(body))
					if err = errors.Join(err, getErr); err != nil || !bytes.Equal(got, body[n:]) {
						t.Errorf("%d bytes, %v", len(got), err)
					}
				}
			})
		}
		group.Wait()
		if names := list(t, store, ""); len(names) != 5 {
			t.Errorf("%q", names)
		}
	})
}

func TestALargeObject(t *testing.T) {
	forEach(t, func(t *testing.T, store opened) {
		body := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/2) // 24 MiB: more than one part of an upload in parts
		if err := store.Put(t.Context(), "t/s/o", body); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Get(t.Context(), "t/s/o", 0, len(body)); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if got, err := store.Get(t.Context(), "t/s/o", 20<<20+3, 5); err != nil || string(got) != "34567" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestAContextThatIsOverEndsEverything(t *testing.T) {
	forEach(t, func(t *testing.T, store opened) {
		if err := store.Put(t.Context(), "t/s/o", []byte("x")); err != nil {
			t.Fatal(err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, getErr := store.Get(over, "t/s/o", 0, 1)
		var listErr error
		for _, err := range store.List(over, "t") {
			listErr = errors.Join(listErr, err)
		}
		for what, err := range map[string]error{
			"put": store.Put(over, "t/s/p", []byte("y")), "get": getErr, "delete": store.Delete(over, "t/s/o"), "list": listErr,
		} {
			if !errors.Is(err, context.Canceled) || errors.Is(err, session.ErrResultStore) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got := list(t, store, ""); !slices.Equal(got, []string{"t/s/o"}) {
			t.Errorf("%q", got)
		}
	})
}

func TestAStoreThatIsDownIsNamed(t *testing.T) {
	forEach(t, func(t *testing.T, store opened) {
		if err := store.Put(t.Context(), "t/s/o", []byte("x")); err != nil {
			t.Fatal(err)
		}
		store.stop(t)
		for what, err := range map[string]error{"put": store.Put(t.Context(), "t/s/p", []byte("y")), "list": firstError(store.List(t.Context(), ""))} {
			if !errors.Is(err, session.ErrResultStore) || !strings.Contains(err.Error(), store.String()) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func firstError(list func(yield func(object.Info, error) bool)) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAFileIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	store := stores["file"](t)
	if err := store.Put(t.Context(), "t/s/o", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"t": 0o700, "t/s": 0o700, "t/s/o": 0o600} {
		info, err := os.Stat(filepath.Join(store.files, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

func TestASymbolicLinkDoesNotLeadOutOfADirectory(t *testing.T) {
	t.Parallel()
	store := stores["file"](t)
	outside := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "o"), []byte("secret"), 0o600), os.Symlink(outside, filepath.Join(store.files, "t"))); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get(t.Context(), "t/o", 0, 6); err == nil {
		t.Errorf("read %q through a link", got)
	}
	if err := store.Put(t.Context(), "t/p", []byte("x")); err == nil {
		t.Error("wrote through a link")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside are %v, %v", left, err)
	}
}

// TestAKeyThatWasRotatedIsReadAgain changes the keys of a bucket while the process runs.
func TestAKeyThatWasRotatedIsReadAgain(t *testing.T) {
	t.Parallel()
	config := s3test.New(t).BucketConfig
	access := "revoked"
	config.Keys = func() (string, string, error) {
		_, secret, err := s3test.Keys()
		return access, secret, err
	}
	store, err := object.OpenBucket(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), "a", []byte("a")); err == nil {
		t.Error("a revoked key is taken")
	}
	access = s3test.AccessKey
	if err := store.Put(t.Context(), "a", []byte("a")); err != nil {
		t.Error(err)
	}
}
