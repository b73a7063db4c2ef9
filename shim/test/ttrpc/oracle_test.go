package ttrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/containerd/api/runtime/task/v3"
	oracle "github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// serve runs our server with the given methods of one service.
func serve(t *testing.T, methods map[string]ttrpc.Handler) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := ttrpc.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := ttrpc.NewServer(func(text string) { t.Log(text) })
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
	path := serve(t, map[string]ttrpc.Handler{
		"Create": func(_ context.Context, b []byte) (wire.Message, error) {
			var req wire.CreateTaskRequest
			if err := wire.Unmarshal(b, &req); err != nil {
				return nil, err
			}
			return &wire.CreateTaskResponse{Pid: uint32(len(req.ID))}, nil
		},
		"Delete": func(context.Context, []byte) (wire.Message, error) {
			return nil, fmt.Errorf("delete: %w", &ttrpc.Error{Code: ttrpc.NotFound, Text: "no such container"})
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
	path := serve(t, map[string]ttrpc.Handler{
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
	path := serve(t, map[string]ttrpc.Handler{
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

	conn, err := ttrpc.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	c := ttrpc.NewClient(conn)
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
	if err := call("bad", time.Minute); !errors.Is(err, &ttrpc.Error{Code: ttrpc.AlreadyExists}) || err.Error() != "it is there" {
		t.Fatalf("got %v", err)
	}
	if err := call("slow", 30*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) && ttrpc.CodeOf(err) != ttrpc.DeadlineExceeded {
		t.Fatalf("got %v", err)
	}
}
