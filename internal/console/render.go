package console

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

// frame is what every page has around its own.
type frame struct {
	Title    string
	Section  string // of the navigation
	SignedIn bool
	Name, Of string // of the key, and whose it is
	Operator bool
	Jobs     bool // there is River UI
	Data     any
}

// parsePages returns the templates of all pages, each with the layout and the parts that pages share.
func parsePages() map[string]*template.Template {
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		panic(err) // of a pattern, which is constant
	}
	shared := template.New("layout.html").Funcs(words)
	shared = template.Must(shared.ParseFS(files, "pages/layout.html", "pages/parts.html"))
	pages := map[string]*template.Template{}
	for _, name := range names {
		own := template.Must(shared.Clone())
		pages[path.Base(name)] = template.Must(own.ParseFS(files, name))
	}
	return pages
}

// words are the functions of templates.
var words = template.FuncMap{
	"n":       terminal.Thousands,
	"i":       func(n int) string { return terminal.Thousands(int64(n)) },
	"path":    pathOf,
	"ago":     ago,
	"time":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"kind":    kindOf,
	"drawn":   func(p plot, says string) drawing { return drawing{p, says} },
	"nav":     navOf,
	"formats": session.Formats, "renditions": renditions,
	"tabs":  func() []tab { return sessionTabs },
	"rate":  rate,
	"few":   upTo(session.MaxStateCount),
	"all":   upTo(session.MaxStateOfAll),
	"rows":  func(text string) int { return min(1+len(text)/60+strings.Count(text, "\n"), 12) },
	"sub":   func(a, b int64) int64 { return a - b },
	"less":  func(n int) int { return n - 1 },
	"round": func(of float64) string { return terminal.Thousands(int64(math.Round(of))) },
	"of":    func(share, whole int64) string { return percent(share, whole) },
}

// link is an entry of the navigation.
type link struct {
	To, Word string
	Here     bool
}

func navOf(section, to, word string) link { return link{to, word, section == to} }

// tab is one of the pages of a session.
type tab struct{ Name, Below, Word string }

var sessionTabs = []tab{
	{"context", "", "Log and view"},
	{"timeline", "/timeline", "Timeline"},
	{"checkpoints", "/checkpoints", "Checkpoints"},
	{"preview", "/preview", "Preview"},
	{"policy", "/policy", "Policy"},
	{"runs", "/runs", "Runs"},
	{"results", "/results", "Results"},
	{"pins", "/pins", "Pins"},
	{"manage", "/manage", "Manage"},
}

// upTo writes how many were counted by a count that ends.
func upTo(end int64) func(n int64) string {
	return func(n int64) string {
		if n >= end {
			return terminal.Thousands(n) + " or more"
		}
		return terminal.Thousands(n)
	}
}

// rate writes a number that may not be known.
func rate(of *float64) string {
	if of == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f", *of)
}

// percent writes a share of a whole.
func percent(share, whole int64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(share)/float64(whole))
}

// ago writes how long ago a time was, or in what time it comes.
func ago(t time.Time) string {
	d := time.Since(t)
	form := "%s ago"
	if d < 0 {
		d, form = -d, "in %s"
	}
	text := fmt.Sprintf("%d s", int(d.Seconds()))
	const day = 24 * time.Hour
	switch {
	case d >= 60*day:
		text = fmt.Sprintf("%d months", int(d/(30*day)))
	case d >= 2*day:
		text = fmt.Sprintf("%d days", int(d/day))
	case d >= 2*time.Hour:
		text = fmt.Sprintf("%d h", int(d.Hours()))
	case d >= 2*time.Minute:
		text = fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf(form, text)
}

// show answers with a page.
func (v *visit) show(section, title, name string, data any) error {
	v.site.render(v.w, v.r, http.StatusOK, name, v.frame(section, title, data))
	return nil
}

func (v *visit) showError(status int, e protocol.Problem) {
	e.Status = status
	v.site.render(v.w, v.r, status, "error.html", v.frame("", http.StatusText(status), e))
}

func (v *visit) frame(section, title string, data any) frame {
	return frame{Title: title, Section: section, SignedIn: true, Name: v.in.Name, Of: v.in.Of,
		Operator: isOperator(v.in.Key), Jobs: v.site.Jobs != nil, Data: data}
}

// redirect leads to another page after a form has had its effect.
func (v *visit) redirect(to string) error {
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// then leads to a page, unless something has failed.
func (v *visit) then(err error, page ...any) error {
	if err != nil {
		return err
	}
	return v.redirect(pathOf(page...))
}

// render answers with a page, whole or not at all.
func (s *site) render(w http.ResponseWriter, r *http.Request, status int, name string, f frame) {
	var page bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&page, "layout.html", f); err != nil {
		panic(err) // a template that does not fit its struct; net/http logs it
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, r, status, shown(page.Bytes()))
}

// send writes a body, compressed where the browser takes that.
func send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) < 1<<10 || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(status)
		_, _ = w.Write(body) // the browser may be gone
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z := gzip.NewWriter(w)
	_, _ = z.Write(body)
	_ = z.Close()
}

// serveStatic answers with a style sheet, a script or a picture.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	body, err := fs.ReadFile(files, "static/"+name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Cache-Control", "public, max-age=300")
	send(w, r, http.StatusOK, body)
}

// showNothing answers where there is no page.
func showNothing(v *visit) error {
	v.showError(http.StatusNotFound, protocol.Problem{Detail: "There is no such page."})
	return nil
}
