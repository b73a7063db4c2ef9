package harness

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Stop is a moment in which test/fault, run with -tell, holds a program and what that starts.
type Stop struct {
	PID int
	// Call is what the process is about to call, PROCESS:NAME:N as test/fault names calls; "" where
	// it has just executed a program that is not the engine's.
	Call string
	Name string // of the call
	Text string // the call's path, where it has one, or the program
}

// Stops listens to test/fault.
type Stops struct{ listener *net.UnixListener }

// ListenStops makes the socket for -tell.
func ListenStops(path string) (*Stops, error) {
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	return &Stops{listener}, nil
}

// Close removes the socket.
func (s *Stops) Close() error { return s.listener.Close() }

// What Follow goes on with: to each call; to a call named as a Stop has it; to programs alone.
const (
	EachCall     = "all"
	ProgramsOnly = "programs"
)

// Follow hands over each stop until nobody is held any more. What is held goes on when the function
// has returned.
func (s *Stops) Follow(at func(Stop)) error {
	return s.FollowTo(EachCall, func(stop Stop) string { at(stop); return EachCall })
}

// FollowTo is Follow from one stop to the one that the function asks for. Programs that are
// executed meanwhile are handed over too; from what is returned for those, nothing follows.
func (s *Stops) FollowTo(first string, at func(Stop) (next string)) error {
	if err := s.listener.SetDeadline(time.Now().Add(Deadline)); err != nil {
		return err
	}
	conn, err := s.listener.AcceptUnix()
	if err != nil {
		return fmt.Errorf("test/fault does not say anything: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(first)); err != nil {
		return err
	}
	next := first
	for buf := make([]byte, 1<<12); ; {
		if err := conn.SetReadDeadline(time.Now().Add(Deadline)); err != nil {
			return err
		}
		n, err := conn.Read(buf)
		if os.IsTimeout(err) {
			return fmt.Errorf("no step for %s: %w", Deadline, err)
		}
		if err != nil || n == 0 {
			return nil // it has ended
		}
		stop, err := parseStop(string(buf[:n]))
		if err != nil {
			return err
		}
		if word := at(stop); stop.Call != "" {
			next = word
		}
		if _, err := conn.Write([]byte(next)); err != nil {
			return nil
		}
	}
}

func parseStop(line string) (stop Stop, err error) {
	fields := strings.SplitN(line, "\t", 6)
	switch {
	case fields[0] == "exec" && len(fields) == 4:
		stop = Stop{Text: fields[3]}
	case fields[0] == "call" && len(fields) == 6:
		stop = Stop{Call: fields[1] + ":" + fields[3] + ":" + fields[4], Name: fields[3], Text: fields[5]}
	default:
		return stop, fmt.Errorf("test/fault says %q", line)
	}
	stop.PID, err = strconv.Atoi(fields[2])
	return stop, err
}
