package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/ptr"
	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"golang.org/x/sys/unix"
)

func TestParseArgs(t *testing.T) {
	full := "-namespace ns --address=/run/c.sock -publish-binary /usr/bin/containerd -id c1 -bundle /b -debug start"
	a, err := ParseArgs(strings.Fields(full))
	if err != nil || *a != (Args{Namespace: "ns", ID: "c1", Address: "/run/c.sock", Bundle: "/b", PublishBinary: "/usr/bin/containerd", Debug: true, Command: "start"}) {
		t.Errorf("%+v, %v", a, err)
	}
	for line, want := range map[string]Args{
		"":                  {},
		"-v":                {Version: true},
		"-info":             {Info: true},
		"-debug=false":      {},
		"-id= delete":       {Command: "delete"},
		"-socket /s -id=-x": {Socket: "/s", ID: "-x"},
	} {
		if a, err := ParseArgs(strings.Fields(line)); err != nil || *a != want {
			t.Errorf("%q: %+v, %v", line, a, err)
		}
	}
	for _, line := range []string{"-nope", "-id", "stop", "start delete", "-debug=maybe"} {
		if a, err := ParseArgs(strings.Fields(line)); err == nil {
			t.Errorf("%q was taken as %+v", line, a)
		}
	}
}

func TestBothFormsOfParameters(t *testing.T) {
	a := &Args{ID: "c1", Namespace: "ns"}
	o := &wire.Any{TypeURL: "containerd.runc.v1.Options", Value: wire.Marshal(&wire.RuncOptions{BinaryName: "crun"})}
	dir := "/run/short"
	modern := &wire.BootstrapParams{
		InstanceID: "c1", Namespace: "ns", TTRPCAddress: "/t", SocketDir: &dir,
		Extensions: []*wire.Extension{{}, {Value: &wire.Any{TypeURL: "some.other.Thing", Value: []byte{1}}}, {Value: o}},
	}
	p, err := parseParams(wire.Marshal(modern), a)
	if err != nil || !p.modern || p.options.BinaryName != "crun" || p.socketDir != dir || p.message.TTRPCAddress != "/t" {
		t.Errorf("%+v, %v", p, err)
	}
	// As anypb.New names it, of which containerd's own AddExtension makes use.
	withHost := &wire.Any{TypeURL: "type.googleapis.com/" + o.TypeURL, Value: o.Value}
	modern.Extensions = []*wire.Extension{{Value: withHost}}
	if p, err = parseParams(wire.Marshal(modern), a); err != nil || p.options.BinaryName != "crun" {
		t.Errorf("with a host before the type: %+v, %v", p, err)
	}
	p, err = parseParams(wire.Marshal(o), a)
	if err != nil || p.modern || p.options.BinaryName != "crun" || p.message.TTRPCAddress != "" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = parseParams(nil, a); err != nil || p.modern || *p.options != (options.Options{}) {
		t.Errorf("%+v, %v", p, err)
	}
	// Parameters of another container are not ours, and no options either.
	modern.InstanceID = "c2"
	if p, err = parseParams(wire.Marshal(modern), a); err == nil {
		t.Errorf("%+v", p)
	}
	if _, err := readStdin(bytes.NewReader(make([]byte, stdinLimit+1))); err == nil {
		t.Error("read without end")
	}
}

