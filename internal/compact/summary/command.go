package summary

import (
	_ "embed"
	"slices"
	"strings"
)

// command is what matters about a command line of a shell.
type command struct {
	program   string   // its name and subcommand: "go test"; that of the last program that does more than look
	arguments []string // without flags
	looks     bool     // it only looks at something
	commits   bool     // it commits to version control
}

// lookers are programs that only look, alone or with the subcommand after a space.
var lookers = lookersOf(`ls cat head tail grep rg ag find fd wc which type pwd echo cd tree file stat du df env date`+
	` printenv ps whoami uname jq awk sort uniq cut diff less more printf true export source . sleep test [`,
	`git log|git show|git diff|git status|git branch|git remote|git rev-parse|git blame|git ls-files|git grep`,
	`git merge-base|git reflog|git config|git describe|git tag|git check-ignore|git cat-file|git ls-tree|git fetch`,
	`gh pr view|gh pr list|gh pr diff|gh pr checks|gh issue|gh api|gh run|gh search|sed -n|go doc|go list`)

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
	line, _, _ = strings.Cut(head(line, windowBytes), "<<")
	c := command{looks: true}
	for part := range commandsIn(strings.ReplaceAll(line, "\n", ";")) {
		words := wordsOf(part)
		if len(words) == 0 || lookers[words[0]] {
			continue
		}
		program := strings.Join(words[:min(len(words), 2)], " ")
		longer := strings.Join(words[:min(len(words), 3)], " ")
		c.commits = c.commits || slices.Contains(committers, program)
		if lookers[program] || lookers[longer] {
			continue
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
	return c
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
func commandsIn(line string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line != "" {
			i := strings.IndexAny(line, "&;|")
			if i < 0 {
				yield(line)
				return
			}
			if i > 0 && line[i] == '&' && line[i-1] == '>' { // 2>&1
				j := strings.IndexAny(line[i+1:], "&;|")
				if j < 0 {
					yield(line)
					return
				}
				i += 1 + j
			}
			piped := line[i] == '|' && !strings.HasPrefix(line[i:], "||")
			if !yield(line[:i]) {
				return
			}
			line = strings.TrimLeft(line[i:], "&;|")
			if piped {
				line = afterPipes(line)
			}
		}
	}
}

// afterPipes returns a line from the command that follows a pipeline.
func afterPipes(line string) string {
	for _, end := range []string{"&&", ";", "||"} {
		if i := strings.Index(line, end); i >= 0 {
			return line[i+len(end):]
		}
	}
	return ""
}

// includes reports whether a command does at least what another one does: the same program with the same arguments, or
// on everything.
func (c command) includes(other command) bool {
	if c.program == "" || c.program != other.program {
		return false
	}
	return len(c.arguments) == 0 || slices.Contains(c.arguments, "./...") || slices.Equal(c.arguments, other.arguments)
}
