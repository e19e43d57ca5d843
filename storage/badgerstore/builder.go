package badgerstore

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"go.uber.org/zap"

	"github.com/rekastream/reka/storage"
)

// In returns the state kept in a directory. The directory is made, with mode
// 0700, when the store is first opened; it may lie on a mount point.
//
// All stores that one process opens in the same directory, through the same
// Builder or another one, are one: counted by user, closed by the last. A
// second process gets storage.ErrLocked. The options of whoever opens first
// apply. An empty dir is refused when the store is opened.
func In(dir string, opts ...Option) storage.Builder {
	if dir == "" { // which Clean would make the working directory
		return &builder{cfg: defaults()}
	}
	b := &builder{dir: filepath.Clean(dir), cfg: defaults()}
	for _, o := range opts {
		if o != nil {
			o(&b.cfg)
		}
	}
	return b
}

// Option changes how a directory is opened.
type Option func(*config)

// WithLogger sets where warnings go: state that had to be set aside, and what
// Badger itself has to say (its information as debug). The default is silence.
func WithLogger(l *zap.Logger) Option {
	return func(c *config) {
		if l != nil {
			c.log = l
		}
	}
}

// config is what options set. The functions are the seams of this package's
// own tests.
type config struct {
	log  *zap.Logger
	free func(dir string) (uint64, error) // bytes that may still be written
	hash func(key []byte) [hashSize]byte  // of keys too long for Badger
}

func defaults() config {
	return config{log: zap.NewNop(), free: freeBytes, hash: hashKey}
}

type builder struct {
	dir string
	cfg config
}

func (b *builder) String() string { return b.dir }

func (b *builder) Open() (storage.Store, error) {
	if b.dir == "" {
		return nil, &storage.Error{Place: "badger", Err: errors.New("In was given no directory")}
	}
	dir, err := realDir(b.dir)
	if err != nil {
		return nil, &storage.Error{Place: b.dir, Err: err}
	}
	sh := shared(dir)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.users == 0 {
		if sh.db, err = openDB(dir, b.cfg); err != nil {
			return nil, err
		}
	}
	sh.users++
	return &store{sh: sh, db: sh.db, open: map[*table]struct{}{}}, nil
}

// realDir makes the directory and returns its one name.
func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// sharedDB is the one open store of a directory in this process.
type sharedDB struct {
	mu    sync.Mutex // held while opening and closing: one waits for the other
	users int
	db    *db
}

// release takes one user away; the last one closes.
func (sh *sharedDB) release() error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.users--
	if sh.users > 0 {
		return nil
	}
	d := sh.db
	sh.db = nil
	return d.close()
}

// directories holds a sharedDB for each directory this process ever opened.
// Entries stay: they are small, and a name may be in use by a waiting Open.
var directories struct {
	mu  sync.Mutex
	all map[string]*sharedDB
}

func shared(dir string) *sharedDB {
	directories.mu.Lock()
	defer directories.mu.Unlock()
	if directories.all == nil {
		directories.all = map[string]*sharedDB{}
	}
	sh := directories.all[dir]
	if sh == nil {
		sh = &sharedDB{}
		directories.all[dir] = sh
	}
	return sh
}
