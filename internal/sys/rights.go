package sys

import "golang.org/x/sys/unix"

// ReceivedDescriptors are the descriptors that a control message brought.
func ReceivedDescriptors(control []byte) (list []int) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			list = append(list, fds...)
		}
	}
	return list
}

// ReceivedDescriptor is the descriptor that a control message brought, -1 for none. A sender of
// more than the one that is agreed on does not have them kept open.
func ReceivedDescriptor(control []byte) int {
	fds := ReceivedDescriptors(control)
	if len(fds) == 0 {
		return -1
	}
	for _, more := range fds[1:] {
		unix.Close(more)
	}
	return fds[0]
}
