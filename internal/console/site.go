package console

import (
	"context"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/protocol"
)

// site answers the requests of browsers.
type site struct {
	feature.SiteConfig
	sealer *sealer
	out    signedOut
	linked atomic.Bool // the link that signs in was used
	pages  map[string]*template.Template
	now    func() time.Time

	openJobs func() (http.Handler, error) // River UI, from the first time it is asked for
}

// open returns the site.
func open(config feature.SiteConfig) http.Handler { return newSite(config, time.Now).handler() }

func newSite(config feature.SiteConfig, now func() time.Time) *site {
	return &site{
		SiteConfig: config, sealer: newSealer(config.Secret), out: signedOut{ids: map[string]time.Time{}},
		pages: parsePages(), now: now,
		openJobs: sync.OnceValues(func() (http.Handler, error) { return config.Jobs(jobsAt) }),
	}
}

// handler lists all pages.
func (s *site) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+root+"/static/{file}", serveStatic)
	mux.HandleFunc("GET "+root+"/sign-in", s.showSignIn)
	mux.HandleFunc("POST "+root+"/sign-in", s.signIn)
	mux.HandleFunc("POST "+root+"/sign-out", s.signOut)
	mux.HandleFunc("GET "+root+"/once/{token}", s.signInOnce)
	for pattern, show := range s.routes() {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+root+path, s.visited(show))
	}
	mux.HandleFunc(jobsAt+"/", s.visited(forHolders(true, showJobs)))
	mux.HandleFunc(root+"/", s.visited(showNothing))
	mux.HandleFunc(root, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, root+"/", http.StatusSeeOther)
	})
	return guarded(http.NewCrossOriginProtection().Handler(mux))
}

// page answers a request of somebody who has signed in.
type page func(*visit) error

// pagesOfTenants are those for the keys of tenants.
var pagesOfTenants = map[string]page{
	"GET /policy":                                  showPolicy,
	"POST /policy":                                 changePolicy,
	"GET /sessions/{id}/policy":                    showPolicy,
	"POST /sessions/{id}/policy":                   changePolicy,
	"GET /events":                                  showEvents,
	"GET /playground":                              showPlayground,
	"POST /playground":                             play,
	"GET /sessions":                                showSessions,
	"GET /sessions/{id}":                           showContext,
	"GET /sessions/{id}/log":                       showLog,
	"GET /sessions/{id}/messages/{seq}":            showMessage,
	"GET /sessions/{id}/results":                   showResults,
	"GET /sessions/{id}/results/{ref}":             showResult,
	"GET /sessions/{id}/timeline":                  showTimeline,
	"GET /sessions/{id}/preview":                   showPreview,
	"GET /failures":                                showFailures,
	"POST /failures":                               retryFailures,
	"GET /recompactions":                           showRecompactions,
	"POST /recompactions":                          ofTenant.start,
	"GET /recompactions/new":                       ofTenant.form,
	"GET /recompactions/{recompaction}":            showRecompaction,
	"POST /recompactions/{recompaction}/{do}":      controlRecompaction,
	"GET /sessions/{id}/runs":                      showRuns,
	"GET /sessions/{id}/runs/{run}":                showRun,
	"GET /sessions/{id}/checkpoints":               showCheckpoints,
	"GET /sessions/{id}/checkpoints/{n}":           showCheckpoint,
	"GET /sessions/{id}/checkpoints/{n}/diff/{to}": showDiff,
	"POST /sessions/{id}/checkpoints/{n}/restore":  restore,
	"POST /sessions/{id}/compact":                  compactNow,
	"GET /sessions/{id}/manage":                    showManage,
	"POST /sessions/{id}/tokens":                   makeToken,
	"POST /sessions/{id}/tokens/{token}/revoke":    revokeToken,
	"POST /sessions/{id}/fork":                     forkSession,
	"POST /sessions/{id}/export":                   exportSession,
	"POST /sessions/{id}/hold":                     holdSession,
	"POST /sessions/{id}/archive":                  archiveSession,
	"POST /sessions/{id}/unarchive":                unarchiveSession,
	"POST /sessions/{id}/erase":                    eraseSession,
	"GET /usage":                                   showUse,
	"POST /export":                                 exportTenant,
	"GET /models":                                  showModels,
	"GET /archives":                                showArchives,
	"GET /holds":                                   showHolds,
	"POST /erasures":                               eraseSubject,
	"GET /keys":                                    showKeys,
	"POST /keys":                                   makeKey,
	"POST /keys/{key}/rotate":                      rotateKey,
	"POST /keys/{key}/revoke":                      revokeKey,
	"GET /webhooks":                                showWebhooks,
	"POST /webhooks":                               makeWebhook,
	"POST /webhooks/{webhook}/{do}":                changeWebhook,
	"GET /webhooks/{webhook}/deliveries":           showDeliveries,
	"GET /replays":                                 showReplays,
	"POST /replays":                                startReplay,
	"GET /replays/{replay}":                        showReplay,
	"GET /replays/{replay}/plot":                   showReplayPlot,
	"POST /replays/{replay}/cancel":                cancelReplay,
	"GET /sessions/{id}/pins":                      showPins,
	"POST /sessions/{id}/pins/{ref}":               pin,
	"POST /sessions/{id}/pins/{ref}/unpin":         unpin,
}

