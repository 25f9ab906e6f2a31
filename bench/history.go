package main

import (
	"context"
	"fmt"
)

// historyCases have the same view: the first is what the others are compared with.
var historyCases = []viewed{
	{"history-100", 100, 64 << 10, 10},
	{"history-10000", 10_000, 64 << 10, 10},
	{"history-100000", 100_000, 64 << 10, 10},
}

func historyName(v viewed) string {
	return fmt.Sprintf("view, 64 KiB, history of %d, time beside 100", v.history)
}

// measureHistories reads the same view of ever longer histories, by turns.
func measureHistories(ctx context.Context, b *bench) error {
	wanted := b.wants(historyName(historyCases[1])) || b.wants(historyName(historyCases[2]))
	if !wanted {
		return nil
	}
	rounds := make([]sample, len(historyCases))
	for i, v := range historyCases {
		b.progress("history of %d messages", v.history)
		if err := b.createViewed(ctx, v); err != nil {
			return err
		}
		var err error
		if rounds[i], _, err = b.views(ctx, viewCase{viewed: v, encoding: "zstd"}); err != nil {
			return err
		}
	}
	if _, err := b.admin.Exec(ctx, `VACUUM ANALYZE messages`); err != nil {
		return err
	}
	rates := make([][]float64, len(rounds))
	for turn := range b.rounds + 1 {
		for i, round := range rounds {
			rate, err := round(ctx, b.round)
			if err != nil {
				return err
			}
			if turn > 0 { // the first round warms
				rates[i] = append(rates[i], rate)
			}
		}
	}
	for i := 1; i < len(rounds); i++ {
		b.add(row{Name: historyName(historyCases[i]), Value: median(rates[0]) / median(rates[i]), Unit: "times", Goal: atMost(1.1)})
	}
	return nil
}
