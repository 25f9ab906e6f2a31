package search

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"

	"github.com/varve-dev/varve/internal/api/request"
)

// place is that of a hit. The blocks that have the words are read some at a time, which are a tier; its hits are
// ordered by their rank, then newest first.
type place struct {
	Tier    int
	Rank    float32
	Newest  int64 // the id of the newest block when the first page was read
	Created int64 // the message, in microseconds
	Tie     uint32
}

// The sizes of a place as it is in a cursor, in bytes.
const (
	placeNewest  = 5
	placeCreated = 7
)

// beginning returns the place before all hits of a tier.
func beginning(tier int, newest int64) place {
	return place{Tier: tier, Rank: float32(math.Inf(1)), Newest: newest}
}

// placeAfter reads a place from that of a list, which is zero on the first page.
func placeAfter(p request.Place) place {
	if p == (request.Place{}) {
		return beginning(0, math.MaxInt64)
	}
	var newest, created [8]byte
	copy(newest[8-placeNewest:], p.ID[:])
	copy(created[8-placeCreated:], p.ID[placeNewest:])
	return place{
		Tier: int(p.Order >> 32), Rank: math.Float32frombits(uint32(p.Order)),
		Newest:  int64(binary.BigEndian.Uint64(newest[:])),
		Created: int64(binary.BigEndian.Uint64(created[:])),
		Tie:     binary.BigEndian.Uint32(p.ID[placeNewest+placeCreated:]),
	}
}

// inList returns the place from which placeAfter reads this one.
func (p place) inList() (at request.Place) {
	at.Order = int64(p.Tier)<<32 | int64(math.Float32bits(p.Rank))
	newest := binary.BigEndian.AppendUint64(nil, uint64(p.Newest))
	created := binary.BigEndian.AppendUint64(nil, uint64(p.Created))
	id := slices.Concat(newest[8-placeNewest:], created[8-placeCreated:])
	copy(at.ID[:], binary.BigEndian.AppendUint32(id, p.Tie))
	return at
}

// compare orders the places of a tier.
func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(q.Rank, p.Rank), cmp.Compare(q.Created, p.Created), cmp.Compare(q.Tie, p.Tie))
}

// tieOf tells passages of the same rank and time apart.
func tieOf(p *passage) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(p.Key[:])
	_ = binary.Write(h, binary.BigEndian, [2]int64{p.Seq, int64(p.N)})
	return h.Sum32()
}
