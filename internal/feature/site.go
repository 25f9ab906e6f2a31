package feature

import "net/http"

// Site is what people see of Varve in a browser.
type Site struct {
	Path string // it has all that is below, and / leads there
	Open func(SiteConfig) http.Handler
}

// SiteConfig is what a site needs of the process that answers requests. It asks what callers of the API can ask.
type SiteConfig struct {
	API       http.Handler // answers as the address of the API does
	Operators http.Handler // answers as that of operators does
	Jobs      JobPages     // nil: it has none
	Secret    string       // that cookies are sealed with; "" for one of this process
	SignIn    SignIn

	// Lacks reports whether the API has no route of a path: the feature of such a page was taken out. nil: it has all.
	Lacks func(path string) bool
}

// JobPages opens River UI for jobs of all tenants, whose addresses begin with a prefix. It asks for no key.
type JobPages func(prefix string) (http.Handler, error)

// SignIn is a link that signs its first visitor in. The zero SignIn is none.
type SignIn struct {
	Token string
	Key   string // that the visitor then has
}
