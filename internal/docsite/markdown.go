package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// source is where the files are that pages name and the site does not have.
const source = "https://github.com/varve-dev/varve/blob/main/"

// markdown renders our own pages, which may have HTML.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()), goldmark.WithRendererOptions(html.WithUnsafe()))

// render makes the pages of all Markdown files but api.md, which the description of the API replaces.
func render(docs fs.FS) (pages []page, err error) {
	err = fs.WalkDir(docs, ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".md" || file == "api.md" {
			return err
		}
		text, err := fs.ReadFile(docs, file)
		if err != nil {
			return err
		}
		p, err := renderPage(file, text)
		pages = append(pages, p)
		return err
	})
	return pages, err
}

func renderPage(file string, markup []byte) (page, error) {
	p := page{Name: fileOf(file)}
	document := markdown.Parser().Parse(text.NewReader(markup))
	var contents strings.Builder
	each(document, func(node ast.Node) {
		switch n := node.(type) {
		case *ast.Link:
			n.Destination = []byte(target(path.Dir(file), string(n.Destination)))
		case *ast.Heading:
			title := string(n.Lines().Value(markup))
			id, _ := n.AttributeString("id")
			switch n.Level {
			case 1:
				p.Title = strings.ReplaceAll(title, "`", "")
			case 2:
				fmt.Fprintf(&contents, `<li><a href="#%s">%s</a>`, id, template.HTMLEscapeString(title))
			}
		}
	})
	if contents.Len() > 0 {
		p.Contents = template.HTML("<ul>" + contents.String() + "</ul>")
	}
	var body bytes.Buffer
	err := markdown.Renderer().Render(&body, markup, document)
	p.Body = template.HTML(body.String())
	return p, err
}

// each calls do for a node and all below it.
func each(node ast.Node, do func(ast.Node)) {
	do(node)
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		each(child, do)
	}
}

// fileOf returns the name that a file of docs has in the site.
func fileOf(file string) string {
	switch {
	case file == "README.md":
		return firstPage
	case path.Ext(file) != ".md":
		return file
	}
	name := strings.ReplaceAll(strings.TrimSuffix(file, "/README.md"), "/", "-")
	return strings.TrimSuffix(name, ".md") + ".html"
}

// target returns where a link of a page in a folder of docs leads in the site.
func target(folder, link string) string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "#") {
		return link
	}
	file, anchor, _ := strings.Cut(link, "#")
	at := path.Join("docs", folder, file)
	name, ours := strings.CutPrefix(at, "docs/")
	at = source + at
	if ours {
		at = fileOf(name)
	}
	if anchor != "" {
		at += "#" + anchor
	}
	return at
}
