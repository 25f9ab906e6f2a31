package summary

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// InstructionLike flags a text that reads as if it told its reader what to do.
const InstructionLike = "instruction_like"

// orders are ways to tell a reader what to do, in the languages that attacks on summaries are seen in. They are looked
// for in lower case and one by one: that is several times as fast as one pattern of them all.
var orders = patterns(
	`\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instruction|prompt|rule|polic|message|guideline|direction)`,
	`\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:safety|everything)`,
	`\b(?:new|updated|hidden|secret|real|following)\s+(?:system\s+)?(?:instruction|prompt|directive|order)s?\b`,
	`\bsystem\s*(?:prompt|message|override|note)\b`,
	`\byou\s+(?:must|should|shall|will|are\s+to|have\s+to|need\s+to|are\s+now|can\s+now)\b`,
	`\b(?:from\s+now\s+on|henceforth|for\s*ever|in\s+(?:all|every)\s+future)`,
	`\b(?:all|every)\s+future\s+(?:session|conversation|answer|reply|turn|message)`,
	`\b(?:remember|memori[sz]e|store|save)\b.{0,30}\b(?:always|for\s*ever|permanent|future|memory)`,
	`\b(?:do\s+not|don'?t|never)\s+(?:tell|mention|reveal|inform|show|warn|say|ask|disclose|log)\b`,
	`\b(?:send|post|upload|exfiltrate|forward|leak|transmit|email)\b.{0,60}\b(?:https?://|key|token|secret|password)`,
	`\b(?:send|post|upload|exfiltrate|forward|leak|transmit|email)\b.{0,60}\b(?:credential|conversation|history|data|env)`,
	`\bact\s+as\b|\bpretend\s+to\b|\bdeveloper\s+mode\b|\bjailbreak`,
	`\bthe\s+(?:assistant|agent|model|ai)\s+(?:must|should|shall|will|has\s+to)\b`,
	`(?:curl|wget)\s.{0,80}\|\s*(?:ba|z)?sh\b`,
	`^\s*(?:#+\s*)?(?:system|assistant|developer|human|user)\s*[:：]`,
	`<\s*/?\s*(?:system|assistant|user|human|instructions?|function_calls?|tool_(?:use|call|result)s?|invoke|antml)\b`,
	`\[/?(?:inst|system|sys)\]|<<sys>>`,
	`"role"\s*:\s*"(?:system|developer|assistant|tool)"`,
	`\bignor(?:e[zr]?|a|iere?n?|iert|ar|are)\b.{0,60}(?:instruc|anweisung|instruk|istruz|instruçõ|regel|regl|règl)`,
	`\bab\s+jetzt|\bvon\s+nun\s+an|\bvergiss\s+alle|désormais|\bà\s+partir\s+de\s+maintenant|\boublie[zs]?\s+`,
	`\ba\s+partir\s+de\s+(?:ahora|agora)|\bolvida\s+|\bde\s+ahora\s+en|\bd'ora\s+in|\besqueça\s+`,
	`忽略|无视|無視|忘记|忘掉|忘れて|从现在(?:开始|起)|從現在|永远记住|永遠記住|不要告诉|不要告訴|你(?:必须|現在是|现在是|应当)`,
	`今後は|これからは|以降は必ず|教えないで|言わないで|あなたは.{0,20}(?:なければ|しなさい)`,
	`(?:이전|모든|위의).{0,12}(?:지시|명령|규칙).{0,12}(?:무시|잊)|지금부터|앞으로는\s*항상`,
	`игнорируй|игнорировать|забудь|не\s+обращай|отныне|с\s+этого\s+момента|не\s+(?:говори|сообщай)`,
	`تجاهل|من\s+الآن\s+فصاعدا|अनदेखा|नज़रअंदाज़|भूल\s*जा|önceki.{0,20}(?:talimat|yoksay)`,
)

func patterns(sources ...string) []*regexp.Regexp {
	compiled := make([]*regexp.Regexp, len(sources))
	for i, source := range sources {
		compiled[i] = regexp.MustCompile(`(?m)` + source)
	}
	return compiled
}

func ordering(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(orders, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}

// encoded finds what may be base64 of a sentence.
var (
	encoded  = regexp.MustCompile(`[A-Za-z0-9+/_-]{24,}`)
	standard = strings.NewReplacer("-", "+", "_", "/")
)

// Flags says what looks odd in an answer. A flag is no verdict: a user's own demands read like instructions, too.
func Flags(a Answer) []string {
	text := a.Retain + "\n" + a.Summary
	if strings.ContainsFunc(text, invisible) && neutral(text) != escaped(text) || ordering(text) || smuggles(text) {
		return []string{InstructionLike}
	}
	return nil
}

// smuggles reports whether a run of base64 in the text is a sentence that reads like an order.
func smuggles(text string) bool {
	for _, run := range encoded.FindAllString(text, -1) {
		run = standard.Replace(run)
		decoded, err := base64.RawStdEncoding.DecodeString(run[:len(run)/4*4])
		if err == nil && utf8.Valid(decoded) && ordering(string(decoded)) {
			return true
		}
	}
	return false
}
