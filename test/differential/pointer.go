package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// set changes the entry of a JSON document that a pointer names: "-" appends to an array, KEY=VALUE
// is the entry of an array that has it, or a new one. A value of "delete" takes the entry away.
func set(document any, pointer, value string) (any, error) {
	var parsed any
	if value != "delete" {
		decoder := json.NewDecoder(strings.NewReader(value))
		decoder.UseNumber()
		if err := decoder.Decode(&parsed); err != nil {
			return nil, err
		}
	}
	words := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, word := range words {
		words[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
	}
	return setAt(document, words, parsed, value == "delete")
}

func setAt(document any, words []string, value any, remove bool) (any, error) {
	if len(words) == 0 {
		return value, nil
	}
	word, last := words[0], len(words) == 1
	if key, wanted, isArray := strings.Cut(word, "="); isArray || word == "-" {
		list, _ := document.([]any)
		at := len(list)
		for i, entry := range list {
			if object, ok := entry.(map[string]any); ok && isArray && object[key] == wanted {
				at = i
			}
		}
		if remove && last {
			if at < len(list) {
				list = append(list[:at], list[at+1:]...)
			}
			return list, nil
		}
		if at == len(list) {
			list = append(list, nil)
		}
		var err error
		list[at], err = setAt(list[at], words[1:], value, remove)
		return list, err
	}
	if document == nil {
		if remove {
			return nil, nil
		}
		document = map[string]any{}
	}
	object, ok := document.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: no object", word)
	}
	if remove && last {
		delete(object, word)
		return object, nil
	}
	var err error
	object[word], err = setAt(object[word], words[1:], value, remove)
	return object, err
}

// generic is a value as JSON has it.
func generic(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var out any
	return out, decoder.Decode(&out)
}
