-- River's schema version 1, as github.com/riverqueue/river v0.51.0 (MPL-2.0) makes it, with its row in river_migration.
CREATE TABLE river_migration(
  id bigserial PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT NOW(),
  version bigint NOT NULL,
  CONSTRAINT version CHECK (version >= 1)
);

CREATE UNIQUE INDEX ON river_migration USING btree(version);

INSERT INTO river_migration (version) VALUES (1);
