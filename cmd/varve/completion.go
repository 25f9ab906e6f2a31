package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script, which asks varve complete.
func (c *completionCommand) Run(out io.Writer) error {
	_, err := fmt.Fprintln(out, helpText("completion."+c.Shell))
	return err
}

type completeCommand struct {
	Words []string `arg:"" optional:"" help:"The words behind varve, with the one that is being written."`
}

// Run prints each word that may come next, with what it means behind a tab.
func (c *completeCommand) Run(parsed *kong.Context, out io.Writer) error {
	for _, next := range completions(parsed.Model.Node, c.Words) {
		if _, err := fmt.Fprintf(out, "%s\t%s\n", next.word, next.help); err != nil {
			return err
		}
	}
	return nil
}

// completion is a word that may come next.
type completion struct{ word, help string }

// completions returns what the last of some words may be. There is none where a file or a name of the user's comes.
func completions(node *kong.Node, words []string) (found []completion) {
	if len(words) == 0 {
		return nil
	}
	written, last := words[:len(words)-1], words[len(words)-1]
	var awaits *kong.Flag // has its value in the next word
	for _, word := range written {
		if awaits != nil {
			awaits = nil
			continue
		}
		awaits = flagNamed(node, word)
		if child := childNamed(node, word); child != nil {
			node = child
		}
	}
	all := nextWords(node, strings.HasPrefix(last, "-"))
	if awaits != nil {
		all = wordsOf(awaits.Enum)
	}
	return slices.DeleteFunc(all, func(c completion) bool { return !strings.HasPrefix(c.word, last) })
}

// nextWords returns the commands of a node, or its flags.
func nextWords(node *kong.Node, flags bool) (found []completion) {
	if !flags {
		for _, child := range node.Children {
			if !child.Hidden {
				found = append(found, completion{child.Name, child.Help})
			}
		}
		for _, argument := range node.Positional {
			found = append(found, wordsOf(argument.Enum)...)
		}
		return found
	}
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			found = append(found, completion{"--" + flag.Name, flag.Help})
		}
	}
	return found
}

// flagNamed returns the flag that a word is, if its value is another word.
func flagNamed(node *kong.Node, word string) *kong.Flag {
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			if "--"+flag.Name == word && !flag.IsBool() {
				return flag
			}
		}
	}
	return nil
}

func wordsOf(enum string) (found []completion) {
	for word := range strings.SplitSeq(enum, ",") {
		if word != "" {
			found = append(found, completion{word, ""})
		}
	}
	return found
}
