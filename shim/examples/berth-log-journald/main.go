package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Descriptors of the protocol: the container's output and errors, and what is
// closed when the program is ready.
const (
	outputFD = 3
	errorsFD = 4
	readyFD  = 5
)

// Priorities of syslog.
const (
	priorityError = 3
	priorityInfo  = 6
)

// longestLine is where a line without end is cut.
const longestLine = 48 << 10

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "berth-log-journald:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	j, err := dial(socket())
	if err != nil {
		return err
	}
	defer j.close()
	fields, err := fieldsOf(args)
	if err != nil {
		return err
	}
	ready := os.NewFile(readyFD, "ready")
	if _, err := ready.Write([]byte{'.'}); err != nil { // the second version of the protocol wants a byte
		return fmt.Errorf("say that we are ready: %w", err)
	}
	if err := ready.Close(); err != nil {
		return err
	}
	var all sync.WaitGroup
	for fd, priority := range map[uintptr]int{outputFD: priorityInfo, errorsFD: priorityError} {
		all.Add(1)
		go func() {
			defer all.Done()
			forward(os.NewFile(fd, "stream"), j, priority, fields)
		}()
	}
	all.Wait()
	return nil
}

func socket() string {
	if path := os.Getenv("BERTH_JOURNAL_SOCKET"); path != "" {
		return path
	}
	return "/run/systemd/journal/socket"
}

// fieldsOf makes the fields that all entries have: who speaks, and the pairs
// from the URI's query.
func fieldsOf(args []string) ([]field, error) {
	id, namespace := os.Getenv("CONTAINER_ID"), os.Getenv("CONTAINER_NAMESPACE")
	fields := []field{
		{"SYSLOG_IDENTIFIER", namespace + ":" + id},
		{"CONTAINER_ID", id},
		{"CONTAINER_NAMESPACE", namespace},
	}
	if len(args)%2 != 0 {
		return nil, fmt.Errorf("%d arguments are not pairs of a name and a value", len(args))
	}
	for i := 0; i < len(args); i += 2 {
		name := strings.ToUpper(args[i])
		if !validName(name) {
			return nil, fmt.Errorf("%q cannot be the name of a journal field", args[i])
		}
		fields = append(fields, field{name, args[i+1]})
	}
	return fields, nil
}

// forward sends each line as an entry. What cannot be sent is dropped: a
// container must not stand still because the journal does.
func forward(from io.Reader, j *journal, priority int, fields []field) {
	in := bufio.NewReaderSize(from, longestLine)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			j.send(strings.TrimSuffix(string(line), "\n"), priority, fields)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}
