package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// The main goroutine stays on the main thread: /proc/self and the thread's own attributes
// (scheduler, I/O priority, memory policy, keyring) are then those of the process that was started.
func init() { runtime.LockOSThread() }

func main() {
	// Before anything else opens one.
	fds := openFDs()
	if len(os.Args) < 2 {
		fail("usage: inside look|try|hook|signals|winch|hang|headless|send|agent|notify|without|filtered|as|nested|covered|seize|lease|mute|report|caller …")
	}
	words := os.Args[2:]
	switch os.Args[1] {
	case "look":
		v := look(fds)
		v.Files, v.Dirs = files(words), dirs(words)
		print(v)
	case "try":
		print(try(words))
	case "hook":
		hook(fds, words)
	case "signals":
		signals()
	case "winch":
		winch()
	case "hang":
		// Not an endless select, which Go takes for a deadlock.
		for {
			unix.Pause()
		}
	case "headless":
		headless()
	case "send":
		send(words)
	case "agent":
		agent()
	case "without":
		without(words)
	case "filtered":
		filtered(words)
	case "as":
		as(words)
	case "report":
		report(fds, words)
	case "caller":
		caller(words)
	case "nested":
		nested(words)
	case "covered":
		covered(words)
	case "lease":
		holdLease(words)
	case "mute":
		mute(words)
	case "seize":
		seize(words)
	case "notify":
		if err := notify(words); err != nil {
			fail(err.Error())
		}
	default:
		fail("unknown command " + os.Args[1])
	}
}

func print(v any) {
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		fail(err.Error())
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, "inside: "+message)
	os.Exit(125)
}
