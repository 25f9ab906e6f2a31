package resource

import "strings"

// kinds are the secrets that Mask knows: prefixes, what follows them, and how much of it at least.
var kinds = []struct {
	prefixes string
	body     *set
	atLeast  int
	secret   func(text string, i, end int) (from, to int)
}{
	{"AKIA|ASIA|ABIA|ACCA", setOfBytes("A-Z2-7"), 16, nil},                                // Amazon
	{"AIza", token, 35, nil},                                                              // Google
	{"GOCSPX-|ya29.", token, 20, nil},                                                     // Google OAuth
	{"AccountKey=|SharedAccessKey=", setOfBytes("A-Za-z0-9+/="), 40, afterPrefix("=")},    // Azure
	{"ghp_|gho_|ghu_|ghs_|ghr_|github_pat_", identifier, 36, nil},                         // GitHub
	{"glpat-|gldt-|glrt-|glcbt-|glptt-|glft-|glimt-|glagent-|glsoat-", token, 20, nil},    // GitLab
	{"xoxb-|xoxp-|xoxa-|xoxr-|xoxs-|xoxe-|xoxe.|xapp-", token, 20, nil},                   // Slack
	{"hooks.slack.com/services/", setOfBytes("A-Za-z0-9/"), 40, afterPrefix("services/")}, // Slack
	{"sk_live_|sk_test_|rk_live_|rk_test_|whsec_", alphanumeric, 16, nil},                 // Stripe
	{"sk-proj-|sk-svcacct-|sk-admin-|sk-ant-|sk-or-", token, 20, nil},                     // OpenAI, Anthropic, OpenRouter
	{"sk-", alphanumeric, 32, nil},                                                        // OpenAI, DeepSeek
	{"gsk_|xai-|pplx-|r8_", alphanumeric, 37, nil},                                        // Groq, xAI, Perplexity, Replicate
	{"hf_", setOfBytes("A-Za-z"), 30, nil},                                                // Hugging Face
	{"npm_", alphanumeric, 36, nil},                                                       // npm
	{"pypi-", token, 50, nil},                                                             // PyPI
	{"rubygems_|sbp_", hexadecimal, 40, nil},                                              // RubyGems, Supabase
	{"dckr_pat_|figd_|pscale_tkn_|pscale_pw_", token, 27, nil},                            // Docker, Figma, PlanetScale
	{"dop_v1_|doo_v1_|dor_v1_", hexadecimal, 64, nil},                                     // DigitalOcean
	{"shpat_|shpca_|shppa_|shpss_|dapi|key-|SK", hexadecimal, 32, nil},                    // Shopify, Databricks, Mailgun, Twilio
	{"SG.", setOfBytes("A-Za-z0-9_.-"), 60, nil},                                          // SendGrid
	{"sq0atp-|sq0csp-", token, 22, nil},                                                   // Square
	{"dp.pt.|dp.st.|lin_api_|ntn_|secret_|fo1_", token, 40, nil},                          // Doppler, Linear, Notion, Fly
	{"PMAK-|tskey-", token, 20, nil},                                                      // Postman, Tailscale
	{"ATATT3|ATCTT3|ATBB", setOfBytes("A-Za-z0-9_=-"), 24, nil},                           // Atlassian
	{"hvs.|hvb.", token, 24, nil},                                                         // Vault
	{"AGE-SECRET-KEY-1", setOfBytes("A-Z0-9"), 58, nil},                                   // age
	{"NRAK-|glsa_|glc_", setOfBytes("A-Za-z0-9_+/="), 27, nil},                            // New Relic, Grafana
	{"vk_", identifier, 60, nil},                                                          // Varve
	{"eyJ", setOfBytes(""), 0, webToken},                                                  // JSON Web Tokens
	{"Bearer |bearer ", setOfBytes("A-Za-z0-9._~+/=-"), 16, bearerToken},                  // Authorization headers
	{"-----BEGIN ", setOfBytes("A-Z "), len("PRIVATE KEY"), privateKey},                   // PEM
	{"://", setOfBytes("A-Za-z0-9._~%!$&*+,;=:-"), len("u:p"), password},                  // addresses with a password
}

// set is a set of ASCII characters.
type set [256]bool

var (
	alphanumeric = setOfBytes("A-Za-z0-9")
	hexadecimal  = setOfBytes("a-fA-F0-9")
	token        = setOfBytes("A-Za-z0-9_-") // base64 as addresses have it
	identifier   = setOfBytes("A-Za-z0-9_")
)

// setOfBytes reads characters and ranges of them; a hyphen at the end is one.
func setOfBytes(ranges string) *set {
	var s set
	for i := 0; i < len(ranges); i++ {
		last := ranges[i]
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			last = ranges[i+2]
		}
		for b := int(ranges[i]); b <= int(last); b++ {
			s[b] = true
		}
		if last != ranges[i] {
			i += 2
		}
	}
	return &s
}

// afterPrefix hides what follows the last part of the prefix, so that what it is of can still be read.
func afterPrefix(last string) func(text string, i, end int) (from, to int) {
	return func(text string, i, end int) (from, to int) {
		return i + strings.Index(text[i:end], last) + len(last), end
	}
}

// webToken hides a token of which the header and the claims are JSON objects in base64. The header is short; only so far
// is looked for its end, lest a text that is full of beginnings take long.
func webToken(text string, i, _ int) (from, to int) {
	end := i
	for end < min(len(text), i+512) && token[text[end]] {
		end++
	}
	if !strings.HasPrefix(text[end:], ".eyJ") {
		return 0, 0
	}
	for end < len(text) && (token[text[end]] || text[end] == '.') {
		end++
	}
	return i, end
}

// bearerToken hides what follows Bearer, unless it may be a word.
func bearerToken(text string, i, end int) (from, to int) {
	from = i + len("Bearer ")
	if !strings.ContainsAny(text[from:end], "0123456789") {
		return 0, 0
	}
	return from, end
}

// privateKey hides what stands between the first and the last line of a key, or all that there is of it.
func privateKey(text string, i, end int) (from, to int) {
	if !strings.HasSuffix(text[i:end], "PRIVATE KEY") && !strings.HasSuffix(text[i:end], "PRIVATE KEY BLOCK") {
		return 0, 0
	}
	from, to = min(end+len("-----"), len(text)), len(text)
	if n := strings.Index(text[from:], "-----END"); n >= 0 {
		to = from + n
	}
	if from == to {
		return 0, 0
	}
	return from, to
}

// password hides the password of user:password@host.
func password(text string, i, end int) (from, to int) {
	user, secret, found := strings.Cut(text[i+len("://"):end], ":")
	if !found || secret == "" || end == len(text) || text[end] != '@' {
		return 0, 0
	}
	return i + len("://") + len(user) + 1, end
}
