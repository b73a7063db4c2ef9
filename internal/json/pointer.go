package json

import (
	"strconv"
	"strings"
)

// AppendKey appends an object key to a JSON pointer (RFC 6901).
func AppendKey(pointer []byte, key string) []byte {
	pointer = append(pointer, '/')
	if !strings.ContainsAny(key, "~/") {
		return append(pointer, key...)
	}
	for i := range len(key) {
		switch c := key[i]; c {
		case '~':
			pointer = append(pointer, '~', '0')
		case '/':
			pointer = append(pointer, '~', '1')
		default:
			pointer = append(pointer, c)
		}
	}
	return pointer
}

// AppendIndex appends an array index to a JSON pointer.
func AppendIndex(pointer []byte, index int) []byte {
	return strconv.AppendInt(append(pointer, '/'), int64(index), 10)
}
