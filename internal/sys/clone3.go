package sys

import "errors"

// ErrNoClone3 says that clone3 is not to be had, so that nothing was made: systemd's
// RestrictNamespaces= and the seccomp profiles of some outer containers answer it with
// ENOSYS, as they can't look at its flags. What the child's own calls answer is no
// such error.
var ErrNoClone3 = errors.New("clone3: function not implemented")
