package replay

import (
	"fmt"

	"github.com/varve-dev/varve/internal/policy"
)

// parts are the stages and settings of the default policy that can be switched off, each with the policy that does it.
var parts = []struct{ name, off string }{
	{"idle", `{"idle":{"enabled":false}}`},
	{"last_units", `{"protect":{"last_units":0}}`},
	{"newest_user", `{"protect":{"newest_user":false}}`},
	{"max_turn_ratio", `{"protect":{"max_turn_ratio":0}}`},
	{"yields", `{"protect":{"yields":false}}`},
	{"cap", `{"cap":{"enabled":false}}`},
	{"dedupe", `{"dedupe":{"enabled":false}}`},
	{"summarise", `{"summarise":{"enabled":false}}`},
	{"keep_turns", `{"summarise":{"keep_turns":0}}`},
	{"keep_messages", `{"summarise":{"keep_messages":0}}`},
	{"retain", `{"summarise":{"retain":false}}`},
	{"words", `{"summarise":{"words_ratio":0}}`},
	{"names", `{"summarise":{"names_ratio":0}}`},
	{"lines", `{"summarise":{"lines_ratio":0}}`},
}

// Without returns the contenders that are the default policy without one of its stages or settings.
func Without() (list []Contender, err error) {
	for _, part := range parts {
		p, err := policy.Parse([]byte(part.off))
		if err != nil {
			return nil, fmt.Errorf("without %s: %w", part.name, err)
		}
		list = append(list, Under("without "+part.name, p))
	}
	return list, nil
}
