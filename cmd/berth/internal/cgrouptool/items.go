package cgrouptool

import (
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup/ledger"
)

// items reads what a file holds for each device or interface: all lines as "NAME VALUE", which is
// how set takes them, or the value for one.
func items(field, file, text, item string) string {
	var list []string
	key := keyOf(field)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(value, "=") && key != "" {
			value = assigned(value, key)
		}
		if name == "" || name == "default" || value == "max" && item == "" {
			continue // nothing that is set for this one
		}
		if n, err := strconv.ParseUint(value, 10, 64); err == nil && file == "io.weight" {
			value = strconv.FormatUint(ledger.IOToBlkioWeight(n), 10)
		}
		if name == item {
			return value
		}
		list = append(list, name+" "+value)
	}
	if item != "" {
		return "" // it has none of its own
	}
	return strings.Join(list, "\n")
}

// keyOf is the key in "NAME KEY=VALUE KEY=VALUE" lines, as io.max and rdma.max have them.
func keyOf(field string) string {
	switch field {
	case "/blockIO/throttleReadBpsDevice/*":
		return "rbps"
	case "/blockIO/throttleWriteBpsDevice/*":
		return "wbps"
	case "/blockIO/throttleReadIOPSDevice/*":
		return "riops"
	case "/blockIO/throttleWriteIOPSDevice/*":
		return "wiops"
	case "/rdma/*/hcaHandles":
		return "hca_handle"
	case "/rdma/*/hcaObjects":
		return "hca_object"
	}
	return ""
}

func assigned(text, key string) string {
	for word := range strings.FieldsSeq(text) {
		if value, found := strings.CutPrefix(word, key+"="); found {
			return value
		}
	}
	return "max"
}
