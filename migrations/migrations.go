// Package migrations holds the schema as golang-migrate files; postgres.Migrate applies them. schema.sql is what they
// make, dumped by make schema: read that to see the tables.
//
// 0001 to 0008 are River's own schema versions, so that one tool owns the whole schema. Each is a file because River
// needs the values that one version adds to an enum to be committed before the next uses them, and each writes the row
// by which River knows the version. Varve's own tables begin at 0020; a new River version takes the next free number.
//
// A file is one transaction: postgres.Migrate relies on it to recover from an interrupted migration. The role of the
// serving processes is not made here but by postgres.Migrate, since it belongs to the server and not to the database;
// grants.sql, which is executed after every migration, has its rights.
//
// A file that has landed never changes, because databases have applied it: checksums.txt lists all of them, with the
// oldest program that may serve a database of each version. facts.txt has what each version adds to the catalog and
// takes from it, by which postgres.Migrate recognises a database from before there were fingerprints. make schema
// writes both.
package migrations

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
)

// FS holds the migration files.
//
//go:embed [0-9]*.sql
var FS embed.FS

// Grants is grants.sql.
//
//go:embed grants.sql
var Grants string

//go:embed checksums.txt
var checksums string

//go:embed facts.txt
var facts string

// File is one migration: the file that applies it and the one that takes it back.
type File struct {
	Version  int
	Up, Down string // SHA-256 in hexadecimal digits
	Oldest   int    // the newest version that the oldest program knows which may serve a database of this one
}

// All returns the migrations in their order. One that checksums.txt does not list is served by the programs that the
// one before it is served by.
var All = sync.OnceValues(func() (all []File, err error) {
	listed, err := parse(checksums)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(FS, "*.up.sql") // sorted, and all begin with four digits
	if err != nil {
		return nil, err
	}
	oldest := 0
	for _, name := range names {
		f := File{}
		if f.Version, err = strconv.Atoi(name[:4]); err != nil {
			return nil, err
		}
		if f.Up, err = sum(name); err != nil {
			return nil, err
		}
		if f.Down, err = sum(strings.TrimSuffix(name, ".up.sql") + ".down.sql"); err != nil {
			return nil, err
		}
		if line, ok := listed[f.Version]; ok {
			oldest = line.Oldest
		}
		f.Oldest = oldest
		all = append(all, f)
	}
	return all, nil
})

func sum(name string) (string, error) {
	text, err := FS.ReadFile(name)
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:]), err
}

func parse(text string) (map[int]File, error) {
	listed := map[int]File{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var f File
		if _, err := fmt.Sscanf(line, "%d %d %s %s", &f.Version, &f.Oldest, &f.Up, &f.Down); err != nil {
			return nil, fmt.Errorf("checksums.txt: %q: %w", line, err)
		}
		listed[f.Version] = f
	}
	return listed, nil
}

// CatalogEntry is one thing that the catalog says of the schema, and the migration that made it so.
type CatalogEntry struct {
	Text    string
	Version int
}

// Facts returns what the catalog says of the schema after a version, by its text.
func Facts(version int) map[string]CatalogEntry {
	found := map[string]CatalogEntry{}
	at := 0
	lines := bufio.NewScanner(strings.NewReader(facts))
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "+"):
			found[line[1:]] = CatalogEntry{Text: line[1:], Version: at}
		case strings.HasPrefix(line, "-"):
			delete(found, line[1:])
		case !strings.HasPrefix(line, "#"):
			if at, _ = strconv.Atoi(line); at > version { // a test compares the file with what makes it
				return found
			}
		}
	}
	return found
}
