package kmsg

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Each hands over the messages that the kernel still keeps, oldest first, with their time since
// boot. That clock stands still while the machine is suspended, and nothing keeps it to the second.
func Each(tell func(at time.Duration, text string)) error {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("open /dev/kmsg: %w", err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 8192) // a record and its escapes are less; a read of more than fits fails
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case err == unix.EINTR || err == unix.EPIPE: // EPIPE: the oldest records were overwritten meanwhile
			continue
		case err == unix.EAGAIN || err == nil && n == 0:
			return nil
		case err != nil:
			return fmt.Errorf("read /dev/kmsg: %w", err)
		}
		if at, text, ok := parse(string(buf[:n])); ok {
			tell(at, text)
		}
	}
}

// parse reads a record: "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,…];TEXT", and on further lines
// what belongs to a device. The kernel escapes what can't be printed.
func parse(record string) (at time.Duration, text string, ok bool) {
	head, text, ok := strings.Cut(record, ";")
	fields := strings.Split(head, ",")
	if !ok || len(fields) < 4 {
		return 0, "", false
	}
	micros, err := strconv.ParseUint(fields[2], 10, 53)
	if err != nil {
		return 0, "", false
	}
	text, _, _ = strings.Cut(text, "\n")
	return time.Duration(micros) * time.Microsecond, text, true
}
