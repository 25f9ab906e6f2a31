// Package migrations holds the schema as golang-migrate files; postgres.Migrate applies them. schema.sql is what they
// make, dumped by make schema: read that to see the tables.
//
// 0001 to 0008 are River's own schema versions, so that one tool owns the whole schema. Each is a file because River
// needs the values that one version adds to an enum to be committed before the next uses them, and each writes the row
// by which River knows the version. Varve's own tables begin at 0020; a new River version takes the next free number.
//
// A file is one transaction: postgres.Migrate relies on it to recover from an interrupted migration. The role of the
// serving processes is not made here but by postgres.Migrate, since it belongs to the server and not to the database;
// grants.sql, which is executed after every migration, has its rights, and rights.txt the table that it makes.
//
// A release has one file, which is edited until the release is tagged. From then on it never changes, because databases
// have applied it: checksums.txt lists those files.
package migrations

import (
	"embed"
	"io/fs"
	"regexp"
	"slices"
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

//go:embed rights.txt
var rights string

// Schema is the schema that the files name.
const Schema = "public"

var schemaInText = regexp.MustCompile(`\b` + Schema + `\b`)

// In returns the SQL of a file for another schema, which needs no quotes within a word.
func In(schema, sql string) string {
	if schema == Schema {
		return sql
	}
	return schemaInText.ReplaceAllLiteralString(sql, `"`+schema+`"`)
}

// Right is a right of a role on an object.
type Right struct {
	Role, Kind, Object, Privilege string
	Column                        string // "" for all
}

// Rights returns the rights of the roles on what is in the schema, which rights.txt has.
var Rights = sync.OnceValue(func() (all []Right) {
	for line := range strings.Lines(rights) {
		of, has, _ := strings.Cut(strings.TrimSpace(line), ": ")
		kind, object, _ := strings.Cut(of, " ")
		role, privileges, _ := strings.Cut(has, " ")
		if !slices.Contains([]string{"FUNCTION", "SCHEMA", "SEQUENCE", "TABLE"}, kind) || role == "PUBLIC" {
			continue
		}
		privileges, _, _ = strings.Cut(privileges, " as the owner")
		privileges, columns, _ := strings.Cut(strings.TrimRight(privileges, ")"), " (")
		for privilege := range strings.SplitSeq(privileges, ", ") {
			for column := range strings.SplitSeq(columns, ", ") {
				all = append(all, Right{role, kind, object, privilege, column})
			}
		}
	}
	return all
})

// Versions returns the versions of the schema in their order.
var Versions = sync.OnceValues(func() (all []int, err error) {
	names, err := fs.Glob(FS, "*.up.sql") // sorted, and all begin with four digits
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		version, err := strconv.Atoi(name[:4])
		if err != nil {
			return nil, err
		}
		all = append(all, version)
	}
	return all, nil
})
