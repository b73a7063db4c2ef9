package plan

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/kernel"
	"golang.org/x/sys/unix"
)

// Landlock is what the container's processes may do with files, whatever their user
// (landlock(7)). The runtime specification has no entry for it yet.
type Landlock struct {
	// Handled are the rights that are denied unless a rule grants them.
	Handled uint64
	Rules   []LandlockRule
}

// LandlockRule gives rights below a path of the container.
type LandlockRule struct {
	Path   string
	Access uint64 // of a directory with all below it
	At     string
}

// Rights of landlock(7), by the ABI that brought them.
const (
	landlockExecute = unix.LANDLOCK_ACCESS_FS_EXECUTE
	landlockRead    = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockMake    = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	landlockWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | landlockMake |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	// LandlockFile are the rights that a rule for a file may give; the kernel
	// refuses the others there.
	LandlockFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// handledBy are the rights that the kernel knows with an ABI.
func handledBy(abi int) uint64 {
	rights := uint64(landlockExecute | landlockRead | landlockWrite)
	if abi < 2 {
		rights &^= unix.LANDLOCK_ACCESS_FS_REFER // Linux 5.19
	}
	if abi < 3 {
		rights &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE // Linux 6.2
	}
	if abi < 5 {
		rights &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV // Linux 6.10
	}
	return rights
}

// landlockOf reads the annotations: a word of rights each, with a list of paths.
func landlockOf(annotations map[string]string, abi int) (*Landlock, []spec.Complaint) {
	var l *Landlock
	var problems []spec.Complaint
	complain := func(at, message, hint string) {
		problems = append(problems, spec.Complaint{Pointer: at, Message: message, Hint: hint})
	}
	for _, key := range sortedKeys(annotations) {
		word, ours := strings.CutPrefix(key, spec.LandlockPrefix)
		if !ours {
			continue
		}
		at := spec.Join("/annotations", key)
		access, known := landlockWord(word)
		if !known {
			complain(at, "Landlock has no right "+strconv.Quote(word), "read, execute or write")
			continue
		}
		if l == nil {
			l = &Landlock{Handled: handledBy(abi)}
		}
		for name := range strings.SplitSeq(annotations[key], ":") {
			if !path.IsAbs(name) {
				complain(at, "expected absolute paths with colons between them, found "+strconv.Quote(name), "")
				continue
			}
			l.Rules = append(l.Rules, LandlockRule{Path: path.Clean(name), Access: access & l.Handled, At: at})
		}
	}
	if abi < 1 && len(problems) == 0 && l != nil {
		complain(l.Rules[0].At, "the kernel has no Landlock", kernel.Landlock.Needs()+"; it takes CONFIG_SECURITY_LANDLOCK, and landlock in the boot parameter lsm= (see /sys/kernel/security/lsm)")
	}
	return l, problems
}

func landlockWord(word string) (uint64, bool) {
	switch word {
	case "read":
		return landlockRead, true
	case "execute":
		return landlockRead | landlockExecute, true
	case "write":
		return landlockRead | landlockWrite, true
	}
	return 0, false
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
