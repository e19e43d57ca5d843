package reka_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This file checks the rules that hold the house together: who may import
// whom, what the core module may depend on, and a few habits that a compiler
// does not see.

const modulePath = "github.com/rekastream/reka"

// floors says on which floor a package stands; packages below it in the tree
// stand with it. Imports go down only, never up and never sideways.
var floors = map[string]int{
	"internal/work": -1,

	"codec": 0, "kafka": 0, "storage": 0, "window": 0, "internal/rows": 0,

	".": 1, "internal/assign": 1, "internal/graph": 1, "internal/replica": 1,

	"internal/task": 2, "storage/badgerstore": 2, "storage/storagetest": 2, "kafka/kafkatest": 2, "codec/protocodec": 2,

	"processor": 3, "view": 3, "emitter": 3, "tester": 3,

	"stream": 4, "query": 4,

	"examples": 5, "systemtest": 5, "cmd": 5, "benchmarks": 6,
}

// keepers are the only packages that may import a library whose types must
// not spread.
var keepers = map[string]string{
	"github.com/IBM/sarama":       "kafka",
	"github.com/dgraph-io/badger": "storage/badgerstore",
	"github.com/golang/protobuf":  "codec/protocodec",
	"google.golang.org/protobuf":  "codec/protocodec",
}

// dependencies are all that the core module may require directly.
var dependencies = []string{
	"github.com/IBM/sarama",
	"github.com/dgraph-io/badger/v4",
	"github.com/golang/protobuf",
	"go.uber.org/zap",
	"google.golang.org/protobuf",
}

// lineWall is the longest that a file may be.
const lineWall = 600

// source is one Go file of the repository.
type source struct {
	path    string // from the root, with slashes
	text    string
	file    *ast.File
	fset    *token.FileSet
	core    bool // belongs to the core module
	test    bool
	written bool // by a person: not generated
}

func (s *source) at(p token.Pos) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(p).Line)
}

func sources(t *testing.T) []*source {
	t.Helper()
	var out []*source
	other := map[string]bool{} // folders of other modules
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		if d.IsDir() {
			if p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
				return fs.SkipDir
			}
			if _, err := os.Stat(path.Join(p, "go.mod")); err == nil && p != "." {
				other[p] = true
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		s := &source{path: p, core: true, test: strings.HasSuffix(p, "_test.go"), fset: token.NewFileSet()}
		for dir := range other {
			s.core = s.core && !strings.HasPrefix(p, dir+"/")
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		s.text = string(b)
		if s.file, err = parser.ParseFile(s.fset, p, b, parser.ParseComments); err != nil {
			return err
		}
		s.written = !ast.IsGenerated(s.file)
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("only %d files found", len(out))
	}
	return out
}

// floorOf returns the listed package that dir stands with, and its floor.
func floorOf(dir string) (string, int, bool) {
	for d := dir; ; d = path.Dir(d) {
		if n, ok := floors[d]; ok && (d != "." || dir == ".") {
			return d, n, true
		}
		if d == "." {
			return "", 0, false
		}
	}
}

// imports returns what a file imports, with the place of each.
func (s *source) imports() map[string]string {
	out := map[string]string{}
	for _, i := range s.file.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil {
			out[p] = s.at(i.Pos())
		}
	}
	return out
}

// Test files are left out: the compiler refuses cycles, and a door's examples
// run on the tester.
func TestImportsGoDownOnly(t *testing.T) {
	for _, s := range sources(t) {
		from, floor, ok := floorOf(path.Dir(s.path))
		if !ok {
			t.Errorf("%s: its package stands on no floor", s.path)
			continue
		}
		if s.test {
			continue
		}
		for p, at := range s.imports() {
			if p != modulePath && !strings.HasPrefix(p, modulePath+"/") {
				continue
			}
			dir := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(p, modulePath), "/"), ".")
			to, below, ok := floorOf(dir)
			switch {
			case !ok:
				t.Errorf("%s: imports %s, which stands on no floor", at, p)
			case to != from && below >= floor:
				t.Errorf("%s: %s (floor %d) imports %s (floor %d)", at, from, floor, to, below)
			}
		}
	}
}

func TestLibrariesStayWithTheirKeepers(t *testing.T) {
	for _, s := range sources(t) {
		if !s.core {
			continue
		}
		for p, at := range s.imports() {
			for library, keeper := range keepers {
				if (p == library || strings.HasPrefix(p, library+"/")) && path.Dir(s.path) != keeper {
					t.Errorf("%s: only %s may import %s", at, keeper, p)
				}
			}
		}
	}
}

