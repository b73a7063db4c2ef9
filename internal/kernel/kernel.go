package kernel

import "errors"

// Floor is the least Linux that is supported at all.
const Floor = "5.10"

// A Feature is something that newer kernels have.
type Feature struct {
	Name string
	// Least is the first Linux that has it, More what it needs besides.
	Least, More string
	Use         string
	// Without is what is done where it is missing; "" where the floor has it.
	Without string
	// Cost is that of what is done instead, if it is known.
	Cost string
}

// A Section is a part of the page.
type Section struct {
	Title    string
	Features []*Feature
}

// ErrNotSupported is what each NotSupported is.
var ErrNotSupported = errors.New("this kernel does not support it")

// NotSupported says that the kernel has no Feature.
type NotSupported struct {
	Feature *Feature
	Err     error // the kernel's answer, if it was asked
}

// Missing makes the error of a kernel without the feature, from what it has answered.
func (f *Feature) Missing(answer error) error { return &NotSupported{f, answer} }

func (e *NotSupported) Error() string {
	text := "this kernel has no " + e.Feature.plain() + ": " + e.Feature.Needs()
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

// Is lets errors.Is find ErrNotSupported, whatever the feature.
func (e *NotSupported) Is(target error) bool { return target == ErrNotSupported }

func (e *NotSupported) Unwrap() error { return e.Err }

// Needs is the kernel that has it, in words.
func (f *Feature) Needs() string {
	text := "Linux " + f.Least + " has it"
	if f.More != "" {
		text += ", " + f.More
	}
	return text
}
