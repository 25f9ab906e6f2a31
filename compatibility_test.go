package varve

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
// have each row once, and a row is shown by a test that exists. A test TestRowsOf… has a case of that number.
func TestEveryRowOfTheFiveSystemsIsShownOrExplained(t *testing.T) {
	t.Parallel()
	page := section(t, "docs/compatibility.md", "Row by row")
	cases := testCases(t)
	fmt.Println("system: rows, as described, otherwise as the page says, missing")
	for _, system := range slices.Sorted(maps.Keys(rowsOfSystems)) {
		rows := rowsOfSystems[system]
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
			checkShown(t, system+" "+cells[1], numbers, cells[4], cases)
		}
		explained := len(seen)
		for test, numbers := range sameRows[system] {
			for cell := range strings.FieldsSeq(numbers) {
				numbers := rowNumbers(t, cell)
				for _, n := range numbers {
					if seen[n] {
						t.Errorf("%s %d is there twice", system, n)
					}
					seen[n] = true
				}
				checkShown(t, system+" "+cell, numbers, "`"+test+"`", cases)
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
		fmt.Printf("%s: %d, %d, %d, %d\n", system, rows, len(seen)-explained, explained, rows-len(seen))
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

// checkShown checks what a row names as its test.
func checkShown(t *testing.T, row string, numbers []int, shown string, cases map[string]string) {
	t.Helper()
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

// sentenceTests has the test of each sentence of docs/compatibility.md before its rows, by how the sentence begins. A row
// of a table is one sentence; of a table with two columns, each sentence of the second is one, behind the first.
var sentenceTests = map[string]string{
	"Varve unites five systems":                  "TestEverySettingIsOfAField",
	"`tool-compaction` (ai-agent":                "TestEveryWordingNamesTheToolThatBringsBack",
	"Each has a profile":                         "TestASettingOfASystemIsAPolicy",
	"Tests send recorded calls":                  "TestConformance",
	"A further 2,000":                            "TestVariants",
	"A vector that Varve answers differently":    "TestAChangedVectorIsInNoClass",
	"own | cortex":                               "TestVariants",
	"saved | cortex":                             "TestVariants",
	"limit | cortex":                             "TestVariants",
	"whole | cortex":                             "TestVariants",
	"units | tool-compaction":                    "TestVariants",
	"nothing | cortex":                           "TestVariants",
	"plain | tool-compaction":                    "TestVariants",
	"manual | cortex":                            "TestVariants",
	"errors | llm-proxy":                         "TestVariants",
	"smaller | llm-proxy":                        "TestVariants",
	"bookkeeping | llm-proxy":                    "TestVariants",
	"one message | codelia":                      "TestVariants",
	"untouched | codelia":                        "TestVariants",
	"models | codelia":                           "TestVariants",
	"A replacement is used only":                 "TestLaws",
	"What leaves the view can be read back":      "TestAManifestAddsUpAndEverythingInItCanBeReadBack",
	"Where a system's text does not say how":     "TestEveryWordingNamesTheToolThatBringsBack",
	"A result is replaced inside its message":    "TestLaws",
	"A call and its result stay together":        "TestEveryCompactedViewIsValid",
	"With `only_smaller`, a replacement is":      "TestAnAnswerThatIsFedBackIsUnchanged",
	"A newer result that is empty":               "TestAResultThatShowsAnErrorSupersedesNothing",
	"A mistake in a policy":                      "TestParsePolicyRefuses",
	"The estimator or a vocabulary":              "TestTokensCountsATextByEveryTokenizer",
	"The default counts closer":                  "TestTheEstimateOfEveryScriptIsNearTheExactCount",
	"`chars4` (cortex)":                          "TestConformance",
	"tool-compaction: The line of a text result": "TestRowsOfToolCompaction",
	"tool-compaction: A call that is given up":   "TestRowsOfToolCompaction",
	"llm-proxy: The lists of tools":              "TestRowsOfLLMProxy",
	"cortex: A text names a ref":                 "TestRowsOfCortex",
	"cortex: With `only_smaller`":                "TestBookendsAreOfFewSizes",
	"falai: Leading system messages stay":        "TestRowsOfFalai",
	"codelia: What is not persisted":             "TestAWorkerKilledBetweenAnyTwoStepsLeavesNothingHalfDone",
	"codelia: Leading system messages stay":      "TestSummariesOfSummariesEndInTheLog",
	"What the systems report":                    "TestReportsHaveWhatLLMProxyDocuments",
	"llm-proxy `compacted_count`":                "TestReportsHaveWhatLLMProxyDocuments",
	"`bytes_saved`":                              "TestReportsHaveWhatLLMProxyDocuments",
	"`tokens_saved_estimate`":                    "TestReportsHaveWhatLLMProxyDocuments",
	"`original_message_count`":                   "TestReportsHaveWhatLLMProxyDocuments",
	"`stale_resources`":                          "TestReportsHaveWhatLLMProxyDocuments",
	"`failed_open`":                              "TestWithoutASummaryTheBudgetHoldsAllTheSame",
	"`was_compacted`":                            "TestReportsHaveWhatLLMProxyDocuments",
	"overflow warning":                           "TestAViewAboveItsWindowIsReported",
	"`aggregate_metrics`":                        "TestReportsHaveWhatLLMProxyDocuments",
	"`by_category`":                              "TestReportsHaveWhatLLMProxyDocuments",
	"event: `message_index`":                     "TestReportsHaveWhatLLMProxyDocuments",
	"event: `resource_identity_preview`":         "TestReportsHaveWhatLLMProxyDocuments",
	"event: `original_bytes`":                    "TestReportsHaveWhatLLMProxyDocuments",
	"event: `original_tokens_estimate`":          "TestReportsHaveWhatLLMProxyDocuments",
	"event: `applied`":                           "TestReportsHaveWhatLLMProxyDocuments",
	"event: `original_sha256`":                   "TestReportsHaveWhatLLMProxyDocuments",
	"`effective_config_diagnostics`":             "TestASessionsOwnPolicyIsReplacedMergedAndTakenAway",
	"cortex events":                              "TestTheMetricsCountWhatCompactionsDid",
	"codelia `compaction_start`":                 "TestACompactionStartsFromTheLogWhereItsCheckpointHasAnotherPolicy",
	"Categories are the operations":              "TestReportsHaveWhatLLMProxyDocuments",
	"Every feature, formula, text":               "TestEveryRowOfTheFiveSystemsIsShownOrExplained",
	"Those that are not listed":                  "TestEveryRowOfTheFiveSystemsIsShownOrExplained",
}

// fittingTests has the same of docs/policy.md, from "Fields must fit together" on.
var fittingTests = map[string]string{
	"`cap` needs a limit":              "TestParsePolicyRefuses/a cap without a limit",
	"If both waits are on":             "TestParsePolicyRefuses/two lifetimes of one cache",
	"`protect.last_turns` needs":       "TestParsePolicyRefuses/turns of which nothing is kept",
	"`dedupe.identity` `fields` needs": "TestParsePolicyRefuses/identity without fields",
	"Under `default`, a summary":       "TestWithoutSummariesWholeUnitsAreDropped",
	"With `summarise` off":             "TestWithoutSummariesWholeUnitsAreDropped",
	"Leading system messages":          "TestProtection/a result without a call stays",
	"From one checkpoint to the next":  "TestLaws",
}

// TestEverySentenceHasATest holds docs/compatibility.md and docs/policy.md to the tests of their sentences: both have the
// same.
func TestEverySentenceHasATest(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(page), "\n### ")
	checkSentences(t, head, sentenceTests)
	_, fits, _ := strings.Cut(section(t, "docs/policy.md", "Fields"), "\nFields must fit together:\n")
	checkSentences(t, fits, fittingTests)
}

// checkSentences checks that each sentence has a test, and each test of tests, or its case, is there.
func checkSentences(t *testing.T, text string, tests map[string]string) {
	t.Helper()
	cases, told := testCases(t), map[string]bool{}
	for _, sentence := range sentencesOf(text) {
		begins := ""
		for key := range tests {
			if strings.HasPrefix(sentence, key) && len(key) > len(begins) {
				begins = key
			}
		}
		if begins == "" || told[begins] {
			t.Errorf("no test, or no test of its own, of: %s", sentence)
		}
		told[begins] = true
	}
	for begins, test := range tests {
		name, of, isCase := strings.Cut(test, "/")
		names, exists := cases[name]
		if !told[begins] || !exists || isCase && !strings.Contains("\n"+names+"\n", "\n"+of+"\n") {
			t.Errorf("no sentence begins with %q, or there is no %s", begins, test)
		}
	}
}

// sentencesOf returns the sentences of a page: of its paragraphs, its lists and its tables.
func sentencesOf(page string) (all []string) {
	end := regexp.MustCompile(`([.:]) ([A-Z\x60])`)
	split := func(text string) []string {
		return strings.Split(end.ReplaceAllString(strings.TrimSpace(text), "$1\n$2"), "\n")
	}
	paragraph, inTable := "", false
	flush := func() {
		if paragraph != "" {
			all = append(all, split(paragraph)...)
		}
		paragraph = ""
	}
	for line := range strings.Lines(page + "\n") {
		line = strings.TrimSuffix(line, "\n")
		cells, isRow := strings.CutPrefix(line, "| ")
		switch {
		case !isRow && (line == "" || line[0] == '#' || strings.HasPrefix(line, "    ")):
			flush()
			inTable = false
		case strings.HasPrefix(cells, "---"):
			inTable = true
		case isRow && inTable:
			if name, says, _ := strings.Cut(strings.TrimSuffix(cells, " |"), " | "); !strings.Contains(says, " | ") && !strings.HasSuffix(says, " |") {
				for _, sentence := range split(says) {
					all = append(all, name+": "+sentence)
				}
			} else {
				all = append(all, cells)
			}
		case !isRow:
			item, isItem := strings.CutPrefix(line, "* ")
			if isItem {
				flush()
			}
			paragraph += " " + strings.TrimSpace(item)
		}
	}
	flush()
	return all
}
