package main

import (
	"strings"
	"unicode"

	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
)

// The topics of the example. The key of a line is the text that it is from,
// the key of a word the word itself: so all of a word's records meet in one
// partition, where its row is.
var (
	Lines  = reka.NewStream("wordcount-lines", codec.String())
	Words  = reka.NewStream("wordcount-words", codec.String())
	Counts = reka.GroupTable("wordcount-counter", codec.Int64())
)

// splitter turns lines into words; the value is the text that the word is
// from.
func splitter() (*processor.Graph, error) {
	words := processor.Output(Words)
	return processor.NewGraph("wordcount-splitter", words,
		processor.Input(Lines, func(ctx *processor.Context, line string) error {
			for _, word := range strings.FieldsFunc(strings.ToLower(line), notInWord) {
				words.Emit(ctx, word, ctx.Key())
			}
			return nil
		}))
}

func notInWord(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }

// counter counts words.
func counter() (*processor.Graph, error) {
	counts := processor.Persist(Counts)
	return processor.NewGraph("wordcount-counter", counts,
		processor.Input(Words, func(ctx *processor.Context, _ string) error {
			n, _ := counts.Get(ctx)
			counts.Set(ctx, n+1)
			return nil
		}))
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	split, err := splitter()
	if err != nil {
		return nil, err
	}
	count, err := counter()
	if err != nil {
		return nil, err
	}
	first, err := processor.New(client, split)
	if err != nil {
		return nil, err
	}
	second, err := processor.New(client, count, processor.WithStorage(st))
	return []reka.Runner{second, first}, err
}
