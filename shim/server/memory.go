package server

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// ownMappings are where the file of this program is mapped, which does not change.
var ownMappings = sync.OnceValue(func() []mapping {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	return programMappings(smaps, program)
})

// giveBack is for a shim that has nothing to do: it returns free memory to the
// system, and lets go of the program's pages that it has used so far. Those stay
// in the page cache, and come back by a fault when they are used again; meanwhile
// no page tables are kept for them, and the kernel may reclaim them without
// having to look for who has them mapped.
func giveBack() {
	own := ownMappings() // leaves garbage, the first time
	debug.FreeOSMemory()
	for _, m := range own {
		unix.Syscall(unix.SYS_MADVISE, m.start, m.size, unix.MADV_DONTNEED)
	}
}

type mapping struct{ start, size uintptr }

// programMappings finds where the file of the program is mapped read-only, in the
// text of smaps (proc_pid_smaps(5)). Where any page is no longer the file's own,
// it would be lost, so such a mapping is left out.
func programMappings(smaps []byte, program string) (list []mapping) {
	var last *mapping
	for line := range bytes.Lines(smaps) {
		fields := bytes.Fields(line)
		if len(fields) >= 3 && string(fields[0]) == "Anonymous:" && string(fields[1]) == "0" && last != nil {
			list = append(list, *last)
		}
		if len(fields) < 5 || len(fields[1]) != 4 || bytes.HasSuffix(fields[0], []byte(":")) {
			continue
		}
		// START-END PERMISSIONS OFFSET DEVICE INODE [PATH]
		last = nil
		if len(fields) < 6 || fields[1][1] == 'w' || !bytes.HasSuffix(bytes.TrimSpace(line), []byte(" "+program)) {
			continue
		}
		from, to, _ := bytes.Cut(fields[0], []byte("-"))
		start, err1 := strconv.ParseUint(string(from), 16, 64)
		end, err2 := strconv.ParseUint(string(to), 16, 64)
		if err1 == nil && err2 == nil && end > start {
			last = &mapping{uintptr(start), uintptr(end - start)}
		}
	}
	return list
}
