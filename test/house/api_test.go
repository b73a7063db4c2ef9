package house

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt anew")

// What strangers may call of the libraries is on a list: who adds to it means to, and who
// takes away sees whom it breaks. (go test ./test/house -run TestAPI -update writes it anew.)
func TestAPI(t *testing.T) {
	var got []string
	for _, library := range []string{"cgroup", "seccomp"} {
		err := filepath.WalkDir(filepath.Join(top(t), library), func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "internal" || d.Name() == "testdata" {
				return fs.SkipDir
			}
			name, err := filepath.Rel(top(t), dir)
			if err != nil {
				return err
			}
			names, err := exported(dir)
			for _, n := range names {
				got = append(got, name+" "+n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(got)
	const file = "testdata/api.txt"
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, n := range got {
		if !slices.Contains(want, n) {
			t.Errorf("%s is exported and not in %s: is it of use to strangers?", n, file)
		}
	}
	for _, n := range want {
		if !slices.Contains(got, n) {
			t.Errorf("%s is in %s and not exported", n, file)
		}
	}
}

// exported lists what a package exports: functions, types with their methods and fields, constants
// and variables.
func exported(dir string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if f.Name.Name != path.Base(dir) {
			continue // a program
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names = append(names, function(d)...)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					names = append(names, ofSpec(d.Tok, s)...)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil // a name may have a declaration for each machine
}

func function(d *ast.FuncDecl) []string {
	if !d.Name.IsExported() {
		return nil
	}
	if d.Recv == nil {
		return []string{"func " + d.Name.Name}
	}
	of := d.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if name, ok := of.(*ast.Ident); ok && name.IsExported() {
		return []string{"method " + name.Name + "." + d.Name.Name}
	}
	return nil
}

func ofSpec(kind token.Token, s ast.Spec) (names []string) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() {
				names = append(names, kind.String()+" "+n.Name)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		names = append(names, "type "+s.Name.Name)
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			return names
		}
		for _, f := range fields.Fields.List {
			for _, n := range f.Names {
				if n.IsExported() {
					names = append(names, "field "+s.Name.Name+"."+n.Name)
				}
			}
		}
	}
	return names
}
