package wire_test

import (
	"bytes"
	"math/rand"
	"testing"

	cg1 "github.com/containerd/cgroups/v3/cgroup1/stats"
	cg2 "github.com/containerd/cgroups/v3/cgroup2/stats"
	"github.com/containerd/containerd/api/events"
	bootstrap "github.com/containerd/containerd/api/runtime/bootstrap/v1"
	"github.com/containerd/containerd/api/runtime/sandbox/v1"
	"github.com/containerd/containerd/api/runtime/task/v3"
	streaming "github.com/containerd/containerd/api/services/streaming/v1"
	forward "github.com/containerd/containerd/api/services/ttrpc/events/v1"
	"github.com/containerd/containerd/api/types"
	runc "github.com/containerd/containerd/api/types/runc/options"
	runtimeoptions "github.com/containerd/containerd/api/types/runtimeoptions/v1"
	"github.com/containerd/containerd/api/types/transfer"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// pair is one of our messages and the generated type that it must equal.
type pair struct {
	ours   func() wire.Message
	theirs proto.Message
	not    []protoreflect.Name // fields that we leave out on purpose
}

func of[T any, P interface {
	*T
	wire.Message
}](theirs proto.Message, not ...protoreflect.Name) pair {
	return pair{func() wire.Message { return P(new(T)) }, theirs, not}
}

var pairs = []pair{
	of[wire.Any](&anypb.Any{}), of[wire.Empty](&emptypb.Empty{}), of[wire.Timestamp](&timestamppb.Timestamp{}),
	of[wire.Request](&ttrpc.Request{}), of[wire.Response](&ttrpc.Response{}),

	of[wire.BootstrapParams](&bootstrap.BootstrapParams{}),
	of[wire.BootstrapResult](&bootstrap.BootstrapResult{}, "capabilities"),
	of[wire.RuntimeInfo](&types.RuntimeInfo{}),
	of[wire.RuncOptions](&runc.Options{}), of[wire.CheckpointOptions](&runc.CheckpointOptions{}),
	of[wire.ProcessDetails](&runc.ProcessDetails{}), of[wire.RuntimeOptions](&runtimeoptions.Options{}),

	of[wire.CreateTaskRequest](&task.CreateTaskRequest{}), of[wire.CreateTaskResponse](&task.CreateTaskResponse{}),
	of[wire.DeleteRequest](&task.DeleteRequest{}), of[wire.DeleteResponse](&task.DeleteResponse{}),
	of[wire.ExecProcessRequest](&task.ExecProcessRequest{}), of[wire.ResizePtyRequest](&task.ResizePtyRequest{}),
	of[wire.StateRequest](&task.StateRequest{}), of[wire.StateResponse](&task.StateResponse{}),
	of[wire.KillRequest](&task.KillRequest{}), of[wire.CloseIORequest](&task.CloseIORequest{}),
	of[wire.PidsRequest](&task.PidsRequest{}), of[wire.PidsResponse](&task.PidsResponse{}),
	of[wire.CheckpointTaskRequest](&task.CheckpointTaskRequest{}), of[wire.UpdateTaskRequest](&task.UpdateTaskRequest{}),
	of[wire.StartRequest](&task.StartRequest{}), of[wire.StartResponse](&task.StartResponse{}),
	of[wire.WaitRequest](&task.WaitRequest{}), of[wire.WaitResponse](&task.WaitResponse{}),
	of[wire.StatsRequest](&task.StatsRequest{}), of[wire.StatsResponse](&task.StatsResponse{}),
	of[wire.ConnectRequest](&task.ConnectRequest{}), of[wire.ConnectResponse](&task.ConnectResponse{}),
	of[wire.ShutdownRequest](&task.ShutdownRequest{}),
	of[wire.PauseRequest](&task.PauseRequest{}), of[wire.ResumeRequest](&task.ResumeRequest{}),

	of[wire.TaskCreate](&events.TaskCreate{}), of[wire.TaskStart](&events.TaskStart{}), of[wire.TaskDelete](&events.TaskDelete{}),
	of[wire.TaskExit](&events.TaskExit{}), of[wire.TaskOOM](&events.TaskOOM{}), of[wire.TaskExecAdded](&events.TaskExecAdded{}),
	of[wire.TaskExecStarted](&events.TaskExecStarted{}), of[wire.TaskPaused](&events.TaskPaused{}),
	of[wire.TaskResumed](&events.TaskResumed{}), of[wire.TaskCheckpointed](&events.TaskCheckpointed{}),
	of[wire.ForwardRequest](&forward.ForwardRequest{}),

	of[wire.CreateSandboxRequest](&sandbox.CreateSandboxRequest{}), of[wire.CreateSandboxResponse](&sandbox.CreateSandboxResponse{}),
	of[wire.StartSandboxRequest](&sandbox.StartSandboxRequest{}), of[wire.StartSandboxResponse](&sandbox.StartSandboxResponse{}),
	of[wire.PlatformRequest](&sandbox.PlatformRequest{}), of[wire.PlatformResponse](&sandbox.PlatformResponse{}),
	of[wire.StopSandboxRequest](&sandbox.StopSandboxRequest{}), of[wire.WaitSandboxRequest](&sandbox.WaitSandboxRequest{}),
	of[wire.WaitSandboxResponse](&sandbox.WaitSandboxResponse{}), of[wire.SandboxStatusRequest](&sandbox.SandboxStatusRequest{}),
	of[wire.SandboxStatusResponse](&sandbox.SandboxStatusResponse{}), of[wire.ShutdownSandboxRequest](&sandbox.ShutdownSandboxRequest{}),
	of[wire.SandboxMetricsRequest](&sandbox.SandboxMetricsRequest{}), of[wire.SandboxMetricsResponse](&sandbox.SandboxMetricsResponse{}),
	of[wire.PingRequest](&sandbox.PingRequest{}),

	of[wire.StreamInit](&streaming.StreamInit{}), of[wire.Data](&transfer.Data{}), of[wire.WindowUpdate](&transfer.WindowUpdate{}),

	of[wire.V1Metrics](&cg1.Metrics{}), of[wire.V2Metrics](&cg2.Metrics{}),
}

// fill sets the fields of m at random; about one in six stays as it is.
func fill(r *rand.Rand, m protoreflect.Message, not []protoreflect.Name, depth int) {
	fields := m.Descriptor().Fields()
	for i := 0; i < fields.Len(); i++ {
		f := fields.Get(i)
		if r.Intn(6) == 0 || depth > 4 || contains(not, f.Name()) {
			continue
		}
		switch {
		case f.IsMap():
			for range r.Intn(4) {
				m.Mutable(f).Map().Set(scalar(r, f.MapKey()).MapKey(), scalar(r, f.MapValue()))
			}
		case f.IsList():
			list := m.Mutable(f).List()
			for range r.Intn(4) {
				if f.Message() != nil {
					e := list.NewElement()
					fill(r, e.Message(), nil, depth+1)
					list.Append(e)
				} else {
					list.Append(scalar(r, f))
				}
			}
		case f.Message() != nil:
			fill(r, m.Mutable(f).Message(), nil, depth+1)
		default:
			m.Set(f, scalar(r, f))
		}
	}
}

func contains(names []protoreflect.Name, n protoreflect.Name) bool {
	for _, x := range names {
		if x == n {
			return true
		}
	}
	return false
}

// scalar draws numbers of every length, the ends of each range among them.
func scalar(r *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	n := r.Uint64() >> r.Intn(64)
	text := func() string {
		s := []rune("aé日\U0001F600/ \x00")
		b := make([]rune, r.Intn(50))
		for i := range b {
			b[i] = s[r.Intn(len(s))]
		}
		return string(b)
	}
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(text()))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n&1 == 1)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(n)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(n)))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(int64(n)) / 7)
	}
	panic("no such kind in these messages: " + f.Kind().String())
}

