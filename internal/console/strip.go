package console

import "github.com/varve-dev/varve/internal/protocol"

// stretch is a piece of the strip that shows what became of the log from its first message to its last.
type stretch struct {
	kind
	X, Width int   // of stripWidth
	Seq      int64 // of its first message
}

// stripWidth is how many pieces the strip has at most.
const stripWidth = 400

// mapOf returns the stretches of a log: at each place the action that has saved the most there.
func mapOf(lost []protocol.ManifestEntry, last int64) (list []stretch) {
	if last == 0 {
		return nil
	}
	var saved [stripWidth]int64
	var do [stripWidth]string
	place := func(seq int64) int64 { return min((seq-1)*stripWidth/last, stripWidth-1) }
	for i := range lost {
		e := &lost[i]
		for x := place(max(e.Seq, 1)); x <= place(min(e.LastSeq, last)); x++ {
			if more := e.TokensBefore - e.TokensAfter; do[x] == "" || more > saved[x] {
				saved[x], do[x] = more, e.Do
			}
		}
	}
	for x := range stripWidth {
		if n := len(list); n > 0 && list[n-1].Do == orKept(do[x]) {
			list[n-1].Width++
			continue
		}
		seq := (int64(x)*last + stripWidth - 1) / stripWidth
		list = append(list, stretch{kindOf(orKept(do[x])), x, 1, seq + 1})
	}
	return list
}

func orKept(do string) string {
	if do == "" {
		return kept
	}
	return do
}
