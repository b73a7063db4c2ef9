package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A pool keeps the workers of one goroutine, by their layout.
type pool struct {
	template worker
	workers  map[string]*running
}

type running struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *json.Decoder
	end func() error
}

// do lets the layout's worker do a job.
func (p *pool) do(l Layout, j job) ([]outcome, error) {
	r := p.workers[l.Name]
	if r == nil {
		var err error
		if r, err = p.start(l); err != nil {
			return nil, err
		}
		p.workers[l.Name] = r
	}
	// A worker that an engine has brought to a stop shows where, and the next job gets another.
	watch := time.AfterFunc(12*deadline*time.Duration(patienceFor(j.Lines)), func() { r.cmd.Process.Signal(unix.SIGQUIT) })
	defer watch.Stop()
	var outcomes []outcome
	err := r.in.Encode(j)
	if err == nil {
		err = r.out.Decode(&outcomes)
	}
	if err != nil {
		r.end()
		delete(p.workers, l.Name)
		return nil, fmt.Errorf("%s: the worker: %w", l.Name, err)
	}
	return outcomes, nil
}

// start starts a worker. What an engine could spoil of the host, it has one of its own of.
func (p *pool) start(l Layout) (*running, error) {
	w := p.template
	w.Layout = l
	w.Engines = nil
	for _, e := range p.template.Engines {
		for _, name := range append([]string{"berth"}, l.Peers...) {
			if e.Name == name {
				w.Engines = append(w.Engines, e)
			}
		}
	}
	order, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), workerVariable+"="+string(order))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &running{cmd, json.NewEncoder(in), json.NewDecoder(out), func() error {
		in.Close()
		err := cmd.Wait()
		own := fmt.Sprintf("bd%d-", cmd.Process.Pid)
		killCgroups(own) // of one that did not come to its end
		removeCgroups(own)
		return err
	}}, nil
}

func (p *pool) end() {
	for _, r := range p.workers {
		r.end()
	}
}
