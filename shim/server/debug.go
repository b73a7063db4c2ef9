package server

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/task"
)

// debugTimeout is how long a client of the debug socket may take.
const debugTimeout = 10 * time.Second

// state is what a shim is doing: its memory, its containers, and every goroutine.
func state(service *task.Service) []byte {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b := append([]byte("goroutines: "), strconv.Itoa(runtime.NumGoroutine())...)
	b = strconv.AppendUint(append(b, "\nheap in use: "...), m.HeapInuse, 10)
	b = strconv.AppendUint(append(b, "\nmemory from the system: "...), m.Sys, 10)
	b = append(append(b, '\n'), service.Describe()...)
	return append(b, stacks()...)
}

func stacks() []byte {
	for size := 64 << 10; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size || size > 16<<20 {
			return buf[:n]
		}
	}
}

// serveDebug answers on the debug socket, in HTTP/1.0 as far as that is asking
// for a page: so that "ctr pprof goroutines" works, and curl does, without a web
// server in every shim. It returns when the listener is closed, with an error as
// for any other reason: what is returned by a closed one cannot be told apart.
func serveDebug(listener *os.File, service *task.Service) error {
	for {
		conn, err := ttrpc.Accept(listener)
		if err != nil {
			return err
		}
		if ttrpc.SamePeer(conn) == nil {
			answerDebug(conn, service)
		}
		conn.Close()
	}
}

func answerDebug(conn *os.File, service *task.Service) {
	if conn.SetDeadline(time.Now().Add(debugTimeout)) != nil {
		return
	}
	in := bufio.NewReaderSize(conn, 1024)
	request, err := in.ReadString('\n')
	if err != nil {
		return
	}
	for { // the header, of which nothing matters
		line, err := in.ReadSlice('\n')
		if err != nil || len(line) <= 2 {
			break
		}
	}
	_, path, _ := strings.Cut(strings.TrimSpace(request), " ")
	path, _, _ = strings.Cut(path, " ")
	path, _, _ = strings.Cut(path, "?")
	status, body := "200 OK", []byte(nil)
	switch path {
	case "/":
		body = state(service)
	case "/debug/tasks":
		body = service.Describe()
	case "/debug/pprof/goroutine":
		body = stacks()
	default:
		status, body = "404 Not Found", []byte("there are /, /debug/tasks and /debug/pprof/goroutine\n")
	}
	head := "HTTP/1.0 " + status + "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	conn.Write(append([]byte(head), body...))
}
