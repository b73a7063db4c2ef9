package quantity

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Quantity is an amount, or a share of a capacity. The zero value is nothing.
type Quantity struct {
	text    string
	value   *big.Rat // nil for nothing
	percent bool
}

// maxDigits bounds what is read: nothing that is counted here needs more, and a
// number of a million digits would keep a program busy for long.
const maxDigits = 64

// Parse reads an amount. Amounts are not negative.
func Parse(text string) (Quantity, error) {
	fail := func(why string) (Quantity, error) {
		return Quantity{}, fmt.Errorf("%q is not a quantity: %s", text, why)
	}
	if text == "" {
		return fail("it is empty")
	}
	number := strings.TrimPrefix(text, "+")
	if strings.HasPrefix(number, "-") {
		return fail("it is negative")
	}
	end := len(number)
	if i := strings.IndexFunc(number, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); i >= 0 {
		end = i
	}
	digits, suffix := number[:end], number[end:]
	whole, fraction, _ := strings.Cut(digits, ".")
	switch {
	case whole+fraction == "":
		return fail("it does not begin with a number")
	case strings.Contains(fraction, "."):
		return fail("it has two decimal points")
	case len(digits) > maxDigits:
		return fail("it has too many digits")
	}
	value, ok := new(big.Rat).SetString("0" + whole + "." + fraction + "0")
	if !ok {
		return fail("it does not begin with a number")
	}
	if suffix == "%" {
		if value.Cmp(big.NewRat(100, 1)) > 0 {
			return fail("it is more than the whole")
		}
		return Quantity{text: text, value: value.Quo(value, big.NewRat(100, 1)), percent: true}, nil
	}
	factor, err := scale(suffix)
	if err != nil {
		return fail(err.Error())
	}
	return Quantity{text: text, value: value.Mul(value, factor)}, nil
}

// scale gives the factor of a suffix, as the API of Kubernetes defines them.
func scale(suffix string) (*big.Rat, error) {
	if exponent, ok := strings.CutPrefix(suffix, "e"); ok {
		return power(exponent)
	}
	if exponent, ok := strings.CutPrefix(suffix, "E"); ok && exponent != "" && exponent != "i" {
		return power(exponent)
	}
	switch suffix {
	case "":
		return big.NewRat(1, 1), nil
	case "n":
		return big.NewRat(1, 1e9), nil
	case "u":
		return big.NewRat(1, 1e6), nil
	case "m":
		return big.NewRat(1, 1e3), nil
	}
	const decimal, binary = "kMGTPE", "KMGTPE"
	if i := strings.Index(decimal, suffix); i >= 0 && len(suffix) == 1 {
		return raise(10, 3*(i+1)), nil
	}
	if letter, ok := strings.CutSuffix(suffix, "i"); ok && len(letter) == 1 {
		if i := strings.Index(binary, letter); i >= 0 {
			return raise(2, 10*(i+1)), nil
		}
	}
	hint := "one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or %"
	switch suffix {
	case "K":
		hint = "k is 1000, and Ki is 1024"
	case "b", "B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB":
		hint = "without the B, as in 2Gi"
	}
	return nil, fmt.Errorf("its suffix %.20q is not known (%s)", suffix, hint)
}

func power(exponent string) (*big.Rat, error) {
	n, err := strconv.Atoi(exponent)
	if err != nil || n < -maxDigits || n > maxDigits {
		return nil, fmt.Errorf("its exponent %.20q is no small whole number", exponent)
	}
	return raise(10, n), nil
}

func raise(base int64, exponent int) *big.Rat {
	n := new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(max(exponent, -exponent))), nil)
	if exponent < 0 {
		return new(big.Rat).SetFrac(big.NewInt(1), n)
	}
	return new(big.Rat).SetInt(n)
}

// Of is a whole number of units.
func Of(n int64) Quantity {
	return Quantity{text: strconv.FormatInt(n, 10), value: big.NewRat(n, 1)}
}

// String is the amount as it was written.
func (q Quantity) String() string { return q.text }

// IsPercent reports whether it is a share of a capacity.
func (q Quantity) IsPercent() bool { return q.percent }

// IsZero reports whether it is nothing.
func (q Quantity) IsZero() bool { return q.value == nil || q.value.Sign() == 0 }

// ErrTooLarge is for amounts that no machine can count.
var ErrTooLarge = errors.New("it is too large to be counted")

// In gives the amount in units of 1/perUnit (1000 for milli), rounded up. Of a
// share that is the share of the capacity, which is given in those units.
func (q Quantity) In(perUnit, capacity int64) (int64, error) {
	if q.value == nil {
		return 0, nil
	}
	factor := perUnit
	if q.percent {
		factor = capacity
	}
	r := new(big.Rat).Mul(q.value, big.NewRat(factor, 1))
	n, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	if !n.IsInt64() {
		return 0, fmt.Errorf("%s: %w", q.text, ErrTooLarge)
	}
	return n.Int64(), nil
}
