package process

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/models"
)

// lookEvery is how often the files of the operator's models are looked at.
const lookEvery = 2 * time.Second

var staleModelsGauge = promauto.NewGauge(prometheus.GaugeOpts{
	Name: "varve_models_stale", Help: "1 while the file of models has mistakes, and what it had before is in force.",
})

// useModels puts the registry of models in force, and until ctx ends what its files have when they change. A file with
// mistakes, such as one that is half written, changes nothing.
func useModels(ctx context.Context, settings config.Registry, log *slog.Logger) error {
	state := settings.State()
	registry, err := settings.Load()
	if err != nil {
		return err
	}
	models.Use(registry)
	if settings.ModelsFile != "" {
		go followModels(ctx, settings, state, log)
	}
	return nil
}

func followModels(ctx context.Context, settings config.Registry, state string, log *slog.Logger) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := settings.State()
		if now == state {
			continue
		}
		state = now
		registry, err := settings.Load()
		if err != nil {
			staleModelsGauge.Set(1)
			log.Error("the models have changed and cannot be read: those of before stay in force", "error", err)
			continue
		}
		models.Use(registry)
		staleModelsGauge.Set(0)
		log.Info("the models have changed", "models", len(registry.Models()))
	}
}
