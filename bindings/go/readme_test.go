// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"os"
	"strings"
	"testing"
)

func TestReadmeShowsHello(t *testing.T) {
	readme := string(must[[]byte](t)(os.ReadFile("README.md")))
	_, program, found := strings.Cut(readme, "```go\n")
	program, _, closing := strings.Cut(program, "```")
	hello, err := os.ReadFile("../../examples/go/hello/main.go")
	if err != nil {
		t.Skip("the module is not in its tree:", err)
	}
	if !found || !closing || !strings.HasSuffix(string(hello), program) || len(program) < 500 {
		t.Error("README.md and examples/go/hello/main.go are not the same program")
	}
}
