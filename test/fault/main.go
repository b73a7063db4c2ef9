//go:build linux && amd64

package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// All of ptrace is bound to the thread that traces.
func init() { runtime.LockOSThread() }

func main() {
	t := &tracer{threads: map[int]*thread{}}
	var at, fail, record, pids, tell string
	flag.StringVar(&at, "at", "", "`PROCESS:NAME:N` of the call")
	flag.StringVar(&t.fault.every, "every", "", "`NAME` of the calls")
	flag.StringVar(&t.fault.text, "text", "", "`WORDS` in the path of the calls")
	flag.StringVar(&fail, "fail", "", "`ERRNO` that the call fails with")
	flag.IntVar(&t.fault.kill, "kill", -1, "`PROCESS` to kill after the call")
	flag.IntVar(&t.fault.step, "step", 0, "`N` of the step whose maker is killed after it")
	flag.IntVar(&t.fault.then, "then", 0, "`N` of the steps after that whose maker is killed, too")
	flag.BoolVar(&t.kept, "kept", false, "count as steps all calls of the process that a shim's keeper has for a child, and of the inits those that change something")
	flag.BoolVar(&t.fault.before, "before", false, "kill before the step, which is not made")
	flag.BoolVar(&t.follows, "follow", false, "go on when the program has ended, until who it has left has ended too")
	flag.StringVar(&t.fault.hit, "hit", "", "`FILE` to write the call to when it has come")
	flag.StringVar(&record, "record", "", "`FILE` to write the calls to")
	flag.StringVar(&pids, "pids", "", "`FILE` to write the processes' ids to")
	flag.StringVar(&tell, "tell", "", "`SOCKET` of who is told of each call before it is made, and answers with a byte")
	flag.Parse()
	err := t.fault.parse(at, fail)
	if err == nil && flag.NArg() == 0 {
		err = fmt.Errorf("no program is given")
	}
	if err == nil && record != "" {
		var f *os.File
		if f, err = os.Create(record); err == nil {
			defer f.Close()
			t.record = bufio.NewWriter(f)
			defer t.record.Flush()
		}
	}
	if err == nil && pids != "" {
		if t.pids, err = os.Create(pids); err == nil {
			defer t.pids.Close()
		}
	}
	if err == nil {
		t.listener, err = listen(tell)
	}
	var status unix.WaitStatus
	if err == nil {
		if status, err = t.run(flag.Args()); err == nil {
			err = t.settle()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fault:", err)
		os.Exit(126)
	}
	if t.record != nil {
		t.record.Flush()
	}
	if status.Signaled() {
		os.Exit(128 + int(status.Signal()))
	}
	os.Exit(status.ExitStatus())
}

// fault says what goes wrong.
type fault struct {
	process int
	name    string
	n       int
	every   string
	text    string

	errno  unix.Errno
	kill   int
	before bool // with step: the call is not made
	step   int  // the maker is killed after this one of the steps, 0 for none
	then   int  // so many steps later one is killed again, 0 for none
	hit    string
}

func (f *fault) parse(at, fail string) error {
	f.process = -1
	if at != "" {
		parts := strings.Split(at, ":")
		if len(parts) != 3 {
			return fmt.Errorf("-at %s: want PROCESS:NAME:N", at)
		}
		var err, err2 error
		f.process, err = strconv.Atoi(parts[0])
		f.n, err2 = strconv.Atoi(parts[2])
		if f.name = parts[1]; err != nil || err2 != nil {
			return fmt.Errorf("-at %s: want PROCESS:NAME:N", at)
		}
	}
	if fail == "" {
		return nil
	}
	for e := unix.Errno(1); e < 134; e++ {
		if unix.ErrnoName(e) == fail {
			f.errno = e
			return nil
		}
	}
	return fmt.Errorf("-fail %s: no such errno", fail)
}

// last is the step after which nothing goes wrong any more.
func (f *fault) last() int { return f.step + f.then }

// is reports whether a call is the one, or one of those, that go wrong.
func (f *fault) is(c *call) bool {
	if f.step > 0 {
		return c.step == f.step || c.step == f.last()
	}
	if f.every != "" {
		return c.name == f.every && (f.text == "" || strings.Contains(c.text, f.text))
	}
	return f.process == c.process && f.name == c.name && f.n == c.n
}
