package main

import "github.com/rekastream/reka/examples/internal/service"

func main() {
	service.Main(build, service.Table(Employees.Name()), service.Table(Departments.Name()), service.Table(Directory.Name()))
}
