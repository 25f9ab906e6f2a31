package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// isInPack reports whether exactly one pack may have a message.
func (i *inspection) isInPack(seq int64) bool {
	n := 0
	for _, p := range i.packs {
		if p.First <= seq && seq <= p.Last {
			n++
		}
	}
	return n == 1
}

// lookAtPacks reads the bodies of results and then the packs, whose messages need them. It runs when the snapshot is
// closed: what fills a hole may lie outside of the database, and neither a message nor a complete body ever changes. A
// pack that was replaced by another meanwhile has its turn the next time.
func (v *Verifier) lookAtPacks(ctx context.Context, i *inspection) error {
	if err := v.lookAtBodies(ctx, i); err != nil {
		return err
	}
	for _, at := range i.packs {
		p, err := v.Store.AuditPack(ctx, i.audit.Key, at.First)
		if errors.Is(err, session.ErrNotFound) {
			i.skipped = append(i.skipped, at)
			continue
		}
		if err != nil {
			return err
		}
		i.pack(&p)
	}
	i.bodiless()
	i.orphans()
	return nil
}

func (i *inspection) pack(p *postgres.AuditedPack) {
	if p.Damaged != nil {
		f := Finding{Kind: Pack, Seq: p.First, LastSeq: p.Last, Name: "pack"}
		i.add(f, "%v", p.Damaged)
		return
	}
	for _, seq := range p.Extra {
		i.add(Finding{Kind: Pack, Seq: seq}, "a pack has it, and its row has bytes of its own, or there is no row")
	}
	for seq, needs := range p.Needs {
		for _, body := range needs {
			i.held[body] = true
		}
		if p.Failed[seq] != nil {
			i.hole(p, seq)
			delete(p.Failed, seq)
		}
	}
	for seq, err := range p.Failed {
		i.add(Finding{Kind: Pack, Seq: seq}, "%v", err)
	}
	for m := range p.Messages {
		i.report.Bytes += p.Messages[m].Size
		i.content(&p.Messages[m])
	}
}

// isSkipped reports whether a message was not looked at because its pack was replaced meanwhile.
func (i *inspection) isSkipped(seq int64) bool {
	return slices.ContainsFunc(i.skipped, func(p session.MessagesRef) bool { return p.First <= seq && seq <= p.Last })
}

// hole reports a message that cannot be filled. If a body is to blame that was found to be damaged, its finding says
// so.
func (i *inspection) hole(p *postgres.AuditedPack, seq int64) {
	for _, body := range p.Needs[seq] {
		if at, ok := i.damaged[body]; ok {
			f := &i.report.Findings[at]
			f.What += fmt.Sprintf("; message %d has given its copy up", seq)
			f.Means = advices[Hole].means + "; " + f.Means
			return
		}
	}
	i.add(Finding{Kind: Hole, Seq: seq}, "%v", p.Failed[seq])
}
