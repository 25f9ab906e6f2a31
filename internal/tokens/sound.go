package tokens

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// Costs are what a file costs in tokens.
type Costs struct {
	Page  int // of a PDF
	Audio int // a second of a sound
	Video int // a second of a film, with its sound
}

// What providers say. Anthropic: 1,500 to 3,000 tokens a page, with the picture of the page (docs.anthropic.com, PDF
// support); it hears and sees nothing that has seconds, but it is not known who is behind the AI SDK. Google:
// ai.google.dev, document understanding and token counting. OpenAI: a token for a tenth of a second of the user's sound
// (platform.openai.com, managing costs).
var (
	CostsOfAnthropic = Costs{Page: 2250, Audio: 32, Video: 263}
	CostsOfGoogle    = Costs{Page: 258, Audio: 32, Video: 263}
	CostsOfOpenAI    = Costs{Page: Unknown, Audio: 10, Video: 263}
)

// File returns the tokens of a file in base64 that is said to be of a media type: by its pages if it is a PDF, by its
// seconds if it is a sound or a film, else Unknown.
func (c Costs) File(encoded []byte, mediaType string) int {
	if pages := Pages(encoded); pages > 0 {
		return pages * c.Page
	}
	size := base64.StdEncoding.DecodedLen(len(encoded))
	switch {
	case strings.HasPrefix(mediaType, "audio/"):
		return max(c.Audio, size*c.Audio/bytesOfSecond(encoded))
	case strings.HasPrefix(mediaType, "video/"):
		return max(c.Video, size*c.Video/bytesOfFilm)
	}
	return Unknown
}

// How many bytes a second has if that is not told: of 128 kbit of sound, and 2 Mbit of film.
const (
	bytesOfSound = 16_000
	bytesOfFilm  = 250_000
)

// bytesOfSecond returns how many bytes of a sound a second has, by the head of a WAV or an MP3.
func bytesOfSecond(encoded []byte) int {
	head := headOf(encoded, 1<<10)
	if len(head) > 32 && bytes.HasPrefix(head, []byte("RIFF")) && string(head[8:12]) == "WAVE" {
		if rate := binary.LittleEndian.Uint32(head[28:]); 0 < rate && rate < 1<<24 {
			return int(rate)
		}
	}
	if len(head) > 10 && bytes.HasPrefix(head, []byte("ID3")) { // a title, perhaps a picture, comes before the sound
		tag := 10 + int(head[6]&0x7f)<<21 + int(head[7]&0x7f)<<14 + int(head[8]&0x7f)<<7 + int(head[9]&0x7f)
		begin := min(tag/3*4, len(encoded))
		head = headOf(encoded[begin:], 1<<10)
		head = head[min(tag%3, len(head)):]
	}
	if rate := rateOfMP3(head); rate > 0 {
		return rate
	}
	return bytesOfSound
}

// The rates of layer III, in kbit a second, of MPEG 1 and of MPEG 2.
var rates = [2][16]int{
	{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
}

// rateOfMP3 returns the bytes of a second that the first frame of an MP3 tells, 0 if there is none at the beginning.
func rateOfMP3(head []byte) int {
	if len(head) < 4 || head[0] != 0xff || head[1]&0xe6 != 0xe2 {
		return 0
	}
	older := 1 - int(head[1]>>3&1)
	return rates[older][head[2]>>4] * 1000 / 8
}
