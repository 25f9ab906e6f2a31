package varve

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// retiredNames are identifiers that the code no longer uses, each with the field's word in its place. They are matched
// against whole identifiers, in tests too.
var retiredNames = map[string]string{
	"takeDown|tookDown|takenDown":                   "extractColumns",
	"wake|wakeLevel|wakeTrigger|wakeHard|wakeIfDue": "armedThreshold, nextThreshold",
	"Neutral|Piece":                                 "Message, Block",
	"Walk|NewWalk|Fact|FactOfBody|Sound|judge":      "FastValidator, MessageShape, Valid",
	"odd|strange":                                   "mayNeedRepair",
	"apart|Apart|ApartFormats":                      "SeparateSystemPrompt, disjoint, splitResults",
	"leaving|leaves|leaveOut|departure|departs|stays|standsFor|standing": "evicted, kept, covers, current",
	"Squeeze": "CollapseSpace",
	"hurry|hurryRun|Hurry|ErrHurried|PutOffRun": "RunNow, ErrRunRequested, SnoozeRun",
	"CapWith|Shown|OpenedView|Logged|Traced":    "a constructor argument, ViewMessage, ViewRows, LogMessage, MessagesOfCalls",
	"carryOut|CarryOut":                         "execute",
	"most|least|otherwise":                      "max, min, fallback",
	"asker|Asker|askers":                        "Caller",
	"door|doors|Door":                           "routeGroup",
	"care|Care|CareOf":                          "RetryRule",
	"deed|deeds":                                "action, outcome, auditEntry",
	"endings|Endings":                           "EndListener, suffixes",
	"strangers|newStrangers":                    "unknownKeys",
	"chore|chores|Chore|Chores":                 "task",
	"he|who|whom":                               "the thing's name",
}

// retiredPhrases are phrases of comments and documentation that made readers translate.
var retiredPhrases = map[string]string{
	`\b(he|him|his)\b`: "the caller, the client, the program",
	`\bfor who\b`:      "for callers that",
	`\b(it|that|this|which|what|one) is none\b`: "is not a …, does not exist",
	`\bso many\b`:                       "the number, as many as",
	`\b(take|takes|taken|took) down\b`:  "extract, record",
	`\b(stand|stands) (apart|behind)\b`: "is separate, follows",
	`\bgoes on\b`:                       "continues",
	`\bis put off\b`:                    "is snoozed",
	`\bhurried\b`:                       "requested to run now",
	`\bsays of itself\b`:                "records",
	`\bin between of\b`:                 "between",
	`\bnobody can\b`:                    "no caller can",
	`\b(are|is) the (most|least)\.`:     "the limit is",
	`\bare possible\b`:                  "must contain, must be one of",
}

func TestTheCodeUsesTheFieldsNames(t *testing.T) {
	t.Parallel()
	replacement := map[string]string{}
	for names, word := range retiredNames {
		for name := range strings.SplitSeq(names, "|") {
			replacement[name] = word
		}
	}
	for _, file := range sources(t) {
		ast.Inspect(file.ast, func(node ast.Node) bool {
			if id, ok := node.(*ast.Ident); ok && replacement[id.Name] != "" {
				t.Errorf("%s: the name %s is retired: %s", file.fset.Position(id.Pos()), id.Name, replacement[id.Name])
			}
			return true
		})
	}
}

// TestCommentsOfFunctionsSayWhatTheFunctionDoes wants a verb behind the name: returns, reports whether, reads, …
func TestCommentsOfFunctionsSayWhatTheFunctionDoes(t *testing.T) {
	t.Parallel()
	for _, file := range sources(t) {
		for _, decl := range file.ast.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || function.Doc == nil {
				continue
			}
			words := strings.Fields(function.Doc.Text())
			if len(words) > 1 && words[0] == function.Name.Name && (words[1] == "is" || words[1] == "are") {
				t.Errorf("%s: write what %s does (returns, reports whether, …), not what it is",
					file.fset.Position(function.Pos()), function.Name.Name)
			}
		}
	}
}

func TestCommentsAndDocumentsUsePlainEnglish(t *testing.T) {
	t.Parallel()
	phrases := map[*regexp.Regexp]string{}
	for pattern, plain := range retiredPhrases {
		phrases[regexp.MustCompile(`(?i)`+pattern)] = plain
	}
	check := func(where string, text []byte) {
		text = bytes.Join(bytes.Fields(text), []byte(" "))
		for pattern, plain := range phrases {
			if found := pattern.Find(text); found != nil {
				t.Errorf("%s: %q is not plain English; write: %s", where, found, plain)
			}
		}
	}
	for _, file := range sources(t) {
		if file.path == "words_test.go" {
			continue
		}
		for _, group := range file.ast.Comments {
			check(file.fset.Position(group.Pos()).String(), []byte(group.Text()))
		}
	}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "samples/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			check(path, text)
		}
	}
}
