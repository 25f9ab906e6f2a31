package summary

import (
	"regexp"
)

// The sections and the tags of an answer, in any case. Go folds ſ to s, which [sS] prevents.
var (
	retainSection  = regexp.MustCompile(`(?s)<(?i:retain)>(.*?)</(?i:retain)>`)
	summarySection = regexp.MustCompile(`(?s)<[sS](?i:ummary)>(.*?)</[sS](?i:ummary)>`)
	summaryOpening = regexp.MustCompile(`<[sS](?i:ummary)>`)
	summaryClosing = regexp.MustCompile(`</[sS](?i:ummary)>`)
	exactSection   = regexp.MustCompile(`(?s)<summary>(.*?)</summary>`)
	analysis       = regexp.MustCompile(`(?s)<analysis>.*?</analysis>`)
	whole          = regexp.MustCompile(`(?s)^\s*(?:<retain>(.*?)</retain>\s*)?<summary>(.*?)</summary>\s*$`)
)

// read reads a model's answer to a request as its style has it. Style Sections takes the tags that it asks for and
// nothing outside them, the styles of other systems what those take.
func read(text string, r Request) (Answer, error) {
	switch r.Style {
	case Codelia:
		a, _ := Parse(text, r.Retain)
		return a, nil
	case Falai:
		return Answer{Summary: trim(text)}, nil
	case Cortex:
		return Answer{Summary: analysed(text)}, nil
	}
	found := whole.FindStringSubmatch(text)
	if found == nil || found[1] != "" && !r.Retain {
		return Answer{}, ErrSchema
	}
	return Answer{Retain: trim(found[1]), Summary: trim(found[2])}, nil
}

// analysed returns the summary in an answer in style Cortex: what the first summary tags have in them, if they are in
// lower case and not empty, else what is outside of the analysis.
func analysed(text string) string {
	if inner := inside(text, exactSection); inner != "" {
		return inner
	}
	if rest := trim(analysis.ReplaceAllString(text, "")); rest != "" {
		return rest
	}
	return trim(text)
}

// Parse reads an answer in style Codelia: the contents of the first retain and summary tags, in any case, trimmed.
// Without a summary in tags, the summary is all text outside retain tags. It reports false if nothing is left to use.
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

// parseSeq returns the number that digits are, and whether it can be a seq.
func parseSeq(digits string) (seq int64, ok bool) {
	for _, d := range []byte(digits) {
		if d < '0' || d > '9' || len(digits) > 18 {
			return 0, false
		}
		seq = 10*seq + int64(d-'0')
	}
	return seq, seq > 0
}
