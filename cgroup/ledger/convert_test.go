package ledger

import (
	"math"
	"testing"
)

func TestSharesToWeight(t *testing.T) {
	for _, c := range []struct{ shares, logarithmic, linear uint64 }{
		{0, 1, 1}, {1, 1, 1}, {2, 1, 1}, {3, 2, 1}, {4, 2, 1}, {10, 4, 1}, {100, 17, 4},
		{512, 59, 20}, {1024, 100, 39}, {1025, 101, 40}, {2048, 174, 79}, {4096, 303, 157},
		{131072, 5478, 5000}, {262143, 10000, 9999}, {262144, 10000, 10000}, {1 << 40, 10000, 10000},
	} {
		if got := SharesToWeight(c.shares, Logarithmic); got != c.logarithmic {
			t.Errorf("%d shares are weight %d by the logarithmic formula, want %d", c.shares, got, c.logarithmic)
		}
		if got := SharesToWeight(c.shares, Linear); got != c.linear {
			t.Errorf("%d shares are weight %d by the linear formula, want %d", c.shares, got, c.linear)
		}
	}
}

func TestSharesAreMonotonous(t *testing.T) {
	for _, f := range []SharesFormula{Logarithmic, Linear} {
		last := uint64(0)
		for s := uint64(minShares); s <= maxShares; s++ {
			w := SharesToWeight(s, f)
			if w < last || w < minWeight || w > maxWeight {
				t.Fatalf("%s: %d shares are weight %d after %d", f, s, w, last)
			}
			last = w
		}
	}
}

func TestWeightToSharesComesBack(t *testing.T) {
	for _, f := range []SharesFormula{Logarithmic, Linear} {
		for w := uint64(minWeight); w <= maxWeight; w++ {
			if got := SharesToWeight(WeightToShares(w, f), f); got != w {
				t.Fatalf("%s: weight %d is %d shares, which is weight %d", f, w, WeightToShares(w, f), got)
			}
		}
	}
	if got := WeightToShares(100, Logarithmic); got != 1024 {
		t.Errorf("the default weight is %d shares", got)
	}
	if got := WeightToShares(0, Linear); got != 2 {
		t.Errorf("weight 0 is %d shares", got)
	}
}

func TestBlkioWeight(t *testing.T) {
	for _, c := range []struct {
		blkio, io uint64
		clamped   bool
	}{{0, 1, true}, {9, 1, true}, {10, 1, false}, {11, 11, false}, {100, 910, false}, {500, 4950, false}, {1000, 10000, false}, {1001, 10000, true}, {65535, 10000, true}} {
		if io, clamped := BlkioToIOWeight(c.blkio); io != c.io || clamped != c.clamped {
			t.Errorf("%d is %d (clamped %v), want %d (%v)", c.blkio, io, clamped, c.io, c.clamped)
		}
	}
	for w := uint64(10); w <= 1000; w++ {
		io, _ := BlkioToIOWeight(w)
		if got := IOToBlkioWeight(io); got != w {
			t.Fatalf("%d is %d, which is %d", w, io, got)
		}
	}
	if got := IOToBlkioWeight(99999); got != 1000 {
		t.Errorf("a weight above the range is %d", got)
	}
}

func TestSwap(t *testing.T) {
	for _, c := range []struct {
		swap, limit, v2 int64
		ok              bool
	}{{-1, 100, -1, true}, {-1, -1, -1, true}, {100, 100, 0, true}, {300, 100, 200, true}, {50, 100, 0, false}, {50, -1, 0, false}} {
		v2, ok := SwapToV2(c.swap, c.limit)
		if v2 != c.v2 || ok != c.ok {
			t.Errorf("%d with limit %d is %d %v", c.swap, c.limit, v2, ok)
		}
		if ok && SwapToV1(v2, c.limit) != c.swap {
			t.Errorf("%d with limit %d comes back as %d", c.swap, c.limit, SwapToV1(v2, c.limit))
		}
	}
	if got := SwapToV1(math.MaxInt64, 1); got != -1 {
		t.Errorf("an overflow is %d", got)
	}
}

func TestQuotaPerSecond(t *testing.T) {
	for _, c := range []struct {
		quota   int64
		period  uint64
		usec    uint64
		rounded bool
		back    int64
	}{
		{-1, 100000, math.MaxUint64, false, -1},
		{50000, 100000, 500000, false, 50000},
		{200000, 100000, 2000000, false, 200000},
		{33333, 100000, 340000, true, 34000},
		{1000, 1000000, 10000, true, 10000},
		{1, 3, 340000, true, 1},
		{500000, 3000, 166670000, true, 500010},
		{math.MaxInt64, 100000, math.MaxUint64, true, -1},
	} {
		usec, rounded := QuotaPerSecond(c.quota, c.period)
		if usec != c.usec || rounded != c.rounded {
			t.Errorf("%d in %d is %d (rounded %v), want %d (%v)", c.quota, c.period, usec, rounded, c.usec, c.rounded)
		}
		if back := QuotaFromPerSecond(usec, c.period); back != c.back {
			t.Errorf("%d in %d comes back as %d, want %d", c.quota, c.period, back, c.back)
		}
	}
}
