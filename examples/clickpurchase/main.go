package main

import "github.com/rekastream/reka/examples/internal/service"

func main() {
	service.Main(build, service.Stream(Clicks.Name()), service.Stream(Purchases.Name()), service.Stream(Sales.Name()),
		service.Stream(Lost.Name()), service.Stream(LatePurchases.Name()))
}
