package wire

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
)

// pair is one of our messages and the generated type that it must equal.
type pair struct {
	ours   func() Message
	theirs proto.Message
	not    []protoreflect.Name // fields that we leave out on purpose
}

func of[T any, P pointer[T]](theirs proto.Message, not ...protoreflect.Name) pair {
	return pair{func() Message { return P(new(T)) }, theirs, not}
}

var pairs = []pair{
	of[Any](&anypb.Any{}), of[Empty](&emptypb.Empty{}), of[Timestamp](&timestamppb.Timestamp{}),
	of[Request](&ttrpc.Request{}), of[Response](&ttrpc.Response{}),

	of[BootstrapParams](&bootstrap.BootstrapParams{}),
	of[BootstrapResult](&bootstrap.BootstrapResult{}, "capabilities"),
	of[RuntimeInfo](&types.RuntimeInfo{}),
	of[RuncOptions](&runc.Options{}), of[CheckpointOptions](&runc.CheckpointOptions{}),
	of[ProcessDetails](&runc.ProcessDetails{}), of[RuntimeOptions](&runtimeoptions.Options{}),

	of[CreateTaskRequest](&task.CreateTaskRequest{}), of[CreateTaskResponse](&task.CreateTaskResponse{}),
	of[DeleteRequest](&task.DeleteRequest{}), of[DeleteResponse](&task.DeleteResponse{}),
	of[ExecProcessRequest](&task.ExecProcessRequest{}), of[ResizePtyRequest](&task.ResizePtyRequest{}),
	of[StateRequest](&task.StateRequest{}), of[StateResponse](&task.StateResponse{}),
	of[KillRequest](&task.KillRequest{}), of[CloseIORequest](&task.CloseIORequest{}),
	of[PidsRequest](&task.PidsRequest{}), of[PidsResponse](&task.PidsResponse{}),
	of[CheckpointTaskRequest](&task.CheckpointTaskRequest{}), of[UpdateTaskRequest](&task.UpdateTaskRequest{}),
	of[StartRequest](&task.StartRequest{}), of[StartResponse](&task.StartResponse{}),
	of[WaitRequest](&task.WaitRequest{}), of[WaitResponse](&task.WaitResponse{}),
	of[StatsRequest](&task.StatsRequest{}), of[StatsResponse](&task.StatsResponse{}),
	of[ConnectRequest](&task.ConnectRequest{}), of[ConnectResponse](&task.ConnectResponse{}),
	of[ShutdownRequest](&task.ShutdownRequest{}),
	of[PauseRequest](&task.PauseRequest{}), of[ResumeRequest](&task.ResumeRequest{}),

	of[TaskCreate](&events.TaskCreate{}), of[TaskStart](&events.TaskStart{}), of[TaskDelete](&events.TaskDelete{}),
	of[TaskExit](&events.TaskExit{}), of[TaskOOM](&events.TaskOOM{}), of[TaskExecAdded](&events.TaskExecAdded{}),
	of[TaskExecStarted](&events.TaskExecStarted{}), of[TaskPaused](&events.TaskPaused{}),
	of[TaskResumed](&events.TaskResumed{}), of[TaskCheckpointed](&events.TaskCheckpointed{}),
	of[ForwardRequest](&forward.ForwardRequest{}),

	of[CreateSandboxRequest](&sandbox.CreateSandboxRequest{}), of[CreateSandboxResponse](&sandbox.CreateSandboxResponse{}),
	of[StartSandboxRequest](&sandbox.StartSandboxRequest{}), of[StartSandboxResponse](&sandbox.StartSandboxResponse{}),
	of[PlatformRequest](&sandbox.PlatformRequest{}), of[PlatformResponse](&sandbox.PlatformResponse{}),
	of[StopSandboxRequest](&sandbox.StopSandboxRequest{}), of[WaitSandboxRequest](&sandbox.WaitSandboxRequest{}),
	of[WaitSandboxResponse](&sandbox.WaitSandboxResponse{}), of[SandboxStatusRequest](&sandbox.SandboxStatusRequest{}),
	of[SandboxStatusResponse](&sandbox.SandboxStatusResponse{}), of[ShutdownSandboxRequest](&sandbox.ShutdownSandboxRequest{}),
	of[SandboxMetricsRequest](&sandbox.SandboxMetricsRequest{}), of[SandboxMetricsResponse](&sandbox.SandboxMetricsResponse{}),
	of[PingRequest](&sandbox.PingRequest{}),

	of[StreamInit](&streaming.StreamInit{}), of[Data](&transfer.Data{}), of[WindowUpdate](&transfer.WindowUpdate{}),

	of[V1Metrics](&cg1.Metrics{}), of[V2Metrics](&cg2.Metrics{}),
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
				if err := Unmarshal(want, ours); err != nil {
					t.Fatalf("cannot read what they wrote: %v\n%x", err, want)
				}
				if got := Marshal(ours); !bytes.Equal(got, want) {
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
	ourErr := Unmarshal(b, ours)
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
	if got := Marshal(ours); !bytes.Equal(got, want) {
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
	f.Add(uint8(0), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})    // a tag without end
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		compare(t, pairs[int(which)%len(pairs)], b)
	})
}

// An error's text may hold the bytes of any path; the peer must still read it.
func TestInvalidTextIsRepaired(t *testing.T) {
	b := Marshal(&Status{Code: 2, Message: "open /a\xff: no"})
	var got Status
	if err := Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Message != "open /a\uFFFD: no" {
		t.Fatalf("got %q", got.Message)
	}
}

func TestEventTypeURLs(t *testing.T) {
	for _, e := range []struct {
		ours   Event
		theirs proto.Message
	}{
		{&TaskCreate{}, &events.TaskCreate{}}, {&TaskStart{}, &events.TaskStart{}}, {&TaskExit{}, &events.TaskExit{}},
		{&TaskDelete{}, &events.TaskDelete{}}, {&TaskOOM{}, &events.TaskOOM{}}, {&TaskExecAdded{}, &events.TaskExecAdded{}},
		{&TaskExecStarted{}, &events.TaskExecStarted{}}, {&TaskPaused{}, &events.TaskPaused{}},
		{&TaskResumed{}, &events.TaskResumed{}}, {&TaskCheckpointed{}, &events.TaskCheckpointed{}},
	} {
		if want := string(proto.MessageName(e.theirs)); e.ours.TypeURL() != want {
			t.Errorf("type URL %q, want %q", e.ours.TypeURL(), want)
		}
	}
}

func TestStreamTypeURLs(t *testing.T) {
	for ours, theirs := range map[string]proto.Message{
		StreamInitURL: &streaming.StreamInit{}, DataURL: &transfer.Data{}, WindowUpdateURL: &transfer.WindowUpdate{}, EmptyURL: &emptypb.Empty{},
	} {
		if want := string(proto.MessageName(theirs)); ours != want {
			t.Errorf("type URL %q, want %q", ours, want)
		}
	}
}

func BenchmarkCreateRequest(b *testing.B) {
	m := Marshal(&CreateTaskRequest{ID: "c", Bundle: "/b", Rootfs: []*Mount{{Type: "overlay", Options: []string{"a", "b"}}},
		Options: &Any{TypeURL: RuncOptionsURL, Value: Marshal(&RuncOptions{SystemdCgroup: true})}})
	for b.Loop() {
		if err := Unmarshal(m, new(CreateTaskRequest)); err != nil {
			b.Fatal(err)
		}
	}
}
