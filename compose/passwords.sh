#!/bin/sh
# Draws a password for each login of docker-compose.yml, once: as it is, and as the line of a PGPASSFILE.
set -eu
for login in postgres varve_owner varve_api varve_jobs; do
    dir=/passwords/${login#varve_}
    [ -s "$dir/pgpass" ] && continue
    word=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
    printf %s "$word" > "$dir/password"
    printf 'postgres:5432:varve:%s:%s\n' "$login" "$word" > "$dir/pgpass"
    chmod 444 "$dir/password" "$dir/pgpass" # each volume is mounted only where its login is used
done
