package protocodec_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/codec/protocodec"
)

// oldUser is a message as protoc-gen-go wrote it before version 1.4, without
// the bookkeeping fields that were optional even then.
type oldUser struct {
	Name   string            `protobuf:"bytes,1,opt,name=name,proto3" json:"name,omitempty"`
	Visits int64             `protobuf:"varint,2,opt,name=visits,proto3" json:"visits,omitempty"`
	Tags   map[string]string `protobuf:"bytes,3,rep,name=tags,proto3" json:"tags,omitempty" protobuf_key:"bytes,1,opt,name=key,proto3" protobuf_val:"bytes,2,opt,name=value,proto3"`
	Photo  []byte            `protobuf:"bytes,4,opt,name=photo,proto3" json:"photo,omitempty"`
}

func (m *oldUser) Reset()         { *m = oldUser{} }
func (m *oldUser) String() string { return fmt.Sprintf("name:%q visits:%d", m.Name, m.Visits) }
func (m *oldUser) ProtoMessage()  {}

func TestMessagesOfTheOldGeneration(t *testing.T) {
	c := protocodec.Proto[oldUser]()
	in := &oldUser{Name: "ann", Visits: 300, Tags: map[string]string{"a": "b"}, Photo: []byte{1, 2}}
	b, err := c.Append([]byte("before "), in)
	if err != nil {
		t.Fatal(err)
	}
	want := "before \x0a\x03ann\x10\xac\x02\x1a\x06\x0a\x01a\x12\x01b\x22\x02\x01\x02"
	if string(b) != want {
		t.Errorf("encoded %q, want %q", b, want)
	}
	out, err := c.Decode(b[len("before "):])
	if err != nil {
		t.Fatal(err)
	}
	clear(b) // belongs to the caller
	if out.Name != "ann" || out.Visits != 300 || out.Tags["a"] != "b" || !bytes.Equal(out.Photo, []byte{1, 2}) {
		t.Errorf("decoded %+v", out)
	}
}

func TestMessagesOfTheNewGeneration(t *testing.T) {
	list, err := structpb.NewList([]any{"a", 1.5, nil, map[string]any{"k": true}})
	if err != nil {
		t.Fatal(err)
	}
	roundTrips(t, protocodec.Proto[wrapperspb.StringValue](), wrapperspb.String("text"), "\x0a\x04text")
	roundTrips(t, protocodec.Proto[wrapperspb.BytesValue](), wrapperspb.Bytes([]byte("raw")), "\x0a\x03raw")
	roundTrips(t, protocodec.Proto[timestamppb.Timestamp](), &timestamppb.Timestamp{Seconds: 1, Nanos: 2}, "\x08\x01\x10\x02")
	roundTrips(t, protocodec.Proto[structpb.ListValue](), list, "")
}

func roundTrips[P proto.Message](t *testing.T, c codec.Codec[P], in P, want string) {
	t.Helper()
	b, err := c.Append(nil, in)
	if err != nil {
		t.Fatal(err)
	}
	if want != "" && string(b) != want {
		t.Errorf("encoded %q, want %q", b, want)
	}
	out, err := c.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	clear(b) // belongs to the caller
	if !proto.Equal(in, out) {
		t.Errorf("%v became %v", in, out)
	}
}

func TestNoBytesAreTheMessageWithoutFields(t *testing.T) {
	c := protocodec.Proto[wrapperspb.Int64Value]()
	b, err := c.Append(nil, &wrapperspb.Int64Value{})
	if err != nil || len(b) != 0 {
		t.Errorf("encoded %q, %v", b, err)
	}
	if v, err := c.Decode(nil); err != nil || v == nil || v.Value != 0 {
		t.Errorf("decoded %v, %v", v, err)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	_, nilErr := protocodec.Proto[oldUser]().Append(nil, nil)
	_, brokenErr := protocodec.Proto[wrapperspb.StringValue]().Decode([]byte("\x0a\x09text"))
	_, oldErr := protocodec.Proto[oldUser]().Decode([]byte{0xff})
	_, requiredErr := protocodec.Proto[descriptorpb.UninterpretedOption_NamePart]().Append(nil, &descriptorpb.UninterpretedOption_NamePart{})
	_, lackingErr := protocodec.Proto[descriptorpb.UninterpretedOption_NamePart]().Decode(nil)
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"nil", nilErr, "codec: protobuf protocodec_test.oldUser: found nil, want a message"},
		{"broken", brokenErr, "codec: protobuf wrapperspb.StringValue: "},
		{"broken, old generation", oldErr, "codec: protobuf protocodec_test.oldUser: "},
		{"required field", requiredErr, "required"},
		{"required field in bytes", lackingErr, "required"},
	}
	for _, tt := range tests {
		var e *codec.Error
		if !errors.As(tt.err, &e) || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, tt.err, tt.want)
		}
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	c := protocodec.Proto[wrapperspb.StringValue]()
	in := []byte("\x0a\x04text\x7a\x03new")
	v, err := c.Decode(in)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Append(nil, v); err != nil || !bytes.Equal(in, out) {
		t.Errorf("%q became %q, %v", in, out, err)
	}
}

func TestEqualMessagesHaveEqualEncodings(t *testing.T) {
	c := protocodec.Proto[oldUser]()
	encode := func() []byte {
		u := &oldUser{Tags: map[string]string{}}
		for i := range 50 {
			u.Tags[fmt.Sprint(i)] = "x"
		}
		b, err := c.Append(nil, u)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := encode()
	for range 20 {
		if !bytes.Equal(first, encode()) {
			t.Fatal("encodings differ")
		}
	}
	loose := protocodec.Proto[oldUser](protocodec.WithDeterministic(false))
	b, err := loose.Append(nil, &oldUser{Name: "ann"})
	if err != nil || string(b) != "\x0a\x03ann" {
		t.Errorf("encoded %q, %v", b, err)
	}
}

func TestMessagesAreNotPlain(t *testing.T) {
	if codec.IsPlain(protocodec.Proto[wrapperspb.Int64Value]()) {
		t.Error("plain")
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	c := protocodec.Proto[wrapperspb.StringValue]()
	buf, v := make([]byte, 0, 64), wrapperspb.String("text")
	if n := testing.AllocsPerRun(100, func() { _, _ = c.Append(buf, v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "\x0a\x04text", "\x10\xac\x02", "\x1a\x06\x0a\x01a\x12\x01b", "\xff", "\x0a\xff\xff\xff\xff\x0f"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		stable(t, protocodec.Proto[oldUser](), b)
		stable(t, protocodec.Proto[structpb.Value](), b)
		stable(t, protocodec.Proto[timestamppb.Timestamp](), b)
	})
}

// stable checks that what is decoded has an encoding that decodes to the same.
func stable[P any](t *testing.T, c codec.Codec[P], b []byte) {
	t.Helper()
	before := bytes.Clone(b)
	v, err := c.Decode(b)
	if !bytes.Equal(before, b) {
		t.Fatalf("%T changed its argument", c)
	}
	if err != nil {
		return
	}
	first, err := c.Append(nil, v)
	if err != nil {
		t.Fatalf("%q has no encoding any more: %v", b, err)
	}
	again, err := c.Decode(first)
	if err != nil {
		t.Fatalf("own encoding %q: %v", first, err)
	}
	if second, err := c.Append(nil, again); err != nil || !bytes.Equal(first, second) {
		t.Fatalf("%q became %q, %v", first, second, err)
	}
}
