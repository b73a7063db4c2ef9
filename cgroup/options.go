package cgroup

import "slices"

// An Option changes how a group is created or opened.
type Option func(*options)

type options struct {
	force      bool
	overruled  func(*NotOwnerError)
	adopt      bool
	permitted  bool
	intoFrozen bool
	supervisor string
	only       []string
	enable     []string
	record     []string
	intent     func(directories []string) error
}

// Force lets the group be written to and removed although it belongs to
// another owner. It is for people who name that group and mean it.
func Force() Option { return func(o *options) { o.force = true } }

// Overruling is Force, and tells what was done that would have been refused without it, one
// directory and operation at a time.
func Overruling(tell func(refused *NotOwnerError)) Option {
	return func(o *options) { o.force, o.overruled = true, tell }
}

// Adopt lets the group be written to although it has another owner, and
// its processes be signalled, as Force does. What it was not made of by the
// caller is never removed.
func Adopt() Option { return func(o *options) { o.force, o.adopt = true, true } }

// Intent lets Create say which directories it is about to make, before it makes
// the first: a caller that records them knows after a crash what there was
// before. An error ends Create.
func Intent(record func(directories []string) error) Option {
	return func(o *options) { o.intent = record }
}

// Made gives back what Group.Made said when the group was created, so that it
// is known as the caller's own.
func Made(directories []string) Option {
	return func(o *options) { o.record = directories }
}

// Only limits the group to the hierarchies of these controllers, or to those that have
// these names (Hierarchy.String): "unified" is version 2, "name=systemd" a named one.
func Only(controllers ...string) Option {
	return func(o *options) { o.only = controllers }
}

// Enable says which version 2 controllers the group must have. Without it a
// unified host enables all that it can; a hybrid one those that a limit needs,
// when it is set.
func Enable(controllers ...string) Option {
	return func(o *options) { o.enable = append(make([]string, 0, len(controllers)), controllers...) }
}

// WherePermitted leaves out the hierarchies where this process may not make
// groups: an ordinary user on a hybrid host has version 2 at most.
func WherePermitted() Option { return func(o *options) { o.permitted = true } }

// Supervisor lets Create and Set move processes out of the way: where a
// delegated parent of the group has processes of its own, and so cannot give
// controllers to its children, they go into a child of it with this name. By
// the delegation they are the caller's own: himself and who started him.
func Supervisor(leaf string) Option { return func(o *options) { o.supervisor = leaf } }

// IntoFrozen lets processes be put into the group while version 2's freezer
// holds it; they begin when it is thawed. Version 1's is not for that: what
// enters it while it is frozen cannot even be killed.
func IntoFrozen() Option { return func(o *options) { o.intoFrozen = true } }

func gather(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// selected reports whether Only leaves the hierarchy in.
func (o *options) selected(h *Hierarchy) bool {
	if o.only == nil {
		return true
	}
	return slices.ContainsFunc(o.only, func(name string) bool {
		if h.Version == 2 {
			return name == "unified" || h.Has(name)
		}
		return name != "" && h.holds(name)
	})
}
