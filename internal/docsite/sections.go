package docsite

import (
	"strings"

	"golang.org/x/net/html"
)

// section is a part of a page that begins with an element that has an id, which links name.
type section struct {
	Page    string `json:"page"` // its title
	Link    string `json:"link"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// sections divides a page.
func sections(p page) []section {
	found := []section{{Page: p.Title, Link: p.Name, Heading: p.Title}}
	inHeading := false
	for z := html.NewTokenizer(strings.NewReader(string(p.Body))); ; {
		kind := z.Next()
		if kind == html.ErrorToken { // the end
			for i := range found {
				found[i].Text = strings.Join(strings.Fields(found[i].Text), " ")
			}
			return found
		}
		token := z.Token()
		heading := token.Data == "h1" || token.Data == "h2" || token.Data == "h3"
		switch kind {
		case html.StartTagToken:
			if id := idOf(token); id != "" && token.Data != "h1" {
				found = append(found, section{Page: p.Title, Link: p.Name + "#" + id})
			}
			inHeading = inHeading || heading
		case html.EndTagToken:
			inHeading = inHeading && !heading
		}
		last := &found[len(found)-1]
		switch {
		case kind != html.TextToken:
			if !inline[token.Data] {
				last.Text += " "
			}
		case inHeading && last.Link != p.Name:
			last.Heading += token.Data
		default:
			last.Text += token.Data
		}
	}
}

// inline are the elements within a line.
var inline = map[string]bool{"a": true, "code": true, "em": true, "strong": true, "span": true}

func idOf(token html.Token) string {
	for _, a := range token.Attr {
		if a.Key == "id" {
			return a.Val
		}
	}
	return ""
}
