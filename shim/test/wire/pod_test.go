package wire_test

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// The numbers are those of CRI's api.proto, v1.
func TestPodSandboxConfig(t *testing.T) {
	bytes := func(b []byte, num protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
	}
	number := func(b []byte, num protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
	}
	pair := func(key, value string) []byte { return bytes(bytes(nil, 1, []byte(key)), 2, []byte(value)) }

	mapping := number(number(number(nil, 1, 100000), 2, 0), 3, 65536)
	userns := bytes(bytes(number(nil, 1, 2), 2, mapping), 3, mapping)
	namespaces := bytes(number(number(number(nil, 1, 2), 2, 1), 3, 2), 5, userns)
	selinux := bytes(bytes(bytes(bytes(nil, 1, []byte("u")), 2, []byte("r")), 3, []byte("t")), 4, []byte("l"))
	security := bytes(bytes(nil, 1, namespaces), 2, selinux)
	security = number(security, 4, 1) // readonly_rootfs, which nobody here asks for
	linux := bytes(bytes(bytes(nil, 1, []byte("/kubepods/x")), 2, security), 3, pair("net.a", "1"))
	metadata := number(bytes(bytes(bytes(nil, 1, []byte("web")), 2, []byte("u-1")), 3, []byte("shop")), 4, 3)
	pod := bytes(bytes(nil, 1, metadata), 2, []byte("host"))
	pod = bytes(bytes(pod, 3, []byte("/logs")), 6, pair("label", "x"))
	pod = bytes(bytes(pod, 7, pair("note", "y")), 8, linux)

	var got wire.PodSandboxConfig
	if err := wire.Unmarshal(pod, &got); err != nil {
		t.Fatal(err)
	}
	one := []*wire.PodIDMapping{{HostID: 100000, Length: 65536}}
	want := wire.PodSandboxConfig{
		Metadata: &wire.PodSandboxMetadata{Name: "web", UID: "u-1", Namespace: "shop", Attempt: 3},
		Hostname: "host", Annotations: map[string]string{"note": "y"},
		Linux: &wire.LinuxPodSandboxConfig{
			CgroupParent: "/kubepods/x", Sysctls: map[string]string{"net.a": "1"},
			SecurityContext: &wire.PodSecurityContext{
				Namespaces: &wire.PodNamespaces{Network: 2, Pid: 1, IPC: 2, User: &wire.PodUserNamespace{Mode: 2, UIDs: one, GIDs: one}},
				SELinux:    &wire.PodSELinux{User: "u", Role: "r", Type: "t", Level: "l"},
			},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestIs(t *testing.T) {
	for url, want := range map[string]bool{
		"a.b.Options": true, "type.googleapis.com/a.b.Options": true, "": false, "xa.b.Options": false, "/a.b.Options": true, "a.b.Options/": false,
	} {
		if got := (&wire.Any{TypeURL: url}).Is("a.b.Options"); got != want {
			t.Errorf("%q: %v", url, got)
		}
	}
}
