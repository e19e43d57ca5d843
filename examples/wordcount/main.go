package main

import "github.com/rekastream/reka/examples/internal/service"

func main() { service.Main(build, service.Stream(Lines.Name()), service.Stream(Words.Name())) }
