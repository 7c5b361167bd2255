package record

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if IsHelper() {
		os.Exit(Helper())
	}
	os.Exit(m.Run())
}
