package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

// mustRefuse fails the test unless an error is ErrForeignSchema and says all of words.
func mustRefuse(t *testing.T, by string, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, postgres.ErrForeignSchema) {
		t.Errorf("%s: %v, want it refused", by, err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want it to say %q", by, err, word)
		}
	}
}

// versionOf returns the version of a database's schema.
func versionOf(t *testing.T, dsn string) int {
	t.Helper()
	have, _, err := postgres.SchemaVersion(t.Context(), openPool(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	return have
}

// TestADatabaseOfAnEditedMigrationIsFound makes what other editions of migrations made, before there were fingerprints.
func TestADatabaseOfAnEditedMigrationIsFound(t *testing.T) {
	t.Parallel()
	for version, c := range map[int]struct {
		sql   string
		words []string
	}{
		29: {`ALTER TABLE messages DROP COLUMN fact`, []string{"lacks the column messages fact text of migration 0029"}},
		42: {`
			ALTER TABLE sessions ALTER COLUMN total_tokens TYPE numeric;
			ALTER TABLE sessions ADD COLUMN more int NOT NULL;
			CREATE POLICY all_of_them ON messages USING (true);
			ALTER TABLE messages NO FORCE ROW LEVEL SECURITY;
			CREATE OR REPLACE FUNCTION refuse_new_body() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
			DROP INDEX sessions_offload`, []string{
			"lacks the column sessions total_tokens bigint", "has the column sessions total_tokens numeric", "has the column sessions more integer",
			"has the policy messages all_of_them", "lacks the table messages row-security forced", "lacks the function refuse_new_body",
			"lacks the index sessions sessions_offload",
		}},
	} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.NewEmpty(t)
			if err := postgres.MigrateTo(t.Context(), dsn, version); err != nil {
				t.Fatal(err)
			}
			mustExec(t, dsn, `DROP TABLE schema_fingerprints; `+c.sql)
			mustRefuse(t, "migrate", postgres.Migrate(t.Context(), dsn), append(c.words, fmt.Sprint("version ", version), "varve migrate")...)
			if now := versionOf(t, dsn); now != version {
				t.Errorf("the refused migration went to version %d", now)
			}
		})
	}
}

func TestADatabaseFromBeforeThereWereFingerprintsGetsThem(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	mustExec(t, dsn, `DROP TABLE schema_fingerprints; CREATE TABLE of_the_operator (id int); CREATE INDEX made_by_the_operator ON messages (created_at)`)
	store := openStore(t, pgtest.API(dsn))
	mustRefuse(t, "start", store.CheckSchema(t.Context()), "varve migrate")
	mustMigrate(t, dsn)
	if err := store.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestADatabaseOfOtherMigrationsIsRefusedByAll(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	store := openStore(t, pgtest.API(dsn))
	var ready postgres.Readiness
	defer ready.Close(t.Context())
	if err := errors.Join(store.CheckSchema(t.Context()), ready.Check(t.Context(), store)); err != nil {
		t.Fatal(err)
	}
	mustExec(t, dsn, `UPDATE schema_fingerprints SET sha256 = repeat('0', 64) WHERE version = 29`)
	for by, err := range map[string]error{
		"start": store.CheckSchema(t.Context()), "readyz": ready.Check(t.Context(), store), "migrate": postgres.Migrate(t.Context(), dsn),
	} {
		mustRefuse(t, by, err, "migration 0029", "000000000000…", "varve export")
	}
}

func TestANewerDatabaseIsServedIfItSaysSo(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	store := openStore(t, pgtest.API(dsn))
	want := versionOf(t, dsn)
	mustExec(t, dsn, `UPDATE schema_migrations SET version = 9999`)
	mustRefuse(t, "nothing says which programs may serve", store.CheckSchema(t.Context()), "9999")
	for _, c := range []struct {
		oldest int
		served bool
	}{{want, true}, {20, true}, {want + 1, false}, {9999, false}} {
		mustExec(t, dsn, fmt.Sprintf(`
			INSERT INTO schema_fingerprints VALUES (9999, 'f', %[1]d)
			ON CONFLICT (version) DO UPDATE SET oldest_program = %[1]d`, c.oldest))
		err := store.CheckSchema(t.Context())
		if c.served {
			if err != nil {
				t.Errorf("programs for %d or newer may serve: %v", c.oldest, err)
			}
			continue
		}
		mustRefuse(t, "too old a program", err, "9999", fmt.Sprintf("only programs for %d or newer", c.oldest))
	}
}
