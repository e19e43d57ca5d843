package main

import (
	"github.com/rekastream/reka"
	"github.com/rekastream/reka/codec"
	"github.com/rekastream/reka/kafka"
	"github.com/rekastream/reka/processor"
	"github.com/rekastream/reka/storage"
	"github.com/rekastream/reka/stream"
)

// Employee works in a department, whose key it has; Entry is what the
// directory says of an employee. The keys are the ids of each.
type (
	Employee struct {
		Name       string `json:"name"`
		Department string `json:"department,omitempty"` // empty: in none
	}
	Department struct {
		Title string `json:"title"`
		Floor int    `json:"floor"`
	}
	Entry struct {
		Name  string `json:"name"`
		Title string `json:"title"`
		Floor int    `json:"floor,omitempty"`
	}
)

// The topics of the example. They may have different numbers of partitions.
var (
	Employees   = reka.NewTable("directory-employees", codec.JSON[Employee]())
	Departments = reka.NewTable("directory-departments", codec.JSON[Department]())
	Directory   = reka.NewTable("directory", codec.JSON[Entry]())
)

func directory() (*processor.Graph, error) {
	b := stream.NewBuilder("directory-builder")
	employees := stream.FromTable(b, Employees, stream.Named("employees"))
	departments := stream.FromTable(b, Departments, stream.Named("departments"))
	stream.LeftJoinForeign(employees, departments, worksIn, entry,
		stream.Named("entries"), stream.WithCodec(Directory.Codec())).
		To(Directory)
	return b.Graph()
}

func worksIn(_ string, e Employee) (string, bool) { return e.Department, e.Department != "" }

func entry(_ string, e Employee, d *Department) Entry {
	if d == nil {
		return Entry{Name: e.Name, Title: "to be found"}
	}
	return Entry{Name: e.Name, Title: d.Title, Floor: d.Floor}
}

func build(client *kafka.Client, st storage.Builder) ([]reka.Runner, error) {
	g, err := directory()
	if err != nil {
		return nil, err
	}
	p, err := processor.New(client, g, processor.WithStorage(st))
	return []reka.Runner{p}, err
}
