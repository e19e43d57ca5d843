package stream_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?s)```go\n(.*?)```")
	textBlock = regexp.MustCompile("(?s)```text\n(.*?)```")
	outputs   = regexp.MustCompile(`(?m)^\t// Output:\n((?:\t// .*\n)+)`)
)

// plain is a text with one space for any white space.
func plain(text string) string { return strings.Join(strings.Fields(text), " ") }

func readAll(t *testing.T, pattern string) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	return texts
}

// What the documents show is what the examples run, and what these print.
func TestDocumentsShowWhatTheExamplesRun(t *testing.T) {
	var code, printed []string
	for _, text := range readAll(t, "example_*_test.go") {
		code = append(code, plain(text))
		for _, m := range outputs.FindAllStringSubmatch(text, -1) {
			printed = append(printed, plain(strings.ReplaceAll(m[1], "\t// ", "")))
		}
	}
	in := func(texts []string, block string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, block) })
	}
	for _, doc := range []string{"streams.md", "time.md", "joins.md", "coming-from-kafka-streams.md", "../README.md"} {
		text := readAll(t, filepath.Join("..", "docs", doc))[0]
		if doc == "../README.md" {
			_, text, _ = strings.Cut(text, "## Streams")
		}
		for _, m := range codeBlock.FindAllStringSubmatch(text, -1) {
			if !in(code, plain(m[1])) {
				t.Errorf("%s: no example has\n%s", doc, m[1])
			}
		}
		for _, m := range textBlock.FindAllStringSubmatch(text, -1) {
			if !in(printed, plain(m[1])) {
				t.Errorf("%s: no example prints\n%s", doc, m[1])
			}
		}
	}
}

// Every operation and option is in the documents.
func TestDocumentsKnowEveryOperation(t *testing.T) {
	words := regexp.MustCompile(`\w+`)
	known := map[string]bool{}
	for _, doc := range []string{"streams.md", "time.md", "joins.md"} {
		for _, w := range words.FindAllString(readAll(t, filepath.Join("..", "docs", doc))[0], -1) {
			known[w] = true
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Name.Name == "String" || f.Name.Name == "Error" || f.Recv != nil && strings.ToLower(receiver(f)[:1]) == receiver(f)[:1] {
				continue
			}
			if !known[f.Name.Name] {
				t.Errorf("%s is in no document", f.Name.Name)
			}
		}
	}
}

// receiver is the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	name := ""
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return true
	})
	return name
}
