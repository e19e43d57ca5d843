package protocodec_test

import (
	"fmt"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rekastream/reka/codec/protocodec"
)

func ExampleProto() {
	names := protocodec.Proto[wrapperspb.StringValue]()
	b, err := names.Append(nil, wrapperspb.String("ann"))
	fmt.Printf("% x %v\n", b, err)
	v, err := names.Decode(b)
	fmt.Println(v.Value, err)
	// Output:
	// 0a 03 61 6e 6e <nil>
	// ann <nil>
}
