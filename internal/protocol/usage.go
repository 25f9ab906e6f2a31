package protocol

import "github.com/varve-dev/varve/internal/session"

// Usage is what a tenant has used, by day in UTC. Days without any use are left out.
type Usage struct {
	From  string      `json:"from"` // the first day: 2006-01-02
	To    string      `json:"to"`   // the last day
	Total session.Use `json:"total"`
	Data  []DayOfUse  `json:"data"`
}

// DayOfUse is what a tenant has used on a day.
type DayOfUse struct {
	Day string `json:"day"`
	session.Use
}

// SessionUse is what a session has used since it was made.
type SessionUse struct {
	Session string `json:"session"`
	session.Use
}

// RunsByHour counts compactions by the hours in which they were asked for. Hours without any are left out.
type RunsByHour struct {
	Data []session.HourOfRuns `json:"data"` // oldest first
}
