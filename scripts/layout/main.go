// Command layout writes an image as OCI lays it out, without a container engine: what the last stage of the Dockerfile
// says, with programs that are built already. The same programs give the same bytes.
//
//	go run ./scripts/layout VERSION SECONDS linux/amd64=dist/varve linux/arm64=other/varve >image.tar
//
// SECONDS is the time of everything in it, since 1970.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
}

// image is an image for several platforms.
type image struct {
	version string
	at      time.Time
	recipe  recipe
	files   map[string][]byte // of the layout, by path
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

func run(args []string, to io.Writer) error {
	if len(args) < 3 {
		return fmt.Errorf("%d arguments: see the comment", len(args))
	}
	seconds, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	i := &image{version: args[0], at: time.Unix(seconds, 0).UTC(), files: map[string][]byte{}}
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		return err
	}
	if i.recipe, err = parse(string(dockerfile)); err != nil {
		return err
	}
	var manifests []descriptor
	for _, arg := range args[2:] {
		platform, program, _ := strings.Cut(arg, "=")
		manifest, err := i.add(platform, program)
		if err != nil {
			return err
		}
		manifests = append(manifests, manifest)
	}
	i.files["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	i.files["index.json"] = encode(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests})
	return i.archive(to, i.files, 0o644)
}

// recipe is what the last stage of a Dockerfile says.
type recipe struct {
	user       string
	entrypoint []string
	ports      map[string]struct{}
	labels     map[string]string
	copies     [][2]string // from, to
}

var (
	instruction = regexp.MustCompile(`(?m)^(USER|ENTRYPOINT|EXPOSE|LABEL|COPY --from=build) (.+)$`)
	label       = regexp.MustCompile(`([\w.]+)="([^"]*)"`)
)

func parse(dockerfile string) (r recipe, err error) {
	r = recipe{ports: map[string]struct{}{}, labels: map[string]string{}}
	stage := dockerfile[strings.LastIndex(dockerfile, "\nFROM "):]
	for _, m := range instruction.FindAllStringSubmatch(stage, -1) {
		switch m[1] {
		case "USER":
			r.user = m[2]
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(m[2]), &r.entrypoint)
		case "EXPOSE":
			r.ports[m[2]+"/tcp"] = struct{}{}
		case "LABEL":
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				r.labels[l[1]] = l[2]
			}
		default:
			from, to, _ := strings.Cut(m[2], " ")
			r.copies = append(r.copies, [2]string{from, to})
		}
	}
	if r.user == "" || len(r.entrypoint) == 0 || len(r.copies) == 0 {
		return r, fmt.Errorf("the Dockerfile says too little: %+v", r)
	}
	return r, err
}

// add adds the image for a platform, and returns its manifest.
func (i *image) add(platform, program string) (descriptor, error) {
	system, architecture, _ := strings.Cut(platform, "/")
	layer, err := i.layer(program)
	if err != nil {
		return descriptor{}, err
	}
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // a level that there is
	_, err = zip.Write(layer)
	if err = errors.Join(err, zip.Close()); err != nil {
		return descriptor{}, err
	}
	labels := maps.Clone(i.recipe.labels)
	labels["org.opencontainers.image.version"] = i.version
	config := i.blob(configType, encode(map[string]any{
		"created": i.at, "os": system, "architecture": architecture,
		"config": map[string]any{
			"User": i.recipe.user, "Entrypoint": i.recipe.entrypoint, "ExposedPorts": i.recipe.ports, "Labels": labels,
			"Env": []string{"PATH=" + path.Dir(i.recipe.entrypoint[0])},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
		"history": []any{map[string]any{"created": i.at, "created_by": "scripts/layout"}},
	}))
	manifest := i.blob(manifestType, encode(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config,
		"layers": []descriptor{i.blob(layerType, packed.Bytes())},
	}))
	manifest.Platform = map[string]string{"os": system, "architecture": architecture}
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": i.version}
	return manifest, nil
}

// layer returns what the Dockerfile copies, as a tar. The build's /out/ has the program alone, and what its base has is
// this machine's.
func (i *image) layer(program string) ([]byte, error) {
	files := map[string][]byte{}
	for _, c := range i.recipe.copies {
		from := strings.Replace(c[0], "/out/", program, 1)
		name := path.Base(c[0])
		if from == program {
			name = path.Base(i.recipe.entrypoint[0])
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		files[strings.TrimPrefix(path.Join(c[1], name), "/")] = text
	}
	var layer bytes.Buffer
	err := i.archive(&layer, files, 0o755)
	return layer.Bytes(), err
}

// archive writes files, and the folders that they are in.
func (i *image) archive(to io.Writer, files map[string][]byte, mode int64) error {
	all := maps.Clone(files)
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			all[dir+"/"] = nil
		}
	}
	out := tar.NewWriter(to)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		size := int64(len(all[name]))
		header := &tar.Header{Name: name, Mode: mode, Size: size, ModTime: i.at, Format: tar.FormatUSTAR}
		if strings.HasSuffix(name, "/") {
			header.Typeflag, header.Mode = tar.TypeDir, 0o755
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(all[name]); err != nil {
			return err
		}
	}
	return out.Close()
}

// blob adds bytes to the layout.
func (i *image) blob(kind string, text []byte) descriptor {
	sum := digest(text)
	i.files["blobs/"+strings.Replace(sum, ":", "/", 1)] = text
	return descriptor{MediaType: kind, Digest: sum, Size: len(text)}
}

func digest(text []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(text)) }

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain values
	}
	return text
}
