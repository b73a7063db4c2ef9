package ttrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/containerd/api/runtime/task/v3"
	oracle "github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/berth-runtime/berth/shim/wire"
)

// serve runs our server with the given methods of one service.
func serve(t *testing.T, methods map[string]Handler) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(func(text string) { t.Log(text) })
	s.Register("containerd.task.v3.Task", methods)
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return path
}

func oracleClient(t *testing.T, path string) task.TTRPCTaskService {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c := oracle.NewClient(conn)
	t.Cleanup(func() { c.Close() })
	return task.NewTTRPCTaskClient(c)
}

func TestServerAnswersContainerdsClient(t *testing.T) {
	path := serve(t, map[string]Handler{
		"Create": func(_ context.Context, b []byte) (wire.Message, error) {
			var req wire.CreateTaskRequest
			if err := wire.Unmarshal(b, &req); err != nil {
				return nil, err
			}
			return &wire.CreateTaskResponse{Pid: uint32(len(req.ID))}, nil
		},
		"Delete": func(context.Context, []byte) (wire.Message, error) {
			return nil, fmt.Errorf("delete: %w", &Error{Code: NotFound, Text: "no such container"})
		},
		"Pause": func(context.Context, []byte) (wire.Message, error) { return &wire.Empty{}, nil },
	})
	c := oracleClient(t, path)
	ctx := context.Background()
	for n := range 5 {
		id := strings.Repeat("x", n*1000)
		r, err := c.Create(ctx, &task.CreateTaskRequest{ID: id})
		if err != nil || r.Pid != uint32(len(id)) {
			t.Fatalf("create of %d: %v, %v", n, r, err)
		}
	}
	if _, err := c.Pause(ctx, &task.PauseRequest{}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Delete(ctx, &task.DeleteRequest{})
	if s, _ := status.FromError(err); s.Code() != codes.NotFound || s.Message() != "delete: no such container" {
		t.Fatalf("delete: %v", err)
	}
	if _, err = c.Resume(ctx, &task.ResumeRequest{}); status.Code(err) != codes.Unimplemented {
		t.Fatalf("resume: %v", err)
	}
}

// One call that waits must not hold up another on the same connection.
func TestCallsOfOneConnectionRunAtOnce(t *testing.T) {
	release := make(chan struct{})
	path := serve(t, map[string]Handler{
		"Wait": func(context.Context, []byte) (wire.Message, error) {
			<-release
			return &wire.WaitResponse{ExitStatus: 7}, nil
		},
		"State": func(context.Context, []byte) (wire.Message, error) { return &wire.StateResponse{Pid: 1}, nil },
	})
	c := oracleClient(t, path)
	var wg sync.WaitGroup
	for range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if r, err := c.Wait(context.Background(), &task.WaitRequest{}); err != nil || r.ExitStatus != 7 {
				t.Errorf("wait: %v, %v", r, err)
			}
		}()
	}
	for range 20 {
		if _, err := c.State(context.Background(), &task.StateRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	wg.Wait()
}

func TestCallEndsWithItsTimeoutAndItsConnection(t *testing.T) {
	begun, ended := make(chan bool, 1), make(chan error, 1)
	path := serve(t, map[string]Handler{
		"Wait": func(ctx context.Context, _ []byte) (wire.Message, error) {
			begun <- true
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		},
	})
	c := oracleClient(t, path)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Wait(ctx, &task.WaitRequest{}); err == nil {
		t.Fatal("wait returned without error")
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("handler ended with %v", err)
	}
	<-begun

	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	other := oracle.NewClient(conn)
	go task.NewTTRPCTaskClient(other).Wait(context.Background(), &task.WaitRequest{})
	<-begun
	other.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("handler ended with %v", err)
	}

	// Its time was over before it was sent.
	late, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	b, err := frame(1, typeRequest, flagRemoteClosed, &wire.Request{Service: "containerd.task.v3.Task", Method: "Wait", TimeoutNano: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("handler of a late call ended with %v", err)
	}
}

func TestOversizedFrameIsRefusedAndTheConnectionLives(t *testing.T) {
	path := serve(t, map[string]Handler{
		"State": func(context.Context, []byte) (wire.Message, error) { return &wire.StateResponse{Pid: 1}, nil },
		"Stats": func(context.Context, []byte) (wire.Message, error) {
			return &wire.StatsResponse{Stats: &wire.Any{Value: make([]byte, maxMessage)}}, nil
		},
	})
	conn, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	big := make([]byte, headerSize+maxMessage+1)
	copy(big, []byte{0, 0x40, 0, 1, 0, 0, 0, 1, typeRequest, 0})
	go conn.Write(big)
	_, body, err := readFrame(conn)
	if err != nil {
		t.Fatal(err)
	}
	var r wire.Response
	if err := wire.Unmarshal(body, &r); err != nil || Code(r.Status.Code) != ResourceExhausted {
		t.Fatalf("got %+v, %v", r.Status, err)
	}
	c := NewClient(conn)
	c.stream = 3
	if err := c.Call("containerd.task.v3.Task", "State", nil, time.Minute, &wire.StateRequest{}, &wire.StateResponse{}); err != nil {
		t.Fatal(err)
	}
	err = c.Call("containerd.task.v3.Task", "Stats", nil, time.Minute, &wire.StatsRequest{}, &wire.StatsResponse{})
	if CodeOf(err) != ResourceExhausted {
		t.Fatalf("an answer that is too long: %v", err)
	}
}

func TestStreamIdsMustBeOddAndRise(t *testing.T) {
	path := serve(t, map[string]Handler{
		"State": func(context.Context, []byte) (wire.Message, error) { return &wire.StateResponse{}, nil },
	})
	for _, tc := range []struct {
		streams []uint32
		want    Code
	}{{[]uint32{2}, InvalidArgument}, {[]uint32{5, 3}, InvalidArgument}, {[]uint32{5, 5}, InvalidArgument}, {[]uint32{1, 9}, 0}} {
		conn, err := Dial(path)
		if err != nil {
			t.Fatal(err)
		}
		var got Code
		for _, id := range tc.streams {
			b, err := frame(id, typeRequest, 0, &wire.Request{Service: "containerd.task.v3.Task", Method: "State"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write(b); err != nil {
				t.Fatal(err)
			}
			_, body, err := readFrame(conn)
			if err != nil {
				t.Fatal(err)
			}
			var r wire.Response
			if err := wire.Unmarshal(body, &r); err != nil {
				t.Fatal(err)
			}
			got = Code(r.Status.Code)
		}
		if got != tc.want {
			t.Errorf("streams %v: code %d, want %d", tc.streams, got, tc.want)
		}
		conn.Close()
	}
}

type oracleTask struct {
	task.TTRPCTaskService
	pauses chan string
}

func (o *oracleTask) Pause(_ context.Context, r *task.PauseRequest) (*emptypb.Empty, error) {
	if r.ID == "bad" {
		return nil, status.Error(codes.AlreadyExists, "it is there")
	}
	if r.ID == "slow" {
		time.Sleep(time.Second)
	}
	o.pauses <- r.ID
	return &emptypb.Empty{}, nil
}

func TestClientCallsContainerdsServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := oracle.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	o := &oracleTask{pauses: make(chan string, 10)}
	task.RegisterTTRPCTaskService(s, o)
	go s.Serve(context.Background(), l)
	defer s.Close()

	conn, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(conn)
	defer c.Close()
	call := func(id string, timeout time.Duration) error {
		return c.Call("containerd.task.v3.Task", "Pause", []*wire.KeyValue{{Key: "containerd-namespace-ttrpc", Value: "ns"}},
			timeout, &wire.PauseRequest{ID: id}, &wire.Empty{})
	}
	for _, id := range []string{"a", "b"} {
		if err := call(id, time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := <-o.pauses; got != id {
			t.Fatalf("got %q", got)
		}
	}
	if err := call("bad", time.Minute); !errors.Is(err, &Error{Code: AlreadyExists}) || err.Error() != "it is there" {
		t.Fatalf("got %v", err)
	}
	if err := call("slow", 30*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) && CodeOf(err) != DeadlineExceeded {
		t.Fatalf("got %v", err)
	}
}

// FuzzServerReads feeds any bytes to a serving connection; it must neither
// panic nor answer what was not asked.
func FuzzServerReads(f *testing.F) {
	add := func(messages ...[]byte) { f.Add(bytes.Join(messages, nil)) }
	request := func(stream uint32, flags uint8, r *wire.Request) []byte {
		b, err := frame(stream, typeRequest, flags, r)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	call := &wire.Request{Service: "s", Method: "m", TimeoutNano: 1e9}
	add(request(1, flagRemoteClosed, call), request(3, flagRemoteClosed, call))
	add(request(1, 0, &wire.Request{Service: "s", Method: "x"}), request(3, 0, &wire.Request{Service: "x", Method: "m"}))
	add(request(1, 0, &wire.Request{Service: "s", Method: "fails"}), request(2, 0, call))
	add(request(1, flagRemoteOpen, call), []byte{0, 0, 0, 1, 0, 0, 0, 1, typeData, flagRemoteClosed, 0})
	add([]byte{0, 0, 0, 2, 0, 0, 0, 1, typeRequest, 0, 0xff, 0xff}, []byte{0, 0, 0, 1, 0, 0, 0, 1, typeResponse, 0, 0})
	add(make([]byte, headerSize-1))
	f.Fuzz(func(t *testing.T, b []byte) {
		pair, err := socketpair()
		if err != nil {
			t.Fatal(err)
		}
		defer pair[1].Close()
		s := NewServer(func(string) {})
		s.Register("s", map[string]Handler{
			"m":     func(context.Context, []byte) (wire.Message, error) { return &wire.Empty{}, nil },
			"fails": func(context.Context, []byte) (wire.Message, error) { return nil, unix.EPERM },
		})
		c := &serverConn{server: s, file: pair[0], streams: map[uint32]*Stream{}}
		go func() {
			c.serve()
			s.answering.Wait()
			pair[0].Close()
		}()
		go func() {
			pair[1].Write(b)
			if raw, err := pair[1].SyscallConn(); err == nil {
				raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) })
			}
		}()
		asked := map[uint32]int{}
		for in := bytes.NewReader(b); ; {
			h, _, err := readFrame(in)
			var oversized errOversized
			if err != nil && !errors.As(err, &oversized) {
				break
			}
			if err != nil || h.kind == typeRequest {
				asked[h.stream]++
			}
		}
		for {
			h, _, err := readFrame(pair[1])
			if err != nil {
				if err != io.EOF && !errors.Is(err, unix.ECONNRESET) {
					t.Error(err)
				}
				return
			}
			if asked[h.stream]--; h.kind != typeResponse || asked[h.stream] < 0 {
				t.Errorf("%+v answers nothing of % x", h, b)
			}
		}
	})
}
