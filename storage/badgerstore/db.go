package badgerstore

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/rekastream/reka/storage"
)

const (
	mib = 1 << 20

	// memtable is a constant of the format: Badger ends the process if a log
	// does not fit the memtable it is replayed into.
	memtable  = 16 * mib
	memtables = 3

	// chunkSize is the longest value in one row. Twice of it and the longest
	// key go into one request of Badger's, which is 15 % of a memtable.
	chunkSize = 512 << 10
)

// badgerOptions are the settings that reads, writes and the checks before an
// open rely on.
func badgerOptions(dir string, cfg config) badger.Options {
	return badger.DefaultOptions(dir).
		WithLogger(badgerLog{cfg.log}).
		WithBypassLockGuard(!badgerLocks).
		WithMetricsEnabled(false).
		// Rows are durable in the order in which they are written.
		WithSyncWrites(true).
		WithNumVersionsToKeep(1).
		WithDetectConflicts(false).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithChecksumVerificationMode(options.OnBlockRead).
		// Nothing reaches the value log.
		WithValueThreshold(mib).
		WithValueLogFileSize(mib).
		WithMemTableSize(memtable).
		WithNumMemtables(memtables).
		WithBaseTableSize(8 * mib).
		WithBaseLevelSize(32 * mib).
		WithNumLevelZeroTables(3).
		WithNumLevelZeroTablesStall(6).
		WithNumCompactors(2)
}

// db is an open state directory.
type db struct {
	// fixed after openDB
	dir    *directory
	cfg    config
	badger *badger.DB
	latest *badger.Txn // reads the newest of everything; keeps no state
	vers   *versions
	names  *names

	// gate is held for reading by every call that reaches Badger, for at
	// most one batch or one step of a scan, and for writing to close.
	gate   sync.RWMutex
	closed bool               // guarded by gate
	damage atomic.Value       // error: why nothing works any more
	space  space              // guards the disk
	snaps  map[*snapshot]bool // guarded by mu

	mu     sync.Mutex
	tables map[storage.TableID]*table // held ones
}

// openDB opens a directory, which no one in this process has open. Damaged
// rows are set aside once.
func openDB(path string, cfg config) (*db, error) {
	dir, err := openDirectory(path, cfg.log)
	if err != nil {
		return nil, placed(path, err)
	}
	d := &db{
		dir:    dir,
		cfg:    cfg,
		snaps:  map[*snapshot]bool{},
		tables: map[storage.TableID]*table{},
	}
	if err = d.dir.prepare(); err == nil {
		err = d.openRows()
	}
	if errors.Is(err, storage.ErrDamaged) {
		if err = d.dir.setAside(err.Error()); err == nil {
			err = d.openRows()
		}
	}
	if err != nil {
		_ = dir.unlock()
		return nil, placed(path, err)
	}
	return d, nil
}

func (d *db) openRows() error {
	opt := badgerOptions(d.dir.rows(), d.cfg)
	return d.safely(func() error {
		found, err := verifyRows(opt.Dir, opt)
		if err != nil {
			return err
		}
		d.space = space{dir: d.dir.path, free: d.cfg.free, written: found.logs, tables: found.tables}
		if err := d.space.check(0); err != nil {
			return err
		}
		if d.badger, err = badger.OpenManaged(opt); err != nil {
			return openError(err)
		}
		d.latest = d.badger.NewTransactionAt(math.MaxUint64, false)
		d.vers = newVersions(d.badger.MaxVersion(), d.badger.SetDiscardTs)
		d.space.ask = d.tableBytes
		if d.names, err = loadNames(d); err != nil {
			return errors.Join(err, d.badger.Close())
		}
		return err
	})
}

// openError sorts what Badger's Open returns: trouble with the system stays
// what it is, all else means that its files do not make sense.
func openError(err error) error {
	err = writeError(err)
	if errors.Is(err, storage.ErrFull) {
		return err
	}
	if strings.Contains(err.Error(), "Cannot acquire directory lock") {
		return fmt.Errorf("%w: %w", storage.ErrLocked, err)
	}
	for _, n := range []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EMFILE, syscall.ENFILE,
		syscall.ENOMEM, syscall.EROFS, syscall.EIO, syscall.EDQUOT} {
		if isErrno(err, n) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
}

// writeError makes a full disk known as such.
func writeError(err error) error {
	if err != nil && (isErrno(err, syscall.ENOSPC) || isErrno(err, syscall.EDQUOT)) {
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	return err
}

// isErrno looks into the text too: Badger wraps most errors as text.
func isErrno(err error, n syscall.Errno) bool {
	return errors.Is(err, n) || strings.Contains(err.Error(), n.Error())
}

// enter lets a call through to Badger. Each enter without an error is paired
// with a leave. Calls do not nest: a waiting close would block the inner one.
func (d *db) enter() error {
	d.gate.RLock()
	err, _ := d.damage.Load().(error)
	if d.closed {
		err = storage.ErrClosed
	}
	if err != nil {
		d.gate.RUnlock()
	}
	return err
}

func (d *db) leave() { d.gate.RUnlock() }

// do runs f, which may use Badger, between enter and leave. Damage that f
// finds, or panics over, closes the store to everybody.
func (d *db) do(f func() error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	err := d.safely(f)
	if errors.Is(err, storage.ErrDamaged) && d.damage.CompareAndSwap(nil, err) {
		d.dir.markDamaged(err)
	}
	return err
}

// safely turns a panic of Badger's, or a fault in a file that it has mapped,
// into ErrDamaged.
func (d *db) safely(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", storage.ErrDamaged, p)
		}
	}()
	return f()
}

// tableBytes is the size of all tables on disk.
func (d *db) tableBytes() (n int64) {
	for _, t := range d.badger.Tables() {
		n += int64(t.OnDiskSize)
	}
	return n
}

// close ends all that is open and waits for running calls, each of which
// takes a bounded time; a snapshot that nobody released does not hold it up.
func (d *db) close() error {
	d.gate.Lock()
	d.closed = true
	d.mu.Lock()
	for s := range d.snaps {
		s.end()
	}
	d.mu.Unlock()
	d.gate.Unlock()
	err := d.safely(func() error {
		d.latest.Discard()
		return writeError(d.badger.Close())
	})
	if uerr := d.dir.unlock(); err == nil {
		err = uerr
	}
	return placed(d.dir.path, err)
}

// placed names the place of an error.
func placed(place string, err error) error {
	if err == nil {
		return nil
	}
	return &storage.Error{Place: place, Err: err}
}
