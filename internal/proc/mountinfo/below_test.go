package mountinfo

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// The mounts below the root are those of the table, but for the root's own parent, if that is
// shown.
func TestBelowIsTheTable(t *testing.T) {
	below, err := Below("/")
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("needs listmount(2) and statmount(2): ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	table, err := Of("self")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range table {
		i := slices.IndexFunc(below, func(e Entry) bool { return e.ID == want.ID })
		if i < 0 {
			t.Errorf("not listed: %+v", want)
			continue
		}
		got := below[i]
		if got.Parent != want.Parent || got.Root != want.Root || got.Point != want.Point || !strings.HasPrefix(want.Type, got.Type) {
			t.Errorf("got %+v, the table has %+v", got, want)
		}
		if ro := HasOption(want.Options, "ro") || HasOption(want.Super, "ro"); ro != HasOption(got.Options, "ro") {
			t.Errorf("%s: read-only is %v, got %+v", want.Point, ro, got)
		}
		for option := range strings.SplitSeq(want.Super, ",") {
			if option != "rw" && option != "ro" && !HasOption(got.Super, option) {
				t.Errorf("%s: option %q of %q is not in %q", want.Point, option, want.Super, got.Super)
			}
		}
	}
	if len(below) != len(table) {
		t.Errorf("%d mounts, the table has %d", len(below), len(table))
	}
}

func TestBelowTakesTypes(t *testing.T) {
	below, err := Below("/proc", "proc")
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("needs listmount(2) and statmount(2): ", err)
	}
	if err != nil || len(below) == 0 || below[0].Point != "/proc" || below[0].Type != "proc" {
		t.Errorf("got %+v, %v", below, err)
	}
	if below, err := Below("/proc", "no such"); err != nil || len(below) > 0 {
		t.Errorf("got %+v, %v", below, err)
	}
}
