// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// sources are the files of the package without its tests.
func sources(t *testing.T) (files []*ast.File, positions *token.FileSet) {
	t.Helper()
	positions = token.NewFileSet()
	isSource := func(file fs.FileInfo) bool { return !strings.HasSuffix(file.Name(), "_test.go") }
	packages, err := parser.ParseDir(positions, ".", isSource, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range packages["tutti"].Files {
		files = append(files, file)
	}
	if len(files) < 20 {
		t.Fatal("only", len(files), "files")
	}
	return files, positions
}

// exportedThing is an exported name with what documents it.
type exportedThing struct {
	name string
	at   token.Pos
	doc  string
}

// text is the first comment that there is.
func text(comments ...*ast.CommentGroup) string {
	for _, comment := range comments {
		if comment.Text() != "" {
			return comment.Text()
		}
	}
	return ""
}

// exportedThings are functions, methods of exported types, types with their fields and methods, constants, variables.
func exportedThings(file *ast.File) (things []exportedThing) {
	add := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		if name.IsExported() {
			things = append(things, exportedThing{name.Name, name.Pos(), text(comments...)})
		}
	}
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && receiverIsExported(function) {
			add(function.Name, function.Doc)
		}
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(spec.Name, spec.Doc, general.Doc)
				if structure, ok := spec.Type.(*ast.StructType); ok && spec.Name.IsExported() {
					addFields(structure, add)
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					add(name, spec.Doc, spec.Comment, general.Doc)
				}
			}
		}
	}
	return things
}

func addFields(structure *ast.StructType, add func(name *ast.Ident, comments ...*ast.CommentGroup)) {
	for _, field := range structure.Fields.List {
		for _, name := range field.Names {
			add(name, field.Doc, field.Comment)
		}
	}
}

func receiverIsExported(function *ast.FuncDecl) bool {
	if function.Recv == nil {
		return true
	}
	kind := function.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	name, ok := kind.(*ast.Ident)
	return ok && name.IsExported()
}

// Words that are written otherwise in Go.
var otherWords = regexp.MustCompile(`(Sgd|Csv|Gpu|Json|Url|Http|Id|Relu|Gelu|Silu|Elu|Rms|Npy|Npz|Png|Jpeg|` +
	`Tfrecord|Dtype|Idx|Bf16|Tf32|Ftrl|Lamb|Lars|Rmsprop|\dd)([A-Z]|s?$)`)

// Names of the C interface that stand for something else in Go; variables of the environment are called so everywhere.
var namesOfC = regexp.MustCompile(`\btutti_\w+|\bTUTTI_[A-Z]\w+`)

var environmentNames = map[string]bool{"TUTTI_CACHE_DIR": true, "TUTTI_JOB_SECRET": true, "TUTTI_LOG": true}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	files, positions := sources(t)
	for _, file := range files {
		for _, thing := range exportedThings(file) {
			at := positions.Position(thing.at)
			if thing.doc == "" {
				t.Errorf("%v: %s is not documented", at, thing.name)
			}
			if strings.HasPrefix(thing.name, "Get") {
				t.Errorf("%v: %s begins with Get", at, thing.name)
			}
			if otherWords.MatchString(thing.name) {
				t.Errorf("%v: %s has a word that is written otherwise", at, thing.name)
			}
		}
	}
}

func TestDocumentationHasNamesOfGo(t *testing.T) {
	var keys []string
	for _, options := range allOptions {
		for _, key := range must[[]*OptionKey](t)(OptionKeys(options)) {
			if strings.Contains(key.Key, "_") {
				keys = append(keys, key.Key)
			}
		}
	}
	if len(keys) < 20 {
		t.Fatal(keys)
	}
	optionKey := regexp.MustCompile(`\b(` + strings.Join(keys, "|") + `)\b`)
	files, positions := sources(t)
	for _, file := range files {
		for _, comment := range file.Comments {
			at, text := positions.Position(comment.Pos()), comment.Text()
			for _, name := range namesOfC.FindAllString(text, -1) {
				if !environmentNames[name] {
					t.Errorf("%v: %s is a name of C", at, name)
				}
			}
			if strings.Contains(text, "Default: .") {
				t.Errorf("%v: a default that is not there", at)
			}
			if name := optionKey.FindString(text); name != "" {
				t.Errorf("%v: the option %s has another name in Go", at, name)
			}
		}
	}
}

// Two options cannot be passed where one is taken: they are a pointer, and no list.
func TestOptionsAreNoLists(t *testing.T) {
	files, positions := sources(t)
	found := 0
	for _, file := range files {
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || !function.Name.IsExported() {
				continue
			}
			for _, parameter := range function.Type.Params.List {
				kind := parameter.Type
				ellipsis, isList := kind.(*ast.Ellipsis)
				if isList {
					kind = ellipsis.Elt
				}
				star, isPointer := kind.(*ast.StarExpr)
				if isPointer {
					kind = star.X
				}
				name, ok := kind.(*ast.Ident)
				if !ok || !strings.HasSuffix(name.Name, "Options") || name.Name == "Options" {
					continue
				}
				if found++; isList || !isPointer {
					at := positions.Position(function.Pos())
					t.Errorf("%v: %s does not take options by a pointer", at, function.Name)
				}
			}
		}
	}
	if found < 100 {
		t.Error("only", found, "functions with options")
	}
}
