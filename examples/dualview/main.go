package main

import "github.com/rekastream/reka/examples/internal/service"

func main() {
	service.Main(build, service.Table(Machines.Name()), service.Table(Entered.Name()), service.Table(Now.Name()), service.Stream(Broken.Name()))
}
