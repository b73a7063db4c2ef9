package device

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Policy is a folded list of rules. The zero Policy denies everything.
type Policy struct {
	// rules are in the order of the list, without those that later ones
	// make void; each has only the access that it decides.
	rules []Rule
}

// Fold reads and folds the rules of a config. The error is of type
// ledger.Errors and names every rule that is wrong.
func Fold(list []specs.LinuxDeviceCgroup) (Policy, error) {
	rules, err := parseRules(list)
	if err != nil {
		return Policy{}, err
	}
	return fold(rules), nil
}

func fold(rules []Rule) Policy {
	kept := make([]Rule, 0, len(rules))
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		for _, later := range kept {
			if later.pattern().covers(r.pattern()) {
				r.Access &^= later.Access
			}
		}
		if r.Access != 0 {
			kept = append(kept, r)
		}
	}
	slices.Reverse(kept)
	// What comes before the first allow denies what is denied anyway.
	for len(kept) > 0 && !kept[0].Allow {
		kept = kept[1:]
	}
	return Policy{kept}
}

// Rules are the folded rules.
func (p Policy) Rules() []Rule { return slices.Clone(p.rules) }

// Allows is the meaning of a Policy: whether every kind of access that is asked
// for is allowed to the device.
func (p Policy) Allows(t Type, major, minor uint32, access Access) bool {
	device := pattern{t, int64(major), int64(minor)}
	return access&^p.granted(device) == 0
}

// granted is the access that rules which cover the whole pattern decide to
// allow. For one device, those are all the rules that matter to it.
func (p Policy) granted(q pattern) Access {
	var granted, decided Access
	for i := len(p.rules) - 1; i >= 0 && decided != All; i-- {
		r := p.rules[i]
		if !r.pattern().covers(q) {
			continue
		}
		if r.Allow {
			granted |= r.Access &^ decided
		}
		decided |= r.Access
	}
	return granted
}

// AllowsAll says whether nothing is denied.
func (p Policy) AllowsAll() bool {
	for _, r := range p.rules {
		if !r.Allow {
			return false
		}
	}
	return p.granted(pattern{Block, Any, Any}) == All && p.granted(pattern{Char, Any, Any}) == All
}
