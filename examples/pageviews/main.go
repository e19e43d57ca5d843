package main

import "github.com/rekastream/reka/examples/internal/service"

func main() {
	service.Main(build, service.Stream(Views.Name()), service.Windows(Regions.Name()), service.Stream(Late.Name()))
}
