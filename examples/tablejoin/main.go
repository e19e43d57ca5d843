package main

import "github.com/rekastream/reka/examples/internal/service"

func main() { service.Main(build, service.Stream(Orders.Name()), service.Table(Customers.Name())) }
