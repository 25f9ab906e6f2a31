// Command varve runs Varve and talks to it: varve up is everything in one process on a private database; migrate works
// on the database, as tenants and keys do without a key; all others are clients of the HTTP API.
package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/features"
	"github.com/varve-dev/varve/internal/process"
)

type commands struct {
	config.Client

	Up     upCommand             `cmd:"" help:"Run API, worker and a private PostgreSQL in one process."`
	API    process.APICommand    `cmd:"" name:"api" help:"Serve the HTTP API: one of the processes of production."`
	Worker process.WorkerCommand `cmd:"" help:"Run compactions and other jobs: one of the processes of production."`

	Demo        demoCommand        `cmd:"" help:"Show what Varve does, with sample conversations or your own."`
	Migrate     migrateCommand     `cmd:"" help:"Bring a database's schema up to date."`
	Tenants     tenantsCommand     `cmd:"" help:"Create, list, change, suspend and delete tenants."`
	Keys        keysCommand        `cmd:"" help:"Create, list, rotate and revoke API keys."`
	Failures    failuresCommand    `cmd:"" help:"List the sessions whose compaction fails, and try them again."`
	Import      importCommand      `cmd:"" help:"Append conversations from files."`
	Export      exportCommand      `cmd:"" help:"Write sessions to a file that varve import reads."`
	Sessions    sessionsCommand    `cmd:"" help:"List sessions, show, archive or erase one."`
	Retention   retentionCommand   `cmd:"" help:"When sessions expire, and which would now."`
	Holds       holdsCommand       `cmd:"" help:"Show, place and lift legal holds."`
	Erasures    erasuresCommand    `cmd:"" help:"Erase all sessions of a person, and show receipts."`
	Fork        forkCommand        `cmd:"" help:"Make a session that shares the log of another."`
	Context     contextCommand     `cmd:"" help:"Print a session's view: what to send to the model."`
	Preview     previewCommand     `cmd:"" help:"Print what a compaction of a session would do."`
	Compact     compactCommand     `cmd:"" help:"Compact a session now."`
	Runs        runsCommand        `cmd:"" help:"List a session's compactions."`
	Checkpoints checkpointsCommand `cmd:"" help:"List a session's checkpoints, show one, compare two, or restore one."`
	Summaries   summariesCommand   `cmd:"" help:"Show a session's summaries and who wrote them, or make them anew."`
	Pins        pinsCommand        `cmd:"" help:"Pin what every checkpoint of a session has word for word."`
	Policy      policyCommand      `cmd:"" help:"Show, set and check policies."`
	Tokens      tokensCommand      `cmd:"" help:"Create, list and revoke session tokens, which agents hold."`
	Audit       auditCommand       `cmd:"" help:"Show, export and verify the trail of who did what."`
	Verify      verifyCommand      `cmd:"" help:"Prove that everything is still there, and repair what can be."`
	MCP         mcpCommand         `cmd:"" name:"mcp" help:"Serve the agent tools on standard input and output."`
	Config      configCommand      `cmd:"" help:"Print the settings and language models in force."`
	Doctor      doctorCommand      `cmd:"" help:"Say what is wrong with this installation, and what to do."`
	Docs        docsCommand        `cmd:"" help:"Write the documentation as a site of files."`
	Ready       readyCommand       `cmd:"" help:"End with 0 if a process is ready, for healthchecks."`
	Completion  completionCommand  `cmd:"" help:"Print a script that completes command lines in a shell."`
	Complete    completeCommand    `cmd:"" hidden:"" help:"Print what may come next in a command line."`
	Backup      backupCommand      `cmd:"" help:"Write the whole database to a file."`
	Restore     restoreCommand     `cmd:"" help:"Read a backup into an empty database."`
	kong.Plugins
	Results resultsCommands `cmd:"" help:"List a session's persisted tool results, print one, or move them."`
}

func main() { os.Exit(run(os.Args[1:])) }

