package criu

import "strconv"

// Response is criu_resp.
type Response struct {
	Task     Task
	Success  bool
	Pid      int // of the restored process
	Notify   Notification
	Errno    int
	Message  string
	Version  Version
	Features // what the kernel and criu can do together
}

// A Notification tells how far criu has come.
type Notification struct {
	Script string // as in criu(8), ACTION SCRIPTS
	Pid    int
}

// Version of criu.
type Version struct{ Major, Minor, Sublevel int }

func (v Version) String() string {
	s := strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor)
	if v.Sublevel > 0 {
		s += "." + strconv.Itoa(v.Sublevel)
	}
	return s
}

// Before reports whether the version is older than another.
func (v Version) Before(major, minor int) bool {
	return v.Major < major || v.Major == major && v.Minor < minor
}

// ParseResponse decodes criu_resp.
func ParseResponse(data []byte) (*Response, error) {
	r := &Response{}
	err := fields(data, func(f field) error {
		switch f.number {
		case 1:
			r.Task = Task(f.value)
		case 2:
			r.Success = f.value != 0
		case 4:
			return fields(f.bytes, func(f field) error {
				if f.number == 1 {
					r.Pid = int(int32(f.value))
				}
				return nil
			})
		case 5:
			return fields(f.bytes, r.Notify.take)
		case 7:
			r.Errno = int(int32(f.value))
		case 8:
			return fields(f.bytes, func(f field) error {
				switch f.number {
				case 1:
					r.MemoryTracking = f.value != 0
				case 2:
					r.LazyPages = f.value != 0
				}
				return nil
			})
		case 9:
			r.Message = string(f.bytes)
		case 10:
			return fields(f.bytes, r.Version.take)
		}
		return nil
	})
	return r, err
}

func (n *Notification) take(f field) error {
	switch f.number {
	case 1:
		n.Script = string(f.bytes)
	case 2:
		n.Pid = int(int32(f.value))
	}
	return nil
}

func (v *Version) take(f field) error {
	switch f.number {
	case 1:
		v.Major = int(int32(f.value))
	case 2:
		v.Minor = int(int32(f.value))
	case 4:
		v.Sublevel = int(int32(f.value))
	}
	return nil
}
