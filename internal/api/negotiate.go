package api

import (
	"cmp"
	"encoding/base64"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// rendererVersion changes whenever the same view would get other bytes than before.
const rendererVersion = wire.RenditionVersion

// entityTag is a version of a view and how it was rendered, as an ETag has it:
// "<session key>.<checkpoint>.<last seq>.<rendering>".
type entityTag struct {
	version   postgres.Version
	rendering string
}

// degradedTag is the ETag of every view that stands in for another: what is wrong may be mended at any time.
const degradedTag = `W/"degraded"`

// tagOf returns the ETag of the answer to r that is made of a view. What an answer has of the session's settings, its
// window and the rules of its model, may change without the version.
func (r *viewRequest) tagOf(v *postgres.View) string {
	if v.Damage != nil {
		return degradedTag
	}
	b := make([]byte, 0, 64)
	b = append(b, '"')
	b = base64.RawURLEncoding.AppendEncode(b, v.Key[:])
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(v.Checkpoint), 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, v.LastSeq, 10)
	b = append(b, '.')
	b = append(b, r.rendering()...)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(v.Format.Number()), 10)
	model := cmp.Or(r.Model, v.Model)
	if rules := provider.ModelRules(r.Target(v.Format), r.Dialect, model); rules != "" {
		b = append(append(b, '-'), rules...)
	}
	if r.Model != "" { // which takes the reasoning of its own kind only: the session's model wrote it
		b = append(b, "-by"...)
		b = strconv.AppendUint(b, uint64(digestOf(provider.BaseModel(v.Model)+provider.Owner(v.Model))), 36)
	}
	if r.Binds(v) {
		b = append(b, "-u"...)
		b = strconv.AppendInt(b, v.Unbound, 36)
	}
	b = append(b, '.')
	b = strconv.AppendInt(b, v.Window, 36)
	switch {
	case r.MaxTokens > 0 || r.Fit != nil: // its tokens are not known yet
		b = append(b, '.')
		b = strconv.AppendInt(b, v.Room, 36)
		if r.Fit != nil && v.Guess > 0 {
			b = append(b, "-guessed"...)
		}
	case v.Tokens > v.Room:
		b = append(b, "-over"...)
	}
	return string(append(b, '"'))
}

func digestOf(model string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(model))
	return h.Sum32()
}

// rendering returns all of an answer's ETag that depends on the request.
func (r *viewRequest) rendering() string {
	kind, coding := "c", "i"
	if r.full {
		kind = "f"
	} else if r.zstd {
		coding = "z"
	}
	rendering := rendererVersion + kind + coding + strconv.FormatInt(r.MaxTokens, 10)
	if r.Fit != nil {
		rendering += "w"
	}
	if r.Format != "" || r.Model != "" || r.dialect != "" || r.Pending != wire.KeepPending {
		rendering += "-" + strconv.Itoa(int(r.Format.Number())) + string(r.Pending[:1])
		rendering += strconv.FormatUint(uint64(digestOf(r.Model)), 36) + string(r.dialect)
	}
	return rendering
}

// parseTags reads If-None-Match: a list of entity tags, or * for any. Which comparison it asks for does not matter:
// ours are strong, so a weak one is equal if its text is. Tags that are not ours are ignored.
func parseTags(header []string) (tags []entityTag, any bool) {
	for _, line := range header {
		for _, text := range strings.Split(line, ",") {
			text = strings.TrimSpace(text)
			if text == "*" {
				return nil, true
			}
			if tag, ok := parseTag(strings.Trim(strings.TrimPrefix(text, "W/"), `"`)); ok {
				tags = append(tags, tag)
			}
		}
	}
	return tags, false
}

// suffixes are what proxies that compress put behind an ETag.
var suffixes = []string{"-gzip", "--gzip", ";gzip", "-br", "-zstd", "-deflate"}

func parseTag(text string) (tag entityTag, ok bool) {
	for _, suffix := range suffixes {
		text = strings.TrimSuffix(text, suffix)
	}
	part := strings.SplitN(text, ".", 4)
	if len(part) != 4 {
		return tag, false
	}
	key, err := base64.RawURLEncoding.DecodeString(part[0])
	if err != nil || len(key) != len(tag.version.Key) {
		return tag, false
	}
	copy(tag.version.Key[:], key)
	if tag.version.Checkpoint, err = strconv.Atoi(part[1]); err != nil {
		return tag, false
	}
	if tag.version.LastSeq, err = strconv.ParseInt(part[2], 10, 64); err != nil {
		return tag, false
	}
	tag.rendering = part[3]
	return tag, true
}

// known returns the version that the reader most likely has in the rendering that it asks for: the newest one. A
// checkpoint is always read: its body may have been pruned.
func (r *viewRequest) known() (newest postgres.Version) {
	if r.checkpoint > 0 || r.asOf != nil {
		return newest
	}
	rendering := r.rendering() + "."
	for _, tag := range r.tags {
		order := cmp.Or(cmp.Compare(tag.version.Checkpoint, newest.Checkpoint),
			cmp.Compare(tag.version.LastSeq, newest.LastSeq))
		if strings.HasPrefix(tag.rendering, rendering) && order >= 0 {
			newest = tag.version
		}
	}
	return newest
}

// has reports whether If-None-Match names this ETag, so that the reader holds the answer already.
func (r *viewRequest) has(tag string) bool {
	if len(r.tags) == 0 {
		return r.any
	}
	parsed, _ := parseTag(strings.Trim(tag, `"`))
	return slices.Contains(r.tags, parsed)
}

// acceptsZstd reports whether a reader prefers zstd to no coding, by Accept-Encoding with its q-values.
func acceptsZstd(header []string) bool {
	if len(header) == 1 && header[0] == "zstd" {
		return true
	}
	qualities := map[string]float64{}
	for _, line := range header {
		for entry := range strings.SplitSeq(line, ",") {
			coding, parameters, _ := strings.Cut(entry, ";")
			qualities[strings.ToLower(strings.TrimSpace(coding))] = quality(parameters)
		}
	}
	zstd, named := qualities["zstd"]
	if !named {
		zstd = qualities["*"]
	}
	return zstd > 0 && zstd >= qualities["identity"]
}

// quality reads a q-value; without one it is 1, and one that cannot be read is 0.
func quality(parameters string) float64 {
	name, value, found := strings.Cut(strings.TrimSpace(parameters), "=")
	if !found || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 1
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || q < 0 || q > 1 {
		return 0
	}
	return q
}
