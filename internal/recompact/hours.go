package recompact

import (
	"fmt"
	"time"
	_ "time/tzdata" // an image may have no database of time zones
)

// Hours are the hours of each day in which something may begin: from one time of day to another, over midnight if that
// is earlier.
type Hours struct {
	From     string `json:"from"` // such as 22:00
	To       string `json:"to"`
	TimeZone string `json:"time_zone"` // such as Europe/Berlin or UTC
}

const timeOfDay = "15:04"

// Check returns what is wrong with the hours: the member and the reason, "" if nothing is.
func (h *Hours) Check() (member, reason string) {
	from, err := time.Parse(timeOfDay, h.From)
	if err != nil {
		return "from", "must be a time of day such as 22:00"
	}
	to, err := time.Parse(timeOfDay, h.To)
	if err != nil {
		return "to", "must be a time of day such as 06:00"
	}
	if from.Equal(to) {
		return "to", "must be another time than from: without hours, all hours are right"
	}
	if _, err := time.LoadLocation(h.TimeZone); err != nil || h.TimeZone == "Local" {
		return "time_zone", "must be the name of a time zone such as Europe/Berlin or UTC"
	}
	return "", ""
}

// Next returns the first time from now on that is within the hours, which is now if it is.
func (h *Hours) Next(now time.Time) (time.Time, error) {
	zone, err := time.LoadLocation(h.TimeZone)
	if err != nil {
		return now, fmt.Errorf("hours: %w", err)
	}
	from, err := time.Parse(timeOfDay, h.From)
	if err != nil {
		return now, fmt.Errorf("hours: %w", err)
	}
	to, err := time.Parse(timeOfDay, h.To)
	if err != nil {
		return now, fmt.Errorf("hours: %w", err)
	}
	local := now.In(zone)
	on := func(day int, t time.Time) time.Time {
		return time.Date(local.Year(), local.Month(), local.Day()+day, t.Hour(), t.Minute(), 0, 0, zone)
	}
	overMidnight := 0
	if to.Before(from) {
		overMidnight = 1
	}
	for day := -overMidnight; ; day++ {
		begin, end := on(day, from), on(day+overMidnight, to)
		if !begin.Before(end) { // clocks are set forward over the beginning: from then on
			begin, _ = begin.ZoneBounds()
		}
		if now.Before(end) && begin.Before(end) { // a day on which clocks are set may not have the hours
			return later(now, begin), nil
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