// Whatever the generated code writes must pass through our structs unchanged.
func TestBytesEqualGeneratedCode(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, p := range pairs {
		name := string(p.theirs.ProtoReflect().Descriptor().FullName())
		t.Run(name, func(t *testing.T) {
			for range 300 {
				theirs := p.theirs.ProtoReflect().New()
				fill(r, theirs, p.not, 0)
				want, err := proto.MarshalOptions{Deterministic: true}.Marshal(theirs.Interface())
				if err != nil {
					t.Fatal(err)
				}
				ours := p.ours()
				if err := wire.Unmarshal(want, ours); err != nil {
					t.Fatalf("cannot read what they wrote: %v\n%x", err, want)
				}
				if got := wire.Marshal(ours); !bytes.Equal(got, want) {
					t.Fatalf("wrote %x\n want %x\nof %v", got, want, theirs.Interface())
				}
			}
		})
	}
}

// Two halves of a message, one after the other, merge into one.
func TestMergeEqualsGeneratedCode(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for _, p := range pairs {
		for range 50 {
			var joined []byte
			for range 2 {
				half := p.theirs.ProtoReflect().New()
				fill(r, half, p.not, 0)
				b, err := proto.Marshal(half.Interface())
				if err != nil {
					t.Fatal(err)
				}
				joined = append(joined, b...)
			}
			compare(t, p, joined)
		}
	}
}

