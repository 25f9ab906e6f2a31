package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

func TestDbg(t *testing.T) {
	dbg = func(o *outcome, q *question) {
		fmt.Println(jsonText(q.patch), q.window)
		for _, b := range q.bodies {
			s := string(b)
			if len(s) > 200 {
				s = s[:200]
			}
			fmt.Println("  ", s)
		}
		if o.Proposal == nil {
			return
		}
		fmt.Println(jsonText(o.Plan), jsonText(o.Decision), o.Decision.Reason(), o.Changed)
		for _, a := range o.Parts() {
			fmt.Println(jsonText(a))
		}
	}
	for _, v := range vectors(t, "testdata/vectors") {
		if len(os.Getenv("V")) > 0 && len(v.ID) > len(os.Getenv("V")) && v.ID[:len(os.Getenv("V"))] == os.Getenv("V") {
			x, err := systems[v.System](v)
			fmt.Println(err)
			b, _ := json.Marshal(x)
			s := string(b)
			if len(s) > 1500 {
				s = s[:1500]
			}
			fmt.Println(s)
		}
	}
}
