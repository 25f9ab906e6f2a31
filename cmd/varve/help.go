package main

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"os/exec"
	"regexp"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// printHelp prints the help of a command. That of varve itself only names the commands, so that it fits a screen.
func printHelp(options kong.HelpOptions, parsed *kong.Context) error {
	out := parsed.Stdout
	var text bytes.Buffer
	if parsed.Selected() == nil {
		text.WriteString(helpText("varve") + "\n")
	} else {
		parsed.Stdout = &text
		err := kong.DefaultHelpPrinter(options, parsed)
		parsed.Stdout = out
		if err != nil {
			return err
		}
	}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return showOnTerminal(file, text.Bytes())
	}
	_, err := out.Write(text.Bytes())
	return err
}

// heading is a line of a help that others are below.
var heading = regexp.MustCompile(`(?m)^(?:Usage:|[A-Z][^.\n]*:$)`)

// showOnTerminal prints headings in bold, and through a pager what is longer than the screen.
func showOnTerminal(out *os.File, text []byte) error {
	if os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		text = heading.ReplaceAll(text, []byte("\x1b[1m$0\x1b[0m"))
	}
	_, height, err := term.GetSize(int(out.Fd()))
	if err == nil && bytes.Count(text, []byte("\n")) >= height && page(out, text) == nil {
		return nil
	}
	_, err = out.Write(text)
	return err
}

// page shows a text in PAGER, or less.
func page(out io.Writer, text []byte) error {
	pager := exec.Command("sh", "-c", cmp.Or(os.Getenv("PAGER"), "less"))
	pager.Env = append(os.Environ(), "LESS=FRX")
	pager.Stdin = bytes.NewReader(text)
	pager.Stdout = out
	pager.Stderr = os.Stderr
	return pager.Run()
}
