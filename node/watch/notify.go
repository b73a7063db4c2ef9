package watch

import (
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// notifier tells systemd how the service is (sd_notify(3)); without a socket
// it does nothing.
type notifier struct {
	address  string
	watchdog time.Duration // 0 if the manager expects no keep-alive
}

func newNotifier(getenv func(string) string) notifier {
	n := notifier{address: getenv("NOTIFY_SOCKET")}
	usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	if pid := getenv("WATCHDOG_PID"); err == nil && usec > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.watchdog = time.Duration(usec) * time.Microsecond
	}
	return n
}

func (n notifier) tell(message string) {
	if n.address == "" {
		return
	}
	// A manager that can't be told will notice by itself, and there is no other to tell.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.address, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(message))
}

// reloading says that the configuration is read again; READY=1 ends it.
func (n notifier) reloading() {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) == nil {
		n.tell("RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(now.Nano()/1000, 10))
	}
}
