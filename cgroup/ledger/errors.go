package ledger

import (
	"errors"
	"strings"
)

// FieldError is a resource that cannot be honoured on this host.
type FieldError struct {
	// Pointer is the JSON pointer of the field below the resources object.
	Pointer string
	// Message says what is wrong with it.
	Message string
	// Hint says what to do, where there is something to do.
	Hint string
}

func (e *FieldError) Error() string {
	s := e.Pointer + ": " + e.Message
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Errors are all the fields of one resources object that cannot be honoured,
// in the order of the table. errors.As finds the first *FieldError in it.
type Errors []*FieldError

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "; ")
}

// Unwrap gives each of them to errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, f := range e {
		errs[i] = f
	}
	return errs
}

// Join makes one error of what is wrong with the parts of one resources object: Errors with
// the fields of all, or the first error that is of another type.
func Join(errs ...error) error {
	var all Errors
	for _, err := range errs {
		var some Errors
		if err != nil && !errors.As(err, &some) {
			return err
		}
		all = append(all, some...)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