// pagesOfOperators are those for the keys of operators.
var pagesOfOperators = map[string]page{
	"GET /tenants":                             showTenants,
	"GET /tenants/{tenant}":                    showTenant,
	"POST /tenants/{tenant}":                   changeTenant,
	"POST /tenants/{tenant}/keys/{key}/revoke": revokeTenantKey,
	"GET /fleet":                               showFleet,
	"GET /operators":                           showOperators,
	"POST /operators":                          makeOperatorKey,
	"POST /operators/{key}/revoke":             revokeOperatorKey,
	"POST /tenants":                            makeTenant,
	"POST /tenants/{tenant}/keys":              makeTenantKey,
	"POST /tenants/{tenant}/hold":              holdTenant,
	"POST /tenants/{tenant}/delete":            deleteTenant,
	"GET /campaigns":                           showCampaigns,
	"POST /campaigns":                          ofMany.start,
	"GET /campaigns/new":                       ofMany.form,
	"GET /campaigns/{group}":                   showCampaign,
	"POST /campaigns/{group}/{do}":             controlCampaign,
}

// pagesOfAll are those for both.
var pagesOfAll = map[string]page{
	"GET /{$}":                showOverview,
	"GET /audit":              showAudit,
	"GET /erasures":           showErasures,
	"GET /erasures/{erasure}": showErasure,
}

// asked are routes of the API by the pages that show them, of features that may be taken out.
var asked = map[string]string{"webhooks": "/v1/webhooks", "search": "/v1/search"}

// has reports whether what a page shows is there.
func (s *site) has(page string) bool {
	return asked[page] == "" || s.Lacks == nil || !s.Lacks(asked[page])
}

// routes has the pages of those who have signed in.
func (s *site) routes() map[string]page {
	all := maps.Clone(pagesOfAll)
	for pattern, show := range pagesOfTenants {
		all[pattern] = forHolders(false, show)
	}
	for pattern, show := range pagesOfOperators {
		all[pattern] = forHolders(true, show)
	}
	maps.DeleteFunc(all, func(pattern string, _ page) bool { return !s.has(strings.Split(pattern, "/")[1]) })
	return all
}

// forHolders returns a page that others than the holders of one kind of keys do not see.
func forHolders(operators bool, show page) page {
	return func(v *visit) error {
		if isOperator(v.in.Key) == operators {
			return show(v)
		}
		whose := "a tenant"
		if operators {
			whose = "an operator"
		}
		v.showError(http.StatusForbidden, protocol.Problem{Detail: "This page is for the keys of " + whose + "."})
		return nil
	}
}

// visit is a request of somebody who has signed in.
type visit struct {
	site *site
	w    http.ResponseWriter
	r    *http.Request
	ctx  context.Context
	in   signedIn
	api  *client.Client
}

// maxForm bounds the body of a form.
const maxForm = 1 << 20

// visited returns the handler of a page. Without a sign-in it leads to the form for one.
func (s *site) visited(show page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, ok := s.signedIn(r)
		if !ok {
			s.askToSignIn(w, r)
			return
		}
		if s.now().Sub(in.Seen) >= renewal {
			in.Seen = s.now()
			s.setCookie(w, r, in)
		}
		limit := int64(maxForm)
		if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
			limit = maxPasted
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		v := &visit{site: s, w: w, r: r, ctx: r.Context(), in: in, api: s.clientOf(r, in.Key)}
		if err := show(v); err != nil {
			v.fail(err)
		}
	}
}

// fail shows an error. A key that the API no longer takes ends the sign-in.
func (v *visit) fail(err error) {
	var refused *client.Error
	switch {
	case v.ctx.Err() != nil:
		return // nobody is left to read it
	case !errors.As(err, &refused):
		v.showError(http.StatusInternalServerError, protocol.Problem{Detail: err.Error()})
	case refused.Status == http.StatusUnauthorized:
		v.site.clearCookie(v.w, v.r)
		v.site.askToSignIn(v.w, v.r)
	default:
		v.showError(refused.Status, refused.Problem)
	}
}

// is reports whether the API has answered with an error of a code.
func is(err error, code string) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Problem.Code == code
}

// ownOnly is the policy of pages: nothing of another host, nothing inline.
const ownOnly = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// guarded sets the headers that keep a page to itself: nothing of another host is loaded, nothing inline runs, no other
// site frames it or learns its addresses.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", ownOnly)
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		if r.Header.Get("Sec-Fetch-Site") == "" { // over plain HTTP the Origin of a form must tell where it is from
			h.Set("Referrer-Policy", "same-origin")
		}
		h.Set("Cache-Control", "private, no-store")
		next.ServeHTTP(w, r)
	})
}
