package log

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/json"
)

// A Logger writes to one place in one format.
type Logger struct {
	w     io.Writer
	json  bool
	debug bool
	file  bool // a log file, and not standard error
}

// New returns a Logger for standard error in text form.
func New() *Logger { return &Logger{w: os.Stderr} }

// Open directs the log. An empty path means standard error.
func (l *Logger) Open(path, format string, debug bool) error {
	switch format {
	case "text", "":
	case "json":
		l.json = true
	default:
		return fmt.Errorf("--log-format %q: it is either text or json", format)
	}
	l.debug = debug
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("--log: %w", err)
	}
	l.w, l.file = f, true
	return nil
}

// Error tells what made a command fail; with a log file also on standard error,
// where a person looks.
func (l *Logger) Error(message string) {
	l.write("error", message)
	if l.file {
		fmt.Fprintln(os.Stderr, escape.Line(message))
	}
}

// Warn tells what is odd.
func (l *Logger) Warn(message string) { l.write("warning", message) }

// Debug tells what may help to understand, where that was asked for.
func (l *Logger) Debug(message string) {
	if l.debug {
		l.write("debug", message)
	}
}

func (l *Logger) write(level, message string) {
	now := time.Now()
	if l.json {
		l.writeJSON(level, message, now)
		return
	}
	if !l.file && terminal.IsTerminal(2) {
		if level == "error" {
			level = "" // that it failed is plain
		} else {
			level += ": "
		}
		_, _ = io.WriteString(l.w, "berth: "+level+escape.Line(message)+"\n")
		return
	}
	line := append([]byte(`time="`), now.Format(time.RFC3339)...)
	line = append(line, `" level=`...)
	line = append(line, level...)
	line = append(line, ` msg=`...)
	line = strconv.AppendQuote(line, message)
	_, _ = l.w.Write(append(line, '\n'))
}

func (l *Logger) writeJSON(level, message string, now time.Time) {
	var w json.Writer
	w.Object()
	if l.debug {
		if pc, file, line, ok := runtime.Caller(3); ok {
			w.Key("file").String(file + ":" + strconv.Itoa(line))
			w.Key("func").String(runtime.FuncForPC(pc).Name())
		}
	}
	w.Key("level").String(level)
	w.Key("msg").String(message)
	w.Key("time").Time(now)
	w.End()
	_, _ = l.w.Write(append(w.Bytes(), '\n'))
}
