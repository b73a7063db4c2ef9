package main

import (
	"encoding/json"
	"io"
	"os"
	"strconv"

	"github.com/berth-runtime/berth/test/inside/view"
)

// hook NAME FILE [EXIT [MESSAGE]]: appends what the hook saw, as one line, to the file, and exits
// with the given status. The write is one call with O_APPEND, so that lines of several hooks keep
// whole and in order.
func hook(fds map[int]string, words []string) {
	state, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail("hook " + words[0] + ": its input: " + err.Error())
	}
	v := look(fds)
	v.Files = files([]string{"/inside", "/marker"})
	line, err := json.Marshal(view.HookCall{Name: words[0], Args: os.Args, Env: os.Environ(), State: string(state), View: v})
	if err != nil {
		fail(err.Error())
	}
	f, err := os.OpenFile(words[1], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		fail(err.Error())
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		fail(err.Error())
	}
	if len(words) > 3 {
		os.Stderr.WriteString(words[3] + "\n")
	}
	if len(words) > 2 {
		status, err := strconv.Atoi(words[2])
		if err != nil {
			fail(err.Error())
		}
		os.Exit(status)
	}
}
