package soak

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/storage/badgerstore"
)

// readStores reads the closed stores of those who owned partitions.
func (r *run) readStores() error {
	for i := range r.h.Tables {
		t := &r.h.Tables[i]
		for k := range t.Claims {
			c := &t.Claims[k]
			var dir string
			r.nemesis.ask(func() {
				for _, p := range r.nemesis.fleet {
					if p.name == c.Process {
						dir = p.dir
					}
				}
			})
			var err error
			if c.Stored, err = readStore(dir, storage.TableID{Name: t.Group + "/store:table", Partition: c.Partition}); err != nil {
				return fmt.Errorf("store of %s: %w", c.Process, err)
			}
		}
	}
	return nil
}

// timeBytes is the record's time before each stored value.
const timeBytes = 8

func readStore(dir string, id storage.TableID) (rows map[string]row, err error) {
	st, err := badgerstore.In(dir).Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	table, err := st.Table(id.Name, id.Partition)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	snap, err := table.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	rows = map[string]row{}
	for kv, err := range snap.Scan(storage.Range{}) {
		if err != nil {
			return nil, err
		}
		var v row
		if len(kv.Value) < timeBytes {
			return nil, fmt.Errorf("row of %q has %d bytes", kv.Key, len(kv.Value))
		}
		if err := json.Unmarshal(kv.Value[timeBytes:], &v); err != nil {
			return nil, fmt.Errorf("row of %q: %w", kv.Key, err)
		}
		rows[string(kv.Key)] = v
	}
	return rows, nil
}
