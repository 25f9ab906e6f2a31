package console

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// What tests look at.
var (
	NewSite = newSite
	Hides   = hides
)

const (
	IdleEnd = idleEnd
	LastEnd = lastEnd
)

// Handler returns all pages.
func (s *site) Handler() http.Handler { return s.handler() }

// SignedIn returns the sign-in of a request.
func (s *site) SignedIn(r *http.Request) (signedIn, bool) { return s.signedIn(r) }

// Open reads a cookie.
func (s *site) Open(cookie string) (signedIn, error) { return s.sealer.open(cookie) }

// Ended reports whether a sign-in is over.
func Ended(in signedIn, now time.Time) bool { return in.ended(now) }

// Cookie and Unseal do what a process with a secret does.
func Cookie(secret string, in signedIn) string { return newSealer(secret).seal(in) }

// Unseal reads what Cookie has written.
func Unseal(secret, cookie string) (signedIn, error) { return newSealer(secret).open(cookie) }

// Patterns returns the routes of all pages.
func Patterns() []string {
	return slices.Concat(slices.Sorted(maps.Keys(pagesOfTenants)), slices.Sorted(maps.Keys(pagesOfOperators)), slices.Sorted(maps.Keys(pagesOfAll)))
}

// Asked returns the route of the API without which a page is not there; "" for one that is always there.
func Asked(pattern string) string { return asked[strings.Split(pattern, "/")[1]] }

// SeenBy reports whether a page is for operators, or for tenants.
func SeenBy(pattern string, operators bool) bool {
	_, ofTenants := pagesOfTenants[pattern]
	_, ofOperators := pagesOfOperators[pattern]
	return operators && !ofTenants || !operators && !ofOperators
}

// Spent returns what the requests of a session have cost, what they would have cost without a compaction, and after how
// many requests its first checkpoint is paid back.
func Spent(log []session.Growth, made []session.CheckpointRecord, read, write float64) (cost, whole, paidBack float64) {
	moments, cuts := growth(log).moments(made, card{read, write})
	last := moments[len(moments)-1]
	return last.Cost, last.Whole, cuts[0].PaidBack()
}
