// Package docsite makes a site of the documentation: docs/*.md and the description of the API as pages, with a search
// that runs in the browser. The API serves it at /docs, and varve docs writes it as files.
//
// Start at Make. docs/README.md is the first page, and its lists are what each page shows at its side; markdown.go
// renders a page, sections.go divides all pages into what search.js finds. Nothing is loaded from another host. The
// package owns no tables.
package docsite

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"path"
	"regexp"

	"github.com/varve-dev/varve/internal/api/openapi"
)

// Site is the files of the site.
type Site struct {
	Home  []byte            // the first page, for an address like /docs, below which the others are
	Files map[string][]byte // by name; none is in a folder
}

// types are the media types of files by the ends of their names.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".png": "image/png", ".svg": "image/svg+xml", ".json": "application/json",
	".yaml": "application/yaml",
}

// Type returns the media type of a file.
func Type(name string) string { return types[path.Ext(name)] }

//go:embed page.html style.css search.js
var parts embed.FS

var layout = template.Must(template.ParseFS(parts, "page.html"))

// page is what page.html shows.
type page struct {
	Name     string // of its file
	Title    string
	Contents template.HTML // links to what is on the page
	Body     template.HTML
	Groups   []group // of all pages
	Root     string  // what links to other pages begin with
	Search   bool    // it shows what a search found
}

// group is a list of docs/README.md.
type group struct {
	Name  string
	Pages []link
}

type link struct{ Name, Title string }

// Make makes the site of the files of docs and the description of the API.
func Make(docs fs.FS, api *openapi.Document) (*Site, error) {
	pages, err := render(docs)
	if err != nil {
		return nil, err
	}
	pages = append(pages,
		page{Name: "api.html", Title: "HTTP API", Contents: api.Contents, Body: api.Body},
		page{Name: "search.html", Title: "Search", Search: true})
	site := &Site{Files: map[string][]byte{"openapi.yaml": api.YAML, "openapi.json": api.JSON}}
	if err := site.copyFiles(docs); err != nil {
		return nil, err
	}
	groups, err := groupsOf(docs)
	if err != nil {
		return nil, err
	}
	var index []section
	for _, p := range pages {
		p.Groups = groups
		if site.Files[p.Name], err = p.html(); err != nil {
			return nil, err
		}
		if p.Name == firstPage {
			p.Root = "docs/"
			site.Home, err = p.html()
		}
		index = append(index, sections(p)...)
	}
	list, err2 := json.Marshal(index)
	site.Files["index.js"] = append([]byte("const sections = "), list...)
	return site, errors.Join(err, err2)
}

// firstPage is what docs/README.md becomes.
const firstPage = "index.html"

func (p page) html() ([]byte, error) {
	var text bytes.Buffer
	err := layout.Execute(&text, p)
	return text.Bytes(), err
}

// copyFiles takes over pictures and schemas as they are, and what all pages load.
func (s *Site) copyFiles(docs fs.FS) error {
	for _, of := range []struct {
		files fs.FS
		names []string
	}{{docs, []string{"*.png", "*.svg", "*.json"}}, {parts, []string{"style.css", "search.js"}}} {
		for _, pattern := range of.names {
			names, err := fs.Glob(of.files, pattern)
			if err != nil {
				return err
			}
			for _, name := range names {
				if s.Files[name], err = fs.ReadFile(of.files, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// listed is a line of docs/README.md that names a group or a page.
var listed = regexp.MustCompile(`(?m)^(?:## (.+)|\* \[([^]]+)\]\(([^)]+)\).*)$`)

// groupsOf returns the lists of docs/README.md.
func groupsOf(docs fs.FS) (groups []group, err error) {
	text, err := fs.ReadFile(docs, "README.md")
	for _, m := range listed.FindAllStringSubmatch(string(text), -1) {
		if m[1] != "" {
			groups = append(groups, group{Name: m[1]})
			continue
		}
		last := &groups[len(groups)-1]
		last.Pages = append(last.Pages, link{Name: target(".", m[3]), Title: m[2]})
	}
	return groups, err
}
