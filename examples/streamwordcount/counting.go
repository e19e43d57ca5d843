package main

import (
	"strings"
	"unicode"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/stream"
)

// The topics of the example. The key of a line is the text that it is from,
// the key of a count the word.
var (
	Lines  = reka.NewStream("streamwordcount-lines", codec.String())
	Counts = reka.NewTable("streamwordcount-counts", codec.Int64Text())
)

// counting counts words. GroupBy gives each word to the one partition that
// counts it, by way of a topic of the group's own.
func counting() (*processor.Graph, error) {
	b := stream.NewBuilder("streamwordcount")
	words := stream.FlatMapValues(stream.From(b, Lines), split, stream.WithCodec(codec.String()))
	words.GroupBy(theWord, stream.Named("words")).
		Count(stream.Named("counts")).
		To(Counts)
	return b.Graph()
}

func split(_, line string, emit func(word string)) {
	for _, word := range strings.FieldsFunc(strings.ToLower(line), notInWord) {
		emit(word)
	}
}

func notInWord(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }

func theWord(_, word string) string { return word }

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := counting()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
