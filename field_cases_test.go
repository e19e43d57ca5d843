package reka_test

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`([a-z]+)\\.(Test\\w+)`")
	namedCase = regexp.MustCompile("`([a-z]+): ([^`]+)`")
)

// Every test and every case of a suite that docs/field-cases.md names exists,
// and every line of it names one.
func TestFieldCasesNameTestsThatExist(t *testing.T) {
	b, err := os.ReadFile("docs/field-cases.md")
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	for _, s := range sources(t) {
		pkg := path.Base(path.Dir(s.path))
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if s.test && n.Recv == nil {
					exist[pkg+"."+n.Name.Name] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && strings.HasSuffix(pkg, "test") {
					exist[pkg+": "+text] = true
				}
			}
			return true
		})
	}
	lines := 0
	for line := range strings.SplitSeq(string(b), "\n") {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		lines++
		var names []string
		for _, m := range namedTest.FindAllStringSubmatch(line, -1) {
			names = append(names, m[1]+"."+m[2])
		}
		for _, m := range namedCase.FindAllStringSubmatch(line, -1) {
			names = append(names, m[1]+": "+m[2])
		}
		if len(names) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, n := range names {
			if !exist[n] {
				t.Errorf("%s does not exist: %s", n, line)
			}
		}
	}
	if lines < 40 {
		t.Errorf("only %d lines found", lines)
	}
}
