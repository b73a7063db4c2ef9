package ledger

import (
	"errors"
	"slices"
	"testing"
)

// What is wrong with several parts is told at once, unless something else has failed.
func TestJoin(t *testing.T) {
	a, b := &FieldError{Pointer: "/a", Message: "x"}, &FieldError{Pointer: "/b", Message: "y"}
	if err := Join(nil, nil); err != nil {
		t.Errorf("nothing is %v", err)
	}
	var all Errors
	if err := Join(Errors{a}, nil, Errors{b}); !errors.As(err, &all) || !slices.Equal(all, Errors{a, b}) {
		t.Errorf("both are %v", err)
	}
	other := errors.New("no such file")
	if err := Join(Errors{a}, other); err != other {
		t.Errorf("with another it is %v", err)
	}
}
