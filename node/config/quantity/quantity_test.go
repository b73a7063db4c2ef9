package quantity

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text           string
		perUnit, whole int64
		want           int64
	}{
		{"500m", 1000, 0, 500},
		{"1.5", 1000, 0, 1500},
		{"1.5", 1, 0, 2},
		{"0.1m", 1000, 0, 1},
		{"1u", 1000, 0, 1},
		{"1n", 1, 0, 1},
		{"0", 1, 0, 0},
		{".5", 1000, 0, 500},
		{"5.", 1, 0, 5},
		{"+2", 1, 0, 2},
		{"2Gi", 1, 0, 2 << 30},
		{"1.5Gi", 1, 0, 3 << 29},
		{"1Ki", 1, 0, 1024},
		{"1k", 1, 0, 1000},
		{"1M", 1, 0, 1000 * 1000},
		{"1E", 1, 0, 1e18},
		{"1Ei", 1, 0, 1 << 60},
		{"7Ei", 1, 0, 7 << 60},
		{"1e3", 1, 0, 1000},
		{"1E3", 1, 0, 1000},
		{"12e-1", 1000, 0, 1200},
		{"128974848", 1, 0, 128974848},
		{"10%", 1, 1005, 101},
		{"10%", 1000, 4000, 400},
		{"0%", 1, 10, 0},
		{"100%", 1, 10, 10},
		{"12.5%", 1, 1000, 125},
		{"0.1%", 1, 100, 1},
	} {
		q, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got, err := q.In(c.perUnit, c.whole); err != nil || got != c.want {
			t.Errorf("%s of %d by %d: %d, %v, want %d", c.text, c.whole, c.perUnit, got, err, c.want)
		}
		if q.String() != c.text {
			t.Errorf("%s became %s", c.text, q)
		}
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "empty",
		"-1":                     "negative",
		"2GB":                    "without the B",
		"2GiB":                   "without the B",
		"1K":                     "1024",
		"1ki":                    "suffix",
		"1.2.3":                  "two decimal points",
		"Gi":                     "number",
		"101%":                   "more than the whole",
		"1e":                     "exponent",
		"1e999":                  "exponent",
		"1 Gi":                   "suffix",
		"abc":                    "number",
		strings.Repeat("9", 100): "too many digits",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want something of %q", text, err, want)
		}
	}
	q, err := Parse("8Ei")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.In(1, 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("8Ei: %v", err)
	}
}

func TestZero(t *testing.T) {
	var none Quantity
	if n, err := none.In(1000, 7); n != 0 || err != nil || !none.IsZero() {
		t.Errorf("%d, %v", n, err)
	}
	if Of(0).IsZero() != true || Of(5).IsZero() || Of(5).IsPercent() {
		t.Error("Of")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"500m", "2Gi", "10%", "1e3", "1E", ".", "1.5e-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := Parse(s)
		if err != nil {
			return
		}
		up, err := q.In(1, 1000)
		if err != nil {
			return
		}
		if milli, err := q.In(1000, 1000*1000); err == nil && (up < 0 || (milli+999)/1000 != up) {
			t.Errorf("%q is %d, and %d thousandths", s, up, milli)
		}
	})
}
