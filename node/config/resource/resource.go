package resource

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/node/config/quantity"
)

// Name is a resource.
type Name string

// The resources that every machine has.
const (
	CPU              Name = "cpu"
	Memory           Name = "memory"
	PIDs             Name = "pids"
	EphemeralStorage Name = "ephemeral-storage"
)

const hugePages = "hugepages-"

// HugePages is the resource of huge pages of a size in bytes.
func HugePages(size int64) Name { return Name(hugePages + Bytes(size)) }

// PageSize is the size of the huge pages that a resource is; 0 of others.
func (n Name) PageSize() int64 {
	text, ok := strings.CutPrefix(string(n), hugePages)
	if !ok {
		return 0
	}
	q, err := quantity.Parse(text)
	if err != nil || q.IsPercent() {
		return 0
	}
	size, err := q.In(1, 0)
	if err != nil {
		return 0
	}
	return size
}

// Parse reads the name of a resource.
func Parse(text string) (Name, error) {
	n := Name(text)
	switch n {
	case CPU, Memory, PIDs, EphemeralStorage:
		return n, nil
	case "pid":
		return "", fmt.Errorf("there is no resource %q: it is %s", text, PIDs)
	}
	if size := n.PageSize(); size > 0 {
		return HugePages(size), nil // hugepages-2048Ki is hugepages-2Mi
	}
	return "", fmt.Errorf("there is no resource %.40q; resources are cpu, memory, pids, ephemeral-storage and hugepages-SIZE, as in hugepages-2Mi", text)
}

// PerUnit is how many of a resource's amounts make one: 1000 for cpu.
func (n Name) PerUnit() int64 {
	if n == CPU {
		return 1000
	}
	return 1
}

// List is amounts of resources.
type List map[Name]int64

// Names are the resources of a list in the order in which people read them.
func (l List) Names() []Name {
	var names []Name
	for n := range l {
		names = append(names, n)
	}
	slices.SortFunc(names, Compare)
	return names
}

// Compare orders resources: cpu, memory, huge pages by size, pids, storage.
func Compare(a, b Name) int {
	if d := a.rank() - b.rank(); d != 0 {
		return d
	}
	switch x, y := a.PageSize(), b.PageSize(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func (n Name) rank() int {
	switch n {
	case CPU:
		return 0
	case Memory:
		return 1
	case PIDs:
		return 3
	case EphemeralStorage:
		return 4
	}
	return 2
}

// Format writes an amount in the notation of Kubernetes, without loss.
func (n Name) Format(amount int64) string {
	switch {
	case n == CPU && amount%1000 == 0:
		return strconv.FormatInt(amount/1000, 10)
	case n == CPU:
		return strconv.FormatInt(amount, 10) + "m"
	case n == PIDs:
		return strconv.FormatInt(amount, 10)
	}
	return Bytes(amount)
}

// Human writes an amount as people read it, rounded.
func (n Name) Human(amount int64) string {
	if n == CPU {
		return strconv.FormatFloat(float64(amount)/1000, 'f', 2, 64)
	}
	if n == PIDs {
		return strconv.FormatInt(amount, 10)
	}
	value, unit := float64(amount), 0
	for (value >= 1023.95 || value <= -1023.95) && unit < 6 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return strconv.FormatInt(amount, 10)
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + "KMGTPE"[unit-1:unit] + "i"
}

// Bytes writes a number of bytes with the largest suffix that divides it.
func Bytes(n int64) string {
	suffix := ""
	for _, s := range []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, suffix = n/1024, s
	}
	return strconv.FormatInt(n, 10) + suffix
}
