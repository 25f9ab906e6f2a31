package docsite_test

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/varve-dev/varve/docs"
	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/docsite"
	"github.com/varve-dev/varve/internal/features"
)

func made(t *testing.T) *docsite.Site {
	t.Helper()
	description, err := api.Describe(features.All())
	if err != nil {
		t.Fatal(err)
	}
	site, err := docsite.Make(docs.Files, description)
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// page is what a browser goes by.
type page struct {
	ids    map[string]bool
	links  []string // a person follows them
	loaded []string
	inline bool // it has a script or a style that a policy of contents forbids
}

func read(t *testing.T, text []byte) (p page) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	p.ids = map[string]bool{}
	for node := range root.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		p.inline = p.inline || node.Data == "style" || node.Data == "script" && node.FirstChild != nil
		for _, a := range node.Attr {
			switch {
			case a.Key == "id":
				p.ids[a.Val] = true
			case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
				p.inline = true
			case a.Key == "href" && node.Data == "a", a.Key == "action":
				p.links = append(p.links, a.Val)
			case a.Key == "href" || a.Key == "src" || a.Key == "srcset":
				p.loaded = append(p.loaded, a.Val)
			}
		}
	}
	return p
}

// TestEveryLinkOfTheSiteLeadsSomewhere: to a file of the site and what it names there, or to the repository or another
// host; and what a page loads is of the site.
func TestEveryLinkOfTheSiteLeadsSomewhere(t *testing.T) {
	t.Parallel()
	site := made(t)
	pages := map[string]page{}
	for name, text := range site.Files {
		if path.Ext(name) == ".html" {
			pages[name] = read(t, text)
		}
		if docsite.Type(name) == "" {
			t.Errorf("%s has no type", name)
		}
	}
	pages["../docs"] = read(t, site.Home)
	for name, p := range pages {
		if p.inline {
			t.Errorf("%s has a script, a style or a handler in it", name)
		}
		for _, link := range append(p.links, p.loaded...) {
			if strings.HasPrefix(link, "https://") || strings.HasPrefix(link, "http://localhost") {
				continue
			}
			file, id, _ := strings.Cut(link, "#")
			if name == "../docs" {
				file = strings.TrimPrefix(file, "docs/")
			}
			if file == "" {
				file = name
			}
			if to, ok := pages[file]; site.Files[file] == nil && file != name || ok && id != "" && !to.ids[id] {
				t.Errorf("%s: %s leads nowhere", name, link)
			}
		}
		for _, load := range p.loaded {
			if strings.Contains(load, ":") {
				t.Errorf("%s loads %s", name, load)
			}
		}
	}
}

func TestTheFirstPageListsEveryPageOnce(t *testing.T) {
	t.Parallel()
	text, err := docs.Files.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(docs.Files, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "adr/README.md") {
		if n := strings.Count(string(text), "]("+name+")"); n != 1 && name != "README.md" {
			t.Errorf("%s is listed %d times", name, n)
		}
	}
	groups := regexp.MustCompile(`(?m)^## .*`).FindAllString(string(text), -1)
	if strings.Join(groups, ",") != "## Tutorials,## How to,## Reference,## Explanation" {
		t.Errorf("the groups are %v", groups)
	}
}
