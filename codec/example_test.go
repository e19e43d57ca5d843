package codec_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/rekastream/reka/codec"
)

func ExampleJSON() {
	type Click struct {
		Page string `json:"page"`
	}
	clicks := codec.JSON[Click]()
	b, err := clicks.Append(nil, Click{Page: "home"})
	fmt.Println(string(b), err)
	_, err = clicks.Decode([]byte(`{"page":"home"} and more`))
	fmt.Println(err)
	// Output:
	// {"page":"home"} <nil>
	// codec: JSON of codec_test.Click: found "{\"page\":\"home\"} and more": invalid character 'a' after top-level value
}

func ExampleInt64() {
	b, _ := codec.Int64().Append(nil, 258)
	fmt.Printf("% x\n", b)
	_, err := codec.Int64().Decode([]byte("258"))
	fmt.Println(err)
	// Output:
	// 00 00 00 00 00 00 01 02
	// codec: int64: found 3 bytes, want 8 bytes
}

func ExampleInt64Key() {
	keys := codec.Int64Key()
	encoded := []string{keys.Encode(10), keys.Encode(-3), keys.Encode(9)}
	slices.Sort(encoded)
	for _, s := range encoded {
		k, _ := keys.Decode(s)
		fmt.Println(k)
	}
	// Output:
	// -3
	// 9
	// 10
}

func ExamplePairKey() {
	visits := codec.PairKey(codec.StringKey(), codec.Int64Key())
	type visit = codec.Pair[string, int64]
	all := []string{
		visits.Encode(visit{"ann", 2}),
		visits.Encode(visit{"anna", 1}),
		visits.Encode(visit{"ann", 1}),
	}
	from := visits.Encode(visit{"ann", math.MinInt64})
	to := visits.Encode(visit{"ann", math.MaxInt64})
	slices.Sort(all)
	for _, s := range all {
		if from <= s && s <= to {
			v, _ := visits.Decode(s)
			fmt.Println(v.First, v.Second)
		}
	}
	// Output:
	// ann 1
	// ann 2
}
