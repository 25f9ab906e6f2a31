package client

import (
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// What the API takes and answers, as its description has it.
type (
	APIKey           = session.APIKey
	Appended         = protocol.Appended
	Archive          = session.Archive
	AuditRow         = audit.Entry
	CheckpointDetail = protocol.CheckpointDetail
	CheckpointDiff   = protocol.CheckpointDiff
	CheckpointRecord = session.CheckpointRecord
	Erasure          = session.Erasure
	Event            = session.Event
	Events           = protocol.Events
	Failing          = session.Failing
	Format           = session.Format
	Found            = protocol.Found
	Hold             = session.Hold
	Import           = protocol.Import
	Matches          = protocol.Matches
	Message          = protocol.Message
	MessagePage      = protocol.MessagePage
	NewKey           = protocol.NewKey
	NewToken         = protocol.NewToken
	Pin              = session.Pin
	PolicyState      = protocol.Policy
	Preview          = protocol.Preview
	Problem          = protocol.Problem
	Replaced         = session.Replaced
	Result           = protocol.Result
	ResultPage       = protocol.ResultPage
	Run              = session.Run
	SessionState     = protocol.Session
	Summaries        = protocol.Summaries
	Usage            = session.Usage
	View             = protocol.View
)
