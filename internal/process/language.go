package process

import (
	"log/slog"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/modelcall"
)

// newAsker returns what asks language models for summaries, for a store that the caller sets.
func newAsker(settings config.LLM, log *slog.Logger) (*modelcall.Caller, error) {
	configured, err := settings.Models()
	if err != nil {
		return nil, err
	}
	models, err := llm.Open(configured.Config, log)
	if err != nil {
		return nil, err
	}
	return &modelcall.Caller{
		Models:  models,
		Budgets: modelcall.Budgets{Run: configured.Budgets.Run.Model(), Day: configured.Budgets.Day.Model()},
	}, nil
}
