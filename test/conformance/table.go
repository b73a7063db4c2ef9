package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// row is one demand of the specification.
type row struct {
	document, section, level, demand string
	tests                            []string // FOLDER.TestName
}

// parse reads the table: a line "# DOCUMENT", or "## SECTION", or
// "LEVEL demand = tests", the tests with spaces between them, none where there
// is nothing behind the last "=".
func parse(text string) ([]row, error) {
	var rows []row
	var document, section string
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.HasPrefix(line, "## "):
			section = line[3:]
		case strings.HasPrefix(line, "# "):
			document = line[2:]
		default:
			level, rest, _ := strings.Cut(line, " ")
			at := strings.LastIndex(rest, " =")
			if at < 0 || document == "" || section == "" || level != "MUST" && level != "SHOULD" {
				return nil, fmt.Errorf("table.txt:%d: not a line \"MUST|SHOULD demand = tests\"", number)
			}
			rows = append(rows, row{document, section, level, strings.TrimSpace(rest[:at]), strings.Fields(rest[at+2:])})
		}
	}
	return rows, nil
}

// tests are the test functions that there are, as FOLDER.TestName.
type tests map[string]bool

// findTests reads all test files below a directory.
func findTests(root string) (tests, error) {
	found := tests{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && name != root || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				found[filepath.ToSlash(relative)+"."+f.Name.Name] = true
			}
		}
		return nil
	})
	return found, err
}

// check refuses rows whose tests are not there.
func check(rows []row, there tests) error {
	var failed error
	for _, r := range rows {
		for _, t := range r.tests {
			if !there[path.Clean(t)] {
				failed = errors.Join(failed, fmt.Errorf("%s, %s: %q: there is no test %s", r.document, r.section, r.demand, t))
			}
		}
	}
	return failed
}
