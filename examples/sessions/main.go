package main

import "github.com/rekastream/reka/examples/internal/service"

func main() {
	service.Main(build, service.Stream(Clicks.Name()), service.Windows(Visits.Name()), service.Stream(Ended.Name()))
}
