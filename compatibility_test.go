package varve

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// rowsOfSystems has how many rows each system has.
var rowsOfSystems = map[string]int{"tool-compaction": 32, "cortex": 48, "falai": 30, "llm-proxy": 42, "codelia": 37}

// sameRows has the rows that are as the system documents them, by the test that shows them. docs/compatibility.md has
// all others.
var sameRows = map[string]map[string]string{
	"tool-compaction": {
		"TestRowsOfToolCompaction": "8–9 10 11–13 15 18–19 21–22 24 25 28",
	},
	"cortex": {
		"TestASessionIsDueAtWhatItsPolicySays":                     "34",
		"TestAWorkerKilledBetweenAnyTwoStepsLeavesNothingHalfDone": "25",
		"TestAnOversizedResultNeverEntersAViewWhole":               "27",
		"TestEveryByteComesBack":                                   "44",
		"TestProfilesHaveTheSystemsNumbers":                        "1–8 11 15",
		"TestRowsOfCortex":                                         "10 12–14 16 22 28 33 35 38",
	},
	"falai": {
		"TestAnAnswerThatIsFedBackIsUnchanged":           "26",
		"TestDemandsSurviveTwentySummariesOfSummaries":   "27",
		"TestEveryCompactedViewIsValid":                  "30",
		"TestOnlyTheStagesThatAreNeededAct":              "1",
		"TestProfilesHaveTheSystemsNumbers":              "29",
		"TestRowsOfFalai":                                "2 4 7 16 17",
		"TestTokensOfMessagesAreThoseThatAnAppendCounts": "20",
		"TestWithoutASummaryTheBudgetHoldsAllTheSame":    "12 28",
	},
	"llm-proxy": {
		"TestReportsHaveWhatLLMProxyDocuments":      "28 29 31",
		"TestRowsOfLLMProxy":                        "6 10–14 16–17 18 19 20 24 26 27 40 42",
		"TestTheTableOfLLMProxyIsExact":             "9",
		"TestWhatIsDueSaysItsTriggerIfForceIsFalse": "5",
	},
	"codelia": {
		"TestANewSummaryTakesTheOldOneUp":                      "36",
		"TestAPolicyThatIsSwitchedOffChangesNothing":           "1",
		"TestAPolicyWithoutAutoCompactsOnlyOnRequest":          "21",
		"TestASessionIsDueAtTheThresholdThatIsArmed":           "22",
		"TestASessionIsDueAtWhatItsPolicySays":                 "3",
		"TestASummaryThatFailsIsDoneWithout":                   "32",
		"TestProfilesHaveTheSystemsNumbers":                    "27",
		"TestRowsOfCodelia":                                    "2 4 6 9–10 29 33",
		"TestTheAppendThatCrossesTheTriggerLeadsToACheckpoint": "35",
	},
}

// TestEveryRowOfTheFiveSystemsIsShownOrExplained holds docs/compatibility.md and sameRows to the tests: together they
// have each row once, and a row is shown by a test that exists or says what happens instead. A test TestRowsOf… has a
// case of that number.
func TestEveryRowOfTheFiveSystemsIsShownOrExplained(t *testing.T) {
	t.Parallel()
	page := section(t, "docs/compatibility.md", "Row by row")
	cases := testCases(t)
	for system, rows := range rowsOfSystems {
		_, table, found := strings.Cut(page, "\n### "+system+"\n")
		if !found {
			t.Errorf("no table of %s", system)
			continue
		}
		table, _, _ = strings.Cut(table, "\n### ")
		seen := map[int]bool{}
		for _, cells := range regexp.MustCompile(`(?m)^\| (\d[\d–]*) \| (.+) \| (.+) \| (.+) \|$`).FindAllStringSubmatch(table, -1) {
			numbers := rowNumbers(t, cells[1])
			for _, n := range numbers {
				if seen[n] {
					t.Errorf("%s %d is there twice", system, n)
				}
				seen[n] = true
			}
			checkShown(t, system+" "+cells[1], numbers, cells[3], cells[4], cases)
		}
		for test, numbers := range sameRows[system] {
			for cell := range strings.FieldsSeq(numbers) {
				numbers := rowNumbers(t, cell)
				for _, n := range numbers {
					if seen[n] {
						t.Errorf("%s %d is there twice", system, n)
					}
					seen[n] = true
				}
				checkShown(t, system+" "+cell, numbers, "the same", "`"+test+"`", cases)
			}
		}
		for n := range rows {
			if !seen[n+1] {
				t.Errorf("no row %s %d", system, n+1)
			}
		}
		if len(seen) != rows {
			t.Errorf("%d rows of %s, want %d", len(seen), system, rows)
		}
	}
}

// rowNumbers returns the numbers of a row: "7" or "1–8".
func rowNumbers(t *testing.T, cell string) (numbers []int) {
	t.Helper()
	first, last, isRange := strings.Cut(cell, "–")
	if !isRange {
		last = first
	}
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	if err != nil || err2 != nil {
		t.Errorf("row %q is no number", cell)
	}
	for n := from; n <= to; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// checkShown checks what a row names as its test, or what it says in place of one.
func checkShown(t *testing.T, row string, numbers []int, text, shown string, cases map[string]string) {
	t.Helper()
	if shown == "—" {
		if len(text) < 40 || strings.HasPrefix(text, "the same") {
			t.Errorf("%s: %q does not say what happens instead and why", row, text)
		}
		return
	}
	test := strings.Trim(shown, "`")
	names, exists := cases[test]
	if !exists {
		t.Errorf("%s: there is no %s", row, test)
	}
	if !strings.HasPrefix(test, "TestRowsOf") {
		return
	}
	for _, n := range numbers {
		if !regexp.MustCompile(`(?m)^(\d+ )*` + strconv.Itoa(n) + `( |$)`).MatchString(names) {
			t.Errorf("%s: %s has no case %d", row, test, n)
		}
	}
}

// testCases returns all test functions, with the names of the cases in their tables, one a line. A case is the key of a
// composite literal. The numbers of the rows that it shows come first in its name.
func testCases(t *testing.T) map[string]string {
	t.Helper()
	cases := map[string]string{}
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				cases[f.Name.Name] = caseNames(f)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func caseNames(f *ast.FuncDecl) string {
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.BasicLit); ok && key.Kind == token.STRING {
				names = append(names, strings.Trim(key.Value, `"`))
			}
		}
		return true
	})
	return strings.Join(names, "\n")
}
