package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"github.com/varve-dev/varve/client"
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
	in, refused := s.tryKey(r, key)
	if refused != "" {
		s.render(w, r, http.StatusUnprocessableEntity, "sign-in.html", frame{
			Title: "Sign in", Data: signInPage{Next: next, Refused: refused},
		})
		return
	}
	s.begin(w, r, in)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (s *site) begin(w http.ResponseWriter, r *http.Request, in signedIn) {
	in.ID, in.Since = rand.Text(), s.now()
	in.Seen = in.Since
	s.setCookie(w, r, in)
}

// tryKey returns a sign-in with a key, or why the key is of no use here.
func (s *site) tryKey(r *http.Request, key string) (in signedIn, refused string) {
	if !isKey(key) {
		return in, "This is not a key: a tenant's begins with vk_, an operator's with vop_, and none lacks a character."
	}
	in, err := whose(r.Context(), s.clientOf(r, key), key)
	switch {
	case is(err, "unauthorized"):
		return in, "No process knows this key, or it was revoked."
	case is(err, "not_found"):
		return in, "This process has no routes for operators."
	case err != nil:
		return in, err.Error()
	}
	return in, ""
}

// whose asks what a key is.
func whose(ctx context.Context, api *client.Client, key string) (in signedIn, err error) {
	if isOperator(key) {
		read, err := client.ReadOwnOperatorKey.Call(ctx, api)
		return signedIn{Key: key, Name: named(read.Value.Name, read.Value.Last4), Of: "all tenants"}, err
	}
	read, err := client.ReadOwnKey.Call(ctx, api)
	own := &read.Value
	return signedIn{Key: key, Name: named(own.Name, own.Last4), Of: shortened(own.TenantName)}, err
}

// named returns how pages call a key.
func named(name, last4 string) string { return strings.TrimSpace(shortened(name) + " …" + last4) }

// shortened returns so much of a name that a cookie has room for it.
func shortened(name string) string {
	const room = 60
	if letters := []rune(name); len(letters) > room {
		return string(letters[:room]) + "…"
	}
	return name
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
	in, refused := s.tryKey(r, s.SignIn.Key)
	if refused != "" {
		in = signedIn{Key: s.SignIn.Key} // pages say what is wrong
	}
	s.begin(w, r, in)
	http.Redirect(w, r, root+"/", http.StatusSeeOther)
}
