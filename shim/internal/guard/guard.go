package guard

import (
	"fmt"
	"runtime/debug"
)

// Do calls f. A panic in it becomes an error, and log is told of it with the stack.
func Do(log func(text string), f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			const most = 3000 // a log line of more than a pipe takes at once is lost
			stack := debug.Stack()
			log(fmt.Sprintf("panic: %v\n%s", p, stack[:min(len(stack), most)]))
			err = &Panic{p}
		}
	}()
	return f()
}

// A Panic is the error that a panic has become.
type Panic struct{ Value any }

func (p *Panic) Error() string {
	return fmt.Sprintf("the shim's own mistake, which its log has the place of: %v", p.Value)
}
