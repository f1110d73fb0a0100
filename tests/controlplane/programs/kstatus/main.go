// Prints the status of each object on stdin, a JSON document a line, as kstatus computes it: that of its own module, and
// that of Flux, which has a copy.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	flux "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigs "sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(lines.Bytes(), object); err != nil {
			fail(err)
		}
		first, err := sigs.Compute(object)
		if err != nil {
			fail(err)
		}
		second, err := flux.Compute(object)
		if err != nil {
			fail(err)
		}
		fmt.Println(first.Status, second.Status)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
