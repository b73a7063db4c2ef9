package doctor

import (
	"runtime"

	"github.com/berth-runtime/berth/engine/program"
)

// containerInit says whether this build has an init for containers. It builds without one, too: for
// machines that no interpreter was written for.
func containerInit(*Machine) []Finding {
	f := Finding{Check: "container init", For: Everyone, Found: "there is one for " + runtime.GOARCH}
	if !program.Native {
		f.State, f.Found = Gap, "there is none for "+runtime.GOARCH
		f.Without = "no container can be made: create, run, exec, restore and box fail; what only looks works"
		f.Fix = []Fix{{Run: "use a machine with amd64 or arm64"}}
	}
	return []Finding{f}
}
