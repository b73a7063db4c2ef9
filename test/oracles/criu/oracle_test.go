package criu_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/checkpoint-restore/go-criu/v7/rpc"
	"google.golang.org/protobuf/proto"

	"github.com/berth-runtime/berth/engine/criu"
)

// filled has every option set, each number another one.
func filled() *criu.Options {
	return &criu.Options{
		Pid: 1234, LogFile: "dump.log", Root: "/srv/rootfs", ParentImage: "../parent",
		LeaveRunning: true, ExternalSockets: true, TCPEstablished: true, TCPClose: true, TCPSkipInFlight: true, LinkRemap: true,
		ShellJob: true, FileLocks: true, AutoDedup: true, LazyPages: true, TrackMemory: true, Sibling: true,
		PageServer: &criu.PageServer{Address: "192.0.2.1", Port: 9876}, EmptyNamespaces: 0x40000000, CgroupMode: criu.CgroupStrict,
		CgroupRoots:  []criu.CgroupRoot{{Controller: "memory", Path: "/a"}, {Path: "/b"}},
		FreezeCgroup: "/sys/fs/cgroup/freezer/a", External: []string{"net[4026531992]:extRootNetNS", "file[1f:2a]"},
		Mounts: []criu.Mount{{Key: "/etc/hosts", Value: "/var/hosts"}, {Key: "", Value: ""}}, Inherit: []criu.Inherit{{Key: "pipe:[77]", FD: 9}, {Key: "x", FD: 0}},
		Join: []criu.Join{{Type: "ipc", File: "/proc/1/ns/ipc"}}, StatusFD: 11, LSMProfile: "selinux:a:b", LSMMountContext: "c:d",
		NetworkLock: criu.LockByNFTables,
	}
}

// request is the nth that a fake has heard, which keeps them in a directory.
func request(t *testing.T, heard string, n int) *rpc.CriuReq {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(heard, strconv.Itoa(n)))
	if err != nil {
		t.Fatal(err)
	}
	r := &rpc.CriuReq{}
	if err := proto.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	if unknown := r.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		t.Errorf("unknown fields in the request: %x", unknown)
	}
	return r
}

