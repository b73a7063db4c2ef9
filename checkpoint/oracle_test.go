package checkpoint

import (
	"testing"

	"github.com/checkpoint-restore/go-criu/v7/rpc"
	"google.golang.org/protobuf/proto"
)

// filled has every option set, each number another one.
func filled() *Options {
	return &Options{
		Pid: 1234, images: 7, work: 8, LogFile: "dump.log", Root: "/srv/rootfs", ParentImage: "../parent",
		LeaveRunning: true, ExternalSockets: true, TCPEstablished: true, TCPClose: true, TCPSkipInFlight: true, LinkRemap: true,
		ShellJob: true, FileLocks: true, AutoDedup: true, LazyPages: true, TrackMemory: true, Sibling: true,
		PageServer: &PageServer{Address: "192.0.2.1", Port: 9876}, EmptyNamespaces: 0x40000000, CgroupMode: CgroupStrict,
		CgroupRoots:  []CgroupRoot{{Controller: "memory", Path: "/a"}, {Path: "/b"}},
		FreezeCgroup: "/sys/fs/cgroup/freezer/a", External: []string{"net[4026531992]:extRootNetNS", "file[1f:2a]"},
		Mounts: []Mount{{Key: "/etc/hosts", Value: "/var/hosts"}, {Key: "", Value: ""}}, Inherit: []Inherit{{Key: "pipe:[77]", FD: 9}, {Key: "x", FD: 0}},
		Join: []Join{{Type: "ipc", File: "/proc/1/ns/ipc"}}, StatusFD: 11, LSMProfile: "selinux:a:b", LSMMountContext: "c:d",
		NetworkLock: LockByNFTables,
	}
}

func TestRequestIsWhatTheProtocolSays(t *testing.T) {
	o := filled()
	var got rpc.CriuReq
	if err := proto.Unmarshal(request(Dump, o), &got); err != nil {
		t.Fatal(err)
	}
	want := &rpc.CriuReq{Type: rpc.CriuReqType_DUMP.Enum(), Opts: &rpc.CriuOpts{
		Pid: proto.Int32(1234), ImagesDirFd: proto.Int32(7), WorkDirFd: proto.Int32(8), LogFile: proto.String("dump.log"), LogLevel: proto.Int32(4),
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
	if !proto.Equal(&got, want) {
		t.Errorf("got  %v\nwant %v", &got, want)
	}
	if unknown := got.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		t.Errorf("unknown fields in the request: %x", unknown)
	}
}

func TestSmallRequests(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want *rpc.CriuReq
	}{
		{"version", request(version, nil), &rpc.CriuReq{Type: rpc.CriuReqType_VERSION.Enum(), KeepOpen: proto.Bool(true)}},
		{"features", request(checkFeature, nil), &rpc.CriuReq{Type: rpc.CriuReqType_FEATURE_CHECK.Enum(), KeepOpen: proto.Bool(true),
			Features: &rpc.CriuFeatures{MemTrack: proto.Bool(true), LazyPages: proto.Bool(true)}}},
		{"nothing set", request(PreDump, &Options{images: -1}), &rpc.CriuReq{Type: rpc.CriuReqType_PRE_DUMP.Enum(), Opts: &rpc.CriuOpts{
			ImagesDirFd: proto.Int32(-1), LogLevel: proto.Int32(4), NotifyScripts: proto.Bool(true), OrphanPtsMaster: proto.Bool(true),
			ManageCgroupsMode: rpc.CriuCgMode_IGNORE.Enum()}}},
		{"yes", answer(true), &rpc.CriuReq{Type: rpc.CriuReqType_NOTIFY.Enum(), NotifySuccess: proto.Bool(true)}},
		{"no", answer(false), &rpc.CriuReq{Type: rpc.CriuReqType_NOTIFY.Enum(), NotifySuccess: proto.Bool(false)}},
	} {
		var got rpc.CriuReq
		if err := proto.Unmarshal(c.data, &got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if !proto.Equal(&got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, &got, c.want)
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
	got, err := parseResponse(data)
	if err != nil {
		t.Fatal(err)
	}
	want := response{task: Restore, success: true, pid: 4321, notify: Notification{"orphan-pts-master", 77}, errno: -17, message: "no",
		version: Version{4, 1, 2}, memoryTracking: true, lazyPages: true}
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
		got, err := parseResponse(data)
		var want rpc.CriuResp
		if proto.Unmarshal(data, &want) != nil || err != nil {
			return
		}
		if want.GetNotify().GetScript() != got.notify.Script || want.GetSuccess() != got.success {
			// A field of a wire type that it can't have is skipped by the generated code.
			if len(want.ProtoReflect().GetUnknown()) == 0 && len(want.GetNotify().ProtoReflect().GetUnknown()) == 0 {
				t.Errorf("%x: got %+v, want %v", data, *got, &want)
			}
		}
	})
}
