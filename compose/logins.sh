#!/bin/sh
# Makes the logins of docker-compose.yml, with the passwords that its service "passwords" has drawn. PostgreSQL's image
# runs it when it makes the database. The owner makes the others: since PostgreSQL 16 only their maker may grant to them.
set -eu
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" \
    -v owner="$(cat /passwords/owner/password)" \
    -v api="$(cat /passwords/api/password)" \
    -v jobs="$(cat /passwords/jobs/password)" <<'SQL'
CREATE ROLE varve_owner LOGIN CREATEROLE PASSWORD :'owner';
ALTER DATABASE varve OWNER TO varve_owner;
SET ROLE varve_owner;
CREATE ROLE varve_api LOGIN PASSWORD :'api';
CREATE ROLE varve_jobs LOGIN PASSWORD :'jobs';
SQL
