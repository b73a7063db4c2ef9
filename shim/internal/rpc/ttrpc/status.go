package ttrpc

import (
	"context"
	"errors"

	"github.com/berth-runtime/berth/shim/internal/guard"
)

// Code is a gRPC status code. containerd's daemon maps an error back to its
// own kind by the code alone; the text is what its users read.
type Code int32

// The codes that a shim answers with.
const (
	Canceled           Code = 1
	Unknown            Code = 2
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	NotFound           Code = 5
	AlreadyExists      Code = 6
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
)

// Error is an error with the code that it has on the wire.
type Error struct {
	Code Code
	Text string
	// Cause is what the error comes from, when there is something to unwrap; its
	// text is part of Text already.
	Cause error
}

func (e *Error) Error() string { return e.Text }

func (e *Error) Unwrap() error { return e.Cause }

// Is makes any two errors of one code alike, so that a caller can ask
// errors.Is(err, &Error{Code: NotFound}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Text == "" && t.Code == e.Code
}

// CodeOf is the code of the first error in err's chain that has one.
func CodeOf(err error) Code {
	var e *Error
	var p *guard.Panic
	switch {
	case errors.As(err, &p):
		return Internal
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Unknown
}
