package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pipe is a FIFO that a test reads.
type pipe struct {
	path string
	file *os.File
	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{}
}

func (n *node) pipe(name string) *pipe {
	n.t.Helper()
	p := &pipe{path: filepath.Join(n.dir, name), done: make(chan struct{})}
	n.must(unix.Mkfifo(p.path, 0o600))
	var err error
	p.file, err = os.OpenFile(p.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	n.must(err)
	n.t.Cleanup(func() { p.file.Close() })
	return p
}

// read collects what comes, until the shim closes its end.
func (p *pipe) read() *pipe {
	go func() {
		defer close(p.done)
		in := bufio.NewReader(p.file)
		for started := false; ; {
			line, err := in.ReadBytes('\n')
			p.mu.Lock()
			p.text.Write(line)
			p.mu.Unlock()
			started = started || len(line) > 0
			if errors.Is(err, io.EOF) && !started {
				time.Sleep(time.Millisecond) // nobody has opened it for writing yet
				continue
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *pipe) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}
