package console

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// cookieName returns the name of the cookie. Behind TLS no other host of the domain can set it.
func cookieName(secure bool) string {
	if secure {
		return "__Host-varve"
	}
	return "varve-console"
}

// isSecure reports whether the browser speaks TLS, with this process or with a proxy before it.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

func (s *site) setCookie(w http.ResponseWriter, r *http.Request, in signedIn) {
	s.writeCookie(w, r, s.sealer.seal(in), int(lastEnd.Seconds()))
}

func (s *site) clearCookie(w http.ResponseWriter, r *http.Request) { s.writeCookie(w, r, "", -1) }

func (s *site) writeCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	secure := isSecure(r)
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(secure), Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteStrictMode,
	})
}

// signedIn returns the sign-in of a request, if it has one that is not over.
func (s *site) signedIn(r *http.Request) (in signedIn, ok bool) {
	cookie, err := r.Cookie(cookieName(isSecure(r)))
	if err != nil {
		return in, false
	}
	in, err = s.sealer.open(cookie.Value)
	return in, err == nil && !in.ended(s.now()) && !s.out.has(in.ID)
}

// askToSignIn leads to the form, and from there back. A browser that follows a link of another site sends no cookie,
// because it is SameSite=Strict: it is told to ask once more, by itself.
func (s *site) askToSignIn(w http.ResponseWriter, r *http.Request) {
	again := r.URL.Query()
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" && !again.Has("again") {
		again.Set("again", "1")
		s.render(w, r, http.StatusOK, "again.html", frame{Title: "One moment",
			Data: r.URL.EscapedPath() + "?" + again.Encode()})
		return
	}
	next := ""
	if r.Method == http.MethodGet && r.URL.Path != root+"/" {
		next = "?" + url.Values{"next": {r.URL.RequestURI()}}.Encode()
	}
	http.Redirect(w, r, root+"/sign-in"+next, http.StatusSeeOther)
}

// signInPage is the form for a key.
type signInPage struct {
	Next    string
	Refused string // why the key was not taken
}

func (s *site) showSignIn(w http.ResponseWriter, r *http.Request) {
	s.render(w, r, http.StatusOK, "sign-in.html", frame{
		Title: "Sign in", Data: signInPage{Next: nextOf(r.URL.Query().Get("next"))},
	})
}

// nextOf returns where to go after a sign-in: a place of the console.
func nextOf(text string) string {
	if strings.HasPrefix(text, root+"/") {
		return text
	}
	return root + "/"
}

// signIn takes a key.
func (s *site) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	key, next := strings.TrimSpace(r.PostFormValue("key")), nextOf(r.PostFormValue("next"))
	if refused := s.tryKey(r, key); refused != "" {
		s.render(w, r, http.StatusUnprocessableEntity, "sign-in.html", frame{
			Title: "Sign in", Data: signInPage{Next: next, Refused: refused},
		})
		return
	}
	s.begin(w, r, key)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (s *site) begin(w http.ResponseWriter, r *http.Request, key string) {
	now := s.now()
	s.setCookie(w, r, signedIn{ID: rand.Text(), Key: key, Since: now, Seen: now})
}

// tryKey returns why a key is of no use here, "" if it is.
func (s *site) tryKey(r *http.Request, key string) string {
	if !isKey(key) {
		return "This is not a key: a tenant's begins with vk_, an operator's with vop_, and none lacks a character."
	}
	err := reach(r, s.clientOf(r, key), isOperator(key))
	switch {
	case err == nil, is(err, "scope_missing"):
		return "" // pages say what the key may not do
	case is(err, "unauthorized"):
		return "No process knows this key, or it was revoked."
	case is(err, "not_found"):
		return "This process has no routes for operators."
	}
	return err.Error()
}

// reach asks for what every page needs.
func reach(r *http.Request, api *client.Client, operator bool) (err error) {
	o := client.Options{Query: client.Query{"limit": 1}}
	if operator {
		_, err = client.Route[protocol.List[session.TenantDetails]]("GET admin/tenants").With(r.Context(), api, o)
	} else {
		_, err = client.Route[protocol.List[protocol.Session]]("GET sessions").With(r.Context(), api, o)
	}
	return err
}

// signOut ends the sign-in, also for copies of its cookie in this process.
func (s *site) signOut(w http.ResponseWriter, r *http.Request) {
	if in, ok := s.signedIn(r); ok {
		s.out.add(in, s.now())
	}
	s.clearCookie(w, r)
	http.Redirect(w, r, root+"/sign-in", http.StatusSeeOther)
}

// signInOnce signs the first visitor of the link in that the process has printed.
func (s *site) signInOnce(w http.ResponseWriter, r *http.Request) {
	token := s.SignIn.Token
	known := token != "" && subtle.ConstantTimeCompare([]byte(r.PathValue("token")), []byte(token)) == 1
	visits := r.Method == http.MethodGet && r.Header.Get("Sec-Purpose") == "" // a browser may look before it is told to
	if known && !visits {
		return
	}
	if !known || !s.linked.CompareAndSwap(false, true) {
		s.render(w, r, http.StatusGone, "sign-in.html", frame{Title: "Sign in", Data: signInPage{
			Next: root + "/", Refused: "This link was used already, or is of an earlier start: sign in with a key.",
		}})
		return
	}
	s.begin(w, r, s.SignIn.Key)
	http.Redirect(w, r, root+"/", http.StatusSeeOther)
}
