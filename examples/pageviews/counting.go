package main

import (
	"time"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/stream"
	"github.com/rekastream/reka/window"
)

// PageView is a page that somebody has looked at; the key is the user.
type PageView struct {
	Page   string `json:"page"`
	Region string `json:"region"`
}

// fiveMinutes takes views that are up to a minute late.
var fiveMinutes = window.Tumbling(5*time.Minute, time.Minute)

// The topics of the example. The key of a count is the region.
var (
	Views   = reka.NewStream("page-views", codec.JSON[PageView]())
	Regions = reka.NewWindowTable("page-views-per-region", fiveMinutes, codec.Int64Text())
	Late    = reka.NewStream("page-views-late", codec.JSON[PageView]())
)

func counting() (*processor.Graph, error) {
	b := stream.NewBuilder("page-views-counter")
	stream.From(b, Views).
		GroupBy(region, stream.Named("by-region")).
		Windowed(fiveMinutes).Late(Late).
		Count(stream.Named("counts")).
		OnClose().
		To(Regions)
	return b.Graph()
}

func region(_ string, v PageView) string { return v.Region }
