package request

import (
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

func TestABufferGrowsToWhatIsClaimedOnceAnEighthHasCome(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for _, c := range []struct{ has, claimed, want int }{
		{64 << 10, 8 * mb, 64 << 10}, // too little has come
		{512 << 10, mb, 512 << 10},
		{mb, 8 * mb, 7*mb + 1},
		{mb, 9 * mb, mb}, // less than an eighth
		{2 * mb, 9 * mb, 7*mb + 1},
		{8 * mb, 8 * mb, 1}, // the end comes with no byte
		{8*mb + 1, 8 * mb, 8*mb + 1},
		{8 * mb, 0, 8 * mb},
		{8 * mb, -1, 8 * mb},
		{20 * mb, 0, session.MaxBodyBytes + 1 - 20*mb},
		{20 * mb, session.MaxBodyBytes, session.MaxBodyBytes + 1 - 20*mb},
	} {
		if got := growth(c.has, c.claimed); got != c.want {
			t.Errorf("growth(%d, %d) is %d, not %d", c.has, c.claimed, got, c.want)
		}
	}
}
