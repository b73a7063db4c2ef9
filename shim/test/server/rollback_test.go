package server_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
	ours "github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/task"
)

// others is a shim of a later version, whose state has a field more, and that fails in one way or
// another when it is called by a certain name. It is made of the sources as they are, with some
// lines replaced.
var others = sync.OnceValues(func() (string, error) {
	top, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/berth-runtime/berth").Output()
	if err != nil {
		return "", err
	}
	root := strings.TrimSpace(string(top))
	dir, err := os.MkdirTemp("", "berth-others-")
	if err != nil {
		return "", err
	}
	othersDir = dir
	replace := make(map[string]string)
	for file, lines := range map[string][][2]string{
		"shim/server/handover.go": {
			{"\tformat = 4\n", "\tformat = 5\n"},
			{"Format: format, Least: least,", "Format: format, Least: leastOf(), Novelty: []byte(\"new\"),"},
			{"\treturn h, s.server.TakeOver(h.Server, table)\n", "\terr = s.server.TakeOver(h.Server, table)\n\tfail()\n\treturn h, err\n"},
			{"// understood is what", `func name() string {
	if path, err := os.Executable(); err == nil && entry.Kept() {
		return filepath.Base(path)
	}
	return filepath.Base(os.Args[0])
}

func leastOf() uint32 {
	if name() == "later" {
		return 5
	}
	return 1
}

func fail() {
	switch name() {
	case "panics":
		var nowhere *shim
		nowhere.args.TakeOver = ""
	case "hangs":
		time.Sleep(time.Hour)
	case "late":
		for _, arg := range os.Args {
			if arg == "-undone" {
				time.Sleep(succeedLimit + time.Second)
				return
			}
		}
		panic("not this time")
	}
}

// understood is what`},
		},
		"shim/server/revive.go": {{"\tconfirm()\n", "\tfail()\n\tconfirm()\n"}},
		"shim/internal/rpc/wire/handover.go": {
			{"\tDebug uint32\n", "\tDebug uint32\n\tNovelty []byte\n"},
			{"\tc.uint32(9, &m.Debug)\n", "\tc.uint32(9, &m.Debug)\n\tc.bytes(99, &m.Novelty)\n"},
		},
	} {
		path := filepath.Join(root, file)
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		for _, l := range lines {
			if strings.Count(string(text), l[0]) != 1 {
				return "", errors.New("the text to be replaced in " + file + " is not there once: " + l[0])
			}
			text = []byte(strings.Replace(string(text), l[0], l[1], 1))
		}
		replace[path] = filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(replace[path], text, 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay"), overlay, 0o600)
	}
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay"),
		"-ldflags", "-X main.version=next"+entryFlag(), "-o", filepath.Join(dir, "next"), "./cmd/containerd-shim-berth-v2")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	for _, name := range []string{"later", "panics", "hangs", "late"} {
		if err := os.Link(filepath.Join(dir, "next"), filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
})

// entryFlag has the linker take the entry that a keeper is part of, where there is one.
func entryFlag() string {
	if runtime.GOARCH != "amd64" {
		return ""
	}
	return " -E=berth_entry"
}

var othersDir string // to be removed at the end

// other is the shim of that name.
func (n *node) other(name string) string {
	n.t.Helper()
	defer children.Hold()()
	dir, err := others()
	n.must(err)
	return filepath.Join(dir, name)
}

// upgradeTo asks a shim to take the program at a path.
func (b *box) upgradeTo(program string) (*wire.UpgradeResponse, error) {
	b.n.t.Helper()
	conn, err := ours.Dial(ours.Path(b.address()))
	b.n.must(err)
	client := ours.NewClient(conn)
	defer client.Close()
	answer := new(wire.UpgradeResponse)
	return answer, client.Call(task.UpgradeService, task.UpgradeMethod, nil, time.Minute, &wire.UpgradeRequest{Program: program}, answer)
}

// talks is a container that answers each line, before and after what a test does.
type talks struct {
	*box
	in   *os.File
	out  *pipe
	want string
}

func (n *node) talking(id string) *talks {
	n.t.Helper()
	c := &talks{out: n.pipe(id + "-out").read()}
	in := n.pipe(id + "-in").path
	c.box = n.define(id, n.spec(id, "sh", "-c", "while read x; do echo got $x; done; exit 4"))
	n.must(c.create(func(r *taskapi.CreateTaskRequest) { r.Stdin, r.Stdout = in, c.out.path }))
	var err error
	c.in, err = os.OpenFile(in, os.O_RDWR, 0)
	n.must(err)
	n.must(c.begin(""))
	c.say("hello")
	return c
}

func (c *talks) say(word string) {
	c.n.t.Helper()
	c.in.WriteString(word + "\n")
	c.want += "got " + word + "\n"
	wait.Until(c.n.t, "the answer to "+word, func() bool { return c.out.String() == c.want })
}

// end ends the container in an orderly way, and looks whether all has been told of it once.
func (c *talks) end() {
	c.n.t.Helper()
	c.in.Close()
	_, err := c.CloseIO(c.n.ctx(), &taskapi.CloseIORequest{ID: c.id, Stdin: true})
	c.n.must(err)
	if got := c.wait(""); got != 4 {
		c.n.t.Errorf("status %d", got)
	}
	c.n.must(c.delete(""))
	c.shutdown()
	c.gone()
	c.n.wantEvents(c.id, "create", "start", "exit "+c.id+" 4", "delete")
}

// A program that does not understand the state is not executed in the shim's place.
func TestUpgradeIsRefused(t *testing.T) {
	n := newNode(t)
	c := n.talking("c")
	script := func(name, text string) string {
		path := filepath.Join(n.dir, name)
		n.must(os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
		return path
	}
	for _, tc := range []struct{ program, want string }{
		{filepath.Join(n.dir, "nowhere"), "no such file"},
		{"containerd-shim-berth-v2", "no absolute path"},
		{n.dir, "permission denied"},
		{script("fails", "echo no; exit 3"), `status 3 and says "no"`},
		{script("silent", "exit 0"), `status 0 and says ""`},
		{script("crashes", "kill -SEGV $$"), "status 139"},
		{script("older", "exec "+n.binary+" -flag-of-later"), "flag -flag-of-later is not known"},
	} {
		if _, err := c.upgradeTo(tc.program); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.program, err, tc.want)
		}
		c.say(filepath.Base(tc.program))
	}
	c.end()
}

// A program that fails after it was executed gives the shim back to the one before.
func TestUpgradeIsUndone(t *testing.T) {
	for name, want := range map[string]string{"panics": "nil pointer", "hangs": "takes longer"} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			c := n.talking("c")
			other := n.other(name)
			for range 2 {
				if _, err := c.upgradeTo(other); err == nil || !strings.Contains(err.Error(), "could not take over") || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
				c.say("again")
			}
			answer, err := c.upgradeTo(n.binary)
			n.must(err)
			if strings.Contains(answer.From, "next") {
				t.Errorf("version %s serves", answer.From)
			}
			c.say("after")
			c.end()
		})
	}
}

