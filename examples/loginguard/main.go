package main

import "github.com/rekastream/reka/examples/internal/service"

func main() { service.Main(build, service.Stream(Logins.Name()), service.Stream(Locks.Name())) }
