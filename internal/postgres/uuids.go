package postgres

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// withUUIDs has a connection send and read uuid.UUID as their 16 bytes. The driver would make texts of them, and read
// these again: most statements have two or more.
func withUUIDs(conn *pgx.Conn) {
	conn.TypeMap().RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: uuidCodec{}})
}

type uuidCodec struct{ pgtype.UUIDCodec }

// PlanEncode returns how a value is sent.
func (c uuidCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return uuidPlan{}
	}
	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

// PlanScan returns how a value is read.
func (c uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return uuidPlan{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

type uuidPlan struct{}

// Encode appends the bytes of a value.
func (uuidPlan) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(uuid.UUID)
	return append(buf, id[:]...), nil
}

// Scan reads a value. NULL leaves what the target has, as uuid.UUID does.
func (uuidPlan) Scan(src []byte, target any) error {
	id := target.(*uuid.UUID)
	if src != nil && copy(id[:], src) != len(src) {
		return fmt.Errorf("a uuid of %d bytes", len(src))
	}
	return nil
}
