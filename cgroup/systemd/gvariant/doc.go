// Package gvariant reads values in GVariant text format, in which a config's
// annotations give properties to the container's unit: 'text', uint64 5,
// [('a', 1)], {'k': <true>}, b'bytes', @as [].
//
// Parse works in two passes, like the format's definition: a first that finds
// the type that all the parts agree on, and a second that makes the values,
// because [1, 2.5] has doubles and ['a', nothing] has maybes. It is pure, knows
// nothing of D-Bus libraries, and gives errors with their column. The format is
// described at https://docs.gtk.org/glib/gvariant-text-format.html.
package gvariant
