package main

import (
	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
)

// Click is what happens: a user, the record's key, looked at a page.
type Click struct {
	Page string `json:"page"`
}

// Row is what is known of a user.
type Row struct {
	Clicks int64 `json:"clicks"`
}

const partitions = 6

// names are the names of one run of the demo, so that runs on the same
// cluster have nothing to do with each other.
type names struct{ run string }

func (n names) group() string { return "clickcount-" + n.run }

func (n names) clicks() reka.Stream[Click] {
	return reka.NewStream(n.group()+"-clicks", codec.JSON[Click]())
}

func (n names) counts() reka.Table[Row] { return reka.GroupTable(n.group(), codec.JSON[Row]()) }
