package session

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

// EventType says what an event tells.
type EventType string

// The types of events.
const (
	EventDue         EventType = "session.due"
	EventCompacted   EventType = "session.compacted"
	EventFailed      EventType = "session.failed"
	EventQuarantined EventType = "session.quarantined"
	EventArchived    EventType = "session.archived"
	EventRestored    EventType = "session.restored"

	EventRecompactionStarted EventType = "recompaction.started"
	EventRecompactionEnded   EventType = "recompaction.ended"

	// EventRecompactionProgress says that the next tenth of the sessions is done.
	EventRecompactionProgress EventType = "recompaction.progress"

	EventBudgetSpent EventType = "budget.spent"

	EventWebhookDisabled EventType = "webhook.disabled"
	EventWebhookTest     EventType = "webhook.test" // which one webhook alone gets
)

// EventTypes returns all types, in the order in which documents list them.
func EventTypes() []EventType {
	return []EventType{
		EventDue, EventCompacted, EventFailed, EventQuarantined, EventArchived, EventRestored,
		EventRecompactionStarted, EventRecompactionProgress, EventRecompactionEnded,
		EventBudgetSpent, EventWebhookDisabled, EventWebhookTest,
	}
}

// EventRetention is how long events are kept.
const EventRetention = 7 * 24 * time.Hour

// Event is something that happened to a tenant's sessions or recompactions.
type Event struct {
	ID      uuid.UUID `json:"id"`
	N       int64     `json:"n" schema:"minimum: 1"` // its place among the events of its tenant
	Type    EventType `json:"type"`
	At      time.Time `json:"timestamp"`
	Session *string   `json:"session"` // that it is about, null for none
	// what the type tells, see docs/events.md; members are added in time
	Data json.RawMessage `json:"data" schema:"type: object, additionalProperties: true"`
}

// sessionTopic is before the id of a session in the topic of its events.
const sessionTopic = "session/"

// TopicOf returns the topic of a session's events: those of a topic are told in order.
func TopicOf(id string) string { return sessionTopic + id }

// SessionOfTopic returns the id of the session whose topic it is, nil for another topic.
func SessionOfTopic(topic string) *string {
	if id, ok := strings.CutPrefix(topic, sessionTopic); ok {
		return &id
	}
	return nil
}
