package server_test

import (
	"context"
	"testing"

	sandboxapi "github.com/containerd/containerd/api/runtime/sandbox/v1"
)

// A sandbox's shim is killed again and again: the sandbox is what it was, what waits for its end
// waits on, and containers come and go in it.
func TestKilledSandboxWithKeeper(t *testing.T) {
	t.Setenv("BERTH_SHIM_KEEPER", "1")
	n := newNode(t)
	s, _ := n.sandbox("pod")
	started, err := s.sandbox.StartSandbox(n.ctx(), &sandboxapi.StartSandboxRequest{SandboxID: "pod"})
	n.must(err)
	ended := make(chan error, 1)
	go func() {
		_, err := s.sandbox.WaitSandbox(context.Background(), &sandboxapi.WaitSandboxRequest{SandboxID: "pod"})
		ended <- err
	}()
	b := s.join("c", n.inPod("c", started.Pid, "sleep", "1000"))
	b.killed()
	n.must(b.create())
	n.must(b.begin(""))
	b.killed()
	r, err := s.sandbox.SandboxStatus(n.ctx(), &sandboxapi.SandboxStatusRequest{SandboxID: "pod"})
	n.must(err)
	if r.State != "SANDBOX_READY" || r.Pid != started.Pid || !r.CreatedAt.AsTime().Equal(started.CreatedAt.AsTime()) {
		t.Errorf("status after a kill %v", r)
	}
	if m, err := s.sandbox.SandboxMetrics(n.ctx(), &sandboxapi.SandboxMetricsRequest{SandboxID: "pod"}); err != nil || m.Metrics == nil {
		t.Errorf("metrics after a kill: %v, %v", m, err)
	}
	_, err = s.sandbox.StopSandbox(n.ctx(), &sandboxapi.StopSandboxRequest{SandboxID: "pod"})
	n.must(err)
	n.must(<-ended)
	b.killed()
	r, err = s.sandbox.SandboxStatus(n.ctx(), &sandboxapi.SandboxStatusRequest{SandboxID: "pod"})
	n.must(err)
	if r.State != "SANDBOX_NOTREADY" || !r.ExitedAt.IsValid() {
		t.Errorf("status after its end and a kill %v", r)
	}
	_, err = s.sandbox.ShutdownSandbox(n.ctx(), &sandboxapi.ShutdownSandboxRequest{SandboxID: "pod"})
	n.must(err)
	s.gone()
	n.wantEvents("c", "create", "start", "exit c 137", "delete")
}
