package tools

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
)

// The bounds of an answer's images.
const (
	maxImages     = 10
	maxImageBytes = 8 << 20
	maxImageJSON  = 16 << 20 // of a result in which images are looked for
	imageDepth    = 8        // levels of arrays and objects
)

// imagesOf returns the images in a result that is JSON blocks, as far as an answer has room for them.
func (c *reading) imagesOf(ctx context.Context) ([]Image, error) {
	kind, _, err := mime.ParseMediaType(c.from.Result.MediaType)
	if err != nil || kind != "application/json" || c.from.Stored.Size() > maxImageJSON {
		return nil, nil
	}
	stored, err := c.from.Stored.All(ctx)
	if err != nil {
		return nil, err
	}
	var value any
	if json.Unmarshal(stored, &value) != nil {
		return nil, nil
	}
	room := imageRoom{bytes: maxImageBytes}
	room.look(value, imageDepth)
	return room.found, nil
}

// imageAt returns the image that is the value of a pointer, nil if it is another value.
func (c *reading) imageAt(ctx context.Context, pointer string) (*Image, error) {
	if c.from.Stored.Size() > maxImageJSON {
		return nil, nil
	}
	stored, err := c.from.Stored.All(ctx)
	if err != nil {
		return nil, err
	}
	var value any
	if json.Unmarshal(stored, &value) != nil {
		return nil, nil
	}
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			n := 0
			if _, err := fmt.Sscan(step, &n); err != nil || n < 0 || n >= len(v) {
				return nil, nil
			}
			value = v[n]
		}
	}
	block, _ := value.(map[string]any)
	return imageIn(block), nil
}

// asImage replaces the text of a piece by the image that it is.
func (p *piece) asImage(image *Image) *piece {
	if image == nil {
		return p
	}
	p.Content, p.Bytes = "", 0
	p.Next, p.nextName = nil, ""
	p.images, p.Images = []Image{*image}, 1
	p.note = fmt.Sprintf("the value is an image, %s of %d bytes", image.MediaType, len(image.Data))
	return p
}

// imageRoom collects images while there is room.
type imageRoom struct {
	bytes int
	found []Image
}

func (r *imageRoom) look(value any, depth int) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			if depth > 0 {
				r.look(element, depth-1)
			}
		}
	case map[string]any:
		if image := imageIn(v); image != nil {
			if len(r.found) < maxImages && len(image.Data) <= r.bytes {
				r.found = append(r.found, *image)
				r.bytes -= len(image.Data)
			}
			return
		}
		for _, name := range []string{"content", "value", "output", "result", "parts", "response"} {
			if inner := v[name]; inner != nil && depth > 0 {
				r.look(inner, depth-1)
			}
		}
	}
}

// imageIn returns the image that a block is, in any of the five formats or MCP's: with the data in it, not a link.
func imageIn(block map[string]any) *Image {
	for _, name := range []string{"source", "inlineData", "inline_data", "image_url"} {
		if inner, ok := block[name].(map[string]any); ok {
			block = inner
			break
		}
	}
	for _, name := range []string{"image_url", "url", "data", "image"} {
		text, ok := block[name].(string)
		if !ok {
			continue
		}
		kind := firstText(block, "media_type", "mediaType", "mimeType", "mime_type")
		if head, data, ok := strings.Cut(text, ","); ok && strings.HasPrefix(head, "data:") {
			kind, text = strings.TrimSuffix(strings.TrimPrefix(head, "data:"), ";base64"), data
		}
		if data, err := base64.StdEncoding.DecodeString(text); err == nil && strings.HasPrefix(kind, "image/") {
			return &Image{MediaType: kind, Data: data}
		}
	}
	return nil
}

func firstText(block map[string]any, names ...string) string {
	for _, name := range names {
		if text, ok := block[name].(string); ok {
			return text
		}
	}
	return ""
}
