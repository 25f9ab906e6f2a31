package wire

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// picture returns a PNG of this size in base64.
func picture(t testing.TB, width, height int) string {
	t.Helper()
	return pictureOf(width, height)
}

func pictureOf(width, height int) string {
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(data.Bytes())
}

// showing writes the block of an image with a type and its base64, or of one that is elsewhere, in each format.
var showing = map[session.Format]struct{ message, data, elsewhere string }{
	session.OpenAIChat: {`{"role":"user","content":[{"type":"text","text":"see"},%s]}`,
		`{"type":"image_url","image_url":{"url":"data:%s;base64,%s","detail":"high"}}`, `{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}`},
	session.OpenAIResponses: {`{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},%s]}`,
		`{"type":"input_image","detail":"high","image_url":"data:%s;base64,%s"}`, `{"type":"input_image","detail":"high","image_url":"https://example.org/a.png"}`},
	session.Anthropic: {`{"role":"user","content":[{"type":"text","text":"see"},%s]}`,
		`{"type":"image","cache_control":{"type":"ephemeral"},"source":{"type":"base64","media_type":"%s","data":"%s"}}`, `{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}`},
	session.Gemini: {`{"role":"user","parts":[{"text":"see"},%s]}`,
		`{"inlineData":{"mimeType":"%s","data":"%s"}}`, `{"fileData":{"mimeType":"image/png","fileUri":"https://example.org/a.png"}}`},
	session.AISDK: {`{"id":"m","role":"user","parts":[{"type":"text","text":"see"},%s]}`,
		`{"type":"file","mediaType":"%[1]s","url":"data:%[1]s;base64,%[2]s"}`, `{"type":"file","mediaType":"image/png","url":"https://example.org/a.png"}`},
}

// messageShowing returns a message of a format that shows images.
func messageShowing(f session.Format, blocks ...string) string {
	return fmt.Sprintf(showing[f].message, strings.Join(blocks, ","))
}

// bytesShown returns the block of an image in a message.
func bytesShown(f session.Format, kind, data string) string {
	return fmt.Sprintf(showing[f].data, kind, data)
}

const fileByURL = `{"type":"file","file":{"filename":"a.pdf","file_data":"https://example.org/a.pdf"}}`

// dataOf has the beginning of a file of a type in base64.
var dataOf = map[string]string{
	"image/gif": "R0lGODlhAQABAIAAAAAA", "image/webp": "UklGRhoAAABXRUJQVlA4TA0A", "image/heic": "AAAAGGZ0eXBoZWljAAAAAG1pZjFoZWlj",
	"image/avif": "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYx", "image/bmp": "Qk1GAAAAAAAAADYAAAAoAAAA", "image/tiff": "SUkqAAgAAAAAAAAAAAAA",
	"image/svg+xml": "PHN2ZyB4bWxucz0iaHR0cDovL3d3",
}

