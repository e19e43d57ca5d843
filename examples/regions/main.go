package main

import "github.com/rekastream/reka/examples/internal/service"

func main() {
	service.Main(build, service.Table(People.Name()), service.Table(Regions.Name()))
}
