package supervisor

import (
	"strconv"

	"github.com/berth-runtime/berth/internal/argname"
	"github.com/berth-runtime/berth/seccomp"
)

// describe is a call with the argument by which filters tell good from bad.
func describe(c *seccomp.Call) string {
	name := c.Name()
	a := argumentOf(name)
	if a == nil || a.memory {
		return c.String()
	}
	args := c.Args
	args[a.index] &= 1<<32 - 1
	text := argname.Arg(name, args[:], int(a.index))
	if text == "" {
		text = "0x" + strconv.FormatUint(args[a.index], 16)
	}
	return name + "(" + text + ")"
}
