package sys

import "golang.org/x/sys/unix"

// ReceivedDescriptor is the descriptor that a control message brought, -1 for none. Whoever sends more than the one that
// is agreed on does not have them kept open.
func ReceivedDescriptor(control []byte) int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return -1
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil && len(fds) > 0 {
			for _, more := range fds[1:] {
				unix.Close(more)
			}
			return fds[0]
		}
	}
	return -1
}
