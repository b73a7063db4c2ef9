package sys

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThrowawayThread runs a function on a thread that ends with it, so that what
// the function changes of the thread (namespaces, root) ends too. It is never the
// main thread: /proc/self speaks of that one, and it can't end before the process.
func OnThrowawayThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			OnThrowawayThread(f) // another one, as this is held meanwhile
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}
