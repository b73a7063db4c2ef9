package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/internal/atomicfile"
	"github.com/berth-runtime/berth/internal/json"
	"golang.org/x/sys/unix"
)

// Annotations that group containers, the first before the second.
const (
	groupAnnotation   = "io.containerd.runc.v2.group"
	sandboxAnnotation = "io.kubernetes.cri.sandbox-id"
)

// Config is the part of config.json that matters to a shim.
type Config struct {
	// Group is what the annotations name as the container's group, or "".
	Group string
	// SharedPid says that the container has no pid namespace of its own, so that
	// the end of its init does not end the rest of it.
	SharedPid bool
	// HasProcess says that there is a program to be run, which the config of a
	// sandbox may leave out.
	HasProcess bool
	// NamesUnit says that the cgroup is named as systemd's driver has it,
	// SLICE.slice:PREFIX:NAME, and not by a path.
	NamesUnit bool
}

// ReadConfig reads config.json of a bundle. A bundle without one, as a sandbox
// may have, gives an error that wraps os.ErrNotExist.
func ReadConfig(dir string) (*Config, error) {
	path := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &Config{SharedPid: true}
	sandbox := ""
	d := json.NewDecoder(text)
	for d.Object(); d.Next(); {
		switch d.Key() {
		case "annotations":
			if d.Null() {
				continue
			}
			for d.Object(); d.Next(); {
				switch d.Key() {
				case groupAnnotation:
					c.Group = d.String()
				case sandboxAnnotation:
					sandbox = d.String()
				}
			}
		case "process":
			if d.Null() {
				continue
			}
			for d.Object(); d.Next(); {
				if d.Key() == "args" {
					c.HasProcess = len(d.Strings()) > 0
				}
			}
		case "linux":
			if d.Null() {
				continue
			}
			for d.Object(); d.Next(); {
				switch d.Key() {
				case "cgroupsPath":
					c.NamesUnit = !d.Null() && namesUnit(d.String())
				case "namespaces":
					if d.Null() {
						continue
					}
					for d.Array(); d.Next(); {
						if ownPid(d) {
							c.SharedPid = false
						}
					}
				}
			}
		}
	}
	if err := d.Close(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if c.Group == "" {
		c.Group = sandbox
	}
	return c, nil
}

// namesUnit takes no slice for none: those written for systemd name one.
func namesUnit(cgroupsPath string) bool {
	slice, rest, _ := strings.Cut(cgroupsPath, ":")
	return strings.HasSuffix(slice, ".slice") && !strings.Contains(slice, "/") && strings.Count(rest, ":") == 1
}

// ownPid says whether an entry of namespaces is a new pid namespace.
func ownPid(d *json.Decoder) bool {
	var kind, path string
	for d.Object(); d.Next(); {
		switch d.Key() {
		case "type":
			kind = d.String()
		case "path":
			path = d.String()
		}
	}
	return kind == "pid" && path == ""
}

// Write writes a file in a bundle so that a reader, also after a crash of ours,
// finds all of it or what was there before.
func Write(dir, name string, content []byte) error {
	return atomicfile.Write(unix.AT_FDCWD, filepath.Join(dir, name), content, 0o600)
}

// members is the directory in a group leader's bundle that has a file for each
// other container of its group, with the path of that one's bundle in it.
const members = "shim-members"

// AddMember notes in the leader's bundle that a container is of its group.
func AddMember(leader, id, dir string) error {
	folder := filepath.Join(leader, members)
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return Write(leader, filepath.Join(members, id), []byte(dir))
}

// RemoveMember takes back AddMember.
func RemoveMember(leader, id string) {
	os.Remove(filepath.Join(leader, members, id))
}

// Members are the other containers of a leader's group, by id.
func Members(leader string) (map[string]string, error) {
	entries, err := os.ReadDir(filepath.Join(leader, members))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	found := make(map[string]string, len(entries))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // as no id does: a kill has left a part of one
			continue
		}
		dir, err := os.ReadFile(filepath.Join(leader, members, e.Name()))
		if err != nil {
			return nil, err
		}
		found[e.Name()] = string(dir)
	}
	return found, nil
}

// End is how a container's init ended.
type End struct {
	Pid, Status int
	At          time.Time
}

const endFile = "init.exit"

// SaveEnd notes the end of the init.
func SaveEnd(dir string, e End) error {
	text := fmt.Sprintf("%d %d %d", e.Pid, e.Status, e.At.UnixNano())
	return Write(dir, endFile, []byte(text))
}

// LoadEnd gives what SaveEnd noted.
func LoadEnd(dir string) (End, bool) {
	text, err := os.ReadFile(filepath.Join(dir, endFile))
	if err != nil {
		return End{}, false
	}
	words := strings.Split(string(text), " ")
	if len(words) != 3 {
		return End{}, false
	}
	pid := parsePid(words[0])
	status, err := strconv.ParseUint(words[1], 10, 8)
	nanos, err2 := strconv.ParseInt(words[2], 10, 64)
	if pid == 0 || err != nil || err2 != nil {
		return End{}, false
	}
	return End{Pid: pid, Status: int(status), At: time.Unix(0, nanos)}, true
}

// parsePid gives 0 for what can't be a process: a file of the bundle may have been cut short, or be
// another's. A negative number would be a process group that it is passed on to.
func parsePid(text string) int {
	const most = 1 << 22 // PID_MAX_LIMIT of include/linux/threads.h
	pid, err := strconv.ParseUint(text, 10, 32)
	if err != nil || pid > most {
		return 0
	}
	return int(pid)
}

// InitPid is the pid that the engine wrote when it made the container, or 0.
func InitPid(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "init.pid"))
	if err != nil {
		return 0
	}
	return parsePid(strings.TrimSpace(string(text)))
}
