package summary

import "regexp"

// The sections and the tags of an answer, in any case. Go folds ſ to s, which [sS] prevents.
var (
	retainSection  = regexp.MustCompile(`(?s)<(?i:retain)>(.*?)</(?i:retain)>`)
	summarySection = regexp.MustCompile(`(?s)<[sS](?i:ummary)>(.*?)</[sS](?i:ummary)>`)
	summaryOpening = regexp.MustCompile(`<[sS](?i:ummary)>`)
	summaryClosing = regexp.MustCompile(`</[sS](?i:ummary)>`)
)

// Parse reads a model's answer: the contents of the first retain and summary tags, in any case, trimmed. Without a
// summary in tags, the summary is all text outside retain tags. It reports false if nothing is left to use.
func Parse(text string, retain bool) (Answer, bool) {
	var a Answer
	if retain {
		a.Retain = inside(text, retainSection)
	}
	if a.Summary = inside(text, summarySection); a.Summary == "" {
		text = retainSection.ReplaceAllString(text, "")
		text = summaryOpening.ReplaceAllString(text, "")
		a.Summary = trim(summaryClosing.ReplaceAllString(text, ""))
	}
	return a, a.Retain != "" || a.Summary != ""
}

// inside returns the content of the first section.
func inside(text string, section *regexp.Regexp) string {
	if found := section.FindStringSubmatch(text); found != nil {
		return trim(found[1])
	}
	return ""
}
