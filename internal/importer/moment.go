package importer

import (
	"math"
	"strconv"
	"time"
)

// moment reads a time as programs write it: as text, or as seconds or milliseconds since 1970. It returns the zero time
// for anything else.
func moment(raw []byte) time.Time {
	if isString(raw) {
		return momentText(stringValue(raw))
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || seconds <= 0 || seconds > 1e15 {
		return time.Time{}
	}
	if seconds > 1e11 { // seconds reach this in the year 5138
		seconds /= 1000
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)).UTC().Truncate(time.Microsecond)
}

// momentText reads a time in text. Without a zone it is UTC.
func momentText(text string) time.Time {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime} {
		if at, err := time.Parse(form, text); err == nil {
			return at
		}
	}
	return time.Time{}
}
