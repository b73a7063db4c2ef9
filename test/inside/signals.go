package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// signals says "ready", then the name of each signal that comes, a line each, until SIGTERM or the
// end of its input.
func signals() {
	// Not SIGURG, which is Go's own, for its scheduler, nor 32 to 34, which Go leaves to C
	// libraries.
	c := make(chan os.Signal, 64)
	signal.Notify(c, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTERM, unix.SIGCONT,
		unix.SIGALRM, unix.SIGWINCH, unix.SIGIO, unix.Signal(40))
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	fmt.Println("ready")
	for {
		select {
		case s := <-c:
			n := s.(unix.Signal)
			if name := unix.SignalName(n); name != "" {
				fmt.Println(name)
			} else {
				fmt.Println(int(n))
			}
			if n == unix.SIGTERM {
				return
			}
		case <-ended:
			return
		}
	}
}

// winch says the size of the terminal now and after each change, until the end of its input.
func winch() {
	c := make(chan os.Signal, 8)
	signal.Notify(c, unix.SIGWINCH)
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	say := func() {
		size, err := unix.IoctlGetWinsize(1, unix.TIOCGWINSZ)
		if err != nil {
			fail(err.Error())
		}
		fmt.Printf("size %dx%d\n", size.Row, size.Col)
	}
	say()
	for {
		select {
		case <-c:
			say()
		case <-ended:
			return
		}
	}
}
