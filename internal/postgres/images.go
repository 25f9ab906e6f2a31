package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// flagImage is wire.FlagImage.
const flagImage = 1 << 2

// imagesSQL counts the messages with images after the newest checkpoint of the session s.
var imagesSQL = `(SELECT count(*)
          FROM messages m
         WHERE m.tenant_id = s.tenant_id AND m.session_key = s.key AND m.removed_at IS NULL
           AND m.seq > s.through_seq AND m.flags & ` + strconv.Itoa(flagImage) + ` <> 0)`

// showsImages reports whether a message has images. Then the append is decided under the session's lock: a compaction
// may be due for their number.
func showsImages(messages []session.NewMessage) bool {
	for i := range messages {
		if messages[i].Flags&flagImage != 0 {
			return true
		}
	}
	return false
}

// readImages reads how many images came since the newest checkpoint, and how many a request may have.
func (l *lockedSession) readImages(ctx context.Context, tx pgx.Tx) error {
	var model string
	var format session.Format
	err := tx.QueryRow(ctx, `
		SELECT s.model, s.format, `+imagesSQL+`
		  FROM sessions s
		 WHERE s.tenant_id = $1 AND s.key = $2`, l.Tenant, l.Key.Key).Scan(&model, &format, &l.rule.Images)
	l.rule.MaxImages = int64(provider.MaxImages(format, model))
	return err
}