// compare holds our reading of any bytes against the generated code's: both
// refuse, or both accept and write the same.
func compare(t *testing.T, p pair, b []byte) {
	t.Helper()
	if p.not != nil {
		return // they check the content of a field that we skip
	}
	theirs := p.theirs.ProtoReflect().New()
	theirErr := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, theirs.Interface())
	ours := p.ours()
	ourErr := wire.Unmarshal(b, ours)
	if (theirErr == nil) != (ourErr == nil) {
		t.Fatalf("%s: ours says %v, theirs %v, of %x", theirs.Descriptor().FullName(), ourErr, theirErr, b)
	}
	if theirErr != nil {
		return
	}
	want, err := proto.MarshalOptions{Deterministic: true}.Marshal(theirs.Interface())
	if err != nil {
		t.Fatal(err)
	}
	if got := wire.Marshal(ours); !bytes.Equal(got, want) {
		t.Fatalf("%s: wrote %x\n want %x\nfrom %x", theirs.Descriptor().FullName(), got, want, b)
	}
}

// FuzzDecode feeds any bytes to every decoder, the bootstrap's included.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewSource(3))
	for i, p := range pairs {
		m := p.theirs.ProtoReflect().New()
		fill(r, m, p.not, 0)
		b, err := proto.Marshal(m.Interface())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
	}
	f.Add(uint8(0), []byte{0x0b, 0x13, 0x14, 0x0c})                                  // groups
	f.Add(uint8(0), []byte("\x98\x06\x01\x99\x06abcdefgh\x9a\x06\x01x\x9d\x06abcd")) // field 99 in all the other forms
	f.Add(uint8(0), []byte("\x9b\x06\x98\x06\x01\x9a\x06\x01x\x9c\x06"))             // and as a group with fields
	f.Add(uint8(0), []byte("\x9b\x06\x98\x8a\xb5\xe7\x30\x30\x9c\x06"))              // one in a group, over 29 bits
	f.Add(uint8(0), []byte("\x98\x8a\xb5\xe7\x30\x30"))                              // the same outside of a group
	f.Add(uint8(0), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})    // a tag without end
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		compare(t, pairs[int(which)%len(pairs)], b)
	})
}

// An error's text may hold the bytes of any path; the peer must still read it.
func TestInvalidTextIsRepaired(t *testing.T) {
	b := wire.Marshal(&wire.Status{Code: 2, Message: "open /a\xff: no"})
	var got wire.Status
	if err := wire.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Message != "open /a\uFFFD: no" {
		t.Fatalf("got %q", got.Message)
	}
}

func TestEventTypeURLs(t *testing.T) {
	for _, e := range []struct {
		ours   wire.Event
		theirs proto.Message
	}{
		{&wire.TaskCreate{}, &events.TaskCreate{}}, {&wire.TaskStart{}, &events.TaskStart{}}, {&wire.TaskExit{}, &events.TaskExit{}},
		{&wire.TaskDelete{}, &events.TaskDelete{}}, {&wire.TaskOOM{}, &events.TaskOOM{}}, {&wire.TaskExecAdded{}, &events.TaskExecAdded{}},
		{&wire.TaskExecStarted{}, &events.TaskExecStarted{}}, {&wire.TaskPaused{}, &events.TaskPaused{}},
		{&wire.TaskResumed{}, &events.TaskResumed{}}, {&wire.TaskCheckpointed{}, &events.TaskCheckpointed{}},
	} {
		if want := string(proto.MessageName(e.theirs)); e.ours.TypeURL() != want {
			t.Errorf("type URL %q, want %q", e.ours.TypeURL(), want)
		}
	}
}

func TestStreamTypeURLs(t *testing.T) {
	for ours, theirs := range map[string]proto.Message{
		wire.StreamInitURL: &streaming.StreamInit{}, wire.DataURL: &transfer.Data{}, wire.WindowUpdateURL: &transfer.WindowUpdate{}, wire.EmptyURL: &emptypb.Empty{},
	} {
		if want := string(proto.MessageName(theirs)); ours != want {
			t.Errorf("type URL %q, want %q", ours, want)
		}
	}
}

func BenchmarkCreateRequest(b *testing.B) {
	m := wire.Marshal(&wire.CreateTaskRequest{ID: "c", Bundle: "/b", Rootfs: []*wire.Mount{{Type: "overlay", Options: []string{"a", "b"}}},
		Options: &wire.Any{TypeURL: wire.RuncOptionsURL, Value: wire.Marshal(&wire.RuncOptions{SystemdCgroup: true})}})
	for b.Loop() {
		if err := wire.Unmarshal(m, new(wire.CreateTaskRequest)); err != nil {
			b.Fatal(err)
		}
	}
}
