#!/usr/bin/env bash
# Writes what is released of a version into dist/: an archive for each platform, with completions, a manual page and the
# documentation, the image as OCI lays it out, packages of the clients, the OpenAPI document, lists of what is in programs
# and packages (CycloneDX), and the checksums of all. It releases the last commit, builds it twice, elsewhere and with another
# cache, and fails unless every byte is the same. The clients need Node and Python; CLIENTS=no leaves them out.
# scripts/release.sh v0.2.0; scripts/release.sh v0.2.0 linux/amd64 is for some platforms only.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?which version?}
version=${version%-dirty} module=$(go list -m) host=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
platforms=${*:2}
platforms=${platforms:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
export GOFLAGS=-mod=readonly CGO_ENABLED=0 LC_ALL=C TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# sbom lists the modules of a program.
sbom() {
	go version -m "$1" | awk -v version="$version" -v module="$module" '
		BEGIN {
			printf "{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.6\", \"version\": 1,\n \"metadata\": {\"component\": "
			printf "{\"type\": \"application\", \"name\": \"%s\", \"version\": \"%s\"}},\n \"components\": [", module, version
		}
		$1 == "dep" {
			printf "%s\n  {\"type\": \"library\", \"name\": \"%s\", \"version\": \"%s\", ", n++ ? "," : "", $2, $3
			printf "\"purl\": \"pkg:golang/%s@%s\"}", $2, $3
		}
		END { print "\n]}" }'
}

# manual writes the help of all commands as a manual page.
manual() {
	printf '.TH VARVE 1 "" "%s"\n.SH NAME\nvarve \\- a session store for LLM agents\n' "$version"
	page() {
		printf '.SH "varve%s"\n.nf\n' "${*:+ $*}"
		"$varve" "$@" --help | sed 's/\\/\\e/g; s/^[.'\'']/\\\&&/'
		printf '.fi\n'
		local word
		for word in $("$varve" complete "$@" '' | awk -F '\t' '$2 != "" { print $1 }'); do page "$@" "$word"; done
	}
	page
}

# packages builds the clients, and lists what each depends on.
packages() {
	local out=$1 dir
	umask 022 && chmod -R u=rwX,go=rX clients # a package keeps the modes of its files
	python3 clients/python/wheel.py "$out"
	for dir in clients/typescript clients/typescript/*/; do
		[ -e "$dir/package.json" ] || continue
		(cd "$dir" && npm install --silent --no-package-lock --no-audit --no-fund --prefer-offline &&
			node_modules/.bin/tsc && npm pack --silent --pack-destination "$out" >/dev/null)
	done
	node - "$out" clients/typescript/package.json clients/typescript/*/package.json <<'JS'
const fs = require('fs')
const [out, ...files] = process.argv.slice(2)
const purl = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`
const write = (file, name, version, of) => fs.writeFileSync(`${out}/${file}.cdx.json`, JSON.stringify({
  bomFormat: 'CycloneDX', specVersion: '1.6', version: 1,
  metadata: { component: { type: 'library', name, version } }, components: of }, null, 1) + '\n')
for (const file of files) {
  const { name, version, dependencies, peerDependencies } = JSON.parse(fs.readFileSync(file))
  write(`${name.slice(1).replace('/', '-')}-${version}`, name, version, Object.entries({ ...dependencies, ...peerDependencies })
    .map(([name, version]) => ({ type: 'library', name, version, purl: purl(name, version) })))
}
const [, version] = /^version = "(.+)"/m.exec(fs.readFileSync('clients/python/pyproject.toml'))
write(`varve-${version}-python`, 'varve', version, []) // it depends on nothing
JS
}

# release builds the checkout in this directory into $1.
release() {
	local out=$1 platform name dir varve programs=()
	for platform in "$host" $platforms; do # the first one is asked for its help
		name=varve-$version-${platform/\//-} dir=$out/$name
		[ ! -d "$dir" ] || continue
		mkdir -p "$dir"
		GOOS=${platform%/*} GOARCH=${platform#*/} go build -trimpath \
			-ldflags "-s -w -X $module/internal/config.version=$version" -o "$dir/varve" ./cmd/varve
		sbom "$dir/varve" >"$out/$name.cdx.json"
		case $platform in linux/*) programs+=("$platform=$dir/varve") ;; esac
		varve=${varve:-$dir/varve}
		cp -r LICENSE NOTICE README.md CHANGELOG.md monitoring systemd "$dir"
		manual >"$dir/varve.1"
		mkdir "$dir/completions"
		for shell in bash zsh fish; do "$varve" completion $shell >"$dir/completions/varve.$shell"; done
		"$varve" docs "$dir/docs"
		tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$out" -c "$name" |
			gzip -n9 >"$out/$name.tar.gz"
	done
	"$varve" docs "$out/docs" && mv "$out/docs/openapi.yaml" "$out"
	[ ${#programs[@]} = 0 ] || CGO_ENABLED=0 go run ./scripts/layout "$version" "$SOURCE_DATE_EPOCH" "${programs[@]}" >"$out/varve-$version-image.tar"
	rm -r "$out"/*/
	if [ "${CLIENTS:-}" != no ]; then packages "$out"; fi
	(cd "$out" && sha256sum -- * >SHA256SUMS)
}

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
git clone -q . "$work/first" && git clone -q . "$work/of/another/path"
(umask 022 && cd "$work/first" && release "$work/dist")
(umask 077 && cd "$work/of/another/path" && GOCACHE=$work/cache release "$work/again")
diff "$work/dist/SHA256SUMS" "$work/again/SHA256SUMS"
rm -rf dist
mv "$work/dist" dist
cat dist/SHA256SUMS
