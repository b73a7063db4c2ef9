package ledger

import "math"

// SharesFormula turns v1's CPU shares into v2's CPU weight.
type SharesFormula uint8

const (
	// Logarithmic maps the least, the default and the greatest shares (2,
	// 1024, 262144) to the least, the default and the greatest weight (1,
	// 100, 10000). It is what runc since 1.3.2 and crun since 1.23 use:
	// 10^((l²+125l)/612 - 7/34) with l = log2(shares).
	Logarithmic SharesFormula = iota
	// Linear maps the ends only, so that the default of 1024 shares becomes
	// a weight of 39, well below the default of 100: 1+(shares-2)*9999/262142.
	Linear
)

func (f SharesFormula) String() string {
	if f == Linear {
		return "linear"
	}
	return "logarithmic"
}

// The kernel's ranges (MIN_SHARES and MAX_SHARES in kernel/sched/sched.h,
// CGROUP_WEIGHT_MIN and CGROUP_WEIGHT_MAX in include/linux/cgroup.h).
const (
	minShares, maxShares = 2, 1 << 18
	minWeight, maxWeight = 1, 10000
)

// SharesToWeight converts CPU shares to a v2 weight. Shares outside of the
// kernel's range are taken as the nearest end of it, as v1 does.
func SharesToWeight(shares uint64, f SharesFormula) uint64 {
	shares = min(max(shares, minShares), maxShares)
	if f == Linear {
		return 1 + (shares-minShares)*(maxWeight-1)/(maxShares-minShares)
	}
	l := math.Log2(float64(shares))
	// The subtraction keeps a result that is whole but for the error of
	// floating point, as 100 is for 1024 shares, from being rounded up.
	return uint64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34) - 1e-9))
}

// WeightToShares is the other direction: the shares that SharesToWeight turns
// into this weight, the middle one where several do.
func WeightToShares(weight uint64, f SharesFormula) uint64 {
	weight = min(max(weight, minWeight), maxWeight)
	if f == Linear {
		return minShares + ((weight-1)*(maxShares-minShares)+maxWeight-2)/(maxWeight-1)
	}
	// All shares s with weight-1 < w(s) <= weight become this weight. The
	// formula is a quadratic in l, so both ends of that span have a closed
	// form; the middle is taken on the scale of l.
	high := sharesLog(float64(weight))
	low := high
	if weight > minWeight {
		low = sharesLog(float64(weight - 1))
	}
	s := uint64(math.Round(math.Exp2((low + high) / 2)))
	// 1024 is everybody's default and must come back from its weight.
	if weight == 100 {
		s = 1024
	}
	return min(max(s, minShares), maxShares)
}

// sharesLog solves (l²+125l)/612 - 7/34 = log10(weight) for l.
func sharesLog(weight float64) float64 {
	c := 612 * (math.Log10(weight) + 7.0/34)
	return (-125 + math.Sqrt(125*125+4*c)) / 2
}

// BlkioToIOWeight converts the weight of v1's blkio, from 10 to 1000, to the
// one of v2's io, from 1 to 10000. Weights outside of their range are taken as
// the nearest end of it, and clamped says so.
func BlkioToIOWeight(weight uint64) (io uint64, clamped bool) {
	w := min(max(weight, 10), 1000)
	return 1 + (w-10)*9999/990, w != weight
}

// IOToBlkioWeight is the other direction.
func IOToBlkioWeight(weight uint64) uint64 {
	w := min(max(weight, minWeight), maxWeight)
	return 10 + ((w-1)*990+9999/2)/9999
}

// SwapToV2 takes the memory out of v1's limit of memory and swap together. It
// gives "max" for -1. ok is false where the memory is more than the sum.
func SwapToV2(swap, limit int64) (v2 int64, ok bool) {
	if swap < 0 {
		return -1, true
	}
	if limit < 0 || swap < limit {
		return 0, false
	}
	return swap - limit, true
}

// SwapToV1 is the other direction.
func SwapToV1(swap, limit int64) int64 {
	if swap < 0 || limit < 0 || swap > math.MaxInt64-limit {
		return -1
	}
	return swap + limit
}

// defaultPeriod is the period of a new cgroup, in microseconds
// (default_cfs_period in kernel/sched/fair.c).
const defaultPeriod = 100000

// QuotaPerSecond converts a quota in a period to the microseconds in each
// second that systemd's CPUQuotaPerSecUSec wants. systemd keeps a whole
// percentage of it in the unit's file, which it reads again at each
// daemon-reload, so the value is rounded up to 10 ms here, and rounded says so.
func QuotaPerSecond(quota int64, period uint64) (usec uint64, rounded bool) {
	if quota < 0 || period == 0 {
		return math.MaxUint64, false
	}
	const percent = 10000
	q := uint64(quota)
	if q > math.MaxUint64/1000000 {
		return math.MaxUint64, true
	}
	exact := q * 1000000
	usec = exact / period
	if exact%period != 0 || usec%percent != 0 {
		rounded = true
		usec = (usec/percent + 1) * percent
	}
	return usec, rounded
}

// QuotaFromPerSecond is the other direction: the quota that systemd writes.
func QuotaFromPerSecond(usec, period uint64) int64 {
	if usec == math.MaxUint64 {
		return -1
	}
	whole, rest := usec/1000000, usec%1000000
	return int64(whole*period + rest*period/1000000)
}
