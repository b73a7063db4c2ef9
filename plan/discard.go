package plan

import (
	"path"
	"strconv"

	"github.com/berth-runtime/berth/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// RootWritesAnnotation says what becomes of writes to the root file system:
// "discard" keeps them in memory and loses them with the container. The runtime
// specification has no entry for it.
const RootWritesAnnotation = "run.berth.root.writes"

// RootReadonlyAnnotation names a folder of a root file system whose writes are
// discarded that can't be written to even so.
const RootReadonlyAnnotation = "run.berth.root.readonly"

// planDiscard reads the annotations.
func (p *Plan) planDiscard(annotations map[string]string) []spec.Complaint {
	value, ok := annotations[RootWritesAnnotation]
	folder, readonly := annotations[RootReadonlyAnnotation]
	if readonly {
		at := spec.Join("/annotations", RootReadonlyAnnotation)
		switch {
		case !ok:
			return []spec.Complaint{{Pointer: at, Message: "it is about a root whose writes are discarded", Hint: "add " + RootWritesAnnotation + ", or use linux.readonlyPaths"}}
		case !path.IsAbs(folder) || path.Clean(folder) != folder || folder == "/":
			return []spec.Complaint{{Pointer: at, Message: "expected an absolute path below /, without . and .., found " + strconv.Quote(folder)}}
		}
		p.Root.DiscardBut = folder
	}
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
