package container

import (
	"errors"
	"fmt"
	"time"

	"github.com/berth-runtime/berth/internal/json"
	"golang.org/x/sys/unix"
)

// A Record is what is known of a container on disk.
type Record struct {
	ID          string
	OCIVersion  string
	Bundle      string
	Rootfs      string
	Created     time.Time
	Owner       uint32
	Annotations map[string]string

	// Pid and StartTime identify the first process; both are 0 while it is made.
	Pid       int
	StartTime uint64
	// Boot is the boot of the machine that they are of.
	Boot string
	// Namespaces are those that the first process was made in: see namespacesOf.
	Namespaces namespaceIDs

	Cgroup CgroupRecord
	// Systemd is set where systemd made the cgroup.
	Systemd bool
	NoPivot bool
	// NoNewKeyring leaves the processes the session keyring of who starts them.
	NoNewKeyring bool
	// NoHooks says that the config has no hooks, so that it need not be read for them.
	NoHooks bool
	// NoProcess says that the config has no process, so that there is nothing to start.
	NoProcess bool
	// OwnPids says that it has a pid namespace of its own; not in records of old.
	OwnPids bool
	// Minded says that the first of its pid namespace is a minder, which ends when the parent of
	// its process has seen the end of that (CreateOptions.Init).
	Minded bool
	// Rdt are the resctrl directories that were made for it, to be removed.
	Rdt []string
	// Ended is how the first process ended, if a command that knew has recorded it.
	Ended *unix.WaitStatus
}

// CgroupRecord says what the container has of the cgroup hierarchies.
type CgroupRecord struct {
	Path string // "" for none of its own
	Made []string
	// MadeAll says that Made has the cgroup in every hierarchy, not only where it was missing.
	MadeAll bool
	// Payload is a cgroup below Path where the processes are, "" for Path itself.
	Payload string
	Unit    string // of systemd, "" where that did not make the cgroup
	// Freezers are the files that tell whether it is frozen; none in records of old.
	Freezers []string
}

const (
	recordFile = "state.json"
	configFile = "config.json"
	gateFile   = "start"
	// poststartFile is what the gate becomes until the poststart hooks have run.
	poststartFile = "poststart"
	// standstillFile is there while an update has stopped the container (see atStandstill).
	standstillFile = "standstill"
	// endFile is there once delete --force waits for the lock (see askForEnd).
	endFile = "end"
	// deniedFile has a line for each kind of refused system calls (see keepDenials).
	deniedFile = "denied"
)

func (r *Record) encode() []byte {
	w := json.NewWriter(make([]byte, 0, 1024), "")
	w.Object()
	w.Key("runtime").String(recordMark)
	w.Key("id").String(r.ID)
	w.Key("ociVersion").String(r.OCIVersion)
	w.Key("bundle").String(r.Bundle)
	w.Key("rootfs").String(r.Rootfs)
	w.Key("created").Time(r.Created)
	w.Key("owner").Uint(uint64(r.Owner))
	if len(r.Annotations) > 0 {
		w.Key("annotations").Object()
		for _, k := range sortedKeys(r.Annotations) {
			w.Key(k).String(r.Annotations[k])
		}
		w.End()
	}
	w.Key("pid").Int(int64(r.Pid))
	w.Key("startTime").Uint(r.StartTime)
	w.Key("boot").String(r.Boot)
	w.Key("namespaces").Object()
	for i, kind := range kinds {
		w.Key(kind.file).Uint(r.Namespaces[i])
	}
	w.End()
	w.Key("cgroup").Object()
	w.Key("path").String(r.Cgroup.Path)
	w.Key("made").Strings(r.Cgroup.Made)
	w.Key("madeAll").Bool(r.Cgroup.MadeAll)
	w.Key("payload").String(r.Cgroup.Payload)
	w.Key("unit").String(r.Cgroup.Unit)
	w.Key("freezers").Strings(r.Cgroup.Freezers)
	w.End()
	w.Key("systemd").Bool(r.Systemd)
	w.Key("noPivot").Bool(r.NoPivot)
	w.Key("noNewKeyring").Bool(r.NoNewKeyring)
	w.Key("noHooks").Bool(r.NoHooks)
	w.Key("noProcess").Bool(r.NoProcess)
	w.Key("ownPids").Bool(r.OwnPids)
	if r.Minded {
		w.Key("minded").Bool(true)
	}
	w.Key("rdt").Strings(r.Rdt)
	if r.Ended != nil {
		w.Key("ended").Uint(uint64(*r.Ended))
	}
	w.End()
	return w.Bytes()
}

// recordMark tells our record from what others call state.json.
const recordMark = "berth"

var errForeign = errors.New("it is not one of berth's")

func decodeRecord(data []byte) (*Record, error) {
	r, mark := &Record{}, ""
	d := json.NewDecoder(data)
	for d.Object(); d.Next(); {
		switch d.Key() {
		case "runtime":
			mark = d.String()
		case "id":
			r.ID = d.String()
		case "ociVersion":
			r.OCIVersion = d.String()
		case "bundle":
			r.Bundle = d.String()
		case "rootfs":
			r.Rootfs = d.String()
		case "created":
			r.Created = d.Time()
		case "owner":
			r.Owner = uint32(d.Uint(32))
		case "annotations":
			r.Annotations = d.StringMap()
		case "pid":
			r.Pid = int(d.Int(32))
		case "startTime":
			r.StartTime = d.Uint(64)
		case "boot":
			r.Boot = d.String()
		case "namespaces":
			for d.Object(); d.Next(); {
				for i, kind := range kinds {
					if kind.file == d.Key() {
						r.Namespaces[i] = d.Uint(64)
					}
				}
			}
		case "cgroup":
			for d.Object(); d.Next(); {
				switch d.Key() {
				case "path":
					r.Cgroup.Path = d.String()
				case "made":
					r.Cgroup.Made = d.Strings()
				case "madeAll":
					r.Cgroup.MadeAll = d.Bool()
				case "payload":
					r.Cgroup.Payload = d.String()
				case "unit":
					r.Cgroup.Unit = d.String()
				case "freezers":
					r.Cgroup.Freezers = d.Strings()
				}
			}
		case "systemd":
			r.Systemd = d.Bool()
		case "noPivot":
			r.NoPivot = d.Bool()
		case "noNewKeyring":
			r.NoNewKeyring = d.Bool()
		case "noHooks":
			r.NoHooks = d.Bool()
		case "noProcess":
			r.NoProcess = d.Bool()
		case "ownPids":
			r.OwnPids = d.Bool()
		case "minded":
			r.Minded = d.Bool()
		case "rdt":
			r.Rdt = d.Strings()
		case "ended":
			status := unix.WaitStatus(d.Uint(32))
			r.Ended = &status
		}
	}
	if err := d.Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", recordFile, err)
	}
	if mark != recordMark {
		return nil, fmt.Errorf("%s: %w", recordFile, errForeign)
	}
	return r, nil
}

// readFileAt reads a small file. Of a regular file, or one of procfs that is shorter
// than the buffer, a read that does not fill it had all that there is.
func readFileAt(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var block [4096]byte // on the stack: with many containers there are many files, most of them short
	var data []byte
	for {
		n, err := unix.Read(fd, block[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		data = append(data, block[:n]...)
		if n < len(block) {
			return data, nil
		}
	}
}
