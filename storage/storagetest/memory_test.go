package storagetest_test

import (
	"testing"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/storagetest"
)

func TestMemory(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Builder { return storage.Memory() })
}
