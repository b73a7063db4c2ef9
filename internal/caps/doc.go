// Package caps names Linux capabilities.
//
// It holds the one table of names and numbers (include/uapi/linux/capability.h)
// that the checker, the planner and the printer share, and sets of capabilities
// as bit masks, which is the form capset(2) and prctl(2) want. It touches nothing.
package caps