// A shim whose socket has been removed goes on as it is: no program would find its way in there.
func TestUpgradeWithoutSocket(t *testing.T) {
	n := newNode(t)
	c := n.talking("c")
	path := ours.Path(c.address())
	conn, err := ours.Dial(path)
	n.must(err)
	client := ours.NewClient(conn)
	defer client.Close()
	n.must(os.Rename(path, path+".away"))
	err = client.Call(task.UpgradeService, task.UpgradeMethod, nil, time.Minute, &wire.UpgradeRequest{Program: n.binary}, &wire.UpgradeResponse{})
	n.must(os.Rename(path+".away", path))
	if err == nil || !strings.Contains(err.Error(), "own socket") {
		t.Errorf("%v", err)
	}
	c.say("after")
	c.end()
}

// The program that a shim is given back to may take its time: there is no other.
func TestUpgradeIsUndoneLate(t *testing.T) {
	n := newNode(t)
	n.binary = n.other("late")
	c := n.talking("c")
	if _, err := c.upgradeTo(n.binary); err == nil || !strings.Contains(err.Error(), "not this time") {
		t.Errorf("%v", err)
	}
	c.say("after")
	c.end()
}

// From one version to the next, and back, with a state that knows more than the one before
// understands.
func TestUpgradeToTheNextVersionAndBack(t *testing.T) {
	n := newNode(t)
	c := n.talking("c")
	for range 2 {
		answer, err := c.upgradeTo(n.other("next"))
		n.must(err)
		if answer.To != "next" {
			t.Errorf("upgraded to %s", answer.To)
		}
		c.say("next")
		answer, err = c.upgradeTo(n.binary)
		n.must(err)
		if answer.From != "next" || answer.To == "next" {
			t.Errorf("back from %s to %s", answer.From, answer.To)
		}
		c.say("back")
	}
	// What cannot do without what is new is not given back.
	_, err := c.upgradeTo(n.other("later"))
	n.must(err)
	if _, err := c.upgradeTo(n.binary); err == nil || !strings.Contains(err.Error(), "has format 5, which formats from 5 on understand") {
		t.Errorf("to a version that does not understand the state: %v", err)
	}
	c.say("still there")
	c.end()
}

// SIGHUP has a shim take the program that is where its own was, be that replaced or not.
func TestUpgradeBySignal(t *testing.T) {
	n := newNode(t)
	other := n.other("next")
	own, err := os.ReadFile(n.binary)
	n.must(err)
	n.binary = filepath.Join(n.dir, "containerd-shim-berth-v2")
	n.must(os.WriteFile(n.binary, own, 0o755))
	c := n.talking("c")
	version := func() string {
		r, err := c.Connect(n.ctx(), &taskapi.ConnectRequest{ID: "c"})
		n.must(err)
		if int(r.ShimPid) != c.shim.pid {
			t.Errorf("the shim has become process %d", r.ShimPid)
		}
		return r.Version
	}
	before := version()
	n.must(os.Link(other, n.binary+".new"))
	n.must(os.Rename(n.binary+".new", n.binary))
	for range 3 { // the others come while it is at it
		n.must(unix.PidfdSendSignal(c.pidfd, unix.SIGHUP, nil, 0))
	}
	wait.Until(n.t, "the next version", func() bool { return version() == "next" })
	if before == "next" {
		t.Error("it was there before")
	}
	c.say("after")
	c.end()
}
