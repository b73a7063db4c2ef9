package plan

import (
	"path"
	"strconv"

	"github.com/berth-runtime/berth/engine/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// planDiscard reads the annotations.
func (p *Plan) planDiscard(annotations map[string]string) []spec.Complaint {
	value, ok := annotations[spec.RootWritesAnnotation]
	folder, readonly := annotations[spec.RootReadonlyAnnotation]
	if readonly {
		at := spec.Join("/annotations", spec.RootReadonlyAnnotation)
		switch {
		case !ok:
			return []spec.Complaint{{Pointer: at, Message: "it is about a root whose writes are discarded", Hint: "add " + spec.RootWritesAnnotation + ", or use linux.readonlyPaths"}}
		case !path.IsAbs(folder) || path.Clean(folder) != folder || folder == "/":
			return []spec.Complaint{{Pointer: at, Message: "expected an absolute path below /, without . and .., found " + strconv.Quote(folder)}}
		}
		p.Root.DiscardBut = folder
	}
	if !ok {
		return nil
	}
	at := spec.Join("/annotations", spec.RootWritesAnnotation)
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