func TestCoreModuleDependsOnWhatIsListed(t *testing.T) {
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	require := regexp.MustCompile(`(?m)^(?:require )?\s*([\w.\-/]+\.[\w.\-/]+) (v\S+)( // indirect)?$`)
	found := map[string]string{}
	for _, m := range require.FindAllStringSubmatch(string(b), -1) {
		if m[3] == "" {
			found[m[1]] = m[2]
		}
	}
	if len(found) == 0 {
		t.Fatal("no requirement found in go.mod")
	}
	for _, p := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(dependencies, p) {
			t.Errorf("go.mod requires %s directly; put what needs it into a module of its own", p)
		}
	}
	// Earlier ones reorder records or stand still under retries.
	if v := found["github.com/IBM/sarama"]; !atLeast(v, "v1.61.1") {
		t.Errorf("sarama %s is below v1.61.1", v)
	}
}

// atLeast compares two versions without suffix.
func atLeast(v, floor string) bool {
	a, b := strings.Split(strings.TrimPrefix(v, "v"), "."), strings.Split(strings.TrimPrefix(floor, "v"), ".")
	for i := range b {
		if i >= len(a) {
			return false
		}
		x, errX := strconv.Atoi(a[i])
		y, errY := strconv.Atoi(b[i])
		if errX != nil || errY != nil || x != y {
			return errX == nil && errY == nil && x > y
		}
	}
	return true
}

func TestNoFileIsTooLong(t *testing.T) {
	for _, s := range sources(t) {
		if n := strings.Count(s.text, "\n"); s.written && n > lineWall {
			t.Errorf("%s has %d lines, the wall is %d", s.path, n, lineWall)
		}
	}
}

// Sleeping makes tests slow or wrong, and a library blind: time goes through
// kafka.Clock, tests use virtual time or wait for a condition. Tests of
// packages that use synctest may sleep: there it moves virtual time; programs
// in modules of their own may pace themselves.
func TestNobodySleeps(t *testing.T) {
	all := sources(t)
	virtual := map[string]bool{}
	for _, s := range all {
		if s.test && importName(s.file, "testing/synctest") != "" {
			virtual[path.Dir(s.path)] = true
		}
	}
	for _, s := range all {
		if s.test && virtual[path.Dir(s.path)] || !s.test && !s.core {
			continue
		}
		name := importName(s.file, "time")
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Sleep" {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && name != "" && x.Name == name {
				t.Errorf("%s: %s.Sleep", s.at(sel.Pos()), name)
			}
			return true
		})
	}
}

// importName returns the name under which a file knows a package, or "".
func importName(f *ast.File, importPath string) string {
	for _, i := range f.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err != nil || p != importPath {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

var machinePath = regexp.MustCompile(`(^|[^\w.:/}])/(home|root|Users|work|tmp)/\w`)

// The project runs anywhere, so no file of it names a place of one machine.
func TestNoFileNamesMachinePaths(t *testing.T) {
	for _, s := range sources(t) {
		for i, line := range strings.Split(s.text, "\n") {
			if m := machinePath.FindString(line); m != "" {
				t.Errorf("%s:%d: %q", s.path, i+1, strings.TrimSpace(line))
			}
		}
	}
}

func TestHouseRulesSeeTheirViolations(t *testing.T) {
	for line, want := range map[string]bool{
		`dir := "/` + `home/me/x"`: true, "// see /" + "tmp/x": true,
		`"/users/" + name`: false, "a/home/b": false, "mux.Handle(\"GET /top\", h)": false,
	} {
		if machinePath.MatchString(line) != want {
			t.Errorf("%q: want %v", line, want)
		}
	}
	for v, want := range map[string]bool{"v1.61.1": true, "v1.62.0": true, "v2.0.0": true, "v1.61.0": false, "v1.9.9": false, "": false} {
		if atLeast(v, "v1.61.1") != want {
			t.Errorf("atLeast(%q): want %v", v, want)
		}
	}
	if _, _, ok := floorOf("nowhere/else"); ok {
		t.Error("an unknown package stands on a floor")
	}
	if d, n, _ := floorOf("kafka/kafkatest/deep"); d != "kafka/kafkatest" || n != 2 {
		t.Errorf("floor of a package below another: %s %d", d, n)
	}
}
