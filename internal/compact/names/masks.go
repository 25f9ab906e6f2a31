package names

import "math/bits"

// blockSize is how many bytes masks are of.
const blockSize = 64

// masks have a bit for each byte of a block.
type masks struct{ words, digits, joints, capitals, escapes uint64 }

// lanes has the bits of a byte in the masks, in their order.
var lanes = func() (table [256]byte) {
	for c, is := range classes {
		switch is {
		case digit:
			table[c] = 1 | 1<<1
		case joint:
			table[c] = 1 | 1<<2
		case upper:
			table[c] = 1 | 1<<3
		case lower:
			table[c] = 1
		}
	}
	table['\\'] = 1 << 4
	return table
}()

// masksOf returns the masks of a block. Eight bytes are looked up and put side by side, then a bit of all eight goes to
// its mask at once: there is no branch for any byte.
func masksOf(block []byte) (m masks) {
	var room [blockSize]byte
	size := len(block)
	if size < blockSize {
		copy(room[:], block)
		block = room[:]
	}
	for i := 0; i < size; i += 8 {
		b := (*[8]byte)(block[i:])
		all := uint64(lanes[b[0]]) | uint64(lanes[b[1]])<<8 | uint64(lanes[b[2]])<<16 | uint64(lanes[b[3]])<<24 |
			uint64(lanes[b[4]])<<32 | uint64(lanes[b[5]])<<40 | uint64(lanes[b[6]])<<48 | uint64(lanes[b[7]])<<56
		m.words |= gathered(all) << i
		m.digits |= gathered(all>>1) << i
		m.joints |= gathered(all>>2) << i
		m.capitals |= gathered(all>>3) << i
		m.escapes |= gathered(all>>4) << i
	}
	return m
}

// gathered returns the lowest bits of eight bytes as one byte.
func gathered(all uint64) uint64 {
	const lowest, places = 0x0101010101010101, 0x0102040810204080
	return all & lowest * places >> 56
}

// small returns the mask of small letters.
func (m *masks) small() uint64 { return m.words &^ (m.digits | m.joints | m.capitals) }

// keep makes separators of all bytes that are not in a mask.
func (m *masks) keep(in uint64) {
	m.words &= in
	m.digits &= in
	m.joints &= in
	m.capitals &= in
}

// span is a half-open range.
type span struct{ start, end int }

// runAt returns the run of ones around a bit that is set.
func runAt(mask uint64, at int) span {
	start := at + 1 - bits.LeadingZeros64(^(mask << (63 - at)))
	return span{start, at + bits.TrailingZeros64(^(mask >> at))}
}

// below returns the mask of the first n bytes.
func below(n int) uint64 { return 1<<n - 1 }
