package varve

import (
	"regexp"
	"slices"
	"strings"
)

// sqlNode is a word, a number, a text or a sign of SQL, or what is between two parentheses.
type sqlNode struct {
	text  string // words in lower case; "(" of a group; "" of a text
	group []sqlNode
}

// sqlHole is where a statement has something that its source does not show.
const sqlHole = "{}"

var sqlTokens = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|\$\$.*?\$\$|'(?:[^']|'')*'|"[^"]*"|\{\w*\}|[@$:]?[\pL_][\pL\pN_]*|[$]?\pN+(?:\.\pN+)?|::|[<>=!|&#?*+/-]+|\S`)

// sqlNodes reads SQL. Comments are left out, and a parenthesis that nothing closes ends with the text.
func sqlNodes(sql string) []sqlNode {
	stack := [][]sqlNode{nil}
	add := func(n sqlNode) { stack[len(stack)-1] = append(stack[len(stack)-1], n) }
	for _, text := range sqlTokens.FindAllString(sql, -1) {
		switch {
		case strings.HasPrefix(text, "--"), strings.HasPrefix(text, "/*"):
		case strings.HasPrefix(text, "'"), strings.HasPrefix(text, "$$"):
			add(sqlNode{})
		case strings.HasPrefix(text, "{"):
			add(sqlNode{text: sqlHole})
		case text == "(":
			stack = append(stack, nil)
		case text == ")" && len(stack) > 1:
			group := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			add(sqlNode{text: "(", group: group})
		default:
			add(sqlNode{text: strings.ToLower(strings.Trim(text, `"`))})
		}
	}
	for len(stack) > 1 {
		group := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		add(sqlNode{text: "(", group: group})
	}
	return stack[0]
}

// sqlStatements returns the statements between semicolons.
func sqlStatements(nodes []sqlNode) (statements [][]sqlNode) {
	for len(nodes) > 0 {
		end := slices.IndexFunc(nodes, func(n sqlNode) bool { return n.text == ";" })
		if end < 0 {
			return append(statements, nodes)
		}
		if end > 0 {
			statements = append(statements, nodes[:end])
		}
		nodes = nodes[end+1:]
	}
	return statements
}

// sqlWords calls do with every word of some nodes, those of groups too.
func sqlWords(nodes []sqlNode, do func(word string)) {
	for _, n := range nodes {
		do(n.text)
		sqlWords(n.group, do)
	}
}

// sqlTable is a table of a FROM, or the one that a statement writes.
type sqlTable struct {
	name, alias string // of a group "("
	on          []sqlNode
	joined      bool
}

// sqlBlock is a SELECT, UPDATE, DELETE or INSERT, with what is of it alone.
type sqlBlock struct {
	verb    string
	tables  []sqlTable
	where   []sqlNode
	columns []sqlNode // of an INSERT
}

// sqlBlocks returns the blocks of some nodes and of the groups among them.
func sqlBlocks(nodes []sqlNode) []*sqlBlock {
	r := blockReader{nodes: nodes}
	for r.at = 0; r.at < len(nodes); r.at++ {
		r.next()
		r.blocks = append(r.blocks, sqlBlocks(nodes[r.at].group)...)
	}
	return r.blocks
}

// blockReader reads the blocks of one level of parentheses.
type blockReader struct {
	nodes  []sqlNode
	at     int
	blocks []*sqlBlock
	block  *sqlBlock // the one that is being read
	part   string    // of it: "from", "on", "where", "into", or another, in which nothing is looked for
}

// before returns the word that many places before.
func (r *blockReader) before(n int) string {
	if r.at < n {
		return ""
	}
	return r.nodes[r.at-n].text
}

func (r *blockReader) begin(verb, part string) {
	r.block = &sqlBlock{verb: verb}
	r.blocks = append(r.blocks, r.block)
	r.part = part
}

// next reads a node.
func (r *blockReader) next() {
	n := r.nodes[r.at]
	switch n.text {
	case "select":
		r.begin("select", "")
		return
	case "update":
		switch r.before(1) {
		case "for", "key", "do", "on", "before", "of", "or", "after":
			r.part = ""
		default:
			r.begin("update", "from")
		}
		return
	case "delete", "insert":
		if before := r.before(1); before != "on" && before != "before" && before != "or" && before != "after" {
			r.begin(n.text, "")
		}
		return
	}
	if r.block != nil {
		r.inBlock(n)
	}
}

// inBlock reads a node of a block behind its verb.
func (r *blockReader) inBlock(n sqlNode) {
	switch n.text {
	case "from":
		if r.before(1) != "distinct" || r.before(2) != "is" && r.before(2) != "not" {
			r.part = "from"
		}
	case "into":
		if r.block.verb == "insert" {
			r.part = "into"
		}
	case "using":
		if r.part == "from" && r.block.verb == "delete" && len(r.block.tables) == 1 {
			return
		}
		r.part = "on"
	case "on":
		r.part = "on"
		if r.at+1 < len(r.nodes) && r.nodes[r.at+1].text == "conflict" {
			r.part = "conflict"
		}
	case "where":
		if r.part != "conflict" && r.before(1) != "conflict" {
			r.part = "where"
		}
	case "do", "conflict":
		r.part = "conflict"
	case "set", "group", "order", "limit", "having", "window", "offset", "fetch", "returning", "union", "except",
		"intersect", "values", "for":
		r.part = n.text
	case "join", ",":
		if r.part == "on" || r.part == "from" {
			r.part = "from"
		} else if r.part == "where" {
			r.part = "" // the next common table expression
		}
	case "left", "right", "full", "inner", "cross", "natural", "lateral", "only", "as":
		if r.part == "on" {
			r.part = "from"
		}
	default:
		r.inPart(n)
	}
}

// inPart reads a node that is no keyword.
func (r *blockReader) inPart(n sqlNode) {
	b := r.block
	last := len(b.tables) - 1
	switch r.part {
	case "where":
		b.where = append(b.where, n)
	case "on":
		if last >= 0 {
			b.tables[last].on = append(b.tables[last].on, n)
		}
	case "into":
		if n.group != nil {
			b.columns = n.group
			r.part = ""
		} else if n.text != "public" && n.text != "." && last < 0 {
			b.tables = append(b.tables, sqlTable{name: n.text})
		}
	case "from":
		switch before := r.before(1); {
		case n.text == "public", n.text == ".":
		case before == ".":
			b.tables = append(b.tables, sqlTable{name: n.text, joined: r.before(3) == "join"})
		case before == "from", before == "join", before == ",", before == "update", before == "only", before == "lateral", before == "using":
			b.tables = append(b.tables, sqlTable{name: n.text, joined: before == "join" || before == "lateral"})
		case last >= 0 && n.group == nil && b.tables[last].alias == "":
			b.tables[last].alias = n.text
		}
	}
}
