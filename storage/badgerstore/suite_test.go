package badgerstore

import (
	"testing"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Builder { return In(t.TempDir()) })
}
