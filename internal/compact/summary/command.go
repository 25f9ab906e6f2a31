package summary

import (
	"iter"
	"slices"
	"strings"
)

// command is what matters about a command line of a shell.
type command struct {
	program   string   // its name and subcommand: "go test"; that of the last program that does more than look
	arguments []string // without flags
	looks     bool     // it only looks at something
	commits   bool     // it commits to version control
	writes    []string // files that it writes on its own
}

// lookers are programs that only look, alone or with the subcommand after a space.
var lookers = lookersOf(`ls cat head tail grep rg ag find fd wc which type pwd echo cd tree file stat du df env date`+
	` printenv ps whoami uname jq awk sort uniq cut diff less more printf true export source . sleep test [`,
	`git log|git show|git diff|git status|git branch|git remote|git rev-parse|git blame|git ls-files|git grep`,
	`git merge-base|git reflog|git config|git describe|git tag|git check-ignore|git cat-file|git ls-tree|git fetch`,
	`gh pr view|gh pr list|gh pr diff|gh pr checks|gh issue|gh api|gh run|gh search|sed -n|nl -ba|go doc|go list`,
	`python -c|python3 -c|node -e|perl -e|ruby -e`)

func lookersOf(single string, pairs ...string) map[string]bool {
	all := map[string]bool{}
	for _, program := range strings.Fields(single) {
		all[program] = true
	}
	for _, line := range pairs {
		for program := range strings.SplitSeq(line, "|") {
			all[program] = true
		}
	}
	return all
}

var committers = []string{"git commit", "hg commit", "jj commit", "svn commit"}

// commandOf reads a command line, up to the first text that it has for a program's input. Of several commands the last
// one that does more than look counts.
func commandOf(line string) command {
	c := command{looks: true}
	for part := range commandsIn(strings.ReplaceAll(withoutInput(head(line, windowBytes)), "\n", ";")) {
		c.add(wordsOf(part))
	}
	return c
}

// add adds one command of a line.
func (c *command) add(words []string) {
	if len(words) == 0 {
		return
	}
	c.writes = append(c.writes, written(words)...)
	program := strings.Join(words[:min(len(words), 2)], " ")
	longer := strings.Join(words[:min(len(words), 3)], " ")
	c.commits = c.commits || slices.Contains(committers, program)
	if lookers[words[0]] || lookers[program] || lookers[longer] {
		return
	}
	c.looks, c.program = false, words[0]
	c.arguments = nil
	for i, word := range words[1:] {
		flag := strings.HasPrefix(word, "-") || strings.Contains(word, ">")
		if i == 0 && !flag {
			c.program = program
		} else if !flag {
			c.arguments = append(c.arguments, word)
		}
	}
}

// written returns the files that a command of a shell writes on its own: with a redirection, or sed in place.
func written(words []string) (paths []string) {
	last := words[len(words)-1]
	if words[0] == "sed" && slices.Contains(words, "-i") && len(words) > 2 {
		if strings.ContainsAny(last, "*?$") {
			return nil // the shell knows which files these are
		}
		return []string{last}
	}
	if !slices.Contains([]string{"cat", "echo", "printf", "tee"}, words[0]) {
		return nil
	}
	for i, word := range words[1:] {
		path := strings.TrimLeft(word, ">")
		redirects := path != word && !strings.HasPrefix(path, "&")
		if redirects && path == "" && i+2 < len(words) {
			path = words[i+2]
		}
		if redirects && path != "" && path != "/dev/null" {
			paths = append(paths, strings.Trim(path, `"'`))
		}
	}
	return paths
}

// withoutInput returns a command line without the text that it has for a program's input, and all after that text.
func withoutInput(line string) string {
	line, input, ok := strings.Cut(line, "<<")
	if !ok {
		return line
	}
	rest, _, _ := strings.Cut(input, "\n")
	_, rest, _ = strings.Cut(rest, " ") // after the word that ends the text
	return line + " " + rest
}

// wordsOf returns the words of a command without what only says how or where it runs.
func wordsOf(part string) []string {
	words := strings.Fields(part)
	for len(words) > 0 && (strings.Contains(words[0], "=") || words[0] == "sudo" || words[0] == "time") {
		words = words[1:]
	}
	if len(words) > 2 && words[0] == "git" && words[1] == "-C" {
		words = append([]string{"git"}, words[3:]...)
	}
	return words
}

// commandsIn yields the commands of a line, without what their output is piped to.
func commandsIn(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, quote := 0, byte(0)
		piped := false
		for i := range len(line) {
			b := line[i]
			switch {
			case quote != 0:
				if b == quote {
					quote = 0
				}
			case b == '"' || b == '\'' || b == '`':
				quote = b
			case b == '&' && i > 0 && line[i-1] == '>': // 2>&1
			case b == '&' || b == ';' || b == '|':
				if !piped && !yield(line[start:i]) {
					return
				}
				start = i + 1
				alone := i == 0 || line[i-1] != '|'
				piped = b == '|' && alone && !strings.HasPrefix(line[i+1:], "|")
			}
		}
		if !piped {
			yield(line[start:])
		}
	}
}

// reverts reports whether a command takes changes of files back: those in its arguments.
func (c command) reverts() bool { return c.program == "git checkout" || c.program == "git restore" }

// includes reports whether a command does at least what another one does: the same program with the same arguments, or
// on everything.
func (c command) includes(other command) bool {
	if c.program == "" || c.program != other.program {
		return false
	}
	return len(c.arguments) == 0 || slices.Contains(c.arguments, "./...") || slices.Equal(c.arguments, other.arguments)
}
