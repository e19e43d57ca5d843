package main

import "github.com/rekastream/reka/examples/internal/service"

func main() {
	service.Main(build, service.Kept(Reports.Name()), service.Kept(Quarters.Name()), service.Kept(Late.Name()))
}
