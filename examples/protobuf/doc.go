// Command protobuf keeps the warmest and the coldest reading of each sensor.
// Its values are Protocol Buffers messages.
package main

//go:generate protoc --go_out=. --go_opt=paths=source_relative sensorpb/sensor.proto