// FuzzParams: whatever comes on standard input gives options or an error.
func FuzzParams(f *testing.F) {
	f.Add(wire.Marshal(&wire.BootstrapParams{InstanceID: "c", Namespace: "n"}))
	f.Add(wire.Marshal(&wire.BootstrapParams{InstanceID: "c", Namespace: "n", SocketDir: ptr.To("/run/s"), Extensions: []*wire.Extension{
		{}, {Value: &wire.Any{TypeURL: "another"}}, {Value: &wire.Any{TypeURL: "runtimeoptions.v1.Options", Value: []byte("\x1a\x05A = 1")}},
	}}))
	f.Add(wire.Marshal(&wire.Any{TypeURL: "containerd.runc.v1.Options"}))
	f.Add(wire.Marshal(&wire.Any{TypeURL: "runtimeoptions.v1.Options", Value: []byte("\x1a\x05A = 1")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseParams(b, &Args{ID: "c", Namespace: "n"})
		if err == nil && p.options == nil {
			t.Fatal("neither options nor an error")
		}
	})
}

func TestGroup(t *testing.T) {
	t.Chdir(t.TempDir())
	config := func(text string) {
		t.Helper()
		if err := os.WriteFile("config.json", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &Args{ID: "c1", Namespace: "ns"}
	check := func(what, grouping, want string) {
		t.Helper()
		if got, err := groupOf(a, &options.Options{Grouping: grouping}); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", what, got, err, want)
		}
	}
	check("without a config", "", "c1")
	config(`{}`)
	check("alone", "", "c1")
	config(`{"annotations":{"io.kubernetes.cri.sandbox-id":"pod"}}`)
	check("in a pod", "", "pod")
	check("in a pod, by container", options.PerContainer, "c1")
	check("by namespace", options.PerNamespace, wholeNamespace)
	t.Setenv(groupingVariable, "namespace")
	check("by the environment", "", wholeNamespace)
	check("options before the environment", options.PerPod, "pod")
	t.Setenv(groupingVariable, "nonsense")
	if _, err := groupOf(a, new(options.Options)); err == nil {
		t.Error("nonsense was taken")
	}
}

func TestSocketPath(t *testing.T) {
	dir := t.TempDir()
	a := &Args{Address: "/run/containerd/containerd.sock", Namespace: "k8s.io"}
	one, err := socketPath(dir, a, "pod")
	if err != nil {
		t.Skipf("the temporary folder's path is too long for a socket: %v", err)
	}
	// sha256 of /run/containerd/containerd.sock/k8s.io/pod, as runc's shim has it.
	if want := filepath.Join(dir, "b9cab8e84f817f3c3bb561c7ea8dcbfba051d5d8f56ec2c3f204bc387d13f7d0"); one != want {
		t.Errorf("path %s", one)
	}
	if other, _ := socketPath(dir, a, "other"); other == one {
		t.Error("two groups have one socket")
	}
	if _, err := socketPath(strings.Repeat("/long", 20), a, "pod"); err == nil {
		t.Error("a path that is too long was taken")
	}
}

// A start must not leave a file that is not a live socket in the way of another.
func TestListenAndRemoveDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listen(path); err == nil {
		t.Fatal("listened twice")
	}
	l.Close() // as when the shim dies: the file stays
	dead := socketAt(path)
	if err := removeDead(path, dead); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := removeDead(path, dead); err != nil {
		t.Fatal("of what is not there: ", err)
	}
	l, err = listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := removeDead(path, dead); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal("the socket of another was removed: ", err)
	}
	unix.Unlink(path)
	left, _ := os.ReadDir(filepath.Dir(path))
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

type describing struct{ engine.Engine }

func (describing) Features(context.Context) ([]byte, error) {
	return []byte(`{"ociVersionMin":"1.0.0"}`), nil
}

func TestInfo(t *testing.T) {
	o := &wire.Any{TypeURL: "containerd.runc.v1.Options", Value: wire.Marshal(&wire.RuncOptions{BinaryName: "x"})}
	for name, in := range map[string][]byte{"empty": nil, "options": wire.Marshal(o)} {
		var out bytes.Buffer
		var asked string
		err := Info("io.containerd.berth.v2", "1.2", "abc", func(o *options.Options, _ string) (engine.Engine, error) {
			asked = o.BinaryName
			return describing{}, nil
		}, bytes.NewReader(in), &out)
		var got wire.RuntimeInfo
		if err != nil || wire.Unmarshal(out.Bytes(), &got) != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Name != "io.containerd.berth.v2" || got.Version.Version != "1.2" || got.Version.Revision != "abc" ||
			got.Features.TypeURL != wire.FeaturesURL || string(got.Features.Value) != `{"ociVersionMin":"1.0.0"}` {
			t.Errorf("%s: %v", name, &got)
		}
		if (in != nil) != (asked == "x") || (in != nil) != (got.Options != nil) {
			t.Errorf("%s: asked for %q, options %v", name, asked, got.Options)
		}
	}
	if err := Info("n", "v", "r", nil, strings.NewReader("\xff"), &bytes.Buffer{}); err == nil {
		t.Error("took what is not options")
	}
}
