package main

import (
	"context"
	"fmt"
)

// historyCases have the same view: the others are compared with the first.
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
	if !b.wants(historyName(historyCases[1])) && !b.wants(historyName(historyCases[2])) {
		return nil
	}
	rounds := make([]sample, len(historyCases))
	for i, v := range historyCases {
		b.progress("history of %d messages", v.history)
		if err := b.createViewed(ctx, v); err != nil {
			return err
		}
		var err error
		if rounds[i], _, err = b.here.views(viewCase{viewed: v, encoding: "zstd"}); err != nil {
			return err
		}
	}
	if _, err := b.here.admin.Exec(ctx, `VACUUM ANALYZE messages`); err != nil {
		return err
	}
	rates, err := alternate(ctx, b.rounds, b.round, rounds...)
	if err != nil {
		return err
	}
	for i := 1; i < len(rates); i++ {
		times := median(rates[0]) / median(rates[i])
		b.add(row{Name: historyName(historyCases[i]), Value: times, Unit: "times", Goal: atMost(1.1)})
	}
	return nil
}
