package integration

import (
	"strings"
	"testing"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// wantCode checks what a client branches on.
func wantCode(t *testing.T, what string, want codes.Code, call func() error) {
	t.Helper()
	if err := call(); status.Code(err) != want {
		t.Errorf("%s: %v, want code %s", what, err, want)
	}
}

func TestErrors(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		b := d.run(engine)
		defer b.remove()
		wantCode(t, "a second create", codes.AlreadyExists, func() error { return b.create(stdio{}) })
		wantCode(t, "delete while running", codes.FailedPrecondition, func() error {
			_, err := d.tasks().Delete(d.Context(), &tasks.DeleteTaskRequest{ContainerID: b.id})
			return err
		})
		wantCode(t, "a second start", codes.FailedPrecondition, b.start)
		wantCode(t, "an unknown exec", codes.NotFound, func() error { _, err := b.deleteExec("nope"); return err })
		wantCode(t, "resume of what is not paused", codes.FailedPrecondition, func() error {
			_, err := d.tasks().Resume(d.Context(), &tasks.ResumeTaskRequest{ContainerID: b.id})
			return err
		})
		if err := b.exec("e", stdio{}, "sleep", "1000"); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "an exec that exists", codes.AlreadyExists, func() error { return b.exec("e", stdio{}, "true") })
		wantCode(t, "delete of a running exec", codes.FailedPrecondition, func() error { _, err := b.deleteExec("e"); return err })

		// An exec that cannot be started: Wait returns, Delete works.
		if err := b.exec("bad", stdio{}, "/no/such/program"); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
			t.Errorf("exec of what is not there: %v", err)
		}
		b.wait("bad")
		if _, err := b.deleteExec("bad"); err != nil {
			t.Errorf("delete of an exec that failed: %v", err)
		}

		if err := b.kill(9); err != nil {
			t.Fatal(err)
		}
		b.wait("")
		wantCode(t, "kill after the exit", codes.NotFound, func() error { return b.kill(9) })
		wantCode(t, "exec after the exit", codes.FailedPrecondition, func() error { return b.exec("late", stdio{}, "true") })

		// A stdio path that is not there, and configs that the engine refuses.
		for what, tc := range map[string]struct {
			change change
			io     stdio
			words  string
		}{
			"stdio":   {sh("exit"), stdio{out: d.Dir + "/nothing/out"}, "nothing/out"},
			"scheme":  {sh("exit"), stdio{out: "gopher://x"}, "gopher"},
			"program": {args("/no/such/program"), stdio{}, "/no/such/program"},
			"rootfs":  {func(s *specs.Spec) { s.Root.Path = "elsewhere" }, stdio{}, "elsewhere"},
		} {
			bad := d.define(engine, tc.change)
			err := bad.create(tc.io)
			if err == nil {
				err = bad.start() // where this engine looks for the program
				bad.remove()
			} else {
				bad.undefine()
			}
			if err == nil || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
