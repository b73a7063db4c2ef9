package image

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// compressions are told by how they begin. They are read by the program of their name, as tar does
// it: with the library's own, each start of each command would set up its tables.
var compressions = []struct{ magic, program string }{
	{"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"\xfd7zXZ\x00", "xz"}, {"BZh", "bzip2"},
}

// An expanded is what a file holds, without its compression. Close ends it and tells what went
// wrong, of which the reader has seen an early end only.
type expanded struct {
	*bufio.Reader
	cmd  *exec.Cmd // nil for no compression
	out  io.Closer
	said bytes.Buffer
}

// expand reads what may be compressed.
func expand(in io.Reader) (*expanded, error) {
	const size = 1 << 18
	e := &expanded{Reader: bufio.NewReaderSize(in, size)}
	magic, err := e.Peek(6)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, k := range compressions {
		if !strings.HasPrefix(string(magic), k.magic) {
			continue
		}
		path, err := exec.LookPath(k.program)
		if err != nil {
			return nil, fmt.Errorf("it is compressed by %s, which is not installed: %w", k.program, err)
		}
		e.cmd = exec.Command(path, "-dc")
		e.cmd.Stdin, e.cmd.Stderr = e.Reader, &e.said
		out, err := e.cmd.StdoutPipe()
		if err == nil {
			err = e.cmd.Start()
		}
		if err != nil {
			return nil, err
		}
		e.out, e.Reader = out, bufio.NewReaderSize(out, size)
		break
	}
	return e, nil
}

// Close ends the program, whether or not all was read.
func (e *expanded) Close() error {
	if e.cmd == nil {
		return nil
	}
	_, rest := e.Peek(1)
	e.out.Close()
	err := e.cmd.Wait()
	if rest == nil {
		return nil // it was not to be read to its end
	}
	if _, exited := err.(*exec.ExitError); exited && e.said.Len() > 0 {
		line, _, _ := strings.Cut(strings.TrimSpace(e.said.String()), "\n")
		return fmt.Errorf("expand it: %s", line)
	}
	return err
}
