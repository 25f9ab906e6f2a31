package egress

import (
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter is the longest wait that a server is believed.
const maxRetryAfter = 24 * time.Hour

// RetryAfter returns how long a server asks to wait, as seconds or as a date; 0 for nothing.
func RetryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return sane(ms / 1000)
	}
	said := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(said, 64); err == nil {
		return sane(seconds)
	}
	if date, err := http.ParseTime(said); err == nil {
		return sane(time.Until(date).Seconds())
	}
	return 0
}

func sane(seconds float64) time.Duration {
	if !(seconds > 0) { // also if it is not a number
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}
