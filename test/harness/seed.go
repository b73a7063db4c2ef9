package harness

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// DaySeed is the number in BERTH_SEED, or that of the day, so that each day has another share of
// what takes too long as a whole. It is in the log.
func DaySeed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().Unix() / (24 * 60 * 60))
	if word := os.Getenv("BERTH_SEED"); word != "" {
		var err error
		if seed, err = strconv.ParseUint(word, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("BERTH_SEED=%d", seed)
	return seed
}
