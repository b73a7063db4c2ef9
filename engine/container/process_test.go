package container

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/ptr"
)

func TestParseTimeOffset(t *testing.T) {
	for text, want := range map[string]int64{
		"monotonic           0         0\nboottime            0         0\n": 0,
		"monotonic        -200         0\nboottime     86400  20000000\n":    8640002,
		"monotonic           7         0\nboottime       -10         0\n":    -1000,
		"boottime x 0\n": 0, "boottime 1\n": 0, "": 0,
	} {
		if got := parseTimeOffset([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// A state directory may outlive the boot; what has the pid then, and by chance the start time, is
// another process.
func TestAliveOfAnotherBoot(t *testing.T) {
	s, err := statOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	r := Record{Pid: os.Getpid(), StartTime: s.Start, Boot: bootID()}
	if bootID() == "" {
		t.Fatal("the boot has no id")
	}
	if !r.Alive() {
		t.Error("this process is not alive")
	}
	r.Boot = "11111111-2222-3333-4444-555555555555"
	if r.Alive() {
		t.Error("a process of this boot is taken for one of another")
	}
	if _, err := r.Pidfd(); err != ErrNotRunning {
		t.Errorf("pidfd of it: %v", err)
	}
}

// TestAlive knows a process by pid and start time together.
func TestAlive(t *testing.T) {
	s, err := statOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	r := Record{Pid: os.Getpid(), StartTime: s.Start}
	if !r.Alive() {
		t.Error("this process is not alive")
	}
	r.StartTime++
	if r.Alive() {
		t.Error("a process that has our pid and another start time is taken for ours")
	}
	if _, err := r.Pidfd(); err != ErrNotRunning {
		t.Errorf("pidfd of it: %v", err)
	}
}

// fullRecord has all that a record can have.
func fullRecord() *Record {
	return &Record{
		ID: "a", OCIVersion: "1.3.0", Bundle: "/b \"quoted\"\n", Rootfs: "/b/rootfs", Created: time.Unix(1, 2).UTC(), Owner: 7,
		Annotations: map[string]string{"k": "v", "a/b": ""}, Pid: 42, StartTime: 1 << 60, Boot: "b",
		Cgroup:  CgroupRecord{Path: "/x", Made: []string{"/sys/fs/cgroup/x"}, Unit: "berth-a.scope", Freezers: []string{"/sys/fs/cgroup/x/cgroup.freeze"}},
		Systemd: true, NoPivot: true, NoNewKeyring: true, NoHooks: true, NoProcess: true, OwnPids: true, Minded: true, Rdt: []string{"/sys/fs/resctrl/a"}, Ended: ptr.To(unix.WaitStatus(3 << 8)),
	}
}

func TestRecordSurvives(t *testing.T) {
	want := fullRecord()
	got, err := decodeRecord(want.encode())
	if err != nil {
		t.Fatal(err)
	}
	if string(got.encode()) != string(want.encode()) || got.Bundle != want.Bundle || got.StartTime != want.StartTime {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add((&Record{ID: "a"}).encode())
	f.Add(fullRecord().encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRecord(data)
		if err != nil {
			return
		}
		text := r.encode()
		if again, err := decodeRecord(text); err != nil || string(again.encode()) != string(text) {
			t.Errorf("%s does not survive: %v", text, err)
		}
	})
}

func TestCheckID(t *testing.T) {
	for _, id := range []string{"a", "A-b_c.d+e", "0", "...", "-x"} {
		if err := CheckID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", ".", "..", "a/b", "a b", "ä", "a\n", "a\x00"} {
		if CheckID(id) == nil {
			t.Errorf("%q is accepted", id)
		}
	}
}
