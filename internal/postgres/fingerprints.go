package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/migrations"
)

// ErrForeignSchema is wrapped where a database's schema is not what this program's migrations make, or is too new.
// Trying again does not help.
var ErrForeignSchema = errors.New("the database's schema is not one that this program can use")

// fingerprintsTable says which edition of each migration a database has applied, and the oldest program that may serve
// it then. Migrate makes it and not a migration, as with schema_migrations: every migration has its row from the start.
const fingerprintsTable = `
	CREATE TABLE IF NOT EXISTS schema_fingerprints (
	    version integer PRIMARY KEY,
	    sha256 text NOT NULL,
	    oldest_program integer NOT NULL,
	    recorded_at timestamptz NOT NULL DEFAULT now()
	)`

// recordSQL returns the statement that writes a migration's fingerprint.
func recordSQL(f migrations.File) string {
	return fmt.Sprintf(`
		INSERT INTO schema_fingerprints (version, sha256, oldest_program)
		VALUES (%d, '%s', %d)
		ON CONFLICT (version) DO UPDATE SET sha256 = excluded.sha256, oldest_program = excluded.oldest_program`,
		f.Version, f.Up, f.Oldest)
}

// fingerprint is a row of schema_fingerprints.
type fingerprint struct {
	sha256 string
	oldest int
}

// fingerprints returns those of a database by version, none if it is from before there were any.
func fingerprints(ctx context.Context, db rowQuerier) (map[int]fingerprint, error) {
	var versions, oldest []int
	var sums []string
	err := db.QueryRow(ctx, `
		SELECT array_agg(version ORDER BY version), array_agg(sha256 ORDER BY version),
		       array_agg(oldest_program ORDER BY version)
		  FROM schema_fingerprints`).Scan(&versions, &sums, &oldest)
	if hasCode(err, "42P01") { // undefined_table
		return nil, nil
	}
	found := map[int]fingerprint{}
	for i, version := range versions {
		found[version] = fingerprint{sums[i], oldest[i]}
	}
	return found, err
}

// missingFingerprints returns the migrations through a version whose fingerprints a database lacks, and
// ErrForeignSchema if it has that of another edition of one.
func missingFingerprints(applied map[int]fingerprint, version int) (missing []migrations.File, err error) {
	all, err := migrations.All()
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		found, ok := applied[f.Version]
		switch {
		case f.Version > version:
			return missing, nil
		case !ok:
			missing = append(missing, f)
		case found.sha256 != f.Up:
			return nil, fmt.Errorf("%w: it was made by another edition of migration %04d, with SHA-256 %.12s… "+
				"where this program has %.12s…: use the program that made it, and move its data with varve export "+
				"and varve import", ErrForeignSchema, f.Version, found.sha256, f.Up)
		}
	}
	return missing, nil
}

// checkFingerprints returns an error unless a database of the version have was made by the migrations of this program,
// whose newest is want, and may be served by it.
func checkFingerprints(ctx context.Context, db rowQuerier, have, want int) error {
	applied, err := fingerprints(ctx, db)
	if err != nil {
		return err
	}
	missing, err := missingFingerprints(applied, have)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%w: nothing in it says that migration %04d made it: run varve migrate, which finds out",
			ErrForeignSchema, missing[0].Version)
	}
	if err != nil || have <= want {
		return err
	}
	oldest := 0
	for version, f := range applied {
		if version <= have {
			oldest = max(oldest, f.oldest)
		}
	}
	if _, known := applied[have]; !known || oldest > want {
		return fmt.Errorf("%w: it has version %d, this program was made for %d, and only programs for %d or newer "+
			"may serve it: use the release that migrated it", ErrForeignSchema, have, want, max(oldest, want+1))
	}
	return nil
}

// keepFingerprints makes the table of fingerprints, and gives a database from before there were any those of the
// migrations that made it, if its catalog is what they make; ErrForeignSchema.
func keepFingerprints(ctx context.Context, conn *pgx.Conn) error {
	have, _, err := schemaVersion(ctx, conn)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := exec(ctx, tx, fingerprintsTable); err != nil {
			return err
		}
		applied, err := fingerprints(ctx, tx)
		if err != nil {
			return err
		}
		missing, err := missingFingerprints(applied, have)
		if err != nil || len(missing) == 0 {
			return err
		}
		if err := checkFacts(ctx, tx, have); err != nil {
			return err
		}
		for _, f := range missing {
			if err := exec(ctx, tx, recordSQL(f)); err != nil {
				return err
			}
		}
		return nil
	})
}

var schemaFactsSQL = statement("schema_facts")

// schemaFacts returns what the catalog says of the schema.
func schemaFacts(ctx context.Context, tx pgx.Tx) ([]string, error) {
	if err := exec(ctx, tx, `SET LOCAL search_path = public`); err != nil { // names of the catalog depend on it
		return nil, err
	}
	return rowsIn(ctx, tx, pgx.RowTo[string], schemaFactsSQL)
}

// shownDifferences is how many differences an error names.
const shownDifferences = 10

// checkFacts returns ErrForeignSchema unless the catalog has what the migrations through a version make. Tables,
// indexes and functions besides are the operator's.
func checkFacts(ctx context.Context, tx pgx.Tx, version int) error {
	found, err := schemaFacts(ctx, tx)
	if err != nil {
		return err
	}
	wrong := differences(found, migrations.Facts(version))
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: it says that it has version %d, but %d things are not as the migrations make them, so "+
		"that others made it, or a hand changed it:\n    %s\nundo that, and run varve migrate again",
		ErrForeignSchema, version, len(wrong), strings.Join(wrong[:min(len(wrong), shownDifferences)], "\n    "))
}

// differences returns what found lacks of want, and what it has that changes one of our tables: what may be in its
// rows, or who sees them.
func differences(found []string, want map[string]migrations.CatalogEntry) (wrong []string) {
	ours := map[string]bool{}
	for text := range want {
		if name, ok := strings.CutPrefix(text, "table "); ok {
			ours[firstWord(name)] = true
		}
	}
	for _, text := range found {
		kind, rest, _ := strings.Cut(text, " ")
		_, known := want[text]
		changes := kind == "column" || kind == "constraint" || kind == "trigger" || kind == "policy"
		if !known && changes && ours[firstWord(rest)] {
			wrong = append(wrong, "it has the "+text)
		}
		delete(want, text)
	}
	for text, f := range want {
		wrong = append(wrong, fmt.Sprintf("it lacks the %s of migration %04d", text, f.Version))
	}
	slices.Sort(wrong)
	return wrong
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}