func TestRequestIsWhatTheProtocolSays(t *testing.T) {
	heard := t.TempDir()
	t.Setenv(fakeHeard, heard)
	s := open(t, "agrees", &criu.Start{Work: t.TempDir()})
	if _, err := s.Do(criu.Dump, filled(), nil); err != nil {
		t.Fatal(err)
	}
	got := request(t, heard, 1)
	if got.GetOpts().GetImagesDirFd() <= 0 || got.GetOpts().GetWorkDirFd() <= 0 {
		t.Fatalf("no folders in %v", got)
	}
	want := &rpc.CriuReq{Type: rpc.CriuReqType_DUMP.Enum(), Opts: &rpc.CriuOpts{
		Pid: proto.Int32(1234), ImagesDirFd: got.Opts.ImagesDirFd, WorkDirFd: got.Opts.WorkDirFd, LogFile: proto.String("dump.log"), LogLevel: proto.Int32(4),
		Root: proto.String("/srv/rootfs"), ParentImg: proto.String("../parent"), NotifyScripts: proto.Bool(true), OrphanPtsMaster: proto.Bool(true),
		LeaveRunning: proto.Bool(true), ExtUnixSk: proto.Bool(true), TcpEstablished: proto.Bool(true), TcpClose: proto.Bool(true),
		TcpSkipInFlight: proto.Bool(true), LinkRemap: proto.Bool(true), ShellJob: proto.Bool(true), FileLocks: proto.Bool(true),
		AutoDedup: proto.Bool(true), LazyPages: proto.Bool(true), TrackMem: proto.Bool(true), RstSibling: proto.Bool(true),
		Ps:      &rpc.CriuPageServerInfo{Address: proto.String("192.0.2.1"), Port: proto.Int32(9876)},
		EmptyNs: proto.Uint32(0x40000000), ManageCgroups: proto.Bool(true), ManageCgroupsMode: rpc.CriuCgMode_STRICT.Enum(),
		CgRoot:       []*rpc.CgroupRoot{{Ctrl: proto.String("memory"), Path: proto.String("/a")}, {Path: proto.String("/b")}},
		FreezeCgroup: proto.String("/sys/fs/cgroup/freezer/a"), External: []string{"net[4026531992]:extRootNetNS", "file[1f:2a]"},
		ExtMnt:    []*rpc.ExtMountMap{{Key: proto.String("/etc/hosts"), Val: proto.String("/var/hosts")}, {Key: proto.String(""), Val: proto.String("")}},
		InheritFd: []*rpc.InheritFd{{Key: proto.String("pipe:[77]"), Fd: proto.Int32(9)}, {Key: proto.String("x"), Fd: proto.Int32(0)}},
		JoinNs:    []*rpc.JoinNamespace{{Ns: proto.String("ipc"), NsFile: proto.String("/proc/1/ns/ipc")}},
		StatusFd:  proto.Int32(11), LsmProfile: proto.String("selinux:a:b"), LsmMountContext: proto.String("c:d"),
		NetworkLock: rpc.CriuNetworkLockMethod_NFTABLES.Enum(),
	}}
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestSmallRequests(t *testing.T) {
	heard := t.TempDir()
	t.Setenv(fakeHeard, heard)
	s := open(t, "agrees", &criu.Start{})
	if _, err := s.Version(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Features(); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []error{nil, errors.New("no")} {
		if _, err := s.Do(criu.PreDump, &criu.Options{}, func(criu.Notification, int) error { return answer }); (err == nil) != (answer == nil) {
			t.Fatal(err)
		}
	}
	nothing := &rpc.CriuReq{Type: rpc.CriuReqType_PRE_DUMP.Enum(), Opts: &rpc.CriuOpts{
		LogLevel: proto.Int32(4), NotifyScripts: proto.Bool(true), OrphanPtsMaster: proto.Bool(true), ManageCgroupsMode: rpc.CriuCgMode_IGNORE.Enum()}}
	for i, want := range []*rpc.CriuReq{
		{Type: rpc.CriuReqType_VERSION.Enum(), KeepOpen: proto.Bool(true)},
		{Type: rpc.CriuReqType_FEATURE_CHECK.Enum(), KeepOpen: proto.Bool(true), Features: &rpc.CriuFeatures{MemTrack: proto.Bool(true), LazyPages: proto.Bool(true)}},
		nothing,
		{Type: rpc.CriuReqType_NOTIFY.Enum(), NotifySuccess: proto.Bool(true)},
		nothing,
		{Type: rpc.CriuReqType_NOTIFY.Enum(), NotifySuccess: proto.Bool(false)},
	} {
		got := request(t, heard, i+1)
		if o := got.GetOpts(); o != nil {
			o.ImagesDirFd, o.WorkDirFd = nil, nil // whose numbers differ
		}
		if !proto.Equal(got, want) {
			t.Errorf("request %d: got %v, want %v", i+1, got, want)
		}
	}
}

func TestResponsesAreUnderstood(t *testing.T) {
	data, err := proto.Marshal(&rpc.CriuResp{
		Type: rpc.CriuReqType_RESTORE.Enum(), Success: proto.Bool(true), Restore: &rpc.CriuRestoreResp{Pid: proto.Int32(4321)},
		Dump: &rpc.CriuDumpResp{Restored: proto.Bool(true)}, Ps: &rpc.CriuPageServerInfo{Address: proto.String("a"), Port: proto.Int32(1)},
		Notify:  &rpc.CriuNotify{Script: proto.String("orphan-pts-master"), Pid: proto.Int32(77)},
		CrErrno: proto.Int32(-17), CrErrmsg: proto.String("no"), Features: &rpc.CriuFeatures{MemTrack: proto.Bool(true), LazyPages: proto.Bool(true)},
		Version: &rpc.CriuVersion{MajorNumber: proto.Int32(4), MinorNumber: proto.Int32(1), Sublevel: proto.Int32(2), Gitid: proto.String("g")},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := criu.ParseResponse(data)
	if err != nil {
		t.Fatal(err)
	}
	want := criu.Response{Task: criu.Restore, Success: true, Pid: 4321, Notify: criu.Notification{Script: "orphan-pts-master", Pid: 77}, Errno: -17, Message: "no",
		Version: criu.Version{Major: 4, Minor: 1, Sublevel: 2}, Features: criu.Features{MemoryTracking: true, LazyPages: true}}
	if *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}

// FuzzResponse compares with the generated code: what that refuses may be
// accepted, as it knows which fields are required, but what it reads must be
// read the same.
func FuzzResponse(f *testing.F) {
	f.Add([]byte{0x08, 0x02, 0x10, 0x01, 0x22, 0x02, 0x08, 0x05})
	f.Add([]byte{0x08, 0x06, 0x10, 0x01, 0x2a, 0x05, 0x0a, 0x01, 'x', 0x10, 0x07})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := criu.ParseResponse(data)
		var want rpc.CriuResp
		if proto.Unmarshal(data, &want) != nil || err != nil {
			return
		}
		if want.GetNotify().GetScript() != got.Notify.Script || want.GetSuccess() != got.Success {
			// A field of a wire type that it can't have is skipped by the generated code.
			if len(want.ProtoReflect().GetUnknown()) == 0 && len(want.GetNotify().ProtoReflect().GetUnknown()) == 0 {
				t.Errorf("%x: got %+v, want %v", data, *got, &want)
			}
		}
	})
}
