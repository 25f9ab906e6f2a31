package units_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/units"
)

// TestWhichCallAResultAnswers has a conversation a row: "+id:tool" is a call, "-id:tool" a result, T begins a turn. want has for each
// result the position of the call that it answers, counted from 0 among the calls, or -1.
func TestWhichCallAResultAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		conversation string
		want         []int
		waiting      []int
	}{
		"a result answers the call before it that has its id": {"+a +b -a -b", []int{0, 1}, nil},
		"a result of no call answers none":                    {"+a -b", []int{-1}, []int{0}},
		"a result before its call answers none":               {"-a +a", []int{-1}, []int{0}},
		"a call is answered once":                             {"+a -a -a", []int{0, -1}, nil},
		"an id that repeats names the nearest waiting call":   {"+a +a -a -a", []int{1, 0}, nil},
		"an id is free again after its result":                {"+a -a +a -a", []int{0, 1}, nil},
		"an abandoned call waits behind a newer one":          {"+a +b +a -a", []int{2}, []int{0, 1}},
		"a late result answers an abandoned call":             {"+a +b -b -a", []int{1, 0}, nil},
		"a name goes before nearness":                         {"+a:read +a:write -a:read -a:write", []int{0, 1}, nil},
		"of several calls of a name the nearest goes first":   {"+a:f +a:f +a:g -a:f -a:f", []int{1, 0}, []int{2}},
		"a name that no call has does not count":              {"+a:read +a:write -a:list", []int{1}, []int{0}},
		"a result without a name takes the nearest":           {"+a:read +a:write -a", []int{1}, []int{0}},
		"a call without a name is of no tool":                 {"+a:read +a -a:read -a", []int{0, 1}, nil},
		"a name never goes before the id":                     {"+a:read +b:write -b:read", []int{1}, []int{0}},
		"of a turn's calls of one id the first goes first":    {"T +a +a +a -a -a -a", []int{0, 1, 2}, nil},
		"of two turns the newer one goes first":               {"T +a +a T +a +a -a -a -a", []int{2, 3, 0}, []int{1}},
		"of a turn's calls of one name the first goes first":  {"T +a:f +a:g +a:f -a:f -a:f -a:g", []int{0, 2, 1}, nil},
		"a name of an older turn goes before nearness":        {"T +a:f +a:f T +a:g -a:f -a:g -a", []int{0, 2, 1}, nil},
		"a turn goes on behind a result":                      {"T +a +a -a +a -a -a", []int{0, 1, 2}, nil},
		"the empty id is an id":                               {"+: +a -: -a", []int{0, 1}, nil},
		"a result from the middle leaves the others in order": {"+a:x +a:y +a:z -a:y -a -a", []int{1, 2, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p units.Pairer[int]
			var got []int
			calls := 0
			for _, word := range strings.Fields(test.conversation) {
				id, tool, _ := strings.Cut(word[1:], ":")
				switch word[0] {
				case 'T':
					p.Turn()
					continue
				case '+':
					p.Call(id, tool, calls)
					calls++
					continue
				}
				call, ok := p.Answer(id, tool)
				if !ok {
					call = -1
				}
				got = append(got, call)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: the results answer %v, want %v", test.conversation, got, test.want)
			}
			if waiting := slices.Sorted(p.All()); !slices.Equal(waiting, test.waiting) || p.Waiting() != len(waiting) {
				t.Errorf("%s: %v wait (%d), want %v", test.conversation, waiting, p.Waiting(), test.waiting)
			}
		})
	}
}

func TestAClearedPairerHasNoCalls(t *testing.T) {
	t.Parallel()
	var p units.Pairer[int]
	p.Call("a", "", 1)
	p.Clear()
	if _, ok := p.Answer("a", ""); ok || p.Waiting() != 0 || len(slices.Collect(p.All())) != 0 {
		t.Error("a call is still there")
	}
	p.Call("a", "", 2)
	if call, ok := p.Answer("a", ""); !ok || call != 2 {
		t.Errorf("the call after it is %d, %t", call, ok)
	}
}

// FuzzPairer compares Pairer, which reuses the lists of answered calls, with the simplest pairing.
func FuzzPairer(f *testing.F) {
	f.Add([]byte{0, 1, 128, 129, 2, 34, 162, 130})
	f.Add([]byte("a long walk over the same few ids, with names and without"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		type call struct {
			id, name string
			turn, n  int
		}
		turn := 0
		var p units.Pairer[int]
		var plain []call
		for n, step := range steps {
			if len(plain) > 120 { // no more than the newest 128 are looked at
				p.Clear()
				plain = nil
			}
			if step>>4&7 == 7 {
				p.Turn()
				turn++
				continue
			}
			id, name := fmt.Sprint(step&3), ""
			if kind := step >> 2 & 3; kind > 0 {
				name = fmt.Sprint(kind)
			}
			if step < 128 {
				p.Call(id, name, n)
				plain = append(plain, call{id, name, turn, n})
				continue
			}
			want := -1
			for i := len(plain) - 1; i >= 0; i-- {
				if plain[i].id == id && (name == "" || plain[i].name == name) {
					want = i
					break
				}
			}
			isNamed := want >= 0
			for i := len(plain) - 1; i >= 0 && want < 0; i-- {
				if plain[i].id == id {
					want = i
				}
			}
			for i := want - 1; i >= 0 && plain[want].turn > 0; i-- {
				if plain[i].id == id && plain[i].turn == plain[want].turn && (!isNamed || name == "" || plain[i].name == name) {
					want = i
				}
			}
			got, ok := p.Answer(id, name)
			if ok != (want >= 0) || ok && got != plain[want].n {
				t.Fatalf("step %d answers call %d (%t), want that of %d in %v", n, got, ok, want, plain)
			}
			if ok {
				plain = slices.Delete(plain, want, want+1)
			}
		}
		if p.Waiting() != len(plain) {
			t.Fatalf("%d calls wait, want %d", p.Waiting(), len(plain))
		}
	})
}

func TestAConversationWithoutCallsCostsNothing(t *testing.T) {
	allocated := testing.AllocsPerRun(10, func() {
		var p units.Pairer[int]
		var u units.Tracker
		for range 100 {
			u.Add(units.Message{StartsUnit: true})
			if _, ok := p.Answer("a", ""); ok {
				t.Fatal("a result without a call was paired")
			}
		}
	})
	if allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

func TestARoundOfCallsAllocatesOnce(t *testing.T) {
	var p units.Pairer[int]
	round := func() {
		for _, id := range []string{"a", "b", "c"} {
			p.Call(id, "read", 1)
		}
		for _, id := range []string{"a", "b", "c"} {
			p.Answer(id, "")
		}
	}
	round()
	if allocated := testing.AllocsPerRun(10, round); allocated != 0 {
		t.Errorf("%v allocations a round", allocated)
	}
}
