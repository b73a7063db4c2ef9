package plan

import (
	"strconv"

	"github.com/berth-runtime/berth/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// RootWritesAnnotation says what becomes of writes to the root file system:
// "discard" keeps them in memory and loses them with the container. The runtime
// specification has no entry for it.
const RootWritesAnnotation = "run.berth.root.writes"

// planDiscard reads the annotation.
func (p *Plan) planDiscard(annotations map[string]string) []spec.Complaint {
	value, ok := annotations[RootWritesAnnotation]
	if !ok {
		return nil
	}
	at := spec.Join("/annotations", RootWritesAnnotation)
	switch {
	case value != "discard":
		return []spec.Complaint{{Pointer: at, Message: "expected discard, found " + strconv.Quote(value)}}
	case p.Root.Propagation&unix.MS_SHARED != 0:
		return []spec.Complaint{{Pointer: at, Message: "with a shared root the overlay would reach the host", Hint: "leave linux.rootfsPropagation out"}}
	case p.Namespace(specs.MountNamespace) == nil:
		return []spec.Complaint{{Pointer: at, Message: "the overlay that it takes needs a mount namespace", Hint: `add {"type": "mount"} to linux.namespaces`}}
	}
	p.Root.Discard, p.Root.DiscardAt = true, at
	return nil
}
