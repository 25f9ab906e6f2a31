package recompact_test

import (
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/recompact"
)

func TestHoursBeginAtTheFirstTimeThatIsWithinThem(t *testing.T) {
	t.Parallel()
	night := recompact.Hours{From: "22:00", To: "06:00", TimeZone: "Europe/Berlin"}
	noon := recompact.Hours{From: "12:00", To: "13:30", TimeZone: "UTC"}
	gap := recompact.Hours{From: "02:15", To: "02:45", TimeZone: "Europe/Berlin"} // which 2026-03-29 does not have
	across := recompact.Hours{From: "02:30", To: "03:15", TimeZone: "Europe/Berlin"}
	leap := recompact.Hours{From: "23:30", To: "00:30", TimeZone: "Europe/Berlin"}
	for _, c := range []struct {
		hours     recompact.Hours
		now, want string
	}{
		{night, "2026-01-10T12:00:00Z", "2026-01-10T21:00:00Z"},
		{night, "2026-01-10T21:00:00Z", "2026-01-10T21:00:00Z"},
		{night, "2026-01-10T23:30:00Z", "2026-01-10T23:30:00Z"},
		{night, "2026-01-11T04:59:59Z", "2026-01-11T04:59:59Z"},
		{night, "2026-01-11T05:00:00Z", "2026-01-11T21:00:00Z"},
		{night, "2026-07-10T12:00:00Z", "2026-07-10T20:00:00Z"}, // in summer
		{noon, "2026-01-10T11:59:59Z", "2026-01-10T12:00:00Z"},
		{noon, "2026-01-10T13:29:00Z", "2026-01-10T13:29:00Z"},
		{noon, "2026-01-31T13:30:00Z", "2026-02-01T12:00:00Z"},
		{gap, "2026-03-28T12:00:00Z", "2026-03-29T01:15:00Z"},
		{gap, "2026-10-24T12:00:00Z", "2026-10-25T01:15:00Z"}, // the second of the two
		{gap, "2026-10-25T01:45:00Z", "2026-10-26T01:15:00Z"}, // once on that day
		{across, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		{across, "2026-03-29T01:15:00Z", "2026-03-30T00:30:00Z"},
		{across, "2026-10-24T12:00:00Z", "2026-10-25T01:30:00Z"},
		{across, "2026-10-25T02:14:00Z", "2026-10-25T02:14:00Z"},
		{night, "2026-03-29T03:59:00Z", "2026-03-29T03:59:00Z"},
		{night, "2026-03-29T04:00:00Z", "2026-03-29T20:00:00Z"},
		{leap, "2028-02-29T12:00:00Z", "2028-02-29T22:30:00Z"},
		{leap, "2028-02-29T23:29:00Z", "2028-02-29T23:29:00Z"},
		{leap, "2028-02-29T23:30:00Z", "2028-03-01T22:30:00Z"},
		{leap, "2100-02-28T23:30:00Z", "2100-03-01T22:30:00Z"}, // 2100 has no leap day
	} {
		now, _ := time.Parse(time.RFC3339, c.now)
		got, err := c.hours.Next(now)
		if err != nil || got.UTC().Format(time.RFC3339) != c.want {
			t.Errorf("%+v at %s: %s, want %s; %v", c.hours, c.now, got.UTC().Format(time.RFC3339), c.want, err)
		}
	}
}

func TestWhatIsWrongWithHours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hours recompact.Hours
		want  string
	}{
		{recompact.Hours{From: "22:00", To: "06:00", TimeZone: "UTC"}, ""},
		{recompact.Hours{From: "25:00", To: "06:00", TimeZone: "UTC"}, "from"},
		{recompact.Hours{From: "22:00", To: "", TimeZone: "UTC"}, "to"},
		{recompact.Hours{From: "22:00", To: "22:00", TimeZone: "UTC"}, "to"},
		{recompact.Hours{From: "22:00", To: "06:00", TimeZone: "Mars/Olympus"}, "time_zone"},
		{recompact.Hours{From: "22:00", To: "06:00", TimeZone: "Local"}, "time_zone"},
	} {
		if member, reason := c.hours.Check(); member != c.want || (reason == "") != (c.want == "") {
			t.Errorf("%+v: %q %q, want %q", c.hours, member, reason, c.want)
		}
	}
}
