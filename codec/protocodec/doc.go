// Package protocodec encodes protocol buffer messages.
//
//	var Users = reka.NewTable("users", protocodec.Proto[pb.User]())
//
// declares a table of *pb.User. Messages of both generations of generated code
// will do: those of google.golang.org/protobuf, and those of
// github.com/golang/protobuf before 1.4, which only have the methods Reset,
// String and ProtoMessage and tags on their fields.
package protocodec
