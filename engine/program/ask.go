package program

// Ask is what a Program waits for the runtime to do.
type Ask uint32

const (
	// AskReady: the container is created. The answer lets it go to its gate.
	AskReady Ask = iota + 1
	// AskConsole: the descriptor is the terminal's master.
	AskConsole
	// AskHooks: namespaces exist, the root is not pivoted yet.
	AskHooks
	// AskListener: the descriptor is the seccomp listener.
	AskListener
	// AskMapIDs: the user namespace has no mappings yet.
	AskMapIDs
	// AskDevice: the descriptor is a file that stands where device number Value of
	// the Plan was to be made; is it that device?
	AskDevice
	// AskCopyFrom and AskCopyTo: copy all that the first descriptor holds to the second,
	// for mount number Value of the Plan.
	AskCopyFrom
	AskCopyTo
	// AskStartHooks: start was called, the startContainer hooks are due.
	AskStartHooks
	// AskForked: Value is the pid that the Program goes on in, and that is answered.
	AskForked
	// AskLimits: resource limit number Value, which is beyond the Program's rights, is to be set.
	AskLimits
	// AskMinder: Value is the pid of the process that minds the others. It is not
	// answered.
	AskMinder
	// AskPlain: number Value of the layers is no overlay, but mounted read-only.
	AskPlain
	// AskCgroup: the cgroup is to be made around the process, as systemd makes a scope.
	AskCgroup
	// AskMountFlags: the descriptor is a mount whose attributes are to be changed as
	// Value says (compile.ParseMountChange). The answer is preceded by a list of
	// compile.RemountStep.
	AskMountFlags
	// AskOOMScore: the score of an added process is to be set, which takes the rights of
	// the runtime where it is lowered.
	AskOOMScore
	// AskScheduling: the scheduler of an added process is to be set.
	AskScheduling
	// AskLinkTarget: the target of mount number Value is a link that leads to nothing, in the
	// root that the descriptor is. The answer is preceded by a list of LinkStep.
	AskLinkTarget
	// AskSourceTree: the source of mount number Value lies where the user namespace may not
	// go. The answer is preceded by a message with a descriptor of a copy of it.
	AskSourceTree
	// AskScratch: the descriptor is the memory that takes what is written to the root's layers,
	// before any of them is mounted.
	AskScratch
)

// A Request is an Ask with its value, which it is sent with.
type Request struct {
	Kind  Ask
	Value uint64
}

// askMagic begins the record of a Request, so that it can't be taken for a failure.
const askMagic = 0x4b534142 // "BASK"

// Record is the message of a request: magic and kind as 32-bit words, a value of 64
// bits. Its value, at AskValueAt, may be stored there by a call.
func (b *Builder) Record(r Request) Addr {
	return b.Words(Imm(askMagic|uint64(r.Kind)<<32), Imm(r.Value))
}

// AskValueAt is the place of the value in a Record.
const AskValueAt = 8

// An Expectation is a request that a Program may make, once.
type Expectation struct {
	Request
	// FD is set where a descriptor comes with it.
	FD bool
	// place is how far the Program is then: see Builder.May.
	place int
}

// namesProcess reports whether the value of a request is a pid, which is not known
// beforehand.
func (k Ask) namesProcess() bool { return k == AskForked || k == AskMinder }

// May says that the Program makes a request at this point of it, at most once.
func (b *Builder) May(e Expectation) {
	if !b.beside {
		b.place++
	}
	e.place = b.place
	b.asks = append(b.asks, e)
}

// Place of requests: those of code that lies elsewhere than it is run, from a branch,
// come after the requests that came before the branch. Beside returns what is to be
// called around the making of such code.
func (b *Builder) Beside() func(code func()) {
	place := b.place
	return func(code func()) {
		now, beside := b.place, b.beside
		b.place, b.beside = place, true
		code()
		b.place, b.beside = now, beside
	}
}