var mediaFixtures = func() map[session.Format][]fixture {
	made := map[session.Format][]fixture{}
	for f := range showing {
		o, n := Options{}, provider.Of(f).Media.Images
		if f == session.AISDK {
			o.Dialect, n = provider.Anthropic, 100
		}
		many := slices.Repeat([]string{showing[f].elsewhere}, n)
		made[f] = []fixture{
			{"V-T2", "a PNG", o, []string{messageShowing(f, bytesShown(f, "image/png", pictureOf(3, 2)))}, nil},
			{"V-T2", "a PNG that is called a JPEG", o, []string{messageShowing(f, bytesShown(f, "image/jpeg", pictureOf(3, 2)))}, []string{"V-T2 0"}},
			{"V-T2", "no bytes", o, []string{messageShowing(f, bytesShown(f, "image/png", ""))}, []string{"V-T2 0"}},
			{"V-T2", "nothing at its place", o, []string{messageShowing(f, strings.Replace(showing[f].elsewhere, "https://example.org/a.png", "", 1))}, []string{"V-T2 0"}},
			{"V-T2", "a place that only the user's machine has", o, []string{messageShowing(f, strings.Replace(showing[f].elsewhere, "https://example.org", "file://", 1))}, []string{"V-T2 0"}},
			{"V-T2", "a path", o, []string{messageShowing(f, strings.Replace(showing[f].elsewhere, "https://example.org", "", 1))}, []string{"V-T2 0"}},
			{"V-T2", "a place in a program", o, []string{messageShowing(f, strings.Replace(showing[f].elsewhere, "https://example.org", "sandbox:", 1))}, []string{"V-T2 0"}},
			{"V-T2", "no base64", o, []string{messageShowing(f, bytesShown(f, "image/png", "not an image!"))}, []string{"V-T2 0"}},
			{"V-T2", "base64 that is cut", o, []string{messageShowing(f, bytesShown(f, "image/jpeg", "/9j/4AAQSkZJRgABA"))}, []string{"V-T2 0"}},
			{"V-T2", "a text that is called an image", o, []string{messageShowing(f, bytesShown(f, "image/webp", "aGVsbG8gd29ybGQsIGhlbGxv"))}, []string{"V-T2 0"}},
			{"V-T3", "as many as there may be", o, []string{messageShowing(f, many...)}, nil},
			{"V-T3", "one more", o, []string{messageShowing(f, append(many, showing[f].elsewhere)...)}, []string{"V-T3 0"}},
		}
	}
	for f := range showing {
		var wrong []string
		if f != session.Gemini { // Google reads every spelling
			wrong = []string{"V-T2 0"}
		}
		for _, of := range [][2]string{
			{"no padding", "/9j/4AAQSkZJRgABAQ"}, {"too much padding", "/9j/4AAQSkZJRgABAQAA="}, {"the alphabet for URLs", "_9j_4AAQSkZJRgABAQAA"},
			{"lines", `/9j/4AAQSk\r\nZJRgABAQAA\n`}, {"blanks around it", " /9j/4AAQSkZJRgABAQAA "},
		} {
			made[f] = append(made[f], fixture{"V-T2", of[0], Options{}, []string{messageShowing(f, bytesShown(f, "image/jpeg", of[1]))}, wrong})
		}
	}
	lone := Options{}
	for f, types := range map[session.Format][2]string{
		session.OpenAIChat: {"image/gif", "image/heic"}, session.OpenAIResponses: {"image/webp", "image/svg+xml"}, session.Gemini: {"image/heic", "image/bmp"},
	} {
		made[f] = append(made[f],
			fixture{"V-T2", types[0], lone, []string{messageShowing(f, bytesShown(f, types[0], dataOf[types[0]]))}, nil},
			fixture{"V-T2", types[1], lone, []string{messageShowing(f, bytesShown(f, types[1], dataOf["image/heic"]))}, []string{"V-T2 0"}})
	}
	made[session.OpenAIChat] = append(made[session.OpenAIChat],
		fixture{"V-T2", "no type, and bytes that tell none", lone, []string{messageShowing(session.OpenAIChat, bytesShown(session.OpenAIChat, "", "aGVsbG8gd29ybGQsIGhlbGxv"))}, []string{"V-T2 0"}},
		fixture{"V-T2", "HEIC, before any model", Options{Dialect: provider.OpenRouter}, []string{messageShowing(session.OpenAIChat, bytesShown(session.OpenAIChat, "image/heic", dataOf["image/heic"]))}, nil},
		fixture{"V-T2", "a file by its URL", Options{Dialect: provider.OpenRouter}, []string{messageShowing(session.OpenAIChat, fileByURL)}, nil},
		fixture{"V-T2", "a file by its URL at OpenAI", lone, []string{messageShowing(session.OpenAIChat, fileByURL)}, []string{"V-T2 0"}})
	for _, of := range []struct {
		f          session.Format
		said, data string
	}{
		{session.Gemini, "image/png", "image/gif"}, {session.Gemini, "image/jpeg", "image/heic"}, {session.Gemini, "png", "image/webp"},
		{session.Gemini, "application/octet-stream", "image/webp"}, {session.OpenAIChat, "image/png", "image/heic"}, {session.OpenAIChat, "png", "image/gif"},
		{session.OpenAIResponses, "image/jpeg", "image/bmp"}, {session.Anthropic, "image/png", "image/avif"},
		{session.AISDK, "image/webp", "image/tiff"}, {session.OpenAIChat, "image/png", "image/svg+xml"},
	} {
		made[of.f] = append(made[of.f], fixture{"V-T2", of.data + " that is called " + of.said, lone,
			[]string{messageShowing(of.f, bytesShown(of.f, of.said, dataOf[of.data]))}, []string{"V-T2 0"}})
	}
	made[session.Gemini] = append(made[session.Gemini],
		fixture{"V-T2", "a GIF", lone, []string{messageShowing(session.Gemini, bytesShown(session.Gemini, "image/gif", dataOf["image/gif"]))}, []string{"V-T2 0"}})
	made[session.Anthropic] = append(made[session.Anthropic],
		fixture{"V-T2", "elsewhere, at Bedrock", Options{Dialect: provider.Bedrock}, []string{messageShowing(session.Anthropic, showing[session.Anthropic].elsewhere)}, []string{"V-T2 0"}},
		fixture{"V-T2", "in the message, at Vertex", Options{Dialect: provider.Vertex}, []string{messageShowing(session.Anthropic, bytesShown(session.Anthropic, "image/png", pictureOf(3, 2)))}, nil})
	made[session.OpenAIResponses] = append(made[session.OpenAIResponses],
		fixture{"V-T2", "a file that is elsewhere in the place of base64", lone, []string{messageShowing(session.OpenAIResponses, `{"type":"input_file","filename":"a.pdf","file_data":"https://example.org/a.pdf"}`)}, []string{"V-T2 0"}},
		fixture{"V-T2", "a file that is elsewhere", lone, []string{messageShowing(session.OpenAIResponses, `{"type":"input_file","file_url":"https://example.org/a.pdf"}`)}, nil})
	made[session.Anthropic] = append(made[session.Anthropic],
		fixture{"V-T2", "a URL in the place of base64", lone, []string{messageShowing(session.Anthropic, bytesShown(session.Anthropic, "image/png", "data:image/png;base64,"+pictureOf(3, 2)))}, []string{"V-T2 0"}},
		fixture{"V-T2", "no source", lone, []string{messageShowing(session.Anthropic, `{"type":"image"}`)}, []string{"V-T2 0"}},
		fixture{"V-T2", "null in the place of base64", lone, []string{messageShowing(session.Anthropic, strings.Replace(bytesShown(session.Anthropic, "image/png", "N"), `"N"`, "null", 1))}, []string{"V-T2 0"}},
		fixture{"V-T2", "a file by its id", lone, []string{messageShowing(session.Anthropic, `{"type":"image","source":{"type":"file","file_id":"file_1"}}`)}, nil},
		fixture{"V-T2", "a document that is a text", lone, []string{messageShowing(session.Anthropic, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"}}`)}, nil})
	return made
}()

// TestTheNewestImagesStay renders views of more than a server takes, in number, pixels and bytes: what is left out is
// the oldest, and named with its ref, and what is mistyped gets its true type and keeps all else.
func TestTheNewestImagesStay(t *testing.T) {
	t.Parallel()
	small, wide, huge := picture(t, 40, 30), picture(t, 2400, 10), picture(t, 9000, 10)
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n" + strings.Repeat("<< /Type /Page >> ", 40)))
	block := func(data string) string {
		if data == pdf {
			return `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"}}`
		}
		return strings.Replace(bytesShown(session.Anthropic, "image/png", data), `"cache_control":{"type":"ephemeral"},`, "", 1)
	}
	heavy := small[:len(small)/4*4-4] + strings.Repeat("AAAA", 1_300_000)
	for name, of := range map[string]struct {
		o        Options
		messages [][]string // data of the images of each
		left     []int      // messages whose first image is left out
	}{
		"101":                    {Options{}, slices.Repeat([][]string{{small}}, 101), []int{0}},
		"101 for a long window":  {Options{Model: "claude-sonnet-5"}, slices.Repeat([][]string{{small}}, 101), nil},
		"601 for a long window":  {Options{Model: "claude-sonnet-5"}, slices.Repeat([][]string{{small}}, 601), []int{0}},
		"21, one wide":           {Options{}, append(slices.Repeat([][]string{{small}}, 20), []string{wide}), []int{20}},
		"20, one wide":           {Options{}, append(slices.Repeat([][]string{{small}}, 19), []string{wide}), nil},
		"23, five wide":          {Options{}, append(slices.Repeat([][]string{{wide}}, 5), slices.Repeat([][]string{{small}}, 18)...), []int{0, 1, 2}},
		"one of 9,000 pixels":    {Options{}, [][]string{{small}, {huge}, {small}}, []int{1}},
		"8 of 5 MB":              {Options{}, slices.Repeat([][]string{{heavy}}, 8), []int{0, 1, 2}},
		"4 of 5 MB at Bedrock":   {Options{Dialect: provider.Bedrock}, slices.Repeat([][]string{{heavy}}, 4), []int{0}},
		"120 pages":              {Options{}, slices.Repeat([][]string{{pdf}}, 3), []int{0}},
		"120, for a long window": {Options{Model: "claude-sonnet-5"}, slices.Repeat([][]string{{pdf}}, 3), nil},
		"one of more than 5 MB":  {Options{}, [][]string{{heavy + "AAAAAAAAAAAA" + strings.Repeat("AAAA", 20_000)}}, []int{0}},
	} {
		var list []string
		for _, m := range of.messages {
			list = append(list, messageShowing(session.Anthropic, block(m[0])), `{"role":"assistant","content":"I see."}`)
		}
		list = append(list, `{"role":"user","content":"go on"}`)
		view := storedAs(session.Anthropic, list)
		made := rendered(session.Anthropic, view, of.o)
		var left []int
		for i := range of.messages {
			body := string(made.Bodies[2*i])
			switch ref := fmt.Sprintf(": read_result m%d]", view[2*i].Seq); {
			case !strings.Contains(body, `"source"`) && strings.Contains(body, ref):
				left = append(left, i)
			case body != list[2*i]:
				t.Errorf("%s: message %d is %.300s", name, 2*i, body)
			}
		}
		if diff := cmp.Diff(of.left, left); diff != "" || len(made.Repairs) != len(of.left) {
			t.Errorf("%s: %d repairs, left out (-want +got):\n%s", name, len(made.Repairs), diff)
		}
		v := NewFastValidator(session.Anthropic)
		for i := range view {
			shape := ShapeOfBody(session.Anthropic, view[i].Body)
			v.Add(&shape)
		}
		if v.ValidFor(of.o) && of.left != nil && !strings.Contains(name, "5 MB") {
			t.Errorf("%s: the view is sent as it is stored", name)
		}
	}
}

// TestAMistypedImageKeepsAllButItsType has one in a message and one in a result, in each format.
func TestAMistypedImageKeepsAllButItsType(t *testing.T) {
	t.Parallel()
	data := picture(t, 40, 30)
	results := map[session.Format][2]string{
		session.Anthropic: {`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[%s]}]}`},
		session.OpenAIResponses: {`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c","output":[%s]}`},
	}
	for f := range showing {
		list := []string{messageShowing(f, bytesShown(f, "image/gif", data))}
		want := []string{messageShowing(f, bytesShown(f, "image/png", data))}
		if calls := results[f]; calls[0] != "" {
			list = append(list, calls[0], fmt.Sprintf(calls[1], bytesShown(f, "image/webp", strings.ReplaceAll(data, "/", `\/`))))
			want = append(want, calls[0], fmt.Sprintf(calls[1], bytesShown(f, "image/png", strings.ReplaceAll(data, "/", `\/`))))
		}
		made := rendered(f, storedAs(f, list), Options{})
		if diff := cmp.Diff(want, stringsOf(made.Bodies[:len(want)])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f, diff)
		}
		for _, repair := range made.Repairs {
			if repair.Kind != "media_retyped" || repair.Rule != "V-T2" {
				t.Errorf("%s: %v", f, repair)
			}
		}
		if told := Warnings(f, []byte(list[0]), FlagMayNeedRepair, ""); len(told) != 1 || told[0].Code != "media_retyped" || told[0].Pointer == "" {
			t.Errorf("%s: an append tells %v", f, told)
		}
	}
}

// TestADataURLAndBase64ChangePlaces has the places in which programs put the one where the other belongs.
func TestADataURLAndBase64ChangePlaces(t *testing.T) {
	t.Parallel()
	data := picture(t, 40, 30)
	url := "data:image/gif;base64," + data
	want := bytesShown(session.Anthropic, "image/png", data)
	const pdf, jpeg = "JVBERi0xLjcK", "/9j/4AAQSkZJRgABAQAA"
	for name, of := range map[string]struct {
		format      session.Format
		block, want string
	}{
		"base64 that is a URL":       {session.Anthropic, bytesShown(session.Anthropic, "image/png", url), want},
		"of another type":            {session.Anthropic, bytesShown(session.Anthropic, "image/webp", url), want},
		"a URL that is no place":     {session.Anthropic, strings.Replace(want, want[strings.Index(want, `"source":`):], `"source":{"type":"url","url":"`+url+`"}}`, 1), want},
		"a URL that is base64":       {session.Anthropic, strings.Replace(want, want[strings.Index(want, `"source":`):], `"source":{"type":"url","url":"`+data+`"}}`, 1), want},
		"base64 for Chat":            {session.OpenAIChat, strings.Replace(bytesShown(session.OpenAIChat, "image/png", data), "data:image/png;base64,", "", 1), bytesShown(session.OpenAIChat, "image/png", data)},
		"base64 for Responses":       {session.OpenAIResponses, strings.Replace(bytesShown(session.OpenAIResponses, "image/png", data), "data:image/png;base64,", "", 1), bytesShown(session.OpenAIResponses, "image/png", data)},
		"a type in capitals":         {session.Anthropic, bytesShown(session.Anthropic, "IMAGE/PNG", data), want},
		"a name that Google lacks":   {session.Gemini, bytesShown(session.Gemini, "image/jpg", jpeg), bytesShown(session.Gemini, "image/jpeg", jpeg)},
		"a URL without a type":       {session.OpenAIChat, bytesShown(session.OpenAIChat, "", data), bytesShown(session.OpenAIChat, "image/png", data)},
		"a URL that is no object":    {session.OpenAIChat, `{"type":"image_url","image_url":"https://a.b/c.png"}`, `{"type":"image_url","image_url":{"url":"https://a.b/c.png"}}`},
		"a file's URI that is a URL": {session.Gemini, `{"fileData":{"mimeType":"image/gif","fileUri":"` + url + `"}}`, bytesShown(session.Gemini, "image/png", data)},
		"a URI that is base64": {session.Gemini, `{"thoughtSignature":"s","file_data":{"file_uri":"` + data + `","mime_type":"image/png"}}`,
			strings.Replace(bytesShown(session.Gemini, "image/png", data), "{", `{"thoughtSignature":"s",`, 1)},
		"a sound by a URI that is a URL": {session.Gemini, `{"fileData":{"fileUri":"data:audio/wav;base64,UklGRg=="}}`, bytesShown(session.Gemini, "audio/wav", "UklGRg==")},
		"no padding":                     {session.Anthropic, bytesShown(session.Anthropic, "image/jpeg", jpeg[:18]), bytesShown(session.Anthropic, "image/jpeg", jpeg[:18]+"==")},
		"too much padding":               {session.OpenAIResponses, bytesShown(session.OpenAIResponses, "image/png", jpeg+"="), bytesShown(session.OpenAIResponses, "image/jpeg", jpeg)},
		"the alphabet for URLs":          {session.OpenAIChat, bytesShown(session.OpenAIChat, "image/jpeg", "_9j_4AAQSkZJRgABAQAA"), bytesShown(session.OpenAIChat, "image/jpeg", jpeg)},
		"lines":                          {session.AISDK, bytesShown(session.AISDK, "image/jpeg", `/9j/4AAQSk\nZJRgABAQAA\n`), bytesShown(session.AISDK, "image/jpeg", jpeg)},
		"base64 for Chat without padding": {session.OpenAIChat, strings.Replace(bytesShown(session.OpenAIChat, "image/png", jpeg[:18]), "data:image/png;base64,", "", 1),
			bytesShown(session.OpenAIChat, "image/jpeg", jpeg[:18]+"==")},
		"a sound of no known bytes": {session.OpenAIChat, `{"type":"input_audio","input_audio":{"data":"aGVsbG8","format":"wav"}}`,
			`{"type":"input_audio","input_audio":{"data":"aGVsbG8=","format":"wav"}}`},
		"a PDF that is base64": {session.OpenAIChat, `{"type":"file","file":{"filename":"a.pdf","file_data":"` + pdf + `"}}`,
			`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}}`},
		"HEIC that is a JPEG for Google": {session.Gemini, bytesShown(session.Gemini, "image/jpeg", dataOf["image/heic"]), bytesShown(session.Gemini, "image/heic", dataOf["image/heic"])},
		"a type without its kind":        {session.Gemini, bytesShown(session.Gemini, "png", data), bytesShown(session.Gemini, "image/png", data)},
		"bytes of no type":               {session.Gemini, `{"inlineData":{"data":"` + data + `"}}`, bytesShown(session.Gemini, "image/png", data)},
		"bytes of no type for Anthropic": {session.Anthropic, strings.Replace(want, `"media_type":"image/png",`, "", 1), want},
		"bytes of any type":              {session.Gemini, bytesShown(session.Gemini, "application/octet-stream", data), bytesShown(session.Gemini, "image/png", data)},
		"bytes of any type for Chat":     {session.OpenAIChat, bytesShown(session.OpenAIChat, "application/octet-stream", data), bytesShown(session.OpenAIChat, "image/png", data)},
		"a PDF of any type":              {session.Gemini, bytesShown(session.Gemini, "application/octet-stream", pdf), bytesShown(session.Gemini, "application/pdf", pdf)},
		"inline data of a Gemini":        {session.Gemini, bytesShown(session.Gemini, "image/png", url), bytesShown(session.Gemini, "image/png", data)},
	} {
		made := rendered(of.format, storedAs(of.format, []string{messageShowing(of.format, of.block)}), Options{})
		if diff := cmp.Diff([]string{messageShowing(of.format, of.want)}, stringsOf(made.Bodies)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPictureCostsByItsSizeNotByItsBytes(t *testing.T) {
	t.Parallel()
	small, large := picture(t, 300, 200), picture(t, 3000, 2000)
	escaped := strings.ReplaceAll(small, "/", `\/`)
	for name, c := range map[string]struct {
		format session.Format
		block  string
		want   int
	}{
		"tiles":                      {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + small + `"}}`, 255},
		"tiles of a large one":       {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + large + `","detail":"high"}}`, 1105},
		"low detail":                 {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + large + `","detail":"low"}}`, 85},
		"with escapes":               {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"data:image\/png;base64,` + escaped + `"}}`, 255},
		"elsewhere":                  {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}`, 1500},
		"a URL alone":                {session.OpenAIChat, `{"type":"image_url","image_url":"https://example.org/a.png"}`, 1500},
		"no picture":                 {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`, 1500},
		"a file":                     {session.OpenAIChat, `{"type":"file","file":{"file_data":"` + large + `"}}`, 1500},
		"area":                       {session.Anthropic, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + small + `"}}`, 80},
		"area of a large one":        {session.Anthropic, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + large + `"}}`, 1600},
		"area elsewhere":             {session.Anthropic, `{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}`, 1500},
		"inside a result":            {session.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","data":"` + small + `"}}]}`, 80},
		"a document of text":         {session.Anthropic, `{"type":"document","source":{"type":"text","data":"hello world"}}`, 2},
		"a document of bytes":        {session.Anthropic, `{"type":"document","source":{"type":"base64","data":"` + large + `"}}`, 1500},
		"reasoning that is a cipher": {session.Anthropic, `{"type":"redacted_thinking","data":"` + strings.Repeat("QUJD", 400) + `"}`, 300},
	} {
		m := inspect(t, c.format, `{"role":"user","content":[`+c.block+`]}`)
		if got := m.Parts[0].Tokens; got != c.want || m.Tokens != got+MessageTokens {
			t.Errorf("%s: %d tokens, %d of the message, want %d", name, got, m.Tokens, c.want)
		}
	}
}

func TestCountAsksForEveryTextAsTheModelSeesIt(t *testing.T) {
	t.Parallel()
	var asked []string
	body := `{"role":"assistant","content":[{"type":"text","text":"a\nb"},{"type":"thinking","thinking":"\u4e2d"},{"type":"tool_use","id":"c","name":"read","input":{"p":"\n"}},{"type":"zzz"}]}`
	m, err := Count(session.Anthropic, []byte(body), func(text string) (int, error) {
		asked = append(asked, text)
		return 10, nil
	})
	if got, want := strings.Join(asked, "|"), "a\nb|中|read|"+`{"p":"\n"}|{"type":"zzz"}`; err != nil || got != want || m.Tokens != 50+MessageTokens {
		t.Errorf("%d tokens of %q, want of %q; %v", m.Tokens, got, want, err)
	}
}

func stringsOf(bodies [][]byte) (list []string) {
	for _, body := range bodies {
		list = append(list, string(body))
	}
	return list
}
