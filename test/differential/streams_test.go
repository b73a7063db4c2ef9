package main

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// streams are the standard streams of a container, or its terminal.
type streams struct {
	stdin, stdout, stderr *os.File // the container's ends
	input, output         *os.File // this process's ends
	socket                string
	listener              *net.UnixListener
	console               chan *os.File
	terminal              bool
}

func (w *worker) streams(s *setup) (*streams, error) {
	st := &streams{terminal: s.terminal, socket: filepath.Join(w.dir, "console")}
	var err error
	if st.stdin, st.input, err = os.Pipe(); err != nil {
		return nil, err
	}
	if st.output, st.stdout, err = os.Pipe(); err != nil {
		return nil, err
	}
	if st.stderr, err = os.OpenFile(filepath.Join(w.dir, "stderr"), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o666); err != nil {
		return nil, err
	}
	if !s.terminal {
		return st, nil
	}
	os.Remove(st.socket)
	if st.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: st.socket, Net: "unix"}); err != nil {
		return nil, err
	}
	st.console = make(chan *os.File, 1)
	go st.accept()
	return st, os.Chmod(st.socket, 0o777)
}

// accept takes the master of the terminal.
func (st *streams) accept() {
	defer close(st.console)
	conn, err := st.listener.AcceptUnix()
	if err != nil {
		return
	}
	defer conn.Close()
	data, control := make([]byte, 256), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(data, control)
	if err != nil {
		return
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return
	}
	if fds, err := unix.ParseUnixRights(&messages[0]); err == nil && len(fds) > 0 {
		unix.SetNonblock(fds[0], true)
		st.console <- os.NewFile(uintptr(fds[0]), "console")
	}
}

// created gives up the ends that are the container's now. A terminal that has been sent may not
// have been accepted yet, and its container would be hung up with the listener.
func (st *streams) created(ok bool) {
	st.stdin.Close()
	st.stdout.Close()
	switch {
	case st.listener == nil:
	case ok:
		st.listener.SetDeadline(time.Now().Add(patient()))
	default:
		st.listener.Close()
	}
}

// report reads what the container says, until it has said all, or ended.
func (st *streams) report() (text string, complete bool) {
	from := st.output
	if st.terminal {
		console, ok := <-st.console
		if !ok {
			return "", false
		}
		st.output.Close()
		st.output, from = console, console
	}
	from.SetReadDeadline(time.Now().Add(2 * patient()))
	reader := bufio.NewReader(from)
	var all strings.Builder
	for {
		line, err := reader.ReadString('\n')
		all.WriteString(strings.ReplaceAll(line, "\r\n", "\n"))
		if err != nil {
			return all.String(), false
		}
		if strings.HasPrefix(line, "REPORT ") {
			return all.String(), true
		}
	}
}

// end tells the container to end.
func (st *streams) end() {
	if st.terminal {
		st.output.Write([]byte{4}) // end of file, of a terminal
	}
	st.input.Close()
}

func (st *streams) close() {
	for _, f := range []*os.File{st.stdin, st.stdout, st.stderr, st.input, st.output} {
		f.Close()
	}
	if st.listener != nil {
		st.listener.Close()
		for console := range st.console {
			console.Close()
		}
	}
}
