package sys

import (
	"encoding/binary"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MountStat is what statmount(2) tells of one mount.
type MountStat struct {
	ID, Parent uint32 // as /proc/self/mountinfo numbers them
	ReadOnly   bool   // the mount or its file system
	Root       string // what of the file system is mounted
	Point      string // relative to this process's root
	Type       string
	Options    string // of the file system, without those of the mount
}

// mntIDReq is struct mnt_id_req in the form of Linux 6.8 (MNT_ID_REQ_SIZE_VER0).
type mntIDReq struct {
	size, spare uint32
	mount       uint64
	param       uint64 // statmount: what is asked for; listmount: the last mount of the previous answer
}

const mntIDReqSize = 24

// What statmount(2) is asked for.
const (
	statmountSuperblock = 0x01
	statmountMount      = 0x02
	statmountRoot       = 0x08
	statmountPoint      = 0x10
	statmountType       = 0x20
	statmountOptions    = 0x80 // Linux 6.11

	statmountAll = statmountSuperblock | statmountMount | statmountRoot | statmountPoint | statmountType | statmountOptions
)

// Where the fields of struct statmount lie, of which the strings follow.
const (
	statmountAtOptions   = 4
	statmountAtMask      = 8
	statmountAtSuper     = 32 // flags of the superblock
	statmountAtType      = 36
	statmountAtOldID     = 56
	statmountAtOldParent = 60
	statmountAtAttr      = 64
	statmountAtRoot      = 104
	statmountAtPoint     = 108
	statmountStrings     = 512
)

// MountID gives the mount that a path lies on, by the number that no later mount gets (Linux 6.8).
func MountID(path string) (uint64, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID_UNIQUE, &st); err != nil {
		return 0, err
	}
	if st.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		return 0, unix.ENOSYS
	}
	return st.Mnt_id, nil
}

// ListMounts appends the mounts below a mount, at any depth, in the order of the mount table
// (listmount(2), Linux 6.8).
func ListMounts(below uint64, list []uint64) ([]uint64, error) {
	const room = 64
	req := mntIDReq{size: mntIDReqSize, mount: below}
	for {
		var ids [room]uint64
		n, _, errno := unix.Syscall6(unix.SYS_LISTMOUNT, uintptr(unsafe.Pointer(&req)), uintptr(unsafe.Pointer(&ids)), room, 0, 0, 0)
		if errno != 0 {
			return nil, errno
		}
		list = append(list, ids[:n]...)
		if n < room {
			return list, nil
		}
		req.param = ids[n-1]
	}
}

// StatMount looks at one mount (statmount(2), Linux 6.8; the options of its file system came with
// 6.11). EINVAL says that it is not to be had without something that this kernel does not tell.
func StatMount(id uint64) (MountStat, error) {
	req := mntIDReq{size: mntIDReqSize, mount: id, param: statmountAll}
	buf := make([]byte, statmountStrings+1024)
	for {
		_, _, errno := unix.Syscall6(unix.SYS_STATMOUNT, uintptr(unsafe.Pointer(&req)), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), 0, 0, 0)
		if errno == unix.EOVERFLOW && len(buf) < 1<<20 { // the strings have no room
			buf = make([]byte, 4*len(buf))
			continue
		}
		runtime.KeepAlive(&req)
		if errno != 0 {
			return MountStat{}, errno
		}
		return parseMountStat(buf)
	}
}

func parseMountStat(buf []byte) (MountStat, error) {
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(buf[at:]) }
	text := func(at int) string {
		from := statmountStrings + int(word(at))
		if from >= len(buf) {
			return ""
		}
		return unix.ByteSliceToString(buf[from:])
	}
	// A part that could not be told, as the options of a file system that has none to show, is not
	// in the mask.
	const needed = statmountAll &^ statmountOptions
	mask := binary.NativeEndian.Uint64(buf[statmountAtMask:])
	if mask&needed != needed {
		return MountStat{}, unix.EINVAL
	}
	m := MountStat{
		ID: word(statmountAtOldID), Parent: word(statmountAtOldParent),
		ReadOnly: word(statmountAtSuper)&unix.MS_RDONLY != 0 || binary.NativeEndian.Uint64(buf[statmountAtAttr:])&unix.MOUNT_ATTR_RDONLY != 0,
		Root:     text(statmountAtRoot), Point: text(statmountAtPoint), Type: text(statmountAtType),
	}
	if mask&statmountOptions != 0 {
		m.Options = text(statmountAtOptions)
	}
	return m, nil
}
