package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/policy"
)

// Contender is what compacts the sessions: a policy under its name, or a yardstick.
type Contender struct {
	Name   string
	Policy policy.Policy

	yardstick yardstick
	price     Price
}

// Default is the name of the contender that the others are compared with.
const Default = "default"

// Under returns the contender of a policy.
func Under(name string, p policy.Policy) Contender {
	return Contender{Name: name, Policy: p, price: ownPrice}
}

// Profiles returns the contenders of these profiles, of all without names.
func Profiles(names ...string) (list []Contender, err error) {
	if len(names) == 0 {
		names = policy.Profiles()
	}
	for _, name := range names {
		p, err := policy.Profile(name)
		if err != nil {
			return nil, err
		}
		list = append(list, Under(name, p))
	}
	return list, nil
}

// yardstick is a simple way to shorten a view that policies are held against.
type yardstick uint8

// The yardsticks.
const (
	byPolicy    yardstick = iota
	never                 // nothing is done: the view is the log
	slidingHalf           // at 0.8 of the window the oldest units are dropped down to 0.5
	clearKeep3            // at 0.8 of the window all results but the newest three are cleared, as Anthropic's API does
	summarise95           // at 0.95 of the window everything is summarised
	hindsight             // knows which strings are needed later: it clears results and drops units that are not
)

var yardsticks = []string{never: "never", "sliding-half", "clear-keep3", "summarise-95", "oracle"}

// Yardsticks lists the names of all yardsticks.
func Yardsticks() []string { return slices.Clone(yardsticks[never:]) }

// Rivals lists the names of what the default policy must not be behind: the other profiles, and the yardsticks that
// shorten a view and know no more than a policy does.
func Rivals() []string {
	return append(policy.Profiles(), yardsticks[slidingHalf:hindsight]...)
}

// Yardstick returns a yardstick. The error lists the names of all.
func Yardstick(name string) (Contender, error) {
	i := slices.Index(yardsticks, name)
	if i < int(never) {
		return Contender{}, fmt.Errorf("there is no yardstick %q: there are %s", name, strings.Join(Yardsticks(), ", "))
	}
	y := yardstick(i)
	return Contender{Name: name, Policy: y.policy(), yardstick: y}, nil
}

// policy returns the policy of a yardstick; of one that needs more than that, when it is due. It takes nothing from a
// profile but the wording, so that it stays what it is when the profiles become better.
func (y yardstick) policy() policy.Policy {
	p := policy.Policy{
		Profile: Default, Enabled: y != never, Auto: true, OnlySmaller: true,
		Trigger: 0.8, Target: 0.5, Hard: 0.95,
		Tokens:  policy.Tokens{Tokenizer: policy.Estimate},
		Tools:   policy.Tools{Table: policy.CommonTools},
		Protect: policy.Protect{System: true},
		Wording: policy.Default().Wording,
	}
	switch y {
	case slidingHalf:
		p.Truncate.Enabled = true
	case summarise95:
		p.Trigger, p.Hard = 0.95, 1
		p.Summarise = policy.Summarise{Enabled: true, All: true, MinTokens: 2000, MaxTokens: 2000, Retain: true}
	}
	return p
}
