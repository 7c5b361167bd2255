package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/perfcorrect/perfcorrect"

// TestArchitecture holds the imports of every package to the table in
// docs/architecture.md, which has to name every package.
func TestArchitecture(t *testing.T) {
	allowed := architectureTable(t)
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		if pkg == "" {
			continue // main.go, which may import cli
		}
		pkg = pkg[1:]
		may, ok := allowed[pkg]
		if !ok {
			// A package inside another one is that one's business.
			parent, _, nested := strings.Cut(pkg, "/")
			if may, ok = allowed[parent]; !nested || !ok {
				t.Errorf("package %s is not in the table of docs/architecture.md", pkg)
				continue
			}
		}
		seen[pkg] = true
		for _, imp := range fields[1:] {
			imp, ours := strings.CutPrefix(imp, module+"/")
			if !ours || imp == pkg || strings.HasPrefix(imp, rootOf(pkg)+"/") {
				continue
			}
			if !slices.Contains(may, "all") && !slices.Contains(may, rootOf(imp)) {
				t.Errorf("package %s imports %s; docs/architecture.md allows %v", pkg, imp, may)
			}
		}
	}
	for pkg := range allowed {
		if !seen[pkg] {
			t.Errorf("docs/architecture.md has a package %s that does not exist", pkg)
		}
	}
}

func rootOf(pkg string) string {
	root, _, _ := strings.Cut(pkg, "/")
	return root
}

// architectureTable returns for each package of the table what it may import.
// A row is: | `package` | sentence | `import`, `import` |; "-" means nothing
// and "all" everything.
func architectureTable(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		name := strings.TrimSpace(cells[0])
		if len(cells) != 3 || !strings.HasPrefix(name, "`") {
			continue
		}
		imports := []string{}
		for imp := range strings.SplitSeq(cells[2], ",") {
			if imp = strings.Trim(imp, " `"); imp != "-" {
				imports = append(imports, imp)
			}
		}
		table[strings.Trim(name, "`")] = imports
	}
	if len(table) < 5 {
		t.Fatalf("docs/architecture.md: found %d packages in its table", len(table))
	}
	return table
}
