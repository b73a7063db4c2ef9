package server_test

import (
	"os"
	"path/filepath"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
)

// A shim that is killed when the input of a process has ended is started anew: nothing is known any
// more of the descriptors that were closed with it.
func TestKilledAfterTheEndOfInput(t *testing.T) {
	n := newKept(t)
	out, in := n.pipe("out").read(), n.pipe("in").path
	b := n.define("c", n.spec("c", "sh", "-c", "cat; echo end; sleep 1000"))
	n.must(b.create(func(r *taskapi.CreateTaskRequest) { r.Stdin, r.Stdout = in, out.path }))
	n.must(b.begin(""))
	client, err := os.OpenFile(in, os.O_WRONLY, 0)
	n.must(err)
	_, err = client.WriteString("word\n")
	n.must(err)
	n.must(client.Close())
	_, err = b.CloseIO(n.ctx(), &taskapi.CloseIORequest{ID: "c", Stdin: true})
	n.must(err)
	wait.Until(t, "the end of the input", func() bool { return out.String() == "word\nend\n" })
	for range 2 {
		b.killed()
	}
	n.must(b.kill(uint32(unix.SIGKILL)))
	if got := b.wait(""); got != 137 {
		t.Errorf("status %d", got)
	}
	n.must(b.delete(""))
	b.shutdown()
	b.gone()
}

// A logging program goes on with the output of a container whose shim is killed.
func TestKilledWithLogger(t *testing.T) {
	n := newKept(t)
	const lines = 20000
	log, program := filepath.Join(n.dir, "logged"), filepath.Join(n.dir, "logger")
	n.must(os.WriteFile(program, []byte("#!/bin/sh\nexec 5>&-\nexec cat <&3 >> "+log+"\n"), 0o755))
	b := n.define("c", n.spec("c", countingFirst(lines, 7)...))
	n.must(b.create(func(r *taskapi.CreateTaskRequest) { r.Stdout = "binary://" + program }))
	b.killed()
	n.must(b.begin(""))
	b.killed()
	n.must(b.addExec("e", "sh", "-c", "sleep 1000 & echo $! > /tmp/added; kill $!"))
	n.must(b.begin("e"))
	b.wait("e")
	n.must(b.delete("e"))
	b.killed()
	if got := b.wait(""); got != 7 {
		t.Errorf("status %d", got)
	}
	n.must(b.delete(""))
	b.shutdown()
	b.gone()
	wait.Until(t, "the log", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && string(text) == linesOf(lines)
	})
}
