package allocatable

import (
	"fmt"
	"math"

	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/resource"
)

// Row is one resource.
type Row struct {
	Name        resource.Name
	Capacity    int64
	System      int64
	Kube        int64
	Eviction    int64
	HugePages   int64 // of memory: what is in huge pages of all sizes
	Allocatable int64
	Limit       int64
}

// Table is all resources of a machine.
type Table []Row

// Of gives the row of a resource.
func (t Table) Of(n resource.Name) (Row, bool) {
	for _, r := range t {
		if r.Name == n {
			return r, true
		}
	}
	return Row{}, false
}

// Compute makes the table. Reservations of what the machine has not, or above
// what it has, are refused with the entry to blame.
func Compute(capacity resource.List, c *config.Config) (Table, error) {
	for _, reserved := range []config.Amounts{c.SystemReserved, c.KubeReserved, c.EvictionHard} {
		for n, a := range reserved {
			if _, ok := capacity[n]; !ok && !a.IsZero() {
				return nil, &config.Error{Cause: a.Cause, Err: fmt.Errorf("this machine has no %s%s", n, hint(n, capacity))}
			}
		}
	}
	var huge int64
	for n, amount := range capacity {
		if n.PageSize() > 0 {
			huge += amount
		}
	}
	var table Table
	for _, n := range capacity.Names() {
		r := Row{Name: n, Capacity: capacity[n]}
		if n == resource.Memory {
			r.HugePages = huge
		}
		if err := r.reserve(c); err != nil {
			return nil, err
		}
		table = append(table, r)
	}
	return table, nil
}

func hint(n resource.Name, capacity resource.List) string {
	if n.PageSize() == 0 {
		return ""
	}
	text := ""
	for _, have := range capacity.Names() {
		if have.PageSize() > 0 {
			text += ", " + string(have)
		}
	}
	if text == "" {
		return " (and no other huge pages)"
	}
	return " (it has" + text[1:] + ")"
}

// reserve fills in the row.
func (r *Row) reserve(c *config.Config) error {
	var cause string // of the largest part, which is the one to look at
	var largest int64 = -1
	for _, part := range []struct {
		of config.Amounts
		to *int64
	}{{c.SystemReserved, &r.System}, {c.KubeReserved, &r.Kube}, {c.EvictionHard, &r.Eviction}} {
		a, ok := part.of[r.Name]
		if !ok {
			continue
		}
		amount, err := r.amount(a)
		if err != nil {
			return &config.Error{Cause: a.Cause, Err: err}
		}
		*part.to = amount
		if amount > largest {
			largest, cause = amount, a.Cause
		}
	}
	reserved, over := add(r.System, r.Kube, r.HugePages)
	all, over2 := add(reserved, r.Eviction)
	if over || over2 || all > r.Capacity {
		text := fmt.Sprintf("system %s, kube %s, eviction %s", r.Name.Format(r.System), r.Name.Format(r.Kube), r.Name.Format(r.Eviction))
		if r.HugePages > 0 {
			text += ", huge pages " + r.Name.Format(r.HugePages)
		}
		if cause == "" {
			cause = "the machine"
		}
		return &config.Error{Cause: cause, Err: fmt.Errorf("more %s is reserved (%s) than the %s that this machine has: reserve less",
			r.Name, text, r.Name.Format(r.Capacity))}
	}
	r.Limit, r.Allocatable = r.Capacity-reserved, r.Capacity-all
	return nil
}

// amount gives a quantity in the resource's own amounts. Huge pages come whole.
func (r *Row) amount(a config.Amount) (int64, error) {
	n, err := a.In(r.Name.PerUnit(), r.Capacity)
	size := r.Name.PageSize()
	if err != nil || size == 0 || n%size == 0 {
		return n, err
	}
	if !a.IsPercent() {
		return 0, fmt.Errorf("%s is not a multiple of the page's size", a)
	}
	return (n/size + 1) * size, nil
}

func add(numbers ...int64) (sum int64, over bool) {
	for _, n := range numbers {
		if n > math.MaxInt64-sum {
			return 0, true
		}
		sum += n
	}
	return sum, false
}