// run runs a command line and returns the exit code.
func run(args []string) int {
	var cli commands
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser(&cli).Parse(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "varve:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = audit.With(ctx, &audit.Actor{Kind: audit.ByCommand, Address: runBy()})
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.BindTo(os.Stdout, (*io.Writer)(nil))
	if err := parsed.Run(&cli.Client); err != nil {
		fmt.Fprintln(os.Stderr, complaint(err, cli.JSON))
		return exitCode(err)
	}
	return 0
}

// runBy returns who runs the command on which machine, as the system says.
func runBy() string {
	host, _ := os.Hostname()
	if account, err := user.Current(); err == nil {
		return account.Username + "@" + host
	}
	return host
}

//go:embed help
var helpTexts embed.FS

// helpText returns what is shown below the flags of a command.
func helpText(command string) string {
	text, err := helpTexts.ReadFile("help/" + command + ".txt")
	if err != nil {
		panic(err) // every test of the command line fails then
	}
	return strings.TrimSpace(string(text))
}

// addExamples puts the examples of a command below its help, and below that of the commands above it.
func addExamples(k *kong.Kong) error {
	text := helpText("examples") + "\n"
	for _, f := range features.All() {
		text += f.Examples
	}
	for line := range strings.Lines(text) {
		_, words, _ := strings.Cut(" "+line, " varve ")
		for node := commandOf(k.Model.Node, strings.Fields(words)); node.Parent != nil; node = node.Parent {
			if !strings.Contains(node.Detail, "\n  ") {
				node.Detail += "\n\nExamples:\n"
			}
			node.Detail += "\n  " + strings.TrimSpace(line)
		}
	}
	return nil
}

// commandOf returns the command that words call.
func commandOf(node *kong.Node, words []string) *kong.Node {
	for _, word := range words {
		child := childNamed(node, word)
		if child == nil {
			break
		}
		node = child
	}
	if node.DefaultCmd != nil {
		return node.DefaultCmd
	}
	return node
}

func childNamed(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// parser returns the command line's parser. A command whose Run names a *command.Console gets it from connect, one that
// names command.Operators from connectOperator, and one that names command.Connecting from mayConnect.
func parser(cli *commands) *kong.Kong {
	for _, f := range features.All() {
		if f.Command != nil {
			cli.Plugins = append(cli.Plugins, f.Command)
		}
	}
	return kong.Must(cli, kong.Name("varve"), kong.UsageOnError(), config.VersionFlag(),
		kong.Help(printHelp), kong.PostBuild(addExamples),
		kong.BindToProvider(connect), kong.BindToProvider(connectOperator), kong.BindToProvider(mayConnect),
		kong.Description("A session store for LLM agents that keeps every message and a small context."))
}

// connect returns a console for the API at settings.URL, or else the one in DATA/url, with its key or else the one in
// DATA/key.
func connect(settings *config.Client, out io.Writer) (*command.Console, error) {
	base, err := url.Parse(cmp.Or(settings.URL, upURL(settings.Data)))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, command.Usage(fmt.Sprintf("--url (VARVE_URL) is %q: it must be a URL like http://127.0.0.1:8080",
			cmp.Or(settings.URL, upURL(settings.Data))))
	}
	key := settings.Key
	if key == "" {
		file := filepath.Join(settings.Data, "key")
		key, err = readKey(file)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, &failure{exitAuth, fmt.Sprintf("no API key: set VARVE_KEY, or point --data at the data "+
				"directory of a varve up (there is no %s)", file)}
		case err != nil:
			return nil, err
		}
	}
	return &command.Console{API: client.New(base, key, os.Stderr), JSON: settings.JSON, Out: out}, nil
}

// mayConnect returns what a feature's command works with that may need no API.
func mayConnect(settings *config.Client, out io.Writer) (*command.Connecting, error) {
	open := func() (*command.Console, error) { return connect(settings, out) }
	return &command.Connecting{Console: open, JSON: settings.JSON, Out: out}, nil
}

// upURL returns the address of the varve up that runs on a data directory, or ran there last; else where it listens if
// nothing else is said.
func upURL(data string) string {
	said, err := os.ReadFile(filepath.Join(data, urlFile))
	if err != nil {
		return "http://127.0.0.1:8080"
	}
	return strings.TrimSpace(string(said))
}

// readKey returns the key that a file holds.
func readKey(file string) (string, error) {
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}
